/* SPDX-License-Identifier: MIT
 *
 * Compiles the members of an object.
 *
 * Properties appear in the schema's order, so the automaton needs no memory of those already
 * written; other members come last.
 */
#include "grammar/schema_object.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json_object.h"
#include "grammar/schema_enum.h"
#include "grammar/schema_tags.h"
#include "grammar/string_rule.h"

/* The object keywords of a schema. */
struct object {
    json_t *properties;       /* named members; NULL: none */
    const json_t *declared;   /* the part of them that "properties" declares */
    json_t *required;         /* set of names; json_decref */
    const json_t *additional; /* schema of other members, or true; NULL: none are allowed */
    const json_t *names;      /* schema of their keys, or NULL */
    const char *pattern;      /* expression that their keys match, or NULL */
    const json_t *of_pattern; /* schema of those members */
};

/* ---- reading keywords ---- */

static bool read_additional(struct tn_schema_compiler *c, const json_t *s, struct object *o)
{
    const json_t *additional = json_object_get(s, "additionalProperties");
    if (additional && !json_is_boolean(additional) && !json_is_object(additional))
        return tn_schema_refuse(c, TERN_USAGE, "\"additionalProperties\" must be a schema");
    if (c->is_strict && (!additional || json_is_true(additional)))
        return tn_schema_refuse(c, TERN_UNSUPPORTED,
                                "\"additionalProperties\" must be false or an object");
    o->additional = json_is_false(additional) ? NULL : additional;
    o->names = json_object_get(s, "propertyNames");
    if (o->names && !json_is_object(o->names))
        return tn_schema_refuse(c, TERN_USAGE, "\"propertyNames\" must be a schema");
    if (o->names && !additional) /* "propertyNames" alone */
        o->additional = json_object_get(s, "properties") ? NULL : json_true();
    return true;
}

/* Refuses with the detail in c->err. */
static bool refuse_pattern(struct tn_schema_compiler *c, tern_status status)
{
    tn_fail_prefix(c->err, "\"patternProperties\"");
    return tn_schema_refuse_as_said(c, status);
}

/* Reads "patternProperties": one pattern, which matches no name in "properties", and no other
 * members. */
static bool read_pattern(struct tn_schema_compiler *c, const json_t *s, struct object *o)
{
    json_t *patterns = json_object_get(s, "patternProperties");
    if (patterns && !json_is_object(patterns))
        return tn_schema_refuse(c, TERN_USAGE, "\"patternProperties\" must be an object");
    if (json_object_size(patterns) == 0)
        return true;
    if (json_object_size(patterns) > 1 || o->additional || o->names)
        return tn_schema_refuse(c, TERN_UNSUPPORTED,
                                "\"patternProperties\" must have one pattern, without "
                                "\"propertyNames\" and other \"additionalProperties\" than false");
    o->pattern = json_object_iter_key(json_object_iter(patterns));
    o->of_pattern = json_object_iter_value(json_object_iter(patterns));
    for (void *i = json_object_iter(o->properties); i;
         i = json_object_iter_next(o->properties, i)) {
        bool fits;
        tern_status status = tn_string_fits(&fits, &o->pattern, 1, json_object_iter_key(i),
                                            &c->limits.steps, c->err);
        if (status != TERN_OK)
            return refuse_pattern(c, status);
        if (fits)
            return tn_schema_refuse(c, TERN_UNSUPPORTED, "\"%.60s\" is among the \"properties\" "
                                                         "and fits a pattern of "
                                                         "\"patternProperties\"",
                                    json_object_iter_key(i));
    }
    return true;
}

/* Turns the enumerated names into properties with the schema of other members, in a copy. */
static bool name_others(struct tn_schema_compiler *c, struct object *o, const json_t *names)
{
    json_t *properties = json_object();
    if (!tn_schema_keep(c, properties))
        return true; /* the grammar records the failure */
    if (!tn_json_add_missing(properties, o->properties))
        c->g->failed = TERN_MEMORY;
    o->properties = properties;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name && !json_object_get(properties, name) &&
            json_object_set(properties, name, (json_t *)o->additional) != 0)
            c->g->failed = TERN_MEMORY;
    }
    return true;
}

