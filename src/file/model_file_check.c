/* SPDX-License-Identifier: MIT
 *
 * Checks of a .tern file: header, sections, head hash, configuration.  The file may be malicious,
 * with a correct hash.
 */
#define XXH_INLINE_ALL
#include "file/model_file_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/utf8.h"

/* ---- helpers ---- */

tern_status tn_mcheck_range(struct tn_mcheck *c, const char *field, uint64_t value, uint64_t min,
                            uint64_t max)
{
    if (value >= min && value <= max)
        return TERN_OK;
    return tn_fail(c->err, TERN_INPUT, "%s: %s is %" PRIu64 ", allowed are %" PRIu64 " to %" PRIu64,
                   c->name, field, value, min, max);
}

tern_status tn_mcheck_equal(struct tn_mcheck *c, const char *field, uint64_t value,
                            uint64_t expected)
{
    if (value == expected)
        return TERN_OK;
    return tn_fail(c->err, TERN_INPUT, "%s: %s is %" PRIu64 ", must be %" PRIu64, c->name, field,
                   value, expected);
}

tern_status tn_mcheck_reserved(struct tn_mcheck *c, const char *field, const void *bytes,
                               size_t n_bytes)
{
    if (tn_all_zero(bytes, n_bytes))
        return TERN_OK;
    return tn_fail(c->err, TERN_UNSUPPORTED,
                   "%s: %s is not zero: the file needs a newer tern than this one", c->name, field);
}

tern_status tn_mcheck_unknown(struct tn_mcheck *c, const char *field, uint64_t value)
{
    return tn_fail(c->err, TERN_UNSUPPORTED, "%s: %s %" PRIu64 " is not supported", c->name, field,
                   value);
}

/* ---- header ---- */

static tern_status check_version(struct tn_mcheck *c, const struct tern_file_header *h)
{
    if (h->version > TERN_FILE_VERSION)
        return tn_fail(c->err, TERN_UNSUPPORTED,
                       "%s: format version %u is newer than %u, the newest that this tern reads",
                       c->name, h->version, TERN_FILE_VERSION);
    if (h->version < TERN_FILE_VERSION)
        return tn_fail(c->err, TERN_UNSUPPORTED,
                       "%s: format version %u is older than %u, which this tern reads; convert the "
                       "model again",
                       c->name, h->version, TERN_FILE_VERSION);
    return tn_mcheck_equal(c, "header_bytes", h->header_bytes, sizeof *h);
}

static tern_status check_size(struct tn_mcheck *c, const struct tern_file_header *h)
{
    if (c->n_bytes < h->file_bytes)
        return tn_fail(c->err, TERN_INPUT,
                       "%s: truncated: %zu bytes of %" PRIu64 " (file_bytes); copy or download it "
                       "again", c->name, c->n_bytes, h->file_bytes);
    if (c->n_bytes > h->file_bytes)
        return tn_fail(c->err, TERN_INPUT,
                       "%s: %zu bytes, %" PRIu64 " more than its file_bytes says", c->name,
                       c->n_bytes, c->n_bytes - h->file_bytes);
    return TERN_OK;
}

/* Checks that a section begins at the first multiple of `align` at or after *end, with zeros
 * between, and fits into the file; advances *end past it. */
static tern_status check_section(struct tn_mcheck *c, const char *field,
                                 const struct tern_file_section *section, uint32_t align,
                                 uint64_t *end)
{
    uint64_t expected = (*end + align - 1) & ~(uint64_t)(align - 1); /* no overflow: end is inside
                                                                      * the file */
    if (section->offset != expected)
        return tn_fail(c->err, TERN_INPUT, "%s: %s.offset is %" PRIu64 ", must be %" PRIu64,
                       c->name, field, section->offset, expected);
    if (!tn_range_fits(section->offset, section->bytes, c->n_bytes))
        return tn_fail(c->err, TERN_INPUT,
                       "%s: %s.offset %" PRIu64 " + %s.bytes %" PRIu64
                       " is beyond the end of the file, %zu",
                       c->name, field, section->offset, field, section->bytes, c->n_bytes);
    if (!tn_all_zero(c->bytes + *end, section->offset - *end))
        return tn_fail(c->err, TERN_INPUT, "%s: padding before %s at byte %" PRIu64 " is not zero",
                       c->name, field, *end);
    *end = section->offset + section->bytes;
    return TERN_OK;
}

