/* SPDX-License-Identifier: MIT
 *
 * Writes a .tern file (model_file_writer.h has the order of calls).  Data goes through buffers of
 * one hash chunk (chunk_writer.h): a full one is hashed and written by a second thread, in a large
 * file to an offset at which the system can use huge pages.  The head is kept in memory (its size
 * does not depend on the weights) and written last, so that a part file without a head is never
 * mistaken for a model.
 */
#define XXH_INLINE_ALL
#include "file/model_file_writer.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "file/chunk_writer.h"
#include "file/model_file.h"
#include "plat/plat.h"

struct tn_mwriter {
    char *path;
    char *part_path;
    struct tn_file *file;

    struct tern_file_tensor *tensors; /* before begin, offsets count from the start of the data */
    uint32_t n_tensors;
    uint32_t capacity;
    uint64_t data_bytes; /* end of the last declared tensor */

    unsigned char *head; /* [header.data.offset], NULL before begin */
    struct tern_file_header header;

    struct tn_chunk_writer chunks; /* data not written yet; none when the file is sealed */
    uint64_t position;  /* bytes of data so far, including those in the chunk */
    uint32_t i_current; /* the current tensor */
    bool is_sealed;
};

/* ---- create and end ---- */

static void free_writer(struct tn_mwriter *w)
{
    tn_chunk_writer_fini(&w->chunks);
    tn_file_close(w->file);
    tn_free(w->path);
    tn_free(w->part_path);
    tn_free(w->tensors);
    tn_free(w->head);
    tn_free(w);
}

char *tn_mwriter_part_of(const char *path)
{
    char *target = tn_path_target(path);
    char *part = target ? tn_path_part(target) : NULL;
    tn_free(target);
    return part;
}

tern_status tn_mwriter_create(struct tn_mwriter **out, const char *path, struct tern_error *err)
{
    *out = NULL;
    if (tn_path_kind(path) == TN_PATH_DIR)
        return tn_fail(err, TERN_OUTPUT, "%s: is a directory, give the name of a file", path);
    if (tn_path_kind(path) == TN_PATH_BROKEN)
        return tn_fail(err, TERN_OUTPUT, "%s: is a broken symbolic link", path);
    if (!tn_path_is_replaceable(path))
        return tn_fail(err, TERN_OUTPUT, "%s: is open or has no name, give the name of a file",
                       path);
    struct tn_mwriter *w = tn_alloc_zeroed(1, sizeof *w);
    if (!w)
        return tn_fail(err, TERN_MEMORY, "%s: no memory to write it", path);
    w->path = tn_path_target(path);
    w->part_path = tn_mwriter_part_of(path);
    tern_status status = w->path && w->part_path && tn_chunk_writer_init(&w->chunks)
                             ? tn_file_create_part(&w->file, w->part_path, err)
                             : tn_fail(err, TERN_MEMORY, "%s: no memory to write it", path);
    if (status) {
        free_writer(w);
        return status;
    }
    *out = w;
    return TERN_OK;
}

const char *tn_mwriter_part_path(const struct tn_mwriter *writer)
{
    return writer->part_path;
}

void tn_mwriter_abort(struct tn_mwriter *writer)
{
    if (!writer)
        return;
    tn_chunk_writer_fini(&writer->chunks);
    tn_file_abort_part(writer->file);
    writer->file = NULL;
    free_writer(writer);
}

/* ---- declare ---- */

static tern_status grow_table(struct tn_mwriter *w, struct tern_error *err)
{
    if (w->n_tensors < w->capacity)
        return TERN_OK;
    if (w->n_tensors == TERN_MAX_TENSORS)
        return tn_fail(err, TERN_LIMIT, "more than %u tensors", TERN_MAX_TENSORS);
    uint32_t capacity = TN_MIN(TN_MAX(w->capacity * 2, 256u), TERN_MAX_TENSORS);
    struct tern_file_tensor *tensors = tn_realloc(w->tensors, capacity * sizeof *tensors);
    if (!tensors)
        return tn_fail(err, TERN_MEMORY, "no memory for a table of %u tensors", capacity);
    w->tensors = tensors;
    w->capacity = capacity;
    return TERN_OK;
}