/* Keys limited to an enumeration become properties, without other members. */
static bool read_names(struct tn_schema_compiler *c, struct object *o)
{
    static const char *const words[] = {"type",   "enum",      "pattern",
                                        "format", "minLength", "maxLength"};
    const json_t *list = json_object_get(o->names, "enum");
    const json_t *type = json_object_get(o->names, "type");
    if (!o->names)
        return true;
    if (!tn_schema_check_words(c, o->names, words, TN_COUNT_OF(words), " in \"propertyNames\""))
        return false;
    if (type && (!json_is_string(type) || strcmp(json_string_value(type), "string") != 0))
        return tn_schema_refuse(c, TERN_USAGE, "\"propertyNames\": its \"type\" must be string");
    if (json_object_size(o->names) == (type != NULL)) {
        o->names = NULL; /* unconstrained */
        return true;
    }
    if (json_object_size(o->properties) > 0 || (list && json_object_size(o->names) > 1u + !!type))
        return tn_schema_refuse(c, TERN_UNSUPPORTED,
                                "\"propertyNames\" cannot be combined with \"properties\", nor its "
                                "\"enum\" with other keywords");
    if (list && o->additional && !name_others(c, o, list))
        return false;
    if (list)
        o->additional = NULL;
    return true;
}

/* Collects the names of "required" in o->required. */
static bool read_required(struct tn_schema_compiler *c, const json_t *s, struct object *o)
{
    const json_t *required = json_object_get(s, "required");
    o->required = json_object();
    if (!o->required)
        c->g->failed = TERN_MEMORY;
    if (required && !json_is_array(required))
        return tn_schema_refuse(c, TERN_USAGE, "\"required\" must be an array of names");
    if (required && o->additional && !o->names && !name_others(c, o, required))
        return false;
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (!c->g->failed && (!name || !json_object_get(o->properties, name)))
            return tn_schema_refuse(c, TERN_USAGE,
                                    "\"required\" names \"%.60s\", which is not among the "
                                    "\"properties\"", name ? name : "?");
        if (!c->g->failed && json_object_set_new(o->required, name, json_true()) != 0)
            c->g->failed = TERN_MEMORY;
    }
    return true;
}

static bool read_object(struct tn_schema_compiler *c, const json_t *s, struct object *o)
{
    o->declared = o->properties = json_object_get(s, "properties");
    if (o->properties && !json_is_object(o->properties))
        return tn_schema_refuse(c, TERN_USAGE, "\"properties\" must be an object");
    return read_additional(c, s, o) && read_pattern(c, s, o) && read_names(c, o) &&
           read_required(c, s, o);
}

/* ---- members ---- */

/* Adds ": value" after the key.  Returns the state after the value. */
static uint32_t add_value(struct tn_schema_compiler *c, uint32_t key_end, uint32_t value)
{
    struct tern_grammar *g = c->g;
    const uint32_t value_at = tn_grammar_state(g), after = tn_grammar_state(g);
    tn_grammar_call(g, tn_grammar_text(g, key_end, ":", 1), c->rules.space, value_at);
    tn_grammar_call(g, value_at, value, after);
    return after;
}

/* Adds `"name": value`.  Returns the state after it. */
static uint32_t add_member(struct tn_schema_compiler *c, uint32_t from, const char *name,
                           const json_t *value)
{
    struct tern_grammar *g = c->g;
    json_t *key = json_string(name);
    char *text = json_dumps(key, JSON_ENCODE_ANY);
    json_decref(key);
    if (!text) {
        g->failed = g->failed ? g->failed : TERN_MEMORY;
        return 0;
    }
    const uint32_t key_end = tn_grammar_text(g, from, text, strlen(text));
    tn_free(text);
    return add_value(c, key_end,
                     tn_schema_rule_of(c, value, "properties", name, TN_NO_PARENT));
}

/* Finds the rule for the keys of other members.  false: refused. */
static bool add_other_key(struct tn_schema_compiler *c, const struct object *o, uint32_t *rule)
{
    const struct tn_count_range any = {0, TN_NO_MAXIMUM};
    tern_status status = TERN_OK;
    *rule = c->rules.string;
    if (o->names) {
        status = tn_schema_limits_find(&c->limits, c->g, o->names, "string", rule, c->err);
    } else if (o->pattern || json_object_size(o->properties) > 0) {
        *rule = tn_grammar_state(c->g);
        status = c->g->failed ? TERN_OK
                 : o->pattern
                     ? tn_string_rule(c->g, false, *rule, &o->pattern, 1, any, &c->limits.steps,
                                      c->err)
                     : tn_string_rule_of_others(c->g, false, *rule, o->properties, c->err);
    }
    if (status != TERN_OK && o->pattern)
        return refuse_pattern(c, status);
    return status == TERN_OK || tn_schema_refuse_as_said(c, status);
}

