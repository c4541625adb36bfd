/* SPDX-License-Identifier: MIT
 *
 * Messages and what makes ids of them.
 *
 * A built-in template takes messages of a role and a content; everything else goes to a parsed one
 * as JSON.  A built-in one knows no reasoning: the published templates of its families leave
 * earlier reasoning out, and so does this file.
 */
#include "chat/conversation.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json_load.h"
#include "base/log.h"
#include "chat/json_text.h"
#include "text/chat.h"

/* ---- turns ---- */

const char *tn_field_name(enum tn_field field)
{
    static const char *const names[TN_N_FIELDS] = {"role", "content",    "reasoning_content",
                                                   "name", "tool_calls", "tool_call_id"};
    return names[field];
}

struct tern_text tn_turn_text(const struct tn_turn *turn, enum tn_field field)
{
    const struct tn_buf *buf = &turn->fields[field];
    if (!turn->has[field])
        return (struct tern_text){NULL, 0};
    return (struct tern_text){buf->data ? buf->data : "", buf->n_bytes};
}

bool tn_turn_is(const struct tn_turn *turn, const char *role)
{
    struct tern_text text = tn_turn_text(turn, TN_FIELD_ROLE);
    return text.n == strlen(role) && memcmp(text.bytes, role, text.n) == 0;
}

void tn_turn_fini(struct tn_turn *turn)
{
    for (int i = 0; i < TN_N_FIELDS; i++)
        tn_buf_fini(&turn->fields[i]);
    tern_ids_free(&turn->ids);
}

static bool make_room(struct tern_conversation *c)
{
    struct tn_turn *turns = tn_grow(c->turns, sizeof *turns, c->n_turns, &c->capacity);
    if (turns)
        c->turns = turns;
    return turns != NULL;
}

struct tn_turn *tn_conversation_push(struct tern_conversation *c, const char *role)
{
    struct tn_turn turn = {.has = {[TN_FIELD_ROLE] = true, [TN_FIELD_CONTENT] = true}};
    if (!make_room(c) || !tn_buf_append_text(&turn.fields[TN_FIELD_ROLE], role)) {
        tn_turn_fini(&turn);
        return NULL;
    }
    c->turns[c->n_turns] = turn;
    return &c->turns[c->n_turns++];
}

/* ---- the whole ---- */

tern_status tern_conversation_create(struct tern_conversation **out, struct tern_error *err)
{
    *out = tn_alloc_zeroed(1, sizeof **out);
    return *out ? tn_ok(err) : tn_fail(err, TERN_MEMORY, "no memory for a conversation");
}

void tern_conversation_clear(struct tern_conversation *c)
{
    for (size_t i = 0; i < c->n_turns; i++)
        tn_turn_fini(&c->turns[i]);
    c->n_turns = c->n_forgotten = 0;
}

void tn_conversation_empty(struct tern_conversation *c)
{
    tern_conversation_clear(c);
    tn_buf_fini(&c->system);
    tn_buf_fini(&c->tools);
    tn_buf_fini(&c->variables);
    c->has_system = c->has_tools = c->has_variables = false;
    c->n_answers = 0;
}

void tern_conversation_free(struct tern_conversation *c)
{
    if (!c)
        return;
    tn_conversation_empty(c);
    tn_free(c->turns);
    tn_free(c);
}

void tern_conversation_set_template(struct tern_conversation *c,
                                    const struct tern_tokenizer *tokenizer,
                                    const struct tern_chat_template *t,
                                    const struct tern_chat_params *params)
{
    c->tokenizer = tokenizer;
    c->t = t;
    c->params = *params;
    c->n_forgotten = 0; /* the context may be another one */
    for (size_t i = 0; i < c->n_turns; i++)
        tern_ids_free(&c->turns[i].ids);
}

/* ---- system message, tools, variables ---- */

static tern_status set_text(struct tn_buf *buf, bool *has, const char *text, size_t n,
                            struct tern_error *err)
{
    struct tn_buf copy = {0};
    if (text && !tn_buf_append(&copy, text, n)) {
        tn_buf_fini(&copy);
        return tn_fail(err, TERN_MEMORY, "no memory for a message of %zu bytes", n);
    }
    tn_buf_fini(buf);
    *buf = copy;
    *has = text != NULL;
    return tn_ok(err);
}

/* Does the template take a question with this system message? */
static tern_status try_system(const struct tern_conversation *c, const char *text, size_t n,
                              struct tern_error *err)
{
    struct tern_ids ids = {0};
    const struct tern_message messages[] = {{"system", 6, text, n}, {"user", 4, "x", 1}};
    tern_status status = tern_chat_encode(c->tokenizer, c->t, messages, 2, &c->params, &ids, err);
    tern_ids_free(&ids);
    return status;
}

