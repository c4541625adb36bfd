/* SPDX-License-Identifier: MIT
 *
 * The demo model and an engine, as most tests of the public API need them.
 *
 * Used by the test programs of this folder.
 */
#ifndef TEST_DEMO_H
#define TEST_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/tern.h"

struct demo {
    struct tern_sysinfo machine;
    struct tern_engine *engine;
    struct tern_model *model;
    uint32_t vocab;
    const char *path;
};

/* Converts the demo model to `path`, which no other test program uses.  false: the reason is on
 * stderr. */
bool demo_open(struct demo *demo, const char *path, uint32_t n_threads);
/* Also removes the file. */
void demo_close(struct demo *demo);

/* For a call that takes &e as its error. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        struct tern_error e = {TERN_OK, ""};                                                       \
        if ((call) != TERN_OK)                                                                     \
            fail_msg("%s: %s", #call, e.detail);                                                   \
    } while (0)

#endif