tern_status tn_mwriter_declare(struct tn_mwriter *w, const struct tern_file_tensor *tensor,
                               uint32_t *i_tensor, struct tern_error *err)
{
    tern_status status = grow_table(w, err);
    if (status)
        return status;
    char name[48];
    tn_tensor_name(name, sizeof name, tensor);
    const struct tern_file_tensor *last = w->n_tensors ? &w->tensors[w->n_tensors - 1] : NULL;
    if (w->head || (last && tn_tensor_compare(last, tensor) >= 0))
        return tn_fail(err, TERN_INTERNAL, "tensor \"%s\" is declared out of order", name);
    struct tern_file_tensor t = *tensor;
    uint64_t end = w->data_bytes;
    if (!tn_tensor_put(&t, &end))
        return tn_fail(err, TERN_INTERNAL, "tensor \"%s\": layout %u cannot hold %u x %u", name,
                       t.layout, t.rows, t.cols);
    w->data_bytes = end;
    *i_tensor = w->n_tensors;
    w->tensors[w->n_tensors++] = t;
    return TERN_OK;
}

/* ---- begin: the head ---- */

/* Computes the offsets of the sections for these sizes; false if one is too large. */
static bool place_sections(struct tern_file_header *h, uint64_t metadata_bytes,
                           uint64_t tensors_bytes, uint64_t tokenizer_bytes, uint64_t data_bytes)
{
    uint64_t n_chunks = data_bytes / TERN_FILE_CHUNK + (data_bytes % TERN_FILE_CHUNK != 0);
    const struct {
        struct tern_file_section *section;
        uint64_t bytes;
        uint32_t align;
    } list[] = {
        {&h->metadata, metadata_bytes, TERN_FILE_ALIGN},
        {&h->tensors, tensors_bytes, TERN_FILE_ALIGN},
        {&h->tokenizer, tokenizer_bytes, TERN_FILE_ALIGN},
        {&h->hashes, n_chunks * sizeof(uint64_t), TERN_FILE_ALIGN},
        {&h->data, data_bytes, tn_model_file_data_align(data_bytes)},
    };
    uint64_t end = sizeof *h;
    for (size_t i = 0; i < TN_COUNT_OF(list); i++) {
        list[i].section->bytes = list[i].bytes;
        if (!tn_align_up_u64(end, list[i].align, &list[i].section->offset) ||
            !tn_add_u64(list[i].section->offset, list[i].bytes, &end))
            return false;
    }
    h->file_bytes = end;
    return end <= INT64_MAX && h->data.offset <= SIZE_MAX;
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) : 0;
}

static uint64_t metadata_bytes(const struct tn_mwriter_meta *meta)
{
    uint64_t n = sizeof(struct tern_file_config) +
                 tn_n_all_layers(&meta->config) * (uint64_t)sizeof *meta->layers +
                 meta->n_stop_ids * (uint64_t)sizeof *meta->stop_ids + text_bytes(meta->family) +
                 text_bytes(meta->name) + text_bytes(meta->template_name) +
                 meta->template_source_bytes + text_bytes(meta->converter) +
                 meta->n_rotations * (uint64_t)sizeof *meta->rotations + meta->n_sign_bytes;
    for (uint32_t i = 0; i < meta->n_sources; i++)
        n += sizeof(struct tern_file_source) + text_bytes(meta->sources[i].name);
    return n;
}

/* Appends bytes to the metadata, which a limit keeps below 4 GiB. */
static struct tern_file_ref put_bytes(unsigned char *metadata, uint32_t *end, const void *bytes,
                                      size_t n)
{
    struct tern_file_ref ref = {.offset = *end, .bytes = (uint32_t)n};
    if (n)
        memcpy(metadata + *end, bytes, n);
    *end += (uint32_t)n;
    return ref;
}

static struct tern_file_ref put_text(unsigned char *metadata, uint32_t *end, const char *text)
{
    return put_bytes(metadata, end, text, text_bytes(text));
}

static struct tern_file_config *head_config(const struct tn_mwriter *w)
{
    return (void *)(w->head + w->header.metadata.offset);
}

static struct tern_file_source *head_sources(const struct tn_mwriter *w)
{
    return (void *)(w->head + w->header.metadata.offset + head_config(w)->sources.offset);
}

/* Writes the records, then the signs that they refer to. */
static struct tern_file_ref put_rotations(unsigned char *metadata, uint32_t *end,
                                          const struct tn_mwriter_meta *meta)
{
    const struct tern_file_ref ref =
        put_bytes(metadata, end, meta->rotations, meta->n_rotations * sizeof *meta->rotations);
    struct tern_file_rotation *rotations = (void *)(metadata + ref.offset);
    for (uint32_t i = 0; i < meta->n_rotations; i++)
        rotations[i].signs.offset += *end;
    put_bytes(metadata, end, meta->signs, meta->n_sign_bytes);
    return ref;
}

