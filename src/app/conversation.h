/* SPDX-License-Identifier: MIT
 *
 * The turns of a conversation, and their ids.  The whole conversation is rendered and encoded anew
 * for every answer; what the session's cache already holds is found by comparing ids.
 */
#ifndef TN_CONVERSATION_H
#define TN_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "tern/tern.h"

struct tn_turn {
    const char *role; /* "user" or "assistant" */
    struct tn_buf text;
};

/* Zero-initialise; tn_conversation_fini frees. */
struct tn_conversation {
    struct tn_buf system;
    bool has_system;
    struct tn_turn *turns;
    size_t n_turns;
    size_t capacity;
};

void tn_conversation_fini(struct tn_conversation *c);
/* Forgets the turns, keeps the system message. */
void tn_conversation_clear(struct tn_conversation *c);
tern_status tn_conversation_set_system(struct tn_conversation *c, const char *text, size_t n,
                                       struct tern_error *err);
/* A new last turn; its text may grow through the pointer until the next call. */
tern_status tn_conversation_add(struct tn_conversation *c, const char *role, const char *text,
                                size_t n, struct tn_turn **turn, struct tern_error *err);
/* Removes the last turn if it has this role; false otherwise. */
bool tn_conversation_remove_last(struct tn_conversation *c, const char *role);
/* Takes the last turn out if it has this role; *out is the caller's until it is put back, for which
 * there is room as long as no more turns were added than removed. */
bool tn_conversation_take_last(struct tn_conversation *c, const char *role, struct tn_turn *out);
void tn_conversation_put_back(struct tn_conversation *c, const struct tn_turn *turn);
/* The first question behind turn `from`; n_turns when there is none. */
size_t tn_conversation_next_question(const struct tn_conversation *c, size_t from);
/* Removes the first n turns. */
void tn_conversation_drop(struct tn_conversation *c, size_t n);

/* Replaces *out by the ids of the conversation without its first `from` turns, ready for the next
 * answer. */
tern_status tn_conversation_encode(const struct tn_conversation *c, size_t from,
                                   const struct tern_model *model,
                                   const struct tern_chat_template *t, struct tern_ids *out,
                                   struct tern_error *err);

#endif
