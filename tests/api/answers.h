/* SPDX-License-Identifier: MIT
 *
 * Answers: what tern_generate gives for a request, and what the scheduler's events say.
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

/* What tern_generate answers in a new session, without drafts. */
void answer_generate(struct answer *out, struct tern_engine *engine, const struct tern_model *model,
                     const struct tern_request *request, uint32_t n_ctx, enum tern_kv kv);

/* A request that was submitted. */
struct running {
    const struct tern_request *request;
    const struct answer *want;
    uint64_t id;
    struct answer got;
    struct tern_generate_result result; /* at its end */
    bool has_ended;
    bool is_cancelled;
};

/* Adds what an event says of it. */
void running_take_event(struct running *r, const struct tern_event *event);
/* It has ended with all of the answer, or with a beginning of it where it was cancelled before. */
void running_check(const struct running *r);

#endif