tern_status tern_conversation_set_system(struct tern_conversation *c, const char *text, size_t n,
                                         struct tern_error *err)
{
    tern_status status = text && c->t ? try_system(c, text, n, err) : TERN_OK;
    return status == TERN_OK ? set_text(&c->system, &c->has_system, text, n, err) : status;
}

struct tern_text tern_conversation_system(const struct tern_conversation *c)
{
    if (!c->has_system)
        return (struct tern_text){NULL, 0};
    return (struct tern_text){c->system.data ? c->system.data : "", c->system.n_bytes};
}

static tern_status check_json(const char *json, size_t n, bool is_array, const char *what,
                              struct tern_error *err)
{
    struct tern_error why;
    json_t *value;
    tern_status status = tn_json_load(&value, what, json, n, JSON_ALLOW_NUL, &why);
    if (status != TERN_OK)
        return tn_fail(err, status == TERN_INPUT ? TERN_USAGE : status, "%s", why.detail);
    if (is_array ? !json_is_array(value) : !json_is_object(value))
        status =
            tn_fail(err, TERN_USAGE, "%s must be a JSON %s", what, is_array ? "array" : "object");
    json_decref(value);
    return status;
}

tern_status tern_conversation_set_tools(struct tern_conversation *c, const char *json, size_t n,
                                        struct tern_error *err)
{
    tern_status status = json ? check_json(json, n, true, "tools", err) : TERN_OK;
    return status == TERN_OK ? set_text(&c->tools, &c->has_tools, json, n, err) : status;
}

tern_status tern_conversation_set_variables(struct tern_conversation *c, const char *json, size_t n,
                                            struct tern_error *err)
{
    tern_status status =
        json ? check_json(json, n, false, "the template's variables", err) : TERN_OK;
    return status == TERN_OK ? set_text(&c->variables, &c->has_variables, json, n, err) : status;
}

/* ---- messages ---- */

tern_status tern_conversation_add(struct tern_conversation *c, const struct tern_turn *turn,
                                  struct tern_error *err)
{
    const struct tern_text texts[TN_N_FIELDS] = {turn->role, turn->content,    turn->reasoning,
                                                 turn->name, turn->tool_calls, turn->tool_call_id};
    if (!turn->role.bytes)
        return tn_fail(err, TERN_USAGE, "a message must have a role");
    if (turn->tool_calls.bytes) {
        tern_status status = check_json(turn->tool_calls.bytes, turn->tool_calls.n, true,
                                        "the tool calls of a message", err);
        if (status != TERN_OK)
            return status;
    }
    struct tn_turn *own = tn_conversation_push(c, "");
    bool is_good = own != NULL;
    for (int i = 0; i < TN_N_FIELDS && is_good; i++) {
        own->has[i] = texts[i].bytes != NULL;
        is_good = !texts[i].bytes || tn_buf_append(&own->fields[i], texts[i].bytes, texts[i].n);
    }
    if (is_good)
        return tn_ok(err);
    if (own)
        tn_turn_fini(&c->turns[--c->n_turns]);
    return tn_fail(err, TERN_MEMORY, "no memory for a message of %zu bytes", turn->content.n);
}

size_t tern_conversation_n_turns(const struct tern_conversation *c)
{
    return c->n_turns;
}

size_t tern_conversation_n_forgotten(const struct tern_conversation *c)
{
    return c->n_forgotten;
}

void tern_conversation_get(const struct tern_conversation *c, size_t i, struct tern_turn *out)
{
    const struct tn_turn *turn = &c->turns[i];
    *out = (struct tern_turn){
        .role = tn_turn_text(turn, TN_FIELD_ROLE),
        .content = tn_turn_text(turn, TN_FIELD_CONTENT),
        .reasoning = tn_turn_text(turn, TN_FIELD_REASONING),
        .name = tn_turn_text(turn, TN_FIELD_NAME),
        .tool_calls = tn_turn_text(turn, TN_FIELD_TOOL_CALLS),
        .tool_call_id = tn_turn_text(turn, TN_FIELD_TOOL_CALL_ID),
    };
}

bool tern_conversation_undo(struct tern_conversation *c)
{
    size_t i = c->n_turns;
    while (i > 0 && !tn_turn_is(&c->turns[i - 1], "user"))
        i--;
    if (i == 0)
        return false;
    while (c->n_turns >= i)
        tn_turn_fini(&c->turns[--c->n_turns]);
    if (c->n_forgotten >= c->n_turns)
        c->n_forgotten = 0; /* there is room for them again */
    return true;
}