/* Writes the configuration, records by alignment, then the texts. */
static void fill_metadata(struct tn_mwriter *w, const struct tn_mwriter_meta *meta)
{
    unsigned char *metadata = w->head + w->header.metadata.offset;
    struct tern_file_config *config = head_config(w);
    uint32_t end = (uint32_t)sizeof *config;
    *config = meta->config;
    config->layers =
        put_bytes(metadata, &end, meta->layers, tn_n_all_layers(config) * sizeof *meta->layers);
    config->sources = (struct tern_file_ref){
        end, meta->n_sources * (uint32_t)sizeof(struct tern_file_source)};
    end += config->sources.bytes;
    config->stop_ids =
        put_bytes(metadata, &end, meta->stop_ids, meta->n_stop_ids * sizeof *meta->stop_ids);
    if (meta->n_rotations > 0) /* else zeros, as in files older than rotations */
        config->rotations = put_rotations(metadata, &end, meta);
    config->family = put_text(metadata, &end, meta->family);
    config->name = put_text(metadata, &end, meta->name);
    config->template_name = put_text(metadata, &end, meta->template_name);
    config->template_source =
        put_bytes(metadata, &end, meta->template_source, meta->template_source_bytes);
    config->converter = put_text(metadata, &end, meta->converter);
    struct tern_file_source *sources = head_sources(w);
    for (uint32_t i = 0; i < meta->n_sources; i++)
        sources[i] = (struct tern_file_source){
            .name = put_text(metadata, &end, meta->sources[i].name),
            .bytes = meta->sources[i].bytes,
            .hash = meta->sources[i].hash,
        };
}

static tern_status fail_space(const struct tn_mwriter *w, uint64_t n_free, struct tern_error *err)
{
    return tn_fail(err, TERN_OUTPUT,
                   "%s: the disk is too full: %" PRIu64 " bytes are needed, %" PRIu64 " are free",
                   w->part_path, w->header.file_bytes, n_free);
}

tern_status tn_mwriter_begin(struct tn_mwriter *w, const struct tn_mwriter_meta *meta,
                             const void *tokenizer, size_t tokenizer_bytes, struct tern_error *err)
{
    uint64_t n_metadata = metadata_bytes(meta);
    if (n_metadata > TERN_MAX_METADATA_BYTES)
        return tn_fail(err, TERN_LIMIT, "metadata of %" PRIu64 " bytes, at most %u", n_metadata,
                       TERN_MAX_METADATA_BYTES);
    if (tokenizer_bytes > TERN_MAX_TOKENIZER_BYTES)
        return tn_fail(err, TERN_LIMIT, "tokenizer of %zu bytes, at most %u", tokenizer_bytes,
                       TERN_MAX_TOKENIZER_BYTES);
    struct tern_file_header *h = &w->header;
    *h = (struct tern_file_header){.version = TERN_FILE_VERSION, .header_bytes = sizeof *h};
    memcpy(h->magic, TERN_FILE_MAGIC, sizeof h->magic);
    if (!place_sections(h, n_metadata, w->n_tensors * sizeof *w->tensors, tokenizer_bytes,
                        w->data_bytes))
        return tn_fail(err, TERN_LIMIT, "the model is too large for a file");
    uint64_t n_free = tn_disk_free_bytes(w->part_path);
    if (n_free < h->file_bytes)
        return fail_space(w, n_free, err);
    w->head = tn_alloc_zeroed(1, (size_t)h->data.offset);
    if (!w->head)
        return tn_fail(err, TERN_MEMORY, "no memory for the file head, %" PRIu64 " bytes",
                       h->data.offset);
    fill_metadata(w, meta);
    if (tokenizer_bytes)
        memcpy(w->head + h->tokenizer.offset, tokenizer, tokenizer_bytes);
    for (uint32_t i = 0; i < w->n_tensors; i++) {
        w->tensors[i].offset += h->data.offset;
        if (w->tensors[i].scale_bytes)
            w->tensors[i].scale_offset += h->data.offset;
    }
    return TERN_OK;
}

uint64_t tn_mwriter_file_bytes(const struct tn_mwriter *writer)
{
    return writer->header.file_bytes;
}

