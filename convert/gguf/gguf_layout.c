/* SPDX-License-Identifier: MIT
 *
 * Checks where the tensors of one GGUF file are: in the order of their infos, without gaps except
 * for the padding to the alignment, up to the end of the file.
 *
 * So each tensor's size is known twice, from its type and shape and from the next offset.  That
 * resolves type 42, which means blocks of 64 (mainline) or of 128 (Prism's fork), and type 39,
 * MXFP4 in mainline and TL2 in bitnet.cpp, and gives the size of types that tern does not know.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/text_match.h"
#include "convert/gguf/gguf.h"

static uint64_t padded(const struct tn_gguf_part *part, uint64_t n)
{
    const uint64_t mask = part->alignment - 1;
    return n + mask >= n ? (n + mask) & ~mask : UINT64_MAX;
}

static const char *type_text(const struct tn_gguf_tensor *t)
{
    const struct tn_gguf_type *type = tn_gguf_type_find(t->type);
    return type ? type->name : "an unknown type";
}

const char *tn_gguf_shape_text(char *dst, size_t n_dst, const struct tn_gguf_tensor *tensor)
{
    size_t at = (size_t)snprintf(dst, n_dst, "[");
    for (uint32_t i = tensor->rank; i-- > 0 && at < n_dst;)
        at += (size_t)snprintf(dst + at, n_dst - at, "%llu%s", (unsigned long long)tensor->ne[i],
                               i ? ", " : "");
    if (at < n_dst)
        snprintf(dst + at, n_dst - at, "]");
    return dst;
}

static uint64_t n_rows(const struct tn_gguf_tensor *t)
{
    return t->ne[1] * t->ne[2] * t->ne[3];
}

static bool size_of(uint64_t *bytes, const struct tn_gguf_tensor *t, uint32_t q2_block)
{
    return tn_gguf_type_bytes(bytes, t->type, q2_block, n_rows(t), t->ne[0]);
}

/* Bytes from tensor i to the next one, or to the end of the file.  UINT64_MAX: the next one begins
 * earlier. */
static uint64_t span_of(const struct tn_gguf_part *part, uint32_t i)
{
    const uint64_t data_bytes = part->input.n_bytes - part->data_offset;
    const uint64_t end = i + 1 < part->n_tensors ? part->tensors[i + 1].offset : data_bytes;
    return end >= part->tensors[i].offset ? end - part->tensors[i].offset : UINT64_MAX;
}

/* Whether a tensor of n bytes ends where the next begins.  The last one may lack its padding. */
static bool fits(const struct tn_gguf_part *part, uint32_t i, uint64_t n)
{
    const uint64_t span = span_of(part, i);
    const bool is_last = i + 1 == part->n_tensors;
    return span != UINT64_MAX && (span == padded(part, n) || (is_last && span == n));
}

/* ---- type 42 ---- */

static tern_status fail_q2(const struct tn_gguf_part *part, const struct tn_gguf_tensor *t,
                           const char *why, struct tern_error *err)
{
    char shape[96];
    return tn_fail(err, TERN_INPUT, "%s: tensor \"%s\": type Q2_0, %s: %s", part->input.name,
                   t->name, tn_gguf_shape_text(shape, sizeof shape, t), why);
}

static tern_status find_q2_block(struct tn_gguf_part *part, struct tern_error *err)
{
    static const uint32_t blocks[] = {64, 128};
    const struct tn_gguf_tensor *first = NULL;
    bool possible[] = {true, true};
    for (uint32_t i = 0; i < part->n_tensors; i++) {
        const struct tn_gguf_tensor *t = &part->tensors[i];
        if (t->type != TN_GGML_Q2_0)
            continue;
        first = first ? first : t;
        for (uint32_t k = 0; k < 2; k++) {
            uint64_t n;
            possible[k] = possible[k] && size_of(&n, t, blocks[k]) && fits(part, i, n);
        }
        if (!possible[0] && !possible[1])
            return fail_q2(part, t, "its bytes fit neither blocks of 64 nor of 128 weights", err);
    }
    if (first && possible[0] && possible[1])
        return fail_q2(part, first, "its bytes fit blocks of 64 and of 128 weights", err);
    part->q2_block = first ? blocks[possible[1]] : 0;
    return TERN_OK;
}

/* ---- type 39 ---- */

/* The tensors are in TL2 if none has the bytes of MXFP4, which are more than twice as many. */
static void find_tl2(struct tn_gguf_part *part)
{
    uint64_t n;
    for (uint32_t i = 0; i < part->n_tensors; i++)
        if (part->tensors[i].type == TN_GGML_MXFP4 && size_of(&n, &part->tensors[i], 0) &&
            fits(part, i, n))
            return;
    for (uint32_t i = 0; i < part->n_tensors; i++)
        if (part->tensors[i].type == TN_GGML_MXFP4)
            part->tensors[i].type = TN_GGML_TL2;
}

