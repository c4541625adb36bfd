/* SPDX-License-Identifier: MIT
 *
 * Checks of a .tern file: header, sections, head hash, configuration.  The
 * file may have been made by an enemy, with a correct hash.
 */
#define XXH_INLINE_ALL
#include "file/mfile_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/bits.h"
#include "base/log.h"
#include "base/utf8.h"

/* ---- small words ---- */

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

/* A section must begin at the first multiple of `align` behind *end, with zeros between, and fit
 * into the file; *end moves behind it. */
static tern_status check_section(struct tn_mcheck *c, const char *field,
                                 const struct tern_file_section *section, uint32_t align,
                                 uint64_t *end)
{
    uint64_t expected = (*end + align - 1) & ~(uint64_t)(align - 1); /* *end is inside the file */
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
        {"data", &h->data, tn_mfile_data_align(h->data.bytes), 1, UINT64_MAX},
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

tern_status tn_mcheck_header(struct tn_mcheck *c)
{
    if (c->n_bytes < sizeof(struct tern_file_header))
        return tn_fail(c->err, TERN_INPUT, "%s: truncated: %zu bytes, the header alone has %zu",
                       c->name, c->n_bytes, sizeof(struct tern_file_header));
    const struct tern_file_header *h = (const struct tern_file_header *)(const void *)c->bytes;
    tern_status status = check_version(c, h);
    if (!status)
        status = check_size(c, h);
    if (!status)
        status = check_sections(c, h);
    if (!status)
        status = tn_mcheck_reserved(c, "header.reserved", h->reserved, sizeof h->reserved);
    if (status)
        return status;
    struct tn_mfile *f = c->file;
    f->header = h;
    f->config = (const void *)(c->bytes + h->metadata.offset);
    f->tensors = (const void *)(c->bytes + h->tensors.offset);
    f->n_tensors = (uint32_t)(h->tensors.bytes / sizeof *f->tensors);
    f->tokenizer = h->tokenizer.bytes ? c->bytes + h->tokenizer.offset : NULL;
    f->tokenizer_bytes = (size_t)h->tokenizer.bytes;
    f->data_hashes = (const void *)(c->bytes + h->hashes.offset);
    f->n_chunks = (uint32_t)(h->hashes.bytes / sizeof(uint64_t));
    return TERN_OK;
}

tern_status tn_mcheck_head_hash(struct tn_mcheck *c)
{
    struct tern_file_header zeroed = *c->file->header;
    zeroed.head_hash = 0;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &zeroed, sizeof zeroed);
    XXH3_64bits_update(&state, c->bytes + sizeof zeroed, zeroed.data.offset - sizeof zeroed);
    uint64_t hash = XXH3_64bits_digest(&state);
    if (hash == c->file->header->head_hash)
        return TERN_OK;
    return tn_fail(c->err, TERN_INPUT,
                   "%s: damaged: head_hash is %016" PRIx64 ", the bytes give %016" PRIx64
                   "; copy or download it again",
                   c->name, c->file->header->head_hash, hash);
}

/* ---- configuration ---- */

/* Single-line texts are shown to people: no control characters. Others may have line breaks and
 * tabs; none has a NUL. */
static tern_status check_text(struct tn_mcheck *c, const char *field, struct tern_file_ref ref,
                              bool single_line)
{
    uint64_t limit = c->file->header->metadata.bytes;
    if (!tn_range_fits(ref.offset, ref.bytes, limit))
        return tn_fail(c->err, TERN_INPUT,
                       "%s: %s at %u + %u bytes is beyond the metadata, %" PRIu64 " bytes", c->name,
                       field, ref.offset, ref.bytes, limit);
    const char *text = (const char *)c->file->config + ref.offset;
    const size_t bad = tn_utf8_find_bad(text, ref.bytes, single_line);
    uint32_t code;
    if (bad == ref.bytes)
        return TERN_OK;
    const bool is_character = tn_utf8_character(text + bad, ref.bytes - bad, &code) > 0;
    return tn_fail(c->err, TERN_INPUT, "%s: %s %s at its byte %zu (0x%02x)", c->name, field,
                   is_character ? "has a control character" : "is not UTF-8", bad,
                   (unsigned char)text[bad]);
}

static tern_status check_sources(struct tn_mcheck *c)
{
    struct tern_file_ref ref = c->file->config->sources;
    if (!tn_range_fits(ref.offset, ref.bytes, c->file->header->metadata.bytes))
        return tn_fail(c->err, TERN_INPUT,
                       "%s: sources at %u + %u bytes is beyond the metadata, %" PRIu64 " bytes",
                       c->name, ref.offset, ref.bytes, c->file->header->metadata.bytes);
    if (ref.offset % 8 || ref.bytes % sizeof(struct tern_file_source))
        return tn_fail(c->err, TERN_INPUT,
                       "%s: sources at %u + %u bytes, must be a multiple of 8 + a multiple of %zu",
                       c->name, ref.offset, ref.bytes, sizeof(struct tern_file_source));
    const struct tern_file_source *sources =
        (const void *)((const unsigned char *)c->file->config + ref.offset);
    for (size_t i = 0; i < ref.bytes / sizeof *sources; i++) {
        tern_status status = check_text(c, "sources.name", sources[i].name, true);
        if (status)
            return status;
    }
    return TERN_OK;
}