static tern_status check_sections(struct tn_mcheck *c, const struct tern_file_header *h)
{
    const struct {
        const char *name;
        const struct tern_file_section *section;
        uint32_t align;
        uint64_t min, max; /* bytes */
    } list[] = {
        {"metadata", &h->metadata, TERN_FILE_ALIGN, sizeof(struct tern_file_config),
         TERN_MAX_METADATA_BYTES},
        {"tensors", &h->tensors, TERN_FILE_ALIGN, sizeof(struct tern_file_tensor),
         TERN_MAX_TENSORS * sizeof(struct tern_file_tensor)},
        {"tokenizer", &h->tokenizer, TERN_FILE_ALIGN, 0, TERN_MAX_TOKENIZER_BYTES},
        {"hashes", &h->hashes, TERN_FILE_ALIGN, sizeof(uint64_t), UINT64_MAX},
        {"data", &h->data, tn_model_file_data_align(h->data.bytes), 1, UINT64_MAX},
    };
    uint64_t end = sizeof *h;
    for (size_t i = 0; i < TN_COUNT_OF(list); i++) {
        char field[32];
        snprintf(field, sizeof field, "%s.bytes", list[i].name);
        tern_status status =
            tn_mcheck_range(c, field, list[i].section->bytes, list[i].min, list[i].max);
        if (!status)
            status = check_section(c, list[i].name, list[i].section, list[i].align, &end);
        if (status)
            return status;
    }
    tern_status status = tn_mcheck_equal(c, "end of data", end, c->n_bytes);
    uint64_t n_chunks = h->data.bytes / TERN_FILE_CHUNK + (h->data.bytes % TERN_FILE_CHUNK != 0);
    if (!status)
        status = tn_mcheck_equal(c, "hashes.bytes", h->hashes.bytes, n_chunks * sizeof(uint64_t));
    if (!status)
        status = tn_mcheck_range(c, "data chunks", n_chunks, 1, UINT32_MAX);
    if (!status && h->tensors.bytes % sizeof(struct tern_file_tensor) != 0)
        status = tn_fail(c->err, TERN_INPUT,
                         "%s: tensors.bytes is %" PRIu64 ", must be a multiple of %zu", c->name,
                         h->tensors.bytes, sizeof(struct tern_file_tensor));
    return status;
}

/* Copies the file up to the end of the tensor table, with the checked header. */
static tern_status copy_head(struct tn_mcheck *c, const struct tern_file_header *h)
{
    const uint64_t n = h->tensors.offset + h->tensors.bytes; /* inside the file */
    unsigned char *head = tn_alloc((size_t)n);
    if (!head)
        return tn_fail(c->err, TERN_MEMORY, "%s: no memory for its %" PRIu64 " bytes of tables",
                       c->name, n);
    memcpy(head, h, sizeof *h);
    memcpy(head + sizeof *h, c->bytes + sizeof *h, (size_t)n - sizeof *h);
    struct tn_model_file *f = c->file;
    f->head = head;
    f->header = (const void *)head;
    f->spec.config = (const void *)(head + h->metadata.offset);
    f->tensors = (const void *)(head + h->tensors.offset);
    f->n_tensors = (uint32_t)(h->tensors.bytes / sizeof *f->tensors);
    f->tokenizer = h->tokenizer.bytes ? c->bytes + h->tokenizer.offset : NULL;
    f->tokenizer_bytes = (size_t)h->tokenizer.bytes;
    f->data_hashes = (const void *)(c->bytes + h->hashes.offset);
    f->n_chunks = (uint32_t)(h->hashes.bytes / sizeof(uint64_t));
    return TERN_OK;
}

