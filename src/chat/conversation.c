/* SPDX-License-Identifier: MIT
 *
 * Messages of a conversation, and their encoding to ids.
 *
 * A built-in template gets messages with role and content; everything else goes to a parsed
 * template as JSON.  Built-in templates do not support reasoning: the published templates of their
 * families drop earlier reasoning, and so does this file.
 */
#include "chat/conversation.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json_dump.h"
#include "base/json_load.h"
#include "base/utf8.h"
#include "chat/json_text.h"
#include "text/chat.h"

/* ---- turns ---- */

/* The member of a message that a field is, as templates and saved conversations call it. */
static const char *field_name(enum tn_field field)
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
    return (struct tern_text){tn_buf_bytes(buf), buf->n_bytes};
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

/* ---- creation, copies ---- */

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
    tn_buf_fini(&c->overrides);
    c->has_system = c->has_tools = c->has_variables = c->has_overrides = false;
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
    c->n_forgotten = 0; /* the next context may be larger */
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

/* Does the template accept a question with this system message? */
static tern_status try_system(const struct tern_conversation *c, const char *text, size_t n,
                              struct tern_error *err)
{
    struct tern_ids ids = {0};
    const struct tern_message messages[] = {{"system", 6, text, n}, {"user", 4, "x", 1}};
    tern_status status = tern_chat_encode(c->tokenizer, c->t, messages, 2, &c->params, &ids, err);
    tern_ids_free(&ids);
    return status;
}

/* Saved conversations hold UTF-8 only. */
static tern_status check_utf8(const char *what, const char *text, size_t n, struct tern_error *err)
{
    size_t bad = text ? tn_utf8_find_invalid(text, n) : n;
    return bad == n ? TERN_OK
                    : tn_fail(err, TERN_USAGE, "%s is not UTF-8: byte %zu is 0x%02X", what, bad,
                              (unsigned char)text[bad]);
}

tern_status tern_conversation_set_system(struct tern_conversation *c, const char *text, size_t n,
                                         struct tern_error *err)
{
    tern_status status = check_utf8("the system message", text, n, err);
    if (status == TERN_OK && text && c->t)
        status = try_system(c, text, n, err);
    return status == TERN_OK ? set_text(&c->system, &c->has_system, text, n, err) : status;
}

struct tern_text tern_conversation_system(const struct tern_conversation *c)
{
    if (!c->has_system)
        return (struct tern_text){NULL, 0};
    return (struct tern_text){tn_buf_bytes(&c->system), c->system.n_bytes};
}

/* Nesting depth; tn_json_load limits it. */
static uint32_t count_levels(const json_t *value)
{
    const char *key;
    size_t i;
    json_t *item;
    uint32_t n, most = 0;
    json_array_foreach(value, i, item)
        if ((n = count_levels(item)) > most)
            most = n;
    json_object_foreach((json_t *)value, key, item)
        if ((n = count_levels(item)) > most)
            most = n;
    return most + (json_is_array(value) || json_is_object(value));
}

/* A kind of JSON in a conversation, and how deep a saved conversation nests it. */
struct json_kind {
    const char *what;
    bool is_array;
    uint32_t n_around;
};
static const struct json_kind tools_kind = {"tools", true, 1},
                              variables_kind = {"the template's variables", false, 1},
                              calls_kind = {"the tool calls of a message", true, 3};

static tern_status check_kind(const json_t *value, const struct json_kind *kind,
                              struct tern_error *err)
{
    const uint32_t n_levels = count_levels(value), limit = TN_JSON_MAX_DEPTH - kind->n_around;
    if (kind->is_array ? !json_is_array(value) : !json_is_object(value))
        return tn_fail(err, TERN_USAGE, "%s must be a JSON %s", kind->what,
                       kind->is_array ? "array" : "object");
    if (n_levels > limit)
        return tn_fail(err, TERN_USAGE,
                       "%s: JSON nests %u levels deep, a conversation can hold %u there",
                       kind->what, n_levels, limit);
    return TERN_OK;
}

/* Appends the JSON without white space, the form it has after saving and loading. */
static tern_status append_json(struct tn_buf *out, const struct json_kind *kind, const char *json,
                               size_t n, struct tern_error *err)
{
    struct tern_error why;
    json_t *value;
    tern_status status = tn_json_load(&value, kind->what, json, n, JSON_ALLOW_NUL, &why);
    if (status != TERN_OK)
        return tn_fail(err, status == TERN_INPUT ? TERN_USAGE : status, "%s", why.detail);
    status = check_kind(value, kind, err);
    if (status == TERN_OK && !tn_json_dump(out, value))
        status = tn_fail(err, TERN_MEMORY, "no memory for %zu bytes of JSON", n);
    json_decref(value);
    return status;
}

static tern_status set_json(struct tn_buf *buf, bool *has, const struct json_kind *kind,
                            const char *json, size_t n, struct tern_error *err)
{
    struct tn_buf copy = {0};
    tern_status status = json ? append_json(&copy, kind, json, n, err) : tn_ok(err);
    if (status != TERN_OK) {
        tn_buf_fini(&copy);
        return status;
    }
    tn_buf_fini(buf);
    *buf = copy;
    *has = json != NULL;
    return tn_ok(err);
}

tern_status tern_conversation_set_tools(struct tern_conversation *c, const char *json, size_t n,
                                        struct tern_error *err)
{
    return set_json(&c->tools, &c->has_tools, &tools_kind, json, n, err);
}