/* ---- ids ---- */

/* JSON stays JSON, every other field is a string. */
static void write_field(struct tn_buf *out, const struct tn_turn *turn, enum tn_field field)
{
    struct tern_text text = tn_turn_text(turn, field);
    if (!text.bytes)
        return;
    tn_buf_printf(out, "%s\"%s\":", field ? "," : "", tn_field_name(field));
    if (field == TN_FIELD_TOOL_CALLS)
        tn_buf_append(out, text.bytes, text.n);
    else
        tn_json_put_string(out, text.bytes, text.n);
}

void tn_conversation_write_messages(struct tn_buf *out, const struct tern_conversation *c,
                                    size_t first, size_t n, bool with_system)
{
    const char *between = "";
    tn_buf_append_text(out, "[");
    if (with_system && c->has_system) {
        tn_buf_append_text(out, "{\"role\":\"system\",\"content\":");
        tn_json_put_string(out, c->system.data, c->system.n_bytes);
        tn_buf_append_text(out, "}");
        between = ",\n";
    }
    for (size_t i = first; i < n; i++) {
        tn_buf_printf(out, "%s{", between);
        between = ",\n";
        for (int field = 0; field < TN_N_FIELDS; field++)
            write_field(out, &c->turns[i], (enum tn_field)field);
        tn_buf_append_text(out, "}");
    }
    tn_buf_append_text(out, "]");
}

static bool is_plain(const struct tern_conversation *c, size_t first, size_t n)
{
    bool is_more = c->has_tools || c->has_variables;
    for (size_t i = first; i < n && !is_more; i++)
        for (int field = TN_FIELD_REASONING; field < TN_N_FIELDS; field++)
            is_more = is_more ||
                      (c->turns[i].has[field] && !(field == TN_FIELD_REASONING && !c->t->jinja));
    return !is_more;
}

static tern_status encode_plain(const struct tern_conversation *c, size_t first, size_t n,
                                struct tern_ids *out, struct tern_error *err)
{
    struct tern_message *messages = tn_alloc_zeroed(n - first + 1, sizeof *messages);
    if (!messages)
        return tn_fail(err, TERN_MEMORY, "no memory for %zu messages", n - first + 1);
    size_t n_messages = 0;
    struct tern_text system = tern_conversation_system(c);
    if (system.bytes)
        messages[n_messages++] = (struct tern_message){"system", 6, system.bytes, system.n};
    for (size_t i = first; i < n; i++) {
        struct tern_text role = tn_turn_text(&c->turns[i], TN_FIELD_ROLE);
        struct tern_text content = tn_turn_text(&c->turns[i], TN_FIELD_CONTENT);
        messages[n_messages++] = (struct tern_message){
            role.bytes, role.n, content.bytes ? content.bytes : "", content.n};
    }
    tern_status status =
        tern_chat_encode(c->tokenizer, c->t, messages, n_messages, &c->params, out, err);
    tn_free(messages);
    return status;
}

static tern_status encode_json(const struct tern_conversation *c, size_t first, size_t n,
                               struct tern_ids *out, struct tern_error *err)
{
    struct tn_buf json = {0};
    tn_buf_append_text(&json, "{\"messages\":");
    tn_conversation_write_messages(&json, c, first, n, true);
    if (c->has_tools) {
        tn_buf_append_text(&json, ",\"tools\":");
        tn_buf_append(&json, c->tools.data, c->tools.n_bytes);
    }
    if (c->has_variables) {
        tn_buf_append_text(&json, ",\"kwargs\":");
        tn_buf_append(&json, c->variables.data, c->variables.n_bytes);
    }
    tn_buf_append_text(&json, "}");
    tern_status status = json.failed
                             ? tn_fail(err, TERN_MEMORY, "no memory for %zu messages", n - first)
                             : tern_chat_encode_json(c->tokenizer, c->t, json.data, json.n_bytes,
                                                     &c->params, out, err);
    tn_buf_fini(&json);
    return status;
}

tern_status tn_conversation_encode_turns(const struct tern_conversation *c, size_t first, size_t n,
                                         struct tern_ids *out, struct tern_error *err)
{
    out->n = 0;
    if (!c->t)
        return tn_fail(err, TERN_USAGE, "the conversation has no chat template");
    return (is_plain(c, first, n) ? encode_plain : encode_json)(c, first, n, out, err);
}

tern_status tern_conversation_encode(const struct tern_conversation *c, struct tern_ids *out,
                                     struct tern_error *err)
{
    return tn_conversation_encode_turns(c, c->n_forgotten, c->n_turns, out, err);
}