tern_status tn_mcheck_header(struct tn_mcheck *c)
{
    if (c->n_bytes < sizeof(struct tern_file_header))
        return tn_fail(c->err, TERN_INPUT, "%s: truncated: %zu bytes, the header alone has %zu",
                       c->name, c->n_bytes, sizeof(struct tern_file_header));
    struct tern_file_header header;
    memcpy(&header, c->bytes, sizeof header);
    tern_status status = check_version(c, &header);
    if (!status)
        status = check_size(c, &header);
    if (!status)
        status = check_sections(c, &header);
    if (!status)
        status = tn_mcheck_reserved(c, "header.reserved", header.reserved, sizeof header.reserved);
    return status ? status : copy_head(c, &header);
}

tern_status tn_mcheck_head_hash(struct tn_mcheck *c)
{
    struct tern_file_header zeroed = *c->file->header;
    zeroed.head_hash = 0;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &zeroed, sizeof zeroed);
    const uint64_t n_head = zeroed.tensors.offset + zeroed.tensors.bytes;
    XXH3_64bits_update(&state, (const char *)c->file->head + sizeof zeroed,
                       (size_t)(n_head - sizeof zeroed));
    XXH3_64bits_update(&state, c->bytes + n_head, (size_t)(zeroed.data.offset - n_head));
    uint64_t hash = XXH3_64bits_digest(&state);
    if (hash == c->file->header->head_hash)
        return TERN_OK;
    return tn_fail(c->err, TERN_INPUT,
                   "%s: damaged: head_hash is %016" PRIx64 ", the bytes give %016" PRIx64
                   "; copy or download it again",
                   c->name, c->file->header->head_hash, hash);
}

/* ---- configuration ---- */

/* Single-line texts are displayed: no control characters.  Others may have line breaks and tabs;
 * none has a NUL. */
static tern_status check_text(struct tn_mcheck *c, const char *field, struct tern_file_ref ref,
                              bool single_line)
{
    const tern_status status = tn_mcheck_records(c, field, ref, 1, 1);
    if (status)
        return status;
    const char *text = (const char *)c->file->spec.config + ref.offset;
    const size_t bad = tn_utf8_find_bad(text, ref.bytes, single_line);
    uint32_t code;
    if (bad == ref.bytes)
        return TERN_OK;
    const bool is_character = tn_utf8_character(text + bad, ref.bytes - bad, &code) > 0;
    return tn_fail(c->err, TERN_INPUT, "%s: %s %s at its byte %zu (0x%02x)", c->name, field,
                   is_character ? "has a control character" : "is not UTF-8", bad,
                   (unsigned char)text[bad]);
}

tern_status tn_mcheck_records(struct tn_mcheck *c, const char *field, struct tern_file_ref ref,
                              uint32_t align, size_t n_record)
{
    uint64_t limit = c->file->header->metadata.bytes;
    if (!tn_range_fits(ref.offset, ref.bytes, limit))
        return tn_fail(c->err, TERN_INPUT,
                       "%s: %s at %u + %u bytes is beyond the metadata, %" PRIu64 " bytes",
                       c->name, field, ref.offset, ref.bytes, limit);
    if (ref.offset % align || ref.bytes % n_record)
        return tn_fail(c->err, TERN_INPUT,
                       "%s: %s at %u + %u bytes, must be a multiple of %u + a multiple of %zu",
                       c->name, field, ref.offset, ref.bytes, align, n_record);
    return TERN_OK;
}

static const void *records(const struct tn_mcheck *c, struct tern_file_ref ref)
{
    return (const unsigned char *)c->file->spec.config + ref.offset;
}

static tern_status check_sources(struct tn_mcheck *c)
{
    struct tern_file_ref ref = c->file->spec.config->sources;
    const struct tern_file_source *sources = NULL;
    tern_status status = tn_mcheck_records(c, "sources", ref, 8, sizeof *sources);
    if (!status)
        sources = records(c, ref);
    for (size_t i = 0; i < ref.bytes / sizeof *sources && !status; i++)
        status = check_text(c, "sources.name", sources[i].name, true);
    return status;
}

