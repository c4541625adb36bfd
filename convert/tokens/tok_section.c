/* SPDX-License-Identifier: MIT
 *
 * Adds tables to a tokenizer section that is being written, aligned to 8 bytes; tok_section.h has
 * the contracts.
 */
#include "convert/tokens/tok_section.h"

#include <string.h>

#include "base/bits.h"
#include "base/error.h"

tern_status tn_tok_no_memory(const struct tn_tok_build *b)
{
    return tn_fail(b->err, TERN_MEMORY, "%s: not enough memory for the tables", b->source);
}

uint32_t tn_tok_n_slots(uint32_t n)
{
    uint32_t n_slots = 2;
    while ((uint64_t)n_slots * 2 < (uint64_t)n * 3)
        n_slots *= 2;
    return n_slots;
}

tern_status tn_tok_too_many_probes(const struct tn_tok_build *b, const char *what, uint32_t i)
{
    return tn_fail(b->err, TERN_UNSUPPORTED, "%s: %s %u collides with more than %u others",
                   b->source, what, i, TERN_MAX_PROBES);
}

void *tn_tok_add_table(struct tn_tok_build *b, struct tern_file_ref *ref, uint64_t n_bytes)
{
    struct tn_buf *section = b->section;
    size_t start = tn_align_up(section->n_bytes, 8), end = start + (size_t)n_bytes;
    if (n_bytes > UINT32_MAX - start || !tn_buf_reserve(section, end - section->n_bytes))
        return NULL;
    memset(section->data + section->n_bytes, 0, end - section->n_bytes);
    section->n_bytes = end;
    *ref = (struct tern_file_ref){(uint32_t)start, (uint32_t)n_bytes};
    return section->data + start;
}

void *tn_tok_table_at(const struct tn_tok_build *b, struct tern_file_ref ref)
{
    return b->section->data + ref.offset;
}

void tn_tok_shorten_table(struct tn_tok_build *b, struct tern_file_ref *ref, uint32_t n_bytes)
{
    ref->bytes = n_bytes;
    b->section->n_bytes = ref->offset + n_bytes;
}
