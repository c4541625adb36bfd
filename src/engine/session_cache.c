/* SPDX-License-Identifier: MIT
 *
 * Saves a session's keys and values in a file, so that a long conversation or prompt need not be
 * evaluated again.
 *
 *   struct cache_header    64 bytes, little-endian like everything here
 *   ids                    u32 [n_ids], zero-padded to a multiple of 64 bytes
 *   blocks                 [ceil(n_ids / 256)][block_bytes] as in memory (model/kvcache.h)
 *   states                 [n_states] struct state_record and a checkpoint (model/state.h) of the
 *                          model's state_bytes; none if no layer has state
 *
 * The hash covers the whole file.  It is valid for the same model file and cache type only, on any
 * machine, because all kernels give the same bits.  Any mismatch is an error, after which the
 * caller evaluates the prompt instead.
 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/session.h"
#include "model/mixers/attention_state.h"
#include "plat/plat.h"

#define MAGIC "TERNKV\r\n"
#define VERSION 1u
/* Flags: the activation precision, if it is not the model's default. */
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
    uint32_t n_states;
    uint64_t state_bytes; /* of a checkpoint */
    uint64_t hash; /* XXH3-64 of the file with this field set to zero */
};
static_assert(sizeof(struct cache_header) == 64, "the header on disk");

struct state_record {
    uint32_t position;
    uint32_t mark; /* enum tn_mark */
    uint32_t reserved[14];
};
static_assert(sizeof(struct state_record) == 64, "a record on disk");

/* The newest, and one of each mark except TN_MARK_SPACED. */
#define MAX_STATES ((uint32_t)TN_N_MARKS)

/* The saved states; each is a checkpoint of the session. */
struct states {
    uint32_t n;
    struct state_record records[MAX_STATES];
    unsigned char *kept[MAX_STATES];
};

static uint32_t flags_of(const struct tern_session *s)
{
    return s->engine->inputs == TERN_INPUTS_AS_F32 ? INPUTS_F32
           : s->engine->inputs == TERN_INPUTS_AS_8 ? INPUTS_8
                                                   : 0;
}

static struct cache_header make_header(const struct tern_session *s, uint32_t n_ids,
                                       uint32_t n_states)
{
    struct cache_header h = {
        .version = VERSION,
        .kv = (uint32_t)s->work.params.kv,
        .model_hash = tern_model_hash(s->model),
        .n_ids = n_ids,
        .block_positions = TN_KV_BLOCK,
        .block_bytes = s->work.states.bytes.block,
        .flags = flags_of(s),
        .n_states = n_states,
        .state_bytes = s->work.states.bytes.checkpoint,
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
                          const struct tern_session *s, const struct states *states)
{
    XXH3_state_t state;
    struct cache_header zeroed = *header;
    zeroed.hash = 0;
    (void)XXH3_64bits_reset(&state);
    (void)XXH3_64bits_update(&state, &zeroed, sizeof zeroed);
    (void)XXH3_64bits_update(&state, ids, ids_bytes(header->n_ids));
    for (uint32_t i = 0; i < n_blocks_of(header->n_ids); i++)
        (void)XXH3_64bits_update(&state, s->sequence.blocks[i], s->work.states.bytes.block);
    for (uint32_t i = 0; i < states->n; i++) {
        (void)XXH3_64bits_update(&state, &states->records[i], sizeof states->records[i]);
        (void)XXH3_64bits_update(&state, states->kept[i], (size_t)header->state_bytes);
    }
    return XXH3_64bits_digest(&state);
}

/* ---- saving ---- */

/* Selects the states to save.  Returns the number of positions of the newest. */
static uint32_t choose_states(struct states *out, struct tern_session *s)
{
    struct tn_sequence *q = &s->sequence;
    uint32_t newest = 0;
    *out = (struct states){0};
    if (!q->state)
        return q->n_past;
    (void)tn_sequence_checkpoint(q, q->n_past, TN_MARK_SPACED);
    for (uint32_t i = 0; i < q->checkpoints->pool.n_blocks; i++)
        if (tn_checkpoint_is_of(&q->checkpoints->list[i], q->number))
            newest = TN_MAX(newest, q->checkpoints->list[i].position);
    for (uint32_t i = 0; i < q->checkpoints->pool.n_blocks && out->n < MAX_STATES; i++) {
        const struct tn_checkpoint *one = &q->checkpoints->list[i];
        uint32_t mark = TN_N_MARKS - 1;
        while (mark > 0 && !tn_checkpoint_is_marked(one, q->number, (enum tn_mark)mark))
            mark--;
        if (!tn_checkpoint_is_of(one, q->number) || (mark == 0 && one->position != newest))
            continue;
        out->records[out->n] = (struct state_record){.position = one->position, .mark = mark};
        out->kept[out->n++] = one->kept;
    }
    return newest;
}

static tern_status write_states(struct tn_file *file, uint64_t at, const struct states *states,
                                size_t n_bytes, struct tern_error *err)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < states->n && status == TERN_OK; i++) {
        const struct state_record *record = &states->records[i];
        status = tn_file_write_at(file, at, record, sizeof *record, err);
        if (status == TERN_OK)
            status = tn_file_write_at(file, at + sizeof *record, states->kept[i], n_bytes, err);
        at += sizeof *record + n_bytes;
    }
    return status;
}

