/* SPDX-License-Identifier: MIT
 *
 * Sorts the tokens of a vocabulary by their bytes.
 *
 * The bytes are copied: the model file is mapped, and another process may change it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "grammar/token_mask.h"

/* A token before sorting; `bytes` points into the copy. */
struct entry {
    const char *bytes;
    uint32_t n, id;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int order = memcmp(x->bytes, y->bytes, TN_MIN(x->n, y->n));
    if (order)
        return order;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_text(const struct tern_tokenizer *tokenizer, const unsigned char *is_control,
                    uint32_t id, const char **bytes, size_t *n)
{
    *bytes = tern_tokenizer_token_bytes(tokenizer, id, n);
    return *bytes && *n > 0 && *n <= TN_MAX_TOKEN_BYTES && !is_control[id];
}

/* Copies the tokens that represent text.  Tokens that exceed n_copy bytes are dropped. */
static uint32_t collect(struct entry *entries, char *copy, size_t n_copy,
                        const struct tern_tokenizer *tokenizer, uint32_t n_ids,
                        const unsigned char *is_control)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < n_ids; id++) {
        const char *bytes;
        size_t n_bytes;
        if (!is_text(tokenizer, is_control, id, &bytes, &n_bytes) || n_bytes > n_copy)
            continue;
        memcpy(copy, bytes, n_bytes);
        entries[n++] = (struct entry){copy, (uint32_t)n_bytes, id};
        copy += n_bytes;
        n_copy -= n_bytes;
    }
    return n;
}

static size_t count_bytes(const struct tern_tokenizer *tokenizer, uint32_t n_ids,
                          const unsigned char *is_control)
{
    size_t sum = 0;
    for (uint32_t id = 0; id < n_ids; id++) {
        const char *bytes;
        size_t n;
        if (is_text(tokenizer, is_control, id, &bytes, &n))
            sum += n;
    }
    return sum;
}

static uint32_t n_shared(const struct entry *a, const struct entry *b)
{
    uint32_t n = 0;
    while (n < a->n && n < b->n && a->bytes[n] == b->bytes[n])
        n++;
    return n;
}

static void fill(struct tn_token_list *list, const struct entry *entries)
{
    uint32_t at = 0, next = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct entry *e = &entries[i];
        const uint32_t shared = i > 0 ? n_shared(&entries[i - 1], e) : 0;
        list->tokens[i] = (struct tn_sorted_token){e->id, at, (uint16_t)shared, (uint16_t)e->n};
        memcpy(list->bytes + at, e->bytes + shared, e->n - shared);
        at += e->n - shared;
        list->longest = TN_MAX(list->longest, e->n);
        while (next <= (uint8_t)e->bytes[0])
            list->first_of[next++] = i;
    }
    while (next <= 256)
        list->first_of[next++] = list->n;
}

tern_status tn_token_list_create(struct tn_token_list **out,
                                 const struct tern_tokenizer *tokenizer, uint32_t n_ids,
                                 const unsigned char *is_control, const uint32_t *ends,
                                 uint32_t n_ends, struct tern_error *err)
{
    struct tn_token_list *list = tn_alloc_zeroed(1, sizeof *list);
    const size_t n_bytes = count_bytes(tokenizer, n_ids, is_control);
    struct entry *entries = tn_alloc_zeroed(n_ids, sizeof *entries);
    char *copy = tn_alloc(n_bytes);
    *out = NULL;
    if (list) {
        list->tokens = tn_alloc_zeroed(n_ids, sizeof *list->tokens);
        list->bytes = tn_alloc(n_bytes);
    }
    const bool has_memory = list && entries && copy && list->tokens && list->bytes;
    if (has_memory) {
        list->tokenizer = tokenizer;
        list->n_ids = n_ids;
        list->ends = ends;
        list->n_ends = n_ends;
        list->n = collect(entries, copy, n_bytes, tokenizer, n_ids, is_control);
        qsort(entries, list->n, sizeof *entries, compare);
        fill(list, entries);
        *out = list;
    } else {
        tn_token_list_free(list);
    }
    tn_free(entries);
    tn_free(copy);
    return has_memory ? tn_ok(err)
                      : tn_fail(err, TERN_MEMORY, "no memory for a list of %u tokens", n_ids);
}

void tn_token_list_free(struct tn_token_list *list)
{
    if (!list)
        return;
    tn_free(list->tokens);
    tn_free(list->bytes);
    tn_free(list);
}

uint64_t tn_token_list_bytes(const struct tn_token_list *list)
{
    uint64_t bytes = sizeof *list + list->n_ids * (uint64_t)sizeof *list->tokens;
    for (uint32_t i = 0; i < list->n; i++)
        bytes += list->tokens[i].n_bytes;
    return bytes;
}

uint64_t tn_token_list_need(const struct tern_tokenizer *tokenizer, uint32_t n_ids,
                            const unsigned char *is_control)
{
    const uint64_t per_id = sizeof(struct tn_sorted_token) + sizeof(struct entry);
    return sizeof(struct tn_token_list) + n_ids * per_id +
           2 * (uint64_t)count_bytes(tokenizer, n_ids, is_control);
}