static tern_status check_texts(struct tn_mcheck *c)
{
    const struct tern_file_config *m = c->file->spec.config;
    tern_status status = check_text(c, "family", m->family, true);
    if (!status)
        status = check_text(c, "name", m->name, true);
    if (!status)
        status = check_text(c, "template_name", m->template_name, true);
    if (!status)
        status = check_text(c, "template_source", m->template_source, false);
    if (!status)
        status = check_text(c, "converter", m->converter, true);
    return status ? status : check_sources(c);
}

/* Ids below vocab, followed by zeros. */
static tern_status check_fingerprint(struct tn_mcheck *c, const struct tern_file_config *m)
{
    const uint32_t most = TN_MIN(m->context, TERN_MAX_FINGERPRINT_IDS), n = m->n_fingerprint_ids;
    tern_status status = tn_mcheck_range(c, "n_fingerprint_ids", n, 0, most);
    for (uint32_t i = 0; i < TERN_MAX_FINGERPRINT_IDS && !status; i++) {
        const uint32_t *id = &m->fingerprint_ids[i];
        status = i < n ? tn_mcheck_range(c, "fingerprint_ids", *id, 0, m->vocab - 1)
                       : tn_mcheck_reserved(c, "fingerprint_ids", id, sizeof *id);
    }
    return status;
}

static tern_status check_stop_ids(struct tn_mcheck *c, const struct tern_file_config *m)
{
    struct tn_model_spec *spec = &c->file->spec;
    tern_status status = tn_mcheck_records(c, "stop_ids", m->stop_ids, 4, sizeof *spec->stop_ids);
    if (status)
        return status;
    spec->stop_ids = records(c, m->stop_ids);
    spec->n_stop_ids = m->stop_ids.bytes / (uint32_t)sizeof *spec->stop_ids;
    for (uint32_t i = 0; i < spec->n_stop_ids && !status; i++)
        status = tn_mcheck_range(c, "stop_ids", spec->stop_ids[i], 0, m->vocab - 1);
    return status;
}

/* Rejects enum values and flags that the forward pass does not implement. */
static tern_status check_kinds(struct tn_mcheck *c, const struct tern_file_config *m)
{
    const uint32_t no_head = TERN_MODEL_TIED_HEAD | TERN_MODEL_NO_HEAD;
    if (m->flags & ~no_head)
        return tn_mcheck_unknown(c, "flags", m->flags);
    if ((m->flags & no_head) == no_head)
        return tn_fail(c->err, TERN_INPUT, "%s: flags say both a tied head and no head", c->name);
    if (m->inputs != TERN_INPUTS_I8_TOKEN && m->inputs != TERN_INPUTS_FLOAT)
        return tn_mcheck_unknown(c, "inputs", m->inputs);
    if (!tn_pooling_name(m->pooling))
        return tn_mcheck_unknown(c, "pooling", m->pooling);
    if (!tn_norm_name(m->norm))
        return tn_mcheck_unknown(c, "norm", m->norm);
    if (!tn_order_name(m->order))
        return tn_mcheck_unknown(c, "order", m->order);
    if (m->cache != TERN_FILE_CACHE_Q8 && m->cache != TERN_FILE_CACHE_F16)
        return tn_mcheck_unknown(c, "cache", m->cache);
    return tn_mcheck_reserved(c, "config.reserved", m->reserved, sizeof m->reserved);
}

struct dim {
    const char *field;
    uint64_t value, max;
};

static tern_status check_list(struct tn_mcheck *c, const struct dim *list, size_t n)
{
    tern_status status = TERN_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = tn_mcheck_range(c, list[i].field, list[i].value, 1, list[i].max);
    return status;
}

