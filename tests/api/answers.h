/* SPDX-License-Identifier: MIT
 *
 * Answers as tests compare them: the result of tern_generate for a request, and the same request's
 * events from the scheduler.
 */
#ifndef TEST_ANSWERS_H
#define TEST_ANSWERS_H

#include "tern/scheduler.h"

#define MAX_NEW 64u
#define MAX_TEXT 1024u

struct answer {
    uint32_t ids[MAX_NEW];
    uint32_t n;
    char text[MAX_TEXT];
    size_t n_text;
    enum tern_stop stop;
};

/* Generates in a new session, without drafts. */
void answer_generate(struct answer *out, struct tern_engine *engine, const struct tern_model *model,
                     const struct tern_request *request, uint32_t n_ctx, enum tern_kv kv);

/* Submits n requests that give n_new ids each, and runs the scheduler until all have ended.  out
 * [n][n_new] are their ids. */
void answers_schedule(uint32_t *out, uint32_t n_new, struct tern_engine *engine,
                      const struct tern_model *model, const struct tern_scheduler_params *params,
                      const struct tern_request *requests, uint32_t n);

/* A submitted request. */
struct running {
    const struct tern_request *request;
    const struct answer *want;
    uint64_t id;
    struct answer got;
    struct tern_generate_result result; /* valid at its end */
    bool has_ended;
    bool is_cancelled;
};

/* Adds an event of the request. */
void running_take_event(struct running *r, const struct tern_event *event);
/* Checks that it ended with the whole answer, or with a prefix if it was cancelled. */
void running_check(const struct running *r);

#endif
