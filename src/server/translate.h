/* SPDX-License-Identifier: MIT
 *
 * Requests of other APIs as those of OpenAI's chat completions, which the rest of the server reads.
 * Values of the request are shared, not copied.
 */
#ifndef TN_TRANSLATE_H
#define TN_TRANSLATE_H

#include "server/task.h"

/* Notes a failure, so that many steps need one check at their end. */
struct tn_translation {
    bool failed; /* no memory */
};

/* Each takes the reference to `value`; NULL: there was no memory for it. */
void tn_translation_set(struct tn_translation *t, json_t *object, const char *key, json_t *value);
void tn_translation_add(struct tn_translation *t, json_t *array, json_t *value);
/* object[key] = from[from_key], if it is there. */
void tn_translation_share(struct tn_translation *t, json_t *object, const char *key,
                          const json_t *from, const char *from_key);
/* {"type":"function","function":{"name":...}}, of the name in `from`. */
json_t *tn_translation_function(struct tn_translation *t, const json_t *from);
/* The same with the rest of a tool whose schema has another name. */
json_t *tn_translation_tool(struct tn_translation *t, const json_t *tool, const char *schema_key);
/* The same with the id and the arguments of a call. */
json_t *tn_translation_call(struct tn_translation *t, const json_t *call, const char *id_key,
                            const char *arguments_key);

/* out["response_format"] of {"format":{"type":"json_schema","schema":{...},"strict":true}}; none
 * without a format, or of NULL. */
void tn_translation_form(struct tn_translation *t, json_t *out, const json_t *holder);
/* A new message of a conversation, which owns it; NULL when something failed. */
json_t *tn_translation_message(struct tn_translation *t, json_t *messages, const char *role);

/* The texts `key` of the parts of a type, a line each, as a new string; NULL: there are none. */
json_t *tn_translation_join(struct tn_translation *t, const json_t *parts, const char *type,
                            const char *key);

/* Gives `value` back when all went well; else frees it and refuses. */
json_t *tn_translation_end(const struct tn_translation *t, json_t *value, struct tn_refusal *r);

/* Before a conversation is translated: what that takes, until it has become ids.
 * false: refused. */
bool tn_translation_hold(struct tn_task *task, struct tn_refusal *r);
/* Each takes the reference to what a translation gave; NULL: it was refused.  The task's body
 * becomes `body`, and its parameters are read.  The task's prompt becomes the ids of `messages`; a
 * part of a tn_task_prepare_fn.  false: refused. */
bool tn_translation_read(struct tn_task *task, json_t *body, struct tn_refusal *r);
bool tn_translation_encode(struct tn_task *task, json_t *messages, struct tn_refusal *r);

/* A POST /v1/messages: parameters and tools; the conversation.  NULL: refused. */
json_t *tn_messages_parameters(const json_t *request, struct tn_refusal *r);
json_t *tn_messages_conversation(const json_t *request, struct tn_refusal *r);
/* The same of a POST /v1/responses. */
json_t *tn_responses_parameters(const json_t *request, struct tn_refusal *r);
json_t *tn_responses_conversation(const json_t *request, struct tn_refusal *r);

#endif
