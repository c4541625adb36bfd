/* SPDX-License-Identifier: MIT
 *
 * A conversation: messages, their ids through a chat template, answers, saving and loading.
 *
 *   struct tern_conversation *c;  tern_conversation_create(&c, &err);
 *   tern_conversation_set_template(c, tokenizer, template, &chat_params);
 *   tern_conversation_add(c, &question, &err);
 *   tern_conversation_answer(c, session, &params, &result, &err);
 *
 * The whole conversation is rendered and encoded anew for every answer; what the session's cache
 * already holds is found by comparing ids.  When the context is full the oldest turns are left out
 * of what the model sees; they stay in the conversation.  One thread at a time uses one.
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

/* One message. What is absent is not shown to the template. */
struct tern_turn {
    struct tern_text role; /* "user", "assistant", "tool": free, the template decides */
    struct tern_text content;
    struct tern_text reasoning;    /* of an answer: what the model thought before it */
    struct tern_text name;         /* of the speaker */
    struct tern_text tool_calls;   /* of an answer: a JSON array as OpenAI writes it */
    struct tern_text tool_call_id; /* of a tool's result */
};

/* Without messages and without a template. TERN_MEMORY. */
tern_status tern_conversation_create(struct tern_conversation **out, struct tern_error *err);
void tern_conversation_free(struct tern_conversation *c);

/* The tokenizer and the template that make ids of it, all borrowed, with the texts in params. Again
 * for another model: the messages stay and are rendered anew. */
void tern_conversation_set_template(struct tern_conversation *c,
                                    const struct tern_tokenizer *tokenizer,
                                    const struct tern_chat_template *t,
                                    const struct tern_chat_params *params);

/* ---- messages ---- */

/* The system message; NULL removes it. TERN_USAGE with the template's words when it cannot express
 * one, or the text is not UTF-8, and nothing is changed; TERN_MEMORY. */
tern_status tern_conversation_set_system(struct tern_conversation *c, const char *text, size_t n,
                                         struct tern_error *err);
/* What templates are given beside the messages: a JSON array of tools, a JSON object of variables
 * such as {"enable_thinking": false}; NULL removes. JSON is kept without blanks, as a saved
 * conversation has it. TERN_USAGE: not such JSON, or nested deeper than a saved conversation can
 * hold (with the rest of it 64 levels). */
tern_status tern_conversation_set_tools(struct tern_conversation *c, const char *json, size_t n,
                                        struct tern_error *err);
tern_status tern_conversation_set_variables(struct tern_conversation *c, const char *json, size_t n,
                                            struct tern_error *err);
/* Variables that replace those of the same names above and belong to the program, not to the
 * conversation: they are not saved, and loading keeps them. NULL removes. Errors as above. */
tern_status tern_conversation_set_overrides(struct tern_conversation *c, const char *json, size_t n,
                                            struct tern_error *err);
struct tern_text tern_conversation_system(const struct tern_conversation *c);
struct tern_text tern_conversation_variables(const struct tern_conversation *c);

/* Appends a message, which is copied. TERN_USAGE: no role, a text that is not UTF-8, or tool calls
 * that are no JSON array. */
tern_status tern_conversation_add(struct tern_conversation *c, const struct tern_turn *turn,
                                  struct tern_error *err);
/* Messages without the system message. */
size_t tern_conversation_n_turns(const struct tern_conversation *c);
/* Message i below n_turns; valid until the conversation changes. */
void tern_conversation_get(const struct tern_conversation *c, size_t i, struct tern_turn *out);
/* The first messages that the model no longer sees, because the context was full. */
size_t tern_conversation_n_forgotten(const struct tern_conversation *c);
/* Forgets the messages, keeps system message, tools and variables. */
void tern_conversation_clear(struct tern_conversation *c);
/* Removes the last message of role "user" and all behind it; false when there is none. */
bool tern_conversation_undo(struct tern_conversation *c);
/* Removes messages from the end until n_turns are left; no effect when there are not more. */
void tern_conversation_truncate(struct tern_conversation *c, size_t n_turns);

/* Replaces *out by the ids of what the model sees, ready for the next answer. Errors as
 * tern_chat_encode; TERN_USAGE without a template. */