/* ---- all types ---- */

static tern_status check_range(const struct tn_gguf_part *part, uint32_t i, struct tern_error *err)
{
    const struct tn_gguf_tensor *t = &part->tensors[i];
    const uint64_t data_bytes = part->input.n_bytes - part->data_offset;
    if (t->offset % part->alignment)
        return tn_fail(err, TERN_INPUT,
                       "%s: tensor \"%s\": offset %llu is not a multiple of the alignment %u",
                       part->input.name, t->name, (unsigned long long)t->offset, part->alignment);
    if (t->offset > data_bytes)
        return tn_fail(err, TERN_INPUT,
                       "%s: tensor \"%s\": offset %llu, but there are only %llu bytes of data; the "
                       "file is truncated or damaged",
                       part->input.name, t->name, (unsigned long long)t->offset,
                       (unsigned long long)data_bytes);
    if (i == 0 && t->offset != 0)
        return tn_fail(err, TERN_INPUT, "%s: tensor \"%s\": offset %llu, but the first is at 0",
                       part->input.name, t->name, (unsigned long long)t->offset);
    return TERN_OK;
}

static tern_status fail_place(const struct tn_gguf_part *part, uint32_t i, uint64_t n,
                              struct tern_error *err)
{
    const struct tn_gguf_tensor *t = &part->tensors[i];
    const unsigned long long end = t->offset + padded(part, n);
    char shape[96];
    tn_gguf_shape_text(shape, sizeof shape, t);
    if (i + 1 < part->n_tensors)
        return tn_fail(err, TERN_INPUT,
                       "%s: tensor \"%s\": offset %llu, expected %llu, where \"%s\" (%s %s) ends",
                       part->input.name, part->tensors[i + 1].name,
                       (unsigned long long)part->tensors[i + 1].offset, end, t->name, type_text(t),
                       shape);
    const uint64_t span = span_of(part, i);
    return tn_fail(err, TERN_INPUT,
                   "%s: tensor \"%s\": %s %s takes %llu bytes, but %llu are left; the file %s",
                   part->input.name, t->name, type_text(t), shape, (unsigned long long)n,
                   (unsigned long long)span,
                   span < n ? "is truncated" : "has data after its tensors");
}

static tern_status check_tensor(struct tn_gguf_part *part, uint32_t i, struct tern_error *err)
{
    struct tn_gguf_tensor *t = &part->tensors[i];
    if (!tn_gguf_type_is_sized(t->type)) {
        t->bytes = span_of(part, i);
        if (t->bytes == UINT64_MAX)
            return fail_place(part, i, 0, err);
        return TERN_OK;
    }
    if (!size_of(&t->bytes, t, part->q2_block)) {
        char shape[96];
        return tn_fail(err, TERN_INPUT,
                       "%s: tensor \"%s\": %s does not fit the blocks of type %s",
                       part->input.name, t->name, tn_gguf_shape_text(shape, sizeof shape, t),
                       type_text(t));
    }
    return fits(part, i, t->bytes) ? TERN_OK : fail_place(part, i, t->bytes, err);
}

static tern_status check_names(const struct tn_gguf_part *part, struct tern_error *err)
{
    const uint32_t n = part->n_tensors;
    const char **names = tn_alloc(TN_MAX(n, 1u) * sizeof *names);
    if (!names)
        return tn_fail(err, TERN_MEMORY, "%s: no memory for %u names", part->input.name, n);
    for (uint32_t i = 0; i < n; i++)
        names[i] = part->tensors[i].name;
    if (n)
        qsort(names, n, sizeof *names, tn_text_compare);
    tern_status status = TERN_OK;
    for (uint32_t i = 1; i < n && status == TERN_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = tn_fail(err, TERN_INPUT, "%s: tensor \"%s\" occurs twice", part->input.name,
                             names[i]);
    tn_free(names);
    return status;
}

tern_status tn_gguf_check_layout(struct tn_gguf_part *part, struct tern_error *err)
{
    tern_status status = check_names(part, err);
    if (status != TERN_OK || part->n_tensors == 0)
        return status;
    if (part->data_offset > part->input.n_bytes)
        return tn_fail(err, TERN_INPUT,
                       "%s: the data begins at byte %llu, but the file has only %llu; it is "
                       "truncated",
                       part->input.name, (unsigned long long)part->data_offset,
                       (unsigned long long)part->input.n_bytes);
    for (uint32_t i = 0; i < part->n_tensors && status == TERN_OK; i++)
        status = check_range(part, i, err);
    if (status == TERN_OK)
        status = find_q2_block(part, err);
    if (status == TERN_OK)
        find_tl2(part);
    for (uint32_t i = 0; i < part->n_tensors && status == TERN_OK; i++)
        status = check_tensor(part, i, err);
    for (uint32_t i = 0; i < part->n_tensors; i++)
        part->tensors[i].offset += part->data_offset;
    return status;
}