/* ---- data ---- */

/* `status` of a write of n bytes, or that the disk is too full for them. */
static tern_status explain(const struct tn_mwriter *w, tern_status status, size_t n,
                           struct tern_error *err)
{
    const uint64_t n_free = status ? tn_disk_free_bytes(w->part_path) : UINT64_MAX;
    return n_free < n ? fail_space(w, n_free, err) : status;
}

/* Writes the first n bytes of the head. */
static tern_status write_head(struct tn_mwriter *w, size_t n, struct tern_error *err)
{
    return explain(w, tn_file_write_at(w->file, 0, w->head, n, err), n, err);
}

/* Passes on the chunk, which ends at `position`. */
static tern_status flush_chunk(struct tn_mwriter *w, struct tern_error *err)
{
    const uint64_t i_chunk = (w->position - 1) / TERN_FILE_CHUNK;
    const uint64_t begin = i_chunk * TERN_FILE_CHUNK;
    const struct tn_chunk chunk = {
        .file = w->file,
        .offset = w->header.data.offset + begin,
        .n_bytes = (size_t)(w->position - begin),
        .hash = w->head + w->header.hashes.offset + i_chunk * sizeof(uint64_t),
    };
    return explain(w, tn_chunk_writer_put(&w->chunks, chunk, err), chunk.n_bytes, err);
}

/* Appends bytes to the data; NULL bytes are zeros. */
static tern_status emit(struct tn_mwriter *w, const unsigned char *bytes, uint64_t n,
                        struct tern_error *err)
{
    while (n > 0) {
        size_t used = (size_t)(w->position % TERN_FILE_CHUNK);
        size_t part = (size_t)TN_MIN(n, (uint64_t)(TERN_FILE_CHUNK - used));
        if (bytes) {
            memcpy(tn_chunk_writer_buffer(&w->chunks) + used, bytes, part);
            bytes += part;
        } else {
            memset(tn_chunk_writer_buffer(&w->chunks) + used, 0, part);
        }
        w->position += part;
        n -= part;
        if (used + part == TERN_FILE_CHUNK) {
            tern_status status = flush_chunk(w, err);
            if (status)
                return status;
        }
    }
    return TERN_OK;
}

static uint64_t end_of_tensor(const struct tern_file_tensor *t)
{
    return t->scale_bytes ? t->scale_offset + t->scale_bytes : t->offset + t->bytes;
}

static tern_status fail_order(const struct tern_file_tensor *t, const char *what,
                              struct tern_error *err)
{
    char name[48];
    return tn_fail(err, TERN_INTERNAL, "tensor \"%s\": %s", tn_tensor_name(name, sizeof name, t),
                   what);
}

tern_status tn_mwriter_append(struct tn_mwriter *w, uint32_t i_tensor, const void *bytes,
                              size_t n_bytes, struct tern_error *err)
{
    const struct tern_file_tensor *t = &w->tensors[i_tensor];
    uint64_t at = w->header.data.offset + w->position;
    if (i_tensor != w->i_current) {
        if (i_tensor != w->i_current + 1 || at != end_of_tensor(&w->tensors[w->i_current]))
            return fail_order(t, "is begun before the one before it is complete", err);
        w->i_current = i_tensor;
    }
    if (at < t->offset) {
        tern_status status = emit(w, NULL, t->offset - at, err);
        if (status)
            return status;
        at = t->offset;
    }
    if (at > t->offset + t->bytes || n_bytes > t->offset + t->bytes - at)
        return fail_order(t, "gets more bytes than its shape has", err);
    return emit(w, bytes, n_bytes, err);
}

tern_status tn_mwriter_pad_matrix(struct tn_mwriter *writer, uint32_t i_tensor, uint32_t i_matrix,
                                  struct tern_error *err)
{
    const struct tern_file_tensor *t = &writer->tensors[i_tensor];
    const uint64_t at = writer->header.data.offset + writer->position;
    const uint64_t end = t->offset + t->bytes / TN_MAX(t->n_stacked, 1u) * (i_matrix + 1ull);
    if (i_tensor != writer->i_current || i_matrix >= TN_MAX(t->n_stacked, 1u) || at > end)
        return fail_order(t, "gets more bytes than its shape has", err);
    return emit(writer, NULL, end - at, err);
}