/* Adds any number of other members, separated by commas, from `item`. */
static bool add_others(struct tn_schema_compiler *c, const struct object *o, uint32_t item,
                       uint32_t close)
{
    struct tern_grammar *g = c->g;
    uint32_t key, value = c->rules.value;
    if (!add_other_key(c, o, &key))
        return false;
    if (o->pattern)
        value = tn_schema_rule_of(c, o->of_pattern, "patternProperties", o->pattern, TN_NO_PARENT);
    else if (!json_is_true(o->additional))
        value = tn_schema_rule_of(c, o->additional, "additionalProperties", NULL, TN_NO_PARENT);
    const uint32_t key_end = tn_grammar_state(g);
    tn_grammar_call(g, item, key, key_end);
    const uint32_t after = add_value(c, key_end, value);
    tn_grammar_call(g, tn_grammar_text(g, after, ",", 1), c->rules.space, item);
    tn_grammar_call(g, after, c->rules.space, close);
    return true;
}

/* The state between members depends on the comma: `first` before any member, `later` after one. The
 * impossible one is 0, which is not a state of a rule. */
struct between {
    uint32_t first, later;
};

/* Connects both states to a member. */
static void begin_member(struct tn_schema_compiler *c, struct between at, uint32_t member)
{
    struct tern_grammar *g = c->g;
    if (at.first)
        tn_grammar_empty(g, at.first, member);
    if (at.later)
        tn_grammar_call(g, tn_grammar_text(g, at.later, ",", 1), c->rules.space, member);
}

/* Refuses a property that is not required in strict mode. */
static bool check_optional(struct tn_schema_compiler *c, const struct object *o, const char *name)
{
    return json_object_get(o->required, name) || !c->is_strict ||
           !json_object_get(o->declared, name) ||
           tn_schema_refuse(c, TERN_USAGE, "\"required\" must name every property; "
                                           "\"%.60s\" is missing", name);
}

/* Adds the members of "properties" in their order. */
static bool add_named(struct tn_schema_compiler *c, const struct object *o, struct between *at)
{
    struct tern_grammar *g = c->g;
    for (void *i = json_object_iter(o->properties); i && !g->failed;
         i = json_object_iter_next(o->properties, i)) {
        const char *name = json_object_iter_key(i);
        const bool is_required = json_object_get(o->required, name) != NULL;
        const uint32_t member = tn_grammar_state(g);
        if (!check_optional(c, o, name))
            return false;
        begin_member(c, *at, member);
        const uint32_t after = add_member(c, member, name, json_object_iter_value(i));
        if (at->later && !is_required)
            tn_grammar_empty(g, at->later, after);
        at->later = after;
        at->first = is_required ? 0 : at->first;
    }
    return true;
}

static bool add_members(struct tn_schema_compiler *c, const struct object *o, uint32_t start)
{
    struct tern_grammar *g = c->g;
    const uint32_t close = tn_grammar_state(g);
    struct between at = {.first = tn_grammar_state(g)};
    tn_grammar_end(g, tn_grammar_text(g, close, "}", 1));
    tn_grammar_call(g, tn_grammar_text(g, start, "{", 1), c->rules.space, at.first);
    if (!add_named(c, o, &at))
        return false;
    if (o->additional || o->pattern) {
        const uint32_t item = tn_grammar_state(g);
        begin_member(c, at, item);
        if (!add_others(c, o, item, close))
            return false;
    }
    if (at.first)
        tn_grammar_empty(g, at.first, close);
    if (at.later)
        tn_grammar_call(g, at.later, c->rules.space, close);
    return true;
}

/* Does s allow any members? */
static bool is_free(const json_t *s)
{
    static const char *const words[] = {"properties", "additionalProperties", "required",
                                        "patternProperties", "propertyNames"};
    for (size_t i = 0; i < TN_COUNT_OF(words); i++)
        if (json_object_get(s, words[i]))
            return false;
    return true;
}

