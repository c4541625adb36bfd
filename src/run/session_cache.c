/* SPDX-License-Identifier: MIT
 *
 * A session's keys and values in a file, so that a long conversation or prompt need not be
 * evaluated again.
 *
 *   struct cache_header    64 bytes, little-endian, as everything here
 *   ids                    u32 [n_ids], zeros up to a multiple of 64 bytes
 *   blocks                 [ceil(n_ids / 256)][block_bytes] as they lie in memory (model/kvcache.h)
 *
 * The hash covers all of it.  The file is of use for the same model file and cache type only, on
 * any machine, since all kernels give the same bits.  Damage, as all that does not fit, is an error
 * with which the caller evaluates instead.
 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "plat/plat.h"
#include "run/session.h"

#define MAGIC "TERNKV\r\n"
#define VERSION 1u
/* Flags: the form of inputs where it is not the model's own. */
#define INPUTS_F32 1u
#define INPUTS_8 2u

struct cache_header {
    char magic[8];
    uint32_t version;
    uint32_t kv; /* enum tern_kv */
    uint64_t model_hash;
    uint32_t n_ids;
    uint32_t block_positions;
    uint64_t block_bytes;
    uint32_t flags;
    uint32_t reserved[3];
    uint64_t hash; /* XXH3-64 of the file with this field as zero */
};
static_assert(sizeof(struct cache_header) == 64, "the header on disk");

static uint32_t flags_of(const struct tern_session *s)
{
    return s->engine->inputs == TERN_INPUTS_AS_F32 ? INPUTS_F32
           : s->engine->inputs == TERN_INPUTS_AS_8 ? INPUTS_8
                                                   : 0;
}

static struct cache_header make_header(const struct tern_session *s, uint32_t n_ids)
{
    struct cache_header h = {
        .version = VERSION,
        .kv = (uint32_t)s->work.params.kv,
        .model_hash = tern_model_hash(s->model),
        .n_ids = n_ids,
        .block_positions = TN_KV_BLOCK,
        .block_bytes = tn_session_block_bytes(s),
        .flags = flags_of(s),
    };
    memcpy(h.magic, MAGIC, sizeof h.magic);
    return h;
}

static uint32_t n_blocks_of(uint32_t n_ids)
{
    return tn_div_ceil_u32(n_ids, TN_KV_BLOCK);
}

static size_t ids_bytes(uint32_t n_ids)
{
    return tn_align_up((size_t)n_ids * sizeof(uint32_t), 64);
}

static uint64_t hash_file(const struct cache_header *header, const uint32_t *ids,
                          const struct tern_session *s)
{
    XXH3_state_t state;
    struct cache_header zeroed = *header;
    zeroed.hash = 0;
    (void)XXH3_64bits_reset(&state);
    (void)XXH3_64bits_update(&state, &zeroed, sizeof zeroed);
    (void)XXH3_64bits_update(&state, ids, ids_bytes(header->n_ids));
    for (uint32_t i = 0; i < n_blocks_of(header->n_ids); i++)
        (void)XXH3_64bits_update(&state, tn_session_block(s, i), tn_session_block_bytes(s));
    return XXH3_64bits_digest(&state);
}

/* ---- saving ---- */

static tern_status write_cache(struct tn_file *file, const struct tern_session *s,
                               const struct cache_header *header, const uint32_t *ids,
                               struct tern_error *err)
{
    uint64_t at = sizeof *header + ids_bytes(header->n_ids);
    tern_status status = tn_file_write_at(file, 0, header, sizeof *header, err);
    if (status == TERN_OK)
        status = tn_file_write_at(file, sizeof *header, ids, ids_bytes(header->n_ids), err);
    for (uint32_t i = 0; i < n_blocks_of(header->n_ids) && status == TERN_OK; i++) {
        status = tn_file_write_at(file, at, tn_session_block(s, i), tn_session_block_bytes(s), err);
        at += tn_session_block_bytes(s);
    }
    return status;
}

/* Without waiting for the disk: what a power failure leaves of it is found out by its hash. */
static tern_status save(const struct tern_session *s, const char *path, const uint32_t *ids,
                        uint32_t n, struct tern_error *err)
{
    struct tn_buf part = {0};
    struct tn_file *file;
    struct cache_header header = make_header(s, n);
    header.hash = hash_file(&header, ids, s);
    tn_buf_printf(&part, "%s.part", path);
    if (part.failed)
        return tn_fail(err, TERN_MEMORY, "no memory for a path");
    tern_status status = tn_file_create_private_part(&file, tn_buf_text(&part), err);
    tn_buf_fini(&part);
    if (status != TERN_OK)
        return status;
    status = write_cache(file, s, &header, ids, err);
    if (status == TERN_OK)
        return tn_file_finish_part(file, path, err);
    tn_file_abort_part(file);
    return status;
}

/* What is there already may be replaced when it is such a file, or nothing came of it. */
static tern_status check_target(const char *path, struct tern_error *err)
{
    const enum tn_path_kind kind = tn_path_kind(path);
    struct tn_file *file;
    char magic[sizeof MAGIC - 1];
    if (kind == TN_PATH_ABSENT)
        return TERN_OK;
    if (kind != TN_PATH_FILE)
        return tn_fail(err, TERN_OUTPUT, "%s: is no regular file", path);
    if (tn_file_open_read(&file, path, err) != TERN_OK)
        return TERN_OK; /* renaming decides */
    const uint64_t n_bytes = tn_file_size(file);
    bool is_own = n_bytes >= sizeof magic &&
                  tn_file_read_at(file, 0, magic, sizeof magic, err) == TERN_OK &&
                  memcmp(magic, MAGIC, sizeof magic) == 0;
    tn_file_close(file);
    return is_own || n_bytes == 0
               ? TERN_OK
               : tn_fail(err, TERN_OUTPUT, "%s: not replaced: it holds no keys and values", path);
}

