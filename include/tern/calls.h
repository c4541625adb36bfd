/* SPDX-License-Identifier: MIT
 *
 * Tool calls in an answer, detected while its text streams.
 *
 *   tagged      text <tool_call>{"name": "f", "arguments": {...}}</tool_call> ...   Qwen, Hermes
 *   parameters  text <tool_call><function=f><parameter=p>...</parameter>
 *               </function></tool_call> ...                        Qwen3-Coder, Qwen3.5
 *   bare        {"name": "f", "parameters": {...}}, which is the whole answer        LLaMA 3.1
 *
 * The chat template decides which of them a model writes, because it asks the model for it.  The
 * first two are read alike, whichever of them the template asks for.
 */
#ifndef TERN_CALLS_H
#define TERN_CALLS_H

#include "tern/chat.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tern_call_form { TERN_CALLS_TAGGED, TERN_CALLS_BARE, TERN_CALLS_PARAMETERS };

/* The form that a template asks for when it renders this conversation, an object with "messages"
 * and "tools" (tern_chat_render_json).  TERN_UNSUPPORTED: it does not support tools, or asks for
 * another form; other errors as for tern_chat_render_json. */
tern_status tern_chat_call_form(enum tern_call_form *out, const struct tern_chat_template *t,
                                const char *json, size_t n_json,
                                const struct tern_chat_params *params, struct tern_error *err);

struct tern_calls;

struct tern_call {
    const char *name;
    const char *arguments; /* JSON as the model writes it, without white space between values */
    size_t n_text; /* bytes of the text outside calls that precede it */
};

/* The functions that a request offers: an array as "tools" of tern_chat_render_json, as JSON.
 * TERN_INPUT: no JSON; TERN_MEMORY. */
struct tern_call_tools;
tern_status tern_call_tools_create(struct tern_call_tools **out, const char *json, size_t n,
                                   struct tern_error *err);
void tern_call_tools_free(struct tern_call_tools *tools);

/* A call is reported when it is complete and is valid JSON, of which an object may lack the last
 * brace; otherwise it stays text.  With is_early, it is reported as soon as its name is known and
 * its arguments begin: the arguments then arrive in pieces and may turn out not to be JSON.
 * TERN_MEMORY. */
tern_status tern_calls_create(struct tern_calls **out, enum tern_call_form form, bool is_early,
                              struct tern_error *err);
void tern_calls_free(struct tern_calls *calls);
/* Before the first push: the functions, which must exist as long as `calls` and may be shared.
 * Their schemas give values between <parameter=...> tags their types; without them, what can be
 * read as JSON is JSON.  With them, in the tagged form, an object that calls one of the functions
 * counts without tags too: at the start of the answer or after a call, and in a block of code. */
void tern_calls_set_tools(struct tern_calls *calls, const struct tern_call_tools *tools);
/* Before the first push: reports the first call only, and discards what follows it. */
void tern_calls_set_single(struct tern_calls *calls);
/* After tern_calls_set_single: is the call complete?  What follows is discarded. */
bool tern_calls_has_ended(const struct tern_calls *calls);
/* Takes more of the answer; holds back text that may belong to a call.  TERN_MEMORY. */
tern_status tern_calls_push(struct tern_calls *calls, const char *text, size_t n,
                            struct tern_error *err);
/* Ends the answer: held-back text becomes a call or text.  TERN_MEMORY. */
tern_status tern_calls_end(struct tern_calls *calls, struct tern_error *err);
/* The text outside calls since the last time, *n bytes, valid until the next push. */
const char *tern_calls_take_text(struct tern_calls *calls, size_t *n);
/* The calls so far, tern_calls_count of them; valid until the next push. */
size_t tern_calls_count(const struct tern_calls *calls);
struct tern_call tern_calls_get(const struct tern_calls *calls, size_t i);

#ifdef __cplusplus
}
#endif
#endif
