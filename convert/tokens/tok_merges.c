/* SPDX-License-Identifier: MIT
 *
 * Writes the merges of a tokenizer section: their table, by rank, and the slots in which the
 * encoder looks up the rank of a pair.
 */
#include "convert/tokens/tok_tables.h"

#include <string.h>

#include "base/error.h"
#include "convert/tokens/tok_section.h"
#include "text/bpe.h"

#define MAX_MERGES (TERN_MAX_VOCAB * (size_t)8)

tern_status tn_tok_begin_merges(struct tn_tok_build *b, size_t n)
{
    if (n > MAX_MERGES)
        return tn_fail(b->err, TERN_INPUT, "%s: %zu merges, at most %zu", b->source, n, MAX_MERGES);
    const void *table =
        tn_tok_add_table(b, &b->head.merges, n * sizeof(struct tern_file_merge));
    return table ? TERN_OK : tn_tok_no_memory(b);
}

void tn_tok_put_merge(struct tn_tok_build *b, struct tern_file_merge merge)
{
    struct tern_file_merge *table = tn_tok_table_at(b, b->head.merges);
    table[b->head.n_merges++] = merge;
}

static tern_status merge_token(const struct tn_tok_build *b, const char *text, size_t n, size_t i,
                               uint32_t *id)
{
    *id = tn_tok_lookup(b, text, n);
    if (*id == TERN_NO_ID)
        return tn_fail(b->err, TERN_INPUT,
                       "%s: merge %zu needs the token \"%.*s\", which is not in the vocabulary",
                       b->source, i, tn_tok_shown(n), text);
    if (!tn_tok_is_merged(&b->tokens[*id]))
        return tn_fail(b->err, TERN_UNSUPPORTED,
                       "%s: merge %zu with the special token \"%.*s\" is not supported", b->source,
                       i, tn_tok_shown(n), text);
    return TERN_OK;
}

tern_status tn_tok_add_merge(struct tn_tok_build *b, size_t i, const char *left, size_t n_left,
                             const char *right, size_t n_right)
{
    if (n_left == 0 || n_right == 0 || n_left > TERN_MAX_TOKEN_BYTES ||
        n_right > TERN_MAX_TOKEN_BYTES)
        return tn_fail(b->err, TERN_INPUT, "%s: merge %zu is not a pair of tokens", b->source, i);
    struct tern_file_merge merge;
    memcpy(b->scratch, left, n_left);
    memcpy(b->scratch + n_left, right, n_right);
    tern_status status = merge_token(b, left, n_left, i, &merge.left);
    if (status == TERN_OK)
        status = merge_token(b, right, n_right, i, &merge.right);
    if (status == TERN_OK)
        status = merge_token(b, b->scratch, n_left + n_right, i, &merge.merged);
    if (status == TERN_OK)
        tn_tok_put_merge(b, merge);
    return status;
}

/* The later rank of a pair wins: it takes the slot of the earlier one. */
static tern_status write_merge_slots(struct tn_tok_build *b)
{
    uint32_t n = b->head.n_merges, n_slots = tn_tok_n_slots(n);
    uint32_t *slots = tn_tok_add_table(b, &b->head.merge_slots, (uint64_t)n_slots * 4);
    if (!slots)
        return tn_tok_no_memory(b);
    const struct tern_file_merge *merges = tn_tok_table_at(b, b->head.merges);
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t left = merges[rank].left, right = merges[rank].right;
        uint32_t slot = tn_bpe_slot(left, right, n_slots), probes = 1;
        for (; slots[slot]; slot = (slot + 1) & (n_slots - 1)) {
            const struct tern_file_merge *other = &merges[slots[slot] - 1];
            if (other->left == left && other->right == right)
                break;
            if (++probes > TERN_MAX_PROBES)
                return tn_tok_too_many_probes(b, "merge", rank);
        }
        slots[slot] = rank + 1;
    }
    return TERN_OK;
}

tern_status tn_tok_finish(struct tn_tok_build *b)
{
    tn_tok_shorten_table(b, &b->head.merges,
                         b->head.n_merges * (uint32_t)sizeof(struct tern_file_merge));
    tern_status status = write_merge_slots(b);
    if (status == TERN_OK)
        memcpy(b->section->data, &b->head, sizeof b->head);
    return status;
}