static tern_status write_cache(struct tn_file *file, const struct tern_session *s,
                               const struct cache_header *header, const uint32_t *ids,
                               const struct states *states, struct tern_error *err)
{
    uint64_t at = sizeof *header + ids_bytes(header->n_ids);
    tern_status status = tn_file_write_at(file, 0, header, sizeof *header, err);
    if (status == TERN_OK)
        status = tn_file_write_at(file, sizeof *header, ids, ids_bytes(header->n_ids), err);
    for (uint32_t i = 0; i < n_blocks_of(header->n_ids) && status == TERN_OK; i++) {
        status = tn_file_write_at(file, at, s->sequence.blocks[i], s->work.states.bytes.block, err);
        at += s->work.states.bytes.block;
    }
    if (status == TERN_OK)
        status = write_states(file, at, states, (size_t)header->state_bytes, err);
    return status;
}

/* Writes without fsync: the hash detects what a power failure destroys. */
static tern_status save(const struct tern_session *s, const char *path, const uint32_t *ids,
                        uint32_t n, const struct states *states, struct tern_error *err)
{
    struct tn_file *file;
    struct cache_header header = make_header(s, n, states->n);
    header.hash = hash_file(&header, ids, s, states);
    char *part = tn_path_part(path);
    if (!part)
        return tn_fail(err, TERN_MEMORY, "no memory for a path");
    tern_status status = tn_file_create_private_part(&file, part, err);
    tn_free(part);
    if (status != TERN_OK)
        return status;
    status = write_cache(file, s, &header, ids, states, err);
    if (status == TERN_OK)
        return tn_file_finish_part(file, path, err);
    tn_file_abort_part(file);
    return status;
}

/* An existing file may be replaced if it is a cache file or a failed attempt at one. */
static tern_status check_target(const char *path, struct tern_error *err)
{
    const enum tn_path_kind kind = tn_path_kind(path);
    struct tn_file *file;
    char magic[sizeof MAGIC - 1];
    if (kind == TN_PATH_ABSENT)
        return TERN_OK;
    if (kind != TN_PATH_FILE)
        return tn_fail(err, TERN_OUTPUT, "%s: not a regular file", path);
    const tern_status status = tn_file_open_read(&file, path, err);
    if (status != TERN_OK)
        return status == TERN_INPUT
                   ? tn_fail(err, TERN_OUTPUT, "%s: not replaced: it cannot be read", path)
                   : status;
    const uint64_t n_bytes = tn_file_size(file);
    bool is_own = n_bytes >= sizeof magic &&
                  tn_file_read_at(file, 0, magic, sizeof magic, err) == TERN_OK &&
                  memcmp(magic, MAGIC, sizeof magic) == 0;
    tn_file_close(file);
    return is_own || n_bytes == 0
               ? TERN_OK
               : tn_fail(err, TERN_OUTPUT, "%s: not replaced: not a file of saved keys and values",
                         path);
}

