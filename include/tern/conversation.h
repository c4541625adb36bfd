/* SPDX-License-Identifier: MIT
 *
 * A conversation: messages, their ids through a chat template, answers, saving and loading.
 *
 *   struct tern_conversation *c;  tern_conversation_create(&c, &err);
 *   tern_conversation_set_template(c, tokenizer, template, &chat_params);
 *   tern_conversation_add(c, &question, &err);
 *   tern_conversation_answer(c, session, &params, &result, &err);
 *
 * The whole conversation is rendered and encoded again for every answer; ids that equal those in
 * the session's cache are not computed again.  When the context is full, the model no longer sees
 * the oldest turns; they stay in the conversation.  One thread at a time may use a conversation.
 */
#ifndef TERN_CONVERSATION_H
#define TERN_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/tern.h"
#include "tern/thinking.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tern_conversation;

/* UTF-8; bytes NULL: absent. */
struct tern_text {
    const char *bytes;
    size_t n;
};

/* One message.  The template does not see absent members. */
struct tern_turn {
    struct tern_text role; /* "user", "assistant", "tool": any text, the template decides */
    struct tern_text content;
    struct tern_text reasoning;    /* of an answer: the model's reasoning before it */
    struct tern_text name;         /* of the speaker */
    struct tern_text tool_calls;   /* of an answer: a JSON array in OpenAI's format */
    struct tern_text tool_call_id; /* of a tool result */
};

/* Creates one without messages and without a template.  TERN_MEMORY. */
tern_status tern_conversation_create(struct tern_conversation **out, struct tern_error *err);
void tern_conversation_free(struct tern_conversation *c);

/* Sets the tokenizer and the template, both borrowed like the texts in params.  May be called again
 * for another model: the messages stay and are rendered again. */
void tern_conversation_set_template(struct tern_conversation *c,
                                    const struct tern_tokenizer *tokenizer,
                                    const struct tern_chat_template *t,
                                    const struct tern_chat_params *params);

/* ---- messages ---- */

/* Sets the system message; NULL removes it.  TERN_USAGE, with the template's error message, if the
 * template cannot express one, or if the text is not UTF-8: nothing is changed; TERN_MEMORY. */
tern_status tern_conversation_set_system(struct tern_conversation *c, const char *text, size_t n,
                                         struct tern_error *err);
/* Inputs of templates in addition to the messages: a JSON array of tools, a JSON object of
 * variables such as {"enable_thinking": false}; NULL removes.  Stored without blanks, as in a saved
 * conversation. TERN_USAGE: other JSON, or nested more deeply than a saved conversation can hold
 * (64 levels in total). */
tern_status tern_conversation_set_tools(struct tern_conversation *c, const char *json, size_t n,
                                        struct tern_error *err);
tern_status tern_conversation_set_variables(struct tern_conversation *c, const char *json, size_t n,
                                            struct tern_error *err);
/* Variables that override those of the same names above and belong to the program, not to the
 * conversation: they are not saved, and loading keeps them.  NULL removes.  Errors as above. */
tern_status tern_conversation_set_overrides(struct tern_conversation *c, const char *json, size_t n,
                                            struct tern_error *err);
struct tern_text tern_conversation_system(const struct tern_conversation *c);
struct tern_text tern_conversation_variables(const struct tern_conversation *c);

/* Appends a copy of a message.  TERN_USAGE: no role, a text that is not UTF-8, or tool calls that
 * are not a JSON array. */
tern_status tern_conversation_add(struct tern_conversation *c, const struct tern_turn *turn,
                                  struct tern_error *err);
/* Number of messages, without the system message. */
size_t tern_conversation_n_turns(const struct tern_conversation *c);
/* Message i below n_turns; valid until the conversation changes. */
void tern_conversation_get(const struct tern_conversation *c, size_t i, struct tern_turn *out);
/* The number of leading messages that the model no longer sees, because the context was full. */
size_t tern_conversation_n_forgotten(const struct tern_conversation *c);
/* Removes the messages, keeps system message, tools and variables. */
void tern_conversation_clear(struct tern_conversation *c);
/* Removes the last message of role "user" and all after it; false if there is none. */
bool tern_conversation_undo(struct tern_conversation *c);
/* Removes messages from the end until n_turns remain; no effect if there are no more than that. */
void tern_conversation_truncate(struct tern_conversation *c, size_t n_turns);