tern_status tn_mcheck_layer_dims(struct tn_mcheck *c, const struct tn_layer_dims *d)
{
    const struct dim list[] = {
        {"ffn", d->ffn, TERN_MAX_DIM},
        {"n_head", d->n_head, TERN_MAX_DIM},
        {"n_kv_head", d->n_kv_head, d->n_head},
        {"head_dim", d->head_dim, TERN_MAX_DIM},
        {"n_head * head_dim", (uint64_t)d->n_head * d->head_dim, TERN_MAX_DIM},
    };
    tern_status status = check_list(c, list, TN_COUNT_OF(list));
    if (status)
        return status;
    if (d->n_head % d->n_kv_head)
        return tn_fail(c->err, TERN_INPUT, "%s: n_kv_head is %u, must divide n_head, %u", c->name,
                       d->n_kv_head, d->n_head);
    if (d->head_dim % 2)
        return tn_fail(c->err, TERN_INPUT, "%s: head_dim is %u, must be even", c->name,
                       d->head_dim);
    return TERN_OK;
}

static tern_status check_dims(struct tn_mcheck *c, const struct tern_file_config *m)
{
    const struct dim list[] = {
        {"n_layer", m->n_layer, TERN_MAX_LAYERS},
        {"hidden", m->hidden, TERN_MAX_DIM},
        {"vocab", m->vocab, TERN_MAX_VOCAB},
        {"context", m->context, TERN_MAX_CONTEXT},
    };
    const struct tn_layer_dims dims = {
        .n_head = m->n_head, .n_kv_head = m->n_kv_head, .head_dim = m->head_dim, .ffn = m->ffn};
    tern_status status = check_list(c, list, TN_COUNT_OF(list));
    if (!status)
        status = tn_mcheck_range(c, "embed_width", m->embed_width, 0, m->hidden);
    return status ? status : tn_mcheck_layer_dims(c, &dims);
}

tern_status tn_mcheck_positive(struct tn_mcheck *c, const char *field, float value)
{
    if (value > 0 && value < INFINITY)
        return TERN_OK;
    return tn_fail(c->err, TERN_INPUT, "%s: %s is %g, must be finite and above 0", c->name, field,
                   (double)value);
}

/* 0, or large enough that quotients by it stay finite; rejects NaN. */
static tern_status check_cap(struct tn_mcheck *c, const char *field, float value)
{
    if (value == 0 || (value >= TERN_MIN_CAP && value <= TERN_MAX_CAP))
        return TERN_OK;
    return tn_fail(c->err, TERN_INPUT, "%s: %s is %g, allowed are 0 and %g to %g", c->name, field,
                   (double)value, (double)TERN_MIN_CAP, (double)TERN_MAX_CAP);
}

static tern_status check_numbers(struct tn_mcheck *c, const struct tern_file_config *m)
{
    const struct {
        const char *field;
        float value;
    } list[] = {
        {"rms_eps", m->rms_eps},
        {"in_norm_eps", m->in_norm_eps},
        {"embedding_scale", m->embedding_scale},
        {"residual_scale", m->residual_scale},
        {"logit_scale", m->logit_scale},
    };
    tern_status status = TERN_OK;
    for (size_t i = 0; i < TN_COUNT_OF(list) && !status; i++)
        status = tn_mcheck_positive(c, list[i].field, list[i].value);
    if (!status)
        status = check_cap(c, "score_cap", m->score_cap);
    return status ? status : check_cap(c, "logit_cap", m->logit_cap);
}

/* ---- the whole configuration ---- */

tern_status tn_mcheck_config(struct tn_mcheck *c)
{
    const struct tern_file_config *m = c->file->spec.config;
    tern_status status = check_kinds(c, m);
    if (!status)
        status = check_dims(c, m);
    if (!status)
        status = check_numbers(c, m);
    if (!status && m->bos_id != TERN_NO_ID)
        status = tn_mcheck_range(c, "bos_id", m->bos_id, 0, m->vocab - 1);
    if (!status)
        status = check_stop_ids(c, m);
    if (!status)
        status = check_fingerprint(c, m);
    return status ? status : check_texts(c);
}