tern_status tn_mwriter_append_scales(struct tn_mwriter *w, uint32_t i_tensor,
                                     const void *scales, size_t n_bytes, struct tern_error *err)
{
    const struct tern_file_tensor *t = &w->tensors[i_tensor];
    uint64_t at = w->header.data.offset + w->position;
    if (i_tensor != w->i_current || at != t->offset + t->bytes)
        return fail_order(t, "gets its scales before its data is complete", err);
    if (n_bytes != t->scale_bytes)
        return fail_order(t, "gets another number of scales than it has", err);
    tern_status status = emit(w, NULL, t->scale_offset - at, err);
    return status ? status : emit(w, (const unsigned char *)scales, t->scale_bytes, err);
}

/* ---- seal ---- */

void tn_mwriter_add_tensor_facts(struct tn_mwriter *writer, uint32_t i_tensor, float scale,
                                 uint64_t n_zero)
{
    writer->tensors[i_tensor].scale = scale;
    writer->tensors[i_tensor].n_zero += n_zero;
}

void tn_mwriter_set_source(struct tn_mwriter *writer, uint32_t i_source, uint64_t bytes,
                           uint64_t hash)
{
    head_sources(writer)[i_source].bytes = bytes;
    head_sources(writer)[i_source].hash = hash;
}

/* Computes the hash of the whole head and puts the header in front of it. */
static void hash_head(struct tn_mwriter *w)
{
    w->header.head_hash = 0;
    memcpy(w->head, &w->header, sizeof w->header);
    w->header.head_hash = XXH3_64bits(w->head, (size_t)w->header.data.offset);
    memcpy(w->head, &w->header, sizeof w->header);
}

tern_status tn_mwriter_seal(struct tn_mwriter *w, struct tern_error *err)
{
    if (w->position != w->data_bytes || w->position == 0)
        return tn_fail(err, TERN_INTERNAL,
                       "%" PRIu64 " bytes of data were written, %" PRIu64 " were declared",
                       w->position, w->data_bytes);
    tern_status status = w->position % TERN_FILE_CHUNK ? flush_chunk(w, err) : TERN_OK;
    if (!status)
        status = explain(w, tn_chunk_writer_wait(&w->chunks, err), TERN_FILE_CHUNK, err);
    if (status)
        return status;
    tn_chunk_writer_fini(&w->chunks);
    memcpy(w->head + w->header.tensors.offset, w->tensors, w->n_tensors * sizeof *w->tensors);
    hash_head(w);
    status = write_head(w, (size_t)w->header.data.offset, err);
    w->is_sealed = !status;
    return status;
}

/* Writes the header and the configuration, which are adjacent. */
static tern_status write_config(struct tn_mwriter *w, struct tern_error *err)
{
    hash_head(w);
    return write_head(w, sizeof w->header + sizeof(struct tern_file_config), err);
}

tern_status tn_mwriter_set_fingerprint(struct tn_mwriter *w, const uint32_t *ids,
                                       uint32_t n_ids, uint64_t hash, struct tern_error *err)
{
    if (!w->is_sealed || n_ids > TERN_MAX_FINGERPRINT_IDS)
        return tn_fail(err, TERN_INTERNAL, "fingerprint of %u ids%s", n_ids,
                       w->is_sealed ? "" : " before the file is complete");
    struct tern_file_config *config = head_config(w);
    memset(config->fingerprint_ids, 0, sizeof config->fingerprint_ids);
    memcpy(config->fingerprint_ids, ids, n_ids * sizeof *ids);
    config->n_fingerprint_ids = n_ids;
    config->fingerprint_hash = hash;
    return write_config(w, err);
}

tern_status tn_mwriter_set_cache(struct tn_mwriter *writer, uint32_t cache, struct tern_error *err)
{
    if (!writer->is_sealed)
        return tn_fail(err, TERN_INTERNAL, "cache type before the file is complete");
    head_config(writer)->cache = cache;
    return write_config(writer, err);
}

tern_status tn_mwriter_commit(struct tn_mwriter *w, struct tern_error *err)
{
    tn_chunk_writer_fini(&w->chunks); /* nothing to do if sealed */
    tern_status status = w->is_sealed ? tn_file_sync(w->file, err)
                                      : tn_fail(err, TERN_INTERNAL, "%s: commit of an incomplete "
                                                                    "file", w->path);
    if (!status)
        status = tn_file_finish_part(w->file, w->path, err);
    else
        tn_file_abort_part(w->file);
    w->file = NULL;
    free_writer(w);
    return status;
}
