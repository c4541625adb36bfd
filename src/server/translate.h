/* SPDX-License-Identifier: MIT
 *
 * Translates requests of other APIs to OpenAI's chat completions, which the rest of the server
 * reads. Values of the request are shared, not copied.
 */
#ifndef TN_TRANSLATE_H
#define TN_TRANSLATE_H

#include "server/task.h"

/* Records a failure, so that many steps need one check at their end. */
struct tn_translation {
    bool failed; /* out of memory */
};

/* Each consumes the reference to `value`; NULL counts as out of memory. */
void tn_translation_set(struct tn_translation *t, json_t *object, const char *key, json_t *value);
void tn_translation_add(struct tn_translation *t, json_t *array, json_t *value);
/* object[key] = from[from_key], if present. */
void tn_translation_share(struct tn_translation *t, json_t *object, const char *key,
                          const json_t *from, const char *from_key);
/* {"type":"function","function":{"name":...}} with the name from `from`. */
json_t *tn_translation_function(struct tn_translation *t, const json_t *from);
/* The same with the id and the arguments of a call, and the name of its "namespace", if any. */
json_t *tn_translation_call(struct tn_translation *t, const json_t *call, const char *id_key,
                            const char *arguments_key);

/* How an API describes a tool. */
struct tn_tool_form {
    const char *type, *schema_key;
    bool is_default;     /* the type of a tool without one */
    const char *group;   /* the type of a named list of tools; NULL: there are none */
    const char *omitted; /* types that begin so are left out beside other tools; NULL: none */
};

/* Sets out["tools"] from the request's.  A function of a group is named GROUP.FUNCTION, because two
 * groups may have functions of the same name.  false: refused. */
bool tn_translation_tools(struct tn_translation *t, json_t *out, const json_t *request,
                          const struct tn_tool_form *form, struct tn_refusal *r);
/* Sets out["response_format"] from {"format":{"type":"json_schema","schema":{...},"strict":true}};
 * nothing if `holder` is NULL or has no format. */
void tn_translation_format(struct tn_translation *t, json_t *out, const json_t *holder);
/* Appends a new message, which `messages` owns; NULL after a failure. */
json_t *tn_translation_message(struct tn_translation *t, json_t *messages, const char *role);

/* Joins the texts `key` of the parts of a type, one per line, to a new string; NULL: none. */
json_t *tn_translation_join(struct tn_translation *t, const json_t *parts, const char *type,
                            const char *key);

/* Returns `value` if nothing failed; otherwise frees it, refuses, and returns NULL. */
json_t *tn_translation_end(const struct tn_translation *t, json_t *value, struct tn_refusal *r);

/* Is the member absent or an object?  false: refused. */
bool tn_translation_is_object(const json_t *request, const char *key, struct tn_refusal *r);

/* Holds the memory of a translation until the conversation has become ids.  false: refused. */
bool tn_translation_hold(struct tn_task *task, struct tn_refusal *r);
/* Each consumes the result of a translation; NULL means it was refused.  tn_translation_read makes
 * `body` the task's body and reads its parameters (`own_format` as for tn_gen_refuse_others);
 * tn_translation_encode encodes `messages` as the task's prompt, for use in a
 * tn_task_prepare_fn.  false: refused. */
bool tn_translation_read(struct tn_task *task, json_t *body, const char *own_format,
                         struct tn_refusal *r);
bool tn_translation_encode(struct tn_task *task, json_t *messages, struct tn_refusal *r);

/* Translates POST /v1/messages: parameters and tools; the conversation.  NULL: refused. */
json_t *tn_messages_parameters(const json_t *request, struct tn_refusal *r);
json_t *tn_messages_conversation(const json_t *request, struct tn_refusal *r);
/* The same for POST /v1/responses. */
json_t *tn_responses_parameters(const json_t *request, struct tn_refusal *r);
json_t *tn_responses_conversation(const json_t *request, struct tn_refusal *r);

#endif
