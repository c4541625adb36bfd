/* SPDX-License-Identifier: MIT
 *
 * The demo model, and sessions of 512 positions with it, for the tests of sessions and of their
 * head.
 */
#ifndef TEST_SESSION_FIXTURE_H
#define TEST_SESSION_FIXTURE_H

#include "demo.h"
#include "tern/tern.h"

#define N_IDS 300u /* more than one block of the cache */

static struct demo demo;
static struct tern_engine *engine;
static struct tern_model *model;
static uint32_t vocab;
static uint32_t ids[N_IDS];

static inline int setup(void **state)
{
    (void)state;
    if (!demo_open(&demo, MODEL_PATH, 2))
        return 1;
    engine = demo.engine;
    model = demo.model;
    vocab = demo.vocab;
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = i * 7919u % 4000u;
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    demo_close(&demo);
    return 0;
}

static inline struct tern_session *open_session(struct tern_engine *with, enum tern_kv kv,
                                         uint32_t n_batch)
{
    struct tern_session *s;
    struct tern_session_params p = {.n_ctx = 512, .kv = kv, .n_batch = n_batch};
    assert_ok(tern_session_create(&s, with, model, &p, &e));
    return s;
}

#endif