tern_status tern_session_save_cache(const struct tern_session *s, const char *path,
                                    struct tern_error *err)
{
    const uint32_t n = tern_session_n_past(s);
    if (n == 0)
        return tn_fail(err, TERN_USAGE, "%s: there are no keys and values to save", path);
    tern_status status = check_target(path, err);
    if (status != TERN_OK)
        return status;
    uint32_t *ids = tn_alloc_zeroed(1, ids_bytes(n));
    if (!ids)
        return tn_fail(err, TERN_MEMORY, "no memory to save %u ids", n);
    memcpy(ids, tern_session_ids(s), n * sizeof *ids);
    status = save(s, path, ids, n, err);
    tn_free(ids);
    return status == TERN_OK ? tn_ok(err) : status;
}

/* ---- loading ---- */

/* Every field but the hash and the number of ids has to be what this session would write. */
static tern_status check_header(const struct cache_header *h, const struct tern_session *s,
                                uint64_t n_bytes, const char *path, struct tern_error *err)
{
    struct cache_header own = make_header(s, h->n_ids);
    if (memcmp(h->magic, own.magic, sizeof own.magic) != 0 || h->version != own.version)
        return tn_fail(err, TERN_INPUT, "%s: no saved keys and values of this version", path);
    if (h->model_hash != own.model_hash)
        return tn_fail(err, TERN_INPUT, "%s: of another model (%016llx, this one is %016llx)", path,
                       (unsigned long long)h->model_hash, (unsigned long long)own.model_hash);
    if (h->flags != own.flags)
        return tn_fail(err, TERN_INPUT, "%s: computed with another form of inputs (%s here)", path,
                       tern_engine_inputs(s->engine, s->model));
    if (h->kv != own.kv)
        return tn_fail(err, TERN_INPUT, "%s: of another cache type (%s here)", path,
                       tern_kv_text(s->work.params.kv));
    if (h->n_ids == 0 || h->n_ids > s->n_ctx)
        return tn_fail(err, TERN_INPUT, "%s: %u positions, the context has %u", path, h->n_ids,
                       s->n_ctx);
    own.hash = h->hash;
    if (memcmp(h, &own, sizeof own) != 0 ||
        n_bytes != sizeof own + ids_bytes(h->n_ids) + n_blocks_of(h->n_ids) * own.block_bytes)
        return tn_fail(err, TERN_INPUT, "%s: damaged: its size or a reserved field is wrong", path);
    return TERN_OK;
}

static tern_status read_blocks(struct tern_session *s, struct tn_file *file, uint32_t n_ids,
                               struct tern_error *err)
{
    uint64_t at = sizeof(struct cache_header) + ids_bytes(n_ids);
    tern_status status = tn_session_grow(s, n_ids, err);
    for (uint32_t i = 0; i < n_blocks_of(n_ids) && status == TERN_OK; i++) {
        status = tn_file_read_at(file, at, tn_session_block(s, i), tn_session_block_bytes(s), err);
        at += tn_session_block_bytes(s);
    }
    return status;
}

static tern_status load(struct tern_session *s, struct tn_file *file, const char *path,
                        struct tern_error *err)
{
    struct cache_header h;
    uint32_t *ids = NULL;
    tern_status status = tn_file_read_at(file, 0, &h, sizeof h, err);
    if (status == TERN_OK)
        status = check_header(&h, s, tn_file_size(file), path, err);
    if (status == TERN_OK && !(ids = tn_alloc(ids_bytes(h.n_ids))))
        status = tn_fail(err, TERN_MEMORY, "%s: no memory for %u ids", path, h.n_ids);
    if (status == TERN_OK)
        status = tn_file_read_at(file, sizeof h, ids, ids_bytes(h.n_ids), err);
    if (status == TERN_OK)
        status = read_blocks(s, file, h.n_ids, err);
    if (status == TERN_OK && hash_file(&h, ids, s) != h.hash)
        status = tn_fail(err, TERN_INPUT, "%s: damaged: the checksum does not belong to it", path);
    if (status == TERN_OK && tn_check_ids(s->model, ids, h.n_ids, err) != TERN_OK)
        status = tn_fail(err, TERN_INPUT, "%s: damaged: an id is beyond the vocabulary", path);
    if (status == TERN_OK)
        tn_session_restore(s, ids, h.n_ids);
    tn_free(ids);
    return status;
}

tern_status tern_session_load_cache(struct tern_session *s, const char *path,
                                    struct tern_error *err)
{
    struct tn_file *file;
    tn_session_restore(s, NULL, 0);
    tern_status status = tn_file_open_read(&file, path, err);
    if (status != TERN_OK)
        return status;
    status = load(s, file, path, err);
    if (status != TERN_OK)
        tn_session_restore(s, NULL, 0);
    tn_file_close(file);
    return status == TERN_OK ? tn_ok(err) : status;
}