tern_status tern_session_save_cache(struct tern_session *s, const char *path,
                                    struct tern_error *err)
{
    struct states states;
    if (tern_session_n_past(s) == 0)
        return tn_fail(err, TERN_USAGE, "%s: there are no keys and values to save", path);
    const uint32_t n = choose_states(&states, s);
    if (n == 0)
        return tn_fail(err, TERN_MEMORY, "%s: no memory for a copy of the state", path);
    tern_status status = check_target(path, err);
    if (status != TERN_OK)
        return status;
    uint32_t *ids = tn_alloc_zeroed(1, ids_bytes(n));
    if (!ids)
        return tn_fail(err, TERN_MEMORY, "no memory to save %u ids", n);
    memcpy(ids, tern_session_ids(s), n * sizeof *ids);
    status = save(s, path, ids, n, &states, err);
    tn_free(ids);
    return status == TERN_OK ? tn_ok(err) : status;
}

/* ---- loading ---- */

/* n_states must be at most MAX_STATES. */
static uint64_t file_bytes(const struct cache_header *h)
{
    return sizeof *h + ids_bytes(h->n_ids) + n_blocks_of(h->n_ids) * h->block_bytes +
           h->n_states * (sizeof(struct state_record) + h->state_bytes);
}

/* Every field except the hash and the counts must equal what this session would write. */
static tern_status check_header(const struct cache_header *h, const struct tern_session *s,
                                uint64_t n_bytes, const char *path, struct tern_error *err)
{
    struct cache_header own = make_header(s, h->n_ids, h->n_states);
    if (memcmp(h->magic, own.magic, sizeof own.magic) != 0 || h->version != own.version)
        return tn_fail(err, TERN_INPUT, "%s: not saved keys and values of this version", path);
    if (h->model_hash != own.model_hash)
        return tn_fail(err, TERN_INPUT, "%s: of another model (%016llx, this one is %016llx)", path,
                       (unsigned long long)h->model_hash, (unsigned long long)own.model_hash);
    if (h->flags != own.flags)
        return tn_fail(err, TERN_INPUT, "%s: computed with another activation precision (%s here)",
                       path, tern_engine_inputs(s->engine, s->model));
    if (h->kv != own.kv)
        return tn_fail(err, TERN_INPUT, "%s: of another cache type (%s here)", path,
                       tern_kv_text(s->work.params.kv));
    if (h->n_ids == 0 || h->n_ids > s->n_ctx)
        return tn_fail(err, TERN_INPUT, "%s: %u positions, the context has %u", path, h->n_ids,
                       s->n_ctx);
    if (h->block_bytes != own.block_bytes &&
        tn_rings_above(&s->model->weights, s->n_batch) != UINT32_MAX)
        return tn_fail(err, TERN_INPUT,
                       "%s: saved with a context of another size (%u here): layers with a "
                       "window stored different positions",
                       path, s->n_ctx);
    own.hash = h->hash;
    if (memcmp(h, &own, sizeof own) != 0 || (own.state_bytes > 0) != (h->n_states > 0) ||
        h->n_states > MAX_STATES || n_bytes != file_bytes(&own))
        return tn_fail(err, TERN_INPUT, "%s: damaged: its size or a reserved field is wrong", path);
    return TERN_OK;
}

/* Declares that the blocks hold these n ids, which were not evaluated here.  States come from the
 * newest checkpoint; if it is earlier, n_past is smaller. */
static void restore(struct tern_session *s, const uint32_t *ids, uint32_t n)
{
    if (n > 0)
        memcpy(s->sequence.ids, ids, n * sizeof *ids);
    s->sequence.n_past = n;
    if (n == 0 || s->sequence.state)
        (void)tn_sequence_truncate(&s->sequence, n);
    s->has_logits = false;
}

