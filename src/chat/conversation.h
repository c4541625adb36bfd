/* SPDX-License-Identifier: MIT
 *
 * The structs of a conversation, shared by the files of this folder.
 *
 * Programs see include/tern/conversation.h only.
 */
#ifndef TN_CONVERSATION_H
#define TN_CONVERSATION_H

#include "base/buf.h"
#include "tern/conversation.h"

/* The texts of a message, in the order of struct tern_turn. */
enum tn_field {
    TN_FIELD_ROLE,
    TN_FIELD_CONTENT,
    TN_FIELD_REASONING,
    TN_FIELD_NAME,
    TN_FIELD_TOOL_CALLS,
    TN_FIELD_TOOL_CALL_ID,
    TN_N_FIELDS
};

struct tn_turn {
    struct tn_buf fields[TN_N_FIELDS];
    bool has[TN_N_FIELDS];
    bool is_thinking;    /* the answer ended inside its reasoning */
    struct tern_ids ids; /* as sampled; empty if loaded, given, or cut by a stop string */
};

struct tern_conversation {
    const struct tern_tokenizer *tokenizer;
    const struct tern_chat_template *t;
    struct tern_chat_params params;
    struct tn_buf system, tools, variables, overrides;
    bool has_system, has_tools, has_variables, has_overrides;
    struct tn_turn *turns;
    size_t n_turns, capacity;
    size_t n_forgotten; /* the model sees turns [n_forgotten, n_turns) */
    uint64_t n_answers; /* number of answers so far, including removed ones */
};

struct tern_text tn_turn_text(const struct tn_turn *turn, enum tn_field field);
bool tn_turn_is(const struct tn_turn *turn, const char *role);
void tn_turn_fini(struct tn_turn *turn);
/* Appends an empty turn.  NULL: out of memory. */
struct tn_turn *tn_conversation_push(struct tern_conversation *c, const char *role);
/* Frees everything but tokenizer and template. */
void tn_conversation_empty(struct tern_conversation *c);

/* Where later conversations are likely to diverge from turns [first, n), whose encoding is `ids`.
 */
void tn_conversation_marks(struct tern_chat_marks *out, const struct tern_conversation *c,
                           size_t first, size_t n, const struct tern_ids *ids);
/* Encodes the turns [first, n). */
tern_status tn_conversation_encode_turns(const struct tern_conversation *c, size_t first, size_t n,
                                         struct tern_ids *out, struct tern_error *err);
/* Appends [{"role": ...}, ...] for the turns [first, n), preceded by the system message if
 * `with_system`.
 */
void tn_conversation_write_messages(struct tn_buf *out, const struct tern_conversation *c,
                                    size_t first, size_t n, bool with_system);

#endif