tern_status tern_conversation_set_variables(struct tern_conversation *c, const char *json, size_t n,
                                            struct tern_error *err)
{
    return set_json(&c->variables, &c->has_variables, &variables_kind, json, n, err);
}

tern_status tern_conversation_set_overrides(struct tern_conversation *c, const char *json, size_t n,
                                            struct tern_error *err)
{
    return set_json(&c->overrides, &c->has_overrides, &variables_kind, json, n, err);
}

struct tern_text tern_conversation_variables(const struct tern_conversation *c)
{
    return (struct tern_text){c->has_variables ? c->variables.data : NULL, c->variables.n_bytes};
}

/* ---- messages ---- */

static tern_status set_field(struct tn_turn *own, enum tn_field field, struct tern_text text,
                             struct tern_error *err)
{
    struct tn_buf *buf = &own->fields[field];
    own->has[field] = text.bytes != NULL;
    if (!text.bytes)
        return TERN_OK;
    if (field == TN_FIELD_TOOL_CALLS)
        return append_json(buf, &calls_kind, text.bytes, text.n, err);
    tern_status status = check_utf8(field_name(field), text.bytes, text.n, err);
    if (status == TERN_OK && !tn_buf_append(buf, text.bytes, text.n))
        status = tn_fail(err, TERN_MEMORY, "no memory for a message of %zu bytes", text.n);
    return status;
}

tern_status tern_conversation_add(struct tern_conversation *c, const struct tern_turn *turn,
                                  struct tern_error *err)
{
    const struct tern_text texts[TN_N_FIELDS] = {turn->role, turn->content,    turn->reasoning,
                                                 turn->name, turn->tool_calls, turn->tool_call_id};
    if (!turn->role.bytes)
        return tn_fail(err, TERN_USAGE, "a message must have a role");
    struct tn_turn *own = tn_conversation_push(c, "");
    if (!own)
        return tn_fail(err, TERN_MEMORY, "no memory for a message of %zu bytes", turn->content.n);
    tern_status status = tn_ok(err);
    for (int i = 0; i < TN_N_FIELDS && status == TERN_OK; i++)
        status = set_field(own, (enum tn_field)i, texts[i], err);
    if (status != TERN_OK)
        tn_turn_fini(&c->turns[--c->n_turns]);
    return status;
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
    tern_conversation_truncate(c, i - 1);
    return true;
}

void tern_conversation_truncate(struct tern_conversation *c, size_t n_turns)
{
    while (c->n_turns > n_turns)
        tn_turn_fini(&c->turns[--c->n_turns]);
    if (c->n_forgotten >= c->n_turns)
        c->n_forgotten = 0; /* there may be room for them again */
}

/* ---- ids ---- */

/* JSON is written verbatim, every other field as a string. */
static void write_field(struct tn_buf *out, const struct tn_turn *turn, enum tn_field field)
{
    struct tern_text text = tn_turn_text(turn, field);
    if (!text.bytes)
        return;
    tn_buf_printf(out, "%s\"%s\":", field ? "," : "", field_name(field));
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
    bool is_more = c->has_tools || c->has_variables || c->has_overrides;
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

/* Parses the output of append_json; NULL: out of memory. */
static json_t *read_own(const struct tn_buf *json)
{
    json_t *value;
    (void)tn_json_load(&value, "variables", json->data, json->n_bytes, JSON_ALLOW_NUL, NULL);
    return value;
}

/* Appends the variables; overrides take precedence. */
static void append_variables(struct tn_buf *out, const struct tern_conversation *c)
{
    if (!c->has_overrides) {
        tn_buf_append(out, c->variables.data, c->variables.n_bytes);
        return;
    }
    json_t *both = c->has_variables ? read_own(&c->variables) : json_object();
    json_t *above = read_own(&c->overrides);
    if (!both || !above || json_object_update(both, above) != 0 || !tn_json_dump(out, both))
        out->failed = true;
    json_decref(both);
    json_decref(above);
}

/* Writes the conversation as tern_chat_encode_json expects it. */
static void write_json(struct tn_buf *json, const struct tern_conversation *c, size_t first,
                       size_t n)
{
    tn_buf_append_text(json, "{\"messages\":");
    tn_conversation_write_messages(json, c, first, n, true);
    if (c->has_tools) {
        tn_buf_append_text(json, ",\"tools\":");
        tn_buf_append(json, c->tools.data, c->tools.n_bytes);
    }
    if (c->has_variables || c->has_overrides) {
        tn_buf_append_text(json, ",\"kwargs\":");
        append_variables(json, c);
    }
    tn_buf_append_text(json, "}");
}

static tern_status encode_json(const struct tern_conversation *c, size_t first, size_t n,
                               struct tern_ids *out, struct tern_error *err)
{
    struct tn_buf json = {0};
    write_json(&json, c, first, n);
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

void tn_conversation_marks(struct tern_chat_marks *out, const struct tern_conversation *c,
                           size_t first, size_t n, const struct tern_ids *ids)
{
    struct tn_buf json = {0};
    *out = (struct tern_chat_marks){0};
    write_json(&json, c, first, n);
    if (!json.failed)
        tern_chat_marks_json(out, c->tokenizer, c->t, json.data, json.n_bytes, &c->params, ids);
    tn_buf_fini(&json);
}

tern_status tern_conversation_encode(const struct tern_conversation *c, struct tern_ids *out,
                                     struct tern_error *err)
{
    return tn_conversation_encode_turns(c, c->n_forgotten, c->n_turns, out, err);
}