bool tn_schema_object(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    struct object o = {0};
    if (!c->is_strict && is_free(s)) {
        tn_grammar_empty(c->g, start, c->rules.object);
        return true;
    }
    const bool is_good = read_object(c, s, &o) && (c->g->failed || add_members(c, &o, start));
    json_decref(o.required);
    return is_good;
}

/* ---- members as tags ---- */

/* Adds a member from the state after its opening tag to `to`. */
static void add_tag_value(struct tn_schema_compiler *c, uint32_t from, const json_t *json,
                          const char *keyword, const char *name, uint32_t to)
{
    const struct tn_subschema s = {.json = json, .form = TN_FORM_VALUE, .parent = c->at,
                                   .keyword = keyword, .name = name, .index = TN_NO_PARENT};
    const uint32_t i = tn_schema_list_add(&c->list, c->g, &s);
    if (!c->g->failed)
        tn_grammar_call(c->g, tn_grammar_text(c->g, from, "\n", 1), c->list.items[i].start, to);
}

/* Adds the tags of "properties" in their order.  *at: the state before and after them. */
static bool add_named_tags(struct tn_schema_compiler *c, const struct object *o, uint32_t *at)
{
    struct tern_grammar *g = c->g;
    for (void *i = json_object_iter(o->properties); i && !g->failed;
         i = json_object_iter_next(o->properties, i)) {
        const char *name = json_object_iter_key(i);
        const uint32_t after = tn_grammar_state(g);
        if (!check_optional(c, o, name))
            return false;
        if (!name[0] || strpbrk(name, "\n<>"))
            return tn_schema_refuse(c, TERN_UNSUPPORTED, "\"%.60s\" cannot be written in a tag",
                                    name);
        uint32_t open = tn_grammar_text(g, *at, TN_TAG_OPEN, strlen(TN_TAG_OPEN));
        open = tn_grammar_text(g, tn_grammar_text(g, open, name, strlen(name)), ">", 1);
        add_tag_value(c, open, json_object_iter_value(i), "properties", name, after);
        if (!json_object_get(o->required, name))
            tn_grammar_empty(g, *at, after);
        *at = after;
    }
    return true;
}

static bool add_tags(struct tn_schema_compiler *c, const struct object *o, uint32_t at)
{
    struct tern_grammar *g = c->g;
    if (o->pattern || o->names)
        return tn_schema_refuse(c, TERN_UNSUPPORTED, "tags support neither \"patternProperties\" "
                                                     "nor \"propertyNames\"");
    if (!add_named_tags(c, o, &at))
        return false;
    tn_grammar_end(g, at);
    if (!o->additional)
        return true;
    const uint32_t name = tn_grammar_state(g), opened = tn_grammar_state(g);
    tern_status status = tn_string_rule_of_others(g, true, name, o->properties, c->err);
    if (status != TERN_OK)
        return tn_schema_refuse_as_said(c, status);
    tn_grammar_call(g, tn_grammar_text(g, at, TN_TAG_OPEN, strlen(TN_TAG_OPEN)), name, opened);
    add_tag_value(c, opened, o->additional, "additionalProperties", NULL, at);
    return true;
}

bool tn_schema_object_tags(struct tn_schema_compiler *c, const json_t *s, uint32_t start)
{
    static const char *const words[] = {"type", "properties", "required", "additionalProperties",
                                        "patternProperties", "propertyNames"};
    struct object o = {0};
    uint32_t types;
    if (!json_is_object(s))
        return tn_schema_refuse(c, TERN_USAGE, "a schema must be an object");
    if (!tn_schema_check_words(c, s, words, TN_COUNT_OF(words), " in tags") ||
        !tn_schema_read_types(c, s, &types))
        return false;
    if (types != 1u << TN_TYPE_OBJECT &&
        (types || c->is_strict || !json_object_get(s, "properties")))
        return tn_schema_refuse(c, TERN_UNSUPPORTED, "\"type\" must be object in tags");
    const bool is_any = !c->is_strict && is_free(s);
    const bool is_good = read_object(c, s, &o);
    o.additional = is_any ? json_true() : o.additional;
    const bool is_added = is_good && (c->g->failed || add_tags(c, &o, start));
    json_decref(o.required);
    return is_added;
}