static tern_status read_blocks(struct tern_session *s, struct tn_file *file, uint32_t n_ids,
                               struct tern_error *err)
{
    uint64_t at = sizeof(struct cache_header) + ids_bytes(n_ids);
    tern_status status = tn_session_grow(s, n_ids, err);
    for (uint32_t i = 0; i < n_blocks_of(n_ids) && status == TERN_OK; i++) {
        status = tn_file_read_at(file, at, s->sequence.blocks[i], s->work.states.bytes.block, err);
        at += s->work.states.bytes.block;
    }
    return status;
}

static tern_status fail_states(const struct cache_header *h, const char *path,
                               struct tern_error *err)
{
    return tn_fail(err, TERN_MEMORY, "%s: no memory for %u states, %.1f MiB each", path,
                   h->n_states, (double)h->state_bytes / 0x1p20);
}

/* Loads each as a checkpoint of the session, which must be empty. */
static tern_status read_states(struct states *out, struct tern_session *s, struct tn_file *file,
                               const struct cache_header *h, const char *path,
                               struct tern_error *err)
{
    uint64_t at = sizeof *h + ids_bytes(h->n_ids) + n_blocks_of(h->n_ids) * h->block_bytes;
    tern_status status = TERN_OK;
    *out = (struct states){.n = h->n_states};
    for (uint32_t i = 0; i < h->n_states && status == TERN_OK; i++) {
        struct state_record *record = &out->records[i];
        status = tn_file_read_at(file, at, record, sizeof *record, err);
        if (status != TERN_OK)
            return status;
        if (record->position == 0 || record->position > h->n_ids || record->mark >= TN_N_MARKS)
            return tn_fail(err, TERN_INPUT, "%s: damaged: its states do not fit its ids", path);
        struct tn_checkpoint *one =
            tn_checkpoints_add(&s->work.checkpoints, s->sequence.number, record->position,
                               (enum tn_mark)record->mark);
        if (!one)
            return fail_states(h, path, err);
        out->kept[i] = one->kept;
        status = tn_file_read_at(file, at + sizeof *record, one->kept, (size_t)h->state_bytes, err);
        tn_checkpoints_mark(&s->work.checkpoints, one, s->sequence.number,
                            (enum tn_mark)record->mark);
        at += sizeof *record + h->state_bytes;
    }
    for (uint32_t i = 0; i < h->n_states && status == TERN_OK; i++)
        if (!tn_checkpoints_find(&s->work.checkpoints, s->sequence.number,
                                 out->records[i].position))
            return fail_states(h, path, err);
    return status;
}

static tern_status check_states(const struct states *states, const struct tern_session *s,
                                const char *path, struct tern_error *err)
{
    for (uint32_t i = 0; i < states->n; i++)
        if (!tn_state_is_sound(&s->work.states, states->kept[i], states->records[i].position))
            return tn_fail(err, TERN_INPUT, "%s: damaged: the state of position %u is not sound",
                           path, states->records[i].position);
    return TERN_OK;
}

static tern_status load(struct tern_session *s, struct tn_file *file, const char *path,
                        struct tern_error *err)
{
    struct cache_header h;
    struct states states = {0};
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
    if (status == TERN_OK)
        status = read_states(&states, s, file, &h, path, err);
    if (status == TERN_OK && hash_file(&h, ids, s, &states) != h.hash)
        status = tn_fail(err, TERN_INPUT, "%s: damaged: the checksum does not match", path);
    if (status == TERN_OK && tn_check_ids(s->model, ids, h.n_ids, err) != TERN_OK)
        status = tn_fail(err, TERN_INPUT, "%s: damaged: an id is beyond the vocabulary", path);
    if (status == TERN_OK)
        status = check_states(&states, s, path, err);
    if (status == TERN_OK)
        restore(s, ids, h.n_ids);
    tn_free(ids);
    return status;
}

tern_status tern_session_load_cache(struct tern_session *s, const char *path,
                                    struct tern_error *err)
{
    struct tn_file *file;
    restore(s, NULL, 0);
    tern_status status = tn_file_open_read(&file, path, err);
    if (status != TERN_OK)
        return status;
    status = load(s, file, path, err);
    if (status != TERN_OK)
        restore(s, NULL, 0);
    tn_file_close(file);
    return status == TERN_OK ? tn_ok(err) : status;
}
