/* SPDX-License-Identifier: MIT
 *
 * The list of subschemas, their JSON paths, and the resolution of references.
 *
 * Looked up by address: a subschema that several references name is compiled once.
 */
#include "grammar/schema_list.h"

#include <string.h>

#include "base/alloc.h"

#define N_SLOTS (2u * TN_MAX_SUBSCHEMAS)

/* ---- the list ---- */

static bool is_same(const struct tn_subschema *a, const struct tn_subschema *b)
{
    return a->json == b->json && a->form == b->form;
}

static uint32_t *find_slot(const struct tn_schema_list *list, const struct tn_subschema *what)
{
    const uint64_t key = (uint64_t)(uintptr_t)what->json;
    uint32_t i = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 40) % N_SLOTS;
    while (list->slots[i] && !is_same(&list->items[list->slots[i] - 1], what))
        i = (i + 1) % N_SLOTS;
    return &list->slots[i];
}

static bool grow(struct tn_schema_list *list)
{
    if (!list->slots)
        list->slots = tn_alloc_zeroed(N_SLOTS, sizeof *list->slots);
    if (list->slots && list->n < list->capacity)
        return true;
    const uint32_t capacity = list->capacity ? 2 * list->capacity : 32;
    void *items = list->slots ? tn_realloc(list->items, capacity * sizeof *list->items) : NULL;
    if (!items)
        return false;
    list->items = items;
    list->capacity = capacity;
    return true;
}

uint32_t tn_schema_list_add(struct tn_schema_list *list, struct tern_grammar *g,
                            const struct tn_subschema *what)
{
    if (g->failed)
        return 0;
    if (!grow(list)) {
        g->failed = TERN_MEMORY;
        return 0;
    }
    uint32_t *slot = find_slot(list, what);
    if (*slot)
        return *slot - 1;
    if (list->n == TN_MAX_SUBSCHEMAS) {
        g->failed = TERN_LIMIT;
        return 0;
    }
    list->items[list->n] = *what;
    list->items[list->n].start = tn_grammar_state(g);
    list->items[list->n].part = list->part;
    *slot = ++list->n;
    return list->n - 1;
}

void tn_schema_list_fini(struct tn_schema_list *list)
{
    tn_free(list->items);
    tn_free(list->slots);
}

/* ---- paths ---- */

/* Appends an escaped segment of a JSON pointer (RFC 6901). */
static void append_name(struct tn_buf *out, const char *name)
{
    for (; *name; name++) {
        if (*name == '~' || *name == '/')
            tn_buf_append_text(out, *name == '~' ? "~0" : "~1");
        else
            tn_buf_append(out, name, 1);
    }
}

void tn_schema_path(struct tn_buf *out, const struct tn_schema_list *list, uint32_t i)
{
    uint32_t chain[TERN_GRAMMAR_MAX_DEPTH], n = 0; /* JSON nests no deeper */
    for (; i != TN_NO_PARENT && n < TERN_GRAMMAR_MAX_DEPTH; i = list->items[i].parent)
        chain[n++] = i;
    while (n > 0) {
        const struct tn_subschema *s = &list->items[chain[--n]];
        if (s->parent != TN_NO_PARENT)
            tn_buf_append_text(out, "/");
        tn_buf_append_text(out, s->keyword);
        if (s->name || s->index != TN_NO_PARENT)
            tn_buf_append_text(out, "/");
        if (s->name)
            append_name(out, s->name);
        else if (s->index != TN_NO_PARENT)
            tn_buf_printf(out, "%u", s->index);
    }
}

/* ---- references ---- */

/* Parses a segment that is a number without leading zeros. */
static bool read_index(const char *name, size_t *index)
{
    *index = 0;
    for (const char *c = name; *c; c++) {
        if (*c < '0' || *c > '9' || *index > TERN_GRAMMAR_MAX_SCHEMA)
            return false;
        *index = *index * 10 + (size_t)(*c - '0');
    }
    return name[0] && (name[0] != '0' || !name[1]);
}

/* Removes the next segment from a pointer and unescapes it into `name`.  false: it is too long. */
static bool next_name(const char **pointer, char *name, size_t room)
{
    size_t n = 0;
    const char *c = *pointer + 1;
    for (; *c && *c != '/'; c++) {
        const bool is_escape = *c == '~' && (c[1] == '0' || c[1] == '1');
        if (n + 1 == room)
            return false;
        name[n++] = is_escape ? (c[1] == '0' ? '~' : '/') : *c;
        c += is_escape;
    }
    name[n] = '\0';
    *pointer = c;
    return true;
}

const json_t *tn_schema_find(const json_t *root, const char *reference)
{
    char name[512];
    size_t index;
    if (reference[0] != '#')
        return NULL;
    for (reference++; *reference == '/' && root;) {
        if (!next_name(&reference, name, sizeof name))
            return NULL;
        if (json_is_array(root))
            root = read_index(name, &index) ? json_array_get(root, index) : NULL;
        else
            root = json_object_get(root, name);
    }
    return *reference ? NULL : root;
}