/* Replaces *out by the ids of the messages that the model sees, ready for the next answer.  Errors
 * as tern_chat_encode; TERN_USAGE without a template. */
tern_status tern_conversation_encode(const struct tern_conversation *c, struct tern_ids *out,
                                     struct tern_error *err);

/* ---- answers ---- */

struct tern_answer_params {
    /* Sampler, limits, stop strings; its on_text is not used. The sampler is seeded anew for each
     * answer: `seed` plus the number of answers so far, so that saving and loading a conversation
     * does not change its next answer. */
    struct tern_generate_params generate;
    uint64_t seed;
    /* Text of the answer, or of the reasoning before it (without tags such as <think>). Returns
     * false to stop. May be NULL. */
    bool (*on_part)(void *arg, enum tern_part part, const char *text, size_t n);
    /* The ids that will be evaluated in the session.  May be NULL. */
    void (*on_ids)(void *arg, const uint32_t *ids, size_t n);
    /* Called while the messages are rendered and encoded; the session's is called later.  May be
     * NULL. */
    bool (*should_stop)(void *arg);
    void *arg; /* of these three callbacks */
};

struct tern_answer_result {
    struct tern_generate_result generate;
    uint32_t n_ids;     /* of the conversation with the answer, without the stop id */
    size_t n_forgotten; /* messages that this answer, but no earlier one, left out */
};

/* Answers the last message and appends the answer, even an incomplete one.  When the context has no
 * room for max_tokens (at most a quarter of the context), the oldest turns, each from a question to
 * the next, are left out until the context is three quarters full, so that not every answer has to
 * recompute everything.  System message and last turn stay; the work grows with the logarithm of
 * the number of turns.  Errors as tern_generate and tern_conversation_encode, TERN_LIMIT: the last
 * turn alone does not fit, TERN_INTERRUPTED: should_stop, before the first token; on an error
 * nothing is changed. */
tern_status tern_conversation_answer(struct tern_conversation *c, struct tern_session *session,
                                     const struct tern_answer_params *params,
                                     struct tern_answer_result *result, struct tern_error *err);
/* Replaces the last answer by a new one; on an error the old one stays.  TERN_USAGE: there is none.
 */
tern_status tern_conversation_regenerate(struct tern_conversation *c, struct tern_session *session,
                                         const struct tern_answer_params *params,
                                         struct tern_answer_result *result, struct tern_error *err);
/* The last message, of role user, replaces the question before it and everything in between; on an
 * error all stay.  TERN_USAGE: it is not a question, or there is none before it. */
tern_status tern_conversation_replace(struct tern_conversation *c, struct tern_session *session,
                                      const struct tern_answer_params *params,
                                      struct tern_answer_result *result, struct tern_error *err);
/* Continues the last answer: appends new text to it.  TERN_USAGE: there is none. */
tern_status tern_conversation_continue(struct tern_conversation *c, struct tern_session *session,
                                       const struct tern_answer_params *params,
                                       struct tern_answer_result *result, struct tern_error *err);

/* ---- files ---- */

/* The contents of a saved conversation besides its messages. */
struct tern_saved {
    const char *model_name;
    uint64_t model_hash;  /* tern_model_hash */
    const char *settings; /* a JSON object of the caller's, or NULL */
};

/* Writes a JSON file with a checksum: complete, or not at all.  Only its owner may read it.
 * Replaces an existing saved conversation, and refuses (TERN_OUTPUT) to replace any other or
 * damaged file. TERN_MEMORY, TERN_OUTPUT; TERN_LIMIT: more than 256 MiB. */
tern_status tern_conversation_save(const struct tern_conversation *c, const char *path,
                                   const struct tern_saved *saved, struct tern_error *err);
/* The checksum of a saved conversation whose last line follows these n bytes. */
uint64_t tern_conversation_checksum(const char *text, size_t n);
/* Replaces all messages, the system message, tools and variables by those of a file. `expected`
 * names the model in use. *settings, if not NULL, is new memory (tern_text_free), NULL if the file
 * has none. TERN_INPUT: missing, damaged, not a saved conversation, or of another model (both
 * names); then nothing is changed. */
tern_status tern_conversation_load(struct tern_conversation *c, const char *path,
                                   const struct tern_saved *expected, char **settings,
                                   struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