static tern_status check_texts(struct tn_mcheck *c)
{
    const struct tern_file_config *m = c->file->config;
    tern_status status = check_text(c, "name", m->name, true);
    if (!status)
        status = check_text(c, "template_name", m->template_name, true);
    if (!status)
        status = check_text(c, "template_source", m->template_source, false);
    if (!status)
        status = check_text(c, "converter", m->converter, true);
    return status ? status : check_sources(c);
}

/* Ids below vocab, and zeros behind them. */
static tern_status check_ids(struct tn_mcheck *c, const char *field, const char *count_field,
                             const uint32_t *ids, uint32_t n, uint32_t n_max)
{
    tern_status status = tn_mcheck_range(c, count_field, n, 0, n_max);
    for (uint32_t i = 0; i < n_max && !status; i++)
        status = i < n ? tn_mcheck_range(c, field, ids[i], 0, c->file->config->vocab - 1)
                       : tn_mcheck_reserved(c, field, &ids[i], sizeof ids[i]);
    return status;
}

/* Everything in the enums and flags that the forward pass has no code for. */
static tern_status check_kinds(struct tn_mcheck *c, const struct tern_file_config *m)
{
    if (m->arch != TERN_ARCH_BITNET)
        return tn_mcheck_unknown(c, "arch", m->arch);
    if (m->flags & ~TERN_MODEL_TIED_HEAD)
        return tn_mcheck_unknown(c, "flags", m->flags);
    if (m->activation != TERN_ACT_RELU2 && m->activation != TERN_ACT_SILU)
        return tn_mcheck_unknown(c, "activation", m->activation);
    if (m->act_quant != TERN_ACT_QUANT_I8_TOKEN)
        return tn_mcheck_unknown(c, "act_quant", m->act_quant);
    if (m->rope != TERN_ROPE_HALF)
        return tn_mcheck_unknown(c, "rope", m->rope);
    tern_status status =
        tn_mcheck_reserved(c, "rope_params", m->rope_params, sizeof m->rope_params);
    if (!status)
        status = tn_mcheck_reserved(c, "reserved0", &m->reserved0, sizeof m->reserved0);
    if (!status)
        status = tn_mcheck_reserved(c, "config.reserved", m->reserved, sizeof m->reserved);
    return status;
}

static tern_status check_dims(struct tn_mcheck *c, const struct tern_file_config *m)
{
    const struct {
        const char *field;
        uint64_t value;
        uint64_t max;
    } list[] = {
        {"n_layer", m->n_layer, TERN_MAX_LAYERS},
        {"hidden", m->hidden, TERN_MAX_DIM},
        {"ffn", m->ffn, TERN_MAX_DIM},
        {"n_head", m->n_head, TERN_MAX_DIM},
        {"n_kv_head", m->n_kv_head, m->n_head},
        {"head_dim", m->head_dim, TERN_MAX_DIM},
        {"n_head * head_dim", (uint64_t)m->n_head * m->head_dim, TERN_MAX_DIM},
        {"vocab", m->vocab, TERN_MAX_VOCAB},
        {"context", m->context, TERN_MAX_CONTEXT},
    };
    for (size_t i = 0; i < TN_COUNT_OF(list); i++) {
        tern_status status = tn_mcheck_range(c, list[i].field, list[i].value, 1, list[i].max);
        if (status)
            return status;
    }
    if (m->n_head % m->n_kv_head)
        return tn_fail(c->err, TERN_INPUT, "%s: n_kv_head is %u, must divide n_head, %u", c->name,
                       m->n_kv_head, m->n_head);
    if (m->head_dim % 2)
        return tn_fail(c->err, TERN_INPUT, "%s: head_dim is %u, must be even", c->name,
                       m->head_dim);
    return TERN_OK;
}

static tern_status check_numbers(struct tn_mcheck *c, const struct tern_file_config *m)
{
    if (!(m->rms_eps > 0 && m->rms_eps < INFINITY)) /* NaN too */
        return tn_fail(c->err, TERN_INPUT, "%s: rms_eps is %g, must be finite and above 0", c->name,
                       (double)m->rms_eps);
    if (!(m->rope_theta >= 1 && m->rope_theta <= TERN_MAX_ROPE_THETA))
        return tn_fail(c->err, TERN_INPUT, "%s: rope_theta is %g, allowed are 1 to %g", c->name,
                       m->rope_theta, TERN_MAX_ROPE_THETA);
    return TERN_OK;
}

tern_status tn_mcheck_config(struct tn_mcheck *c)
{
    const struct tern_file_config *m = c->file->config;
    tern_status status = check_kinds(c, m);
    if (!status)
        status = check_dims(c, m);
    if (!status)
        status = check_numbers(c, m);
    if (!status && m->bos_id != TERN_NO_ID)
        status = tn_mcheck_range(c, "bos_id", m->bos_id, 0, m->vocab - 1);
    if (!status)
        status = check_ids(c, "stop_ids", "n_stop_ids", m->stop_ids, m->n_stop_ids,
                           TERN_MAX_STOP_IDS);
    if (!status)
        status = check_ids(c, "fingerprint_ids", "n_fingerprint_ids", m->fingerprint_ids,
                           m->n_fingerprint_ids, TERN_MAX_FINGERPRINT_IDS);
    if (!status)
        status = tn_mcheck_range(c, "n_fingerprint_ids", m->n_fingerprint_ids, 0, m->context);
    return status ? status : check_texts(c);
}