tern_status tern_conversation_encode(const struct tern_conversation *c, struct tern_ids *out,
                                     struct tern_error *err);

/* ---- answers ---- */

struct tern_answer_params {
    /* Sampler, limits, stop strings; its on_text is not used. The sampler is seeded anew for each
     * answer: `seed` plus the number of answers so far, so that a conversation that was saved and
     * loaded goes on as if it had not been. */
    struct tern_generate_params generate;
    uint64_t seed;
    /* Text of the answer, or of what the model thinks before it (between <think> and </think> and
     * the like, which are not given). Returns false to stop. May be NULL. */
    bool (*on_part)(void *arg, enum tern_part part, const char *text, size_t n);
    /* The ids that will be brought to the session. May be NULL. */
    void (*on_ids)(void *arg, const uint32_t *ids, size_t n);
    /* Asked while the prompt is made of the messages, as the session's is later. May be NULL. */
    bool (*should_stop)(void *arg);
    void *arg; /* of these three */
};

struct tern_answer_result {
    struct tern_generate_result generate;
    uint32_t n_ids;     /* of the conversation with the answer, the stop id not counted */
    size_t n_forgotten; /* messages that were left out for this answer and not before */
};

/* Answers the last message and appends the answer, also one that was stopped on its way. The oldest
 * turns, each from a question to the next, are left out when the context has no room for max_tokens
 * (a quarter of the context at most); as many as make it three quarters full, so that not every
 * answer has to compute everything anew. System message and last turn stay; the work grows with
 * the logarithm of the number of turns. Errors as tern_generate and tern_conversation_encode,
 * TERN_LIMIT: the last turn alone does not fit, TERN_INTERRUPTED: should_stop, before
 * the first token; without success nothing is changed. */
tern_status tern_conversation_answer(struct tern_conversation *c, struct tern_session *session,
                                     const struct tern_answer_params *params,
                                     struct tern_answer_result *result, struct tern_error *err);
/* Another answer instead of the last one, which stays without success. TERN_USAGE: there is none.
 */
tern_status tern_conversation_regenerate(struct tern_conversation *c, struct tern_session *session,
                                         const struct tern_answer_params *params,
                                         struct tern_answer_result *result, struct tern_error *err);
/* The last message, of role user, takes the place of the question before it and of what is between;
 * without success all stay. TERN_USAGE: it is no question, or there is none before it. */
tern_status tern_conversation_replace(struct tern_conversation *c, struct tern_session *session,
                                      const struct tern_answer_params *params,
                                      struct tern_answer_result *result, struct tern_error *err);
/* Goes on with the last answer: what comes is appended to it. TERN_USAGE: there is none. */
tern_status tern_conversation_continue(struct tern_conversation *c, struct tern_session *session,
                                       const struct tern_answer_params *params,
                                       struct tern_answer_result *result, struct tern_error *err);

/* ---- files ---- */

/* What a saved conversation says beside its messages. */
struct tern_saved {
    const char *model_name;
    uint64_t model_hash;  /* tern_model_hash */
    const char *settings; /* a JSON object of the caller's, or NULL */
};

/* Writes a JSON file with a checksum: complete, or not at all. Only its owner may read it. An
 * existing file is replaced when it is a saved conversation, and refused (TERN_OUTPUT) when it is
 * anything else or damaged. TERN_MEMORY, TERN_OUTPUT; TERN_LIMIT: more than 256 MiB. */
tern_status tern_conversation_save(const struct tern_conversation *c, const char *path,
                                   const struct tern_saved *saved, struct tern_error *err);
/* The checksum that a saved conversation has when these n bytes lie before its last line. */
uint64_t tern_conversation_checksum(const char *text, size_t n);
/* Replaces all messages, the system message, tools and variables by those of a file. `expected`
 * names the model in use. *settings, if not NULL, is new memory (tern_text_free), NULL where the
 * file holds none. TERN_INPUT: missing, damaged, no saved conversation, of another model (both
 * names); then nothing is changed. */
tern_status tern_conversation_load(struct tern_conversation *c, const char *path,
                                   const struct tern_saved *expected, char **settings,
                                   struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
