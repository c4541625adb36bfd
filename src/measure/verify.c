/* SPDX-License-Identifier: MIT
 *
 * Checks that a file is intact and that this machine computes it correctly:
 *
 *   1. the checksum of every 4 MiB of data
 *   2. what checksums do not cover: code 3 in ternary data; scales, norms and half floats that
 *      are not finite
 *   3. every kernel level of this CPU against the reference, on the file's own first rows
 *   4. the fingerprint: ids in, hash of the logits out, compared with the one from conversion
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "engine/session.h"
#include "measure/verify_kernels.h"
#include "tern/measure.h"
#include "tern/sysinfo.h"

/* ---- data ---- */

/* The two passes over the data, checksums and values, share one progress. */
struct progress {
    bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total);
    void *arg;
    uint64_t n_bytes; /* of the data */
    uint64_t n_done;  /* in the current pass */
    bool is_second;
};

static tern_status advance(struct progress *p, uint64_t n, struct tern_error *err)
{
    p->n_done = TN_MIN(p->n_done + n, p->n_bytes);
    const uint64_t done = p->n_done / 2 + (p->is_second ? p->n_bytes - p->n_bytes / 2 : 0);
    if (!p->on_progress || p->on_progress(p->arg, done, p->n_bytes))
        return TERN_OK;
    return tn_fail(err, TERN_INTERRUPTED, "interrupted after %.0f %% of the file",
                   100.0 * (double)done / (double)p->n_bytes);
}

/* For the steps after the data passes. */
static bool should_stop(void *arg)
{
    const struct progress *p = arg;
    return p->on_progress && !p->on_progress(p->arg, p->n_bytes, p->n_bytes);
}

static tern_status verify_chunks(const struct tern_model *model, struct progress *progress,
                                 struct tern_error *err)
{
    const struct tn_model_file *file = &model->file;
    for (uint32_t i = 0; i < file->n_chunks; i++) {
        tern_status status = tn_model_file_verify_chunk(file, i, err);
        if (status == TERN_OK)
            status = advance(progress, TERN_FILE_CHUNK, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

static tern_status verify_tensor(const struct tn_model_file *file, const struct tern_file_tensor *t,
                                 struct tern_error *err)
{
    char name[48];
    const struct tn_format *format = tn_format_find(t->layout, t->scale_kind);
    const uint64_t bad =
        format->find_bad ? format->find_bad(tn_model_file_data(file, t), t->bytes, t) : t->bytes;
    if (bad < t->bytes && tn_layout_is_ternary(t->layout))
        return tn_fail(err, TERN_INPUT,
                       "tensor \"%s\" holds the unused ternary code 3 at byte %" PRIu64
                       "; convert the model again",
                       tn_tensor_name(name, sizeof name, t), bad);
    if (bad < t->bytes || !tn_scales_are_finite(t, tn_model_file_scales(file, t)))
        return tn_fail(err, TERN_INPUT,
                       "tensor \"%s\" holds NaN or infinity; convert the model again",
                       tn_tensor_name(name, sizeof name, t));
    return TERN_OK;
}

/* Verifies each matrix of a stack. */
static tern_status verify_stack(const struct tn_model_file *file, const struct tern_file_tensor *t,
                                struct tern_error *err)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < TN_MAX(t->n_stacked, 1u) && status == TERN_OK; i++) {
        const struct tern_file_tensor slice = tn_tensor_slice(t, i);
        status = verify_tensor(file, &slice, err);
    }
    return status;
}

static tern_status verify_values(const struct tern_model *model, struct progress *progress,
                                 struct tern_error *err)
{
    progress->is_second = true;
    progress->n_done = 0;
    for (uint32_t i = 0; i < model->file.n_tensors; i++) {
        const struct tern_file_tensor *t = &model->file.tensors[i];
        tern_status status = verify_stack(&model->file, t, err);
        if (status == TERN_OK)
            status = advance(progress, t->bytes, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* ---- fingerprint ---- */

/* Hashes the n values computed for the last id.  They must be finite: no model that yields others
 * is usable. */
static tern_status hash_values(uint64_t *hash, const float *values, uint32_t n, const char *what,
                               struct tern_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return tn_fail(err, TERN_INPUT,
                           "the model computes no finite %s %u: its weights are damaged, or too "
                           "large for 32-bit floats",
                           what, i);
    *hash = XXH3_64bits(values, n * sizeof *values);
    return tn_ok(err);
}

static tern_status hash_state(uint64_t *hash, struct tern_session *session, const uint32_t *ids,
                              uint32_t n, struct tern_error *err)
{
    const uint32_t hidden = session->model->file.spec.config->hidden;
    float *states = tn_alloc((size_t)n * hidden * sizeof *states);
    if (!states)
        return tn_fail(err, TERN_MEMORY, "no memory for %u states", n);
    tern_status status = tern_session_eval_states(session, ids, n, states, err);
    if (status == TERN_OK)
        status = hash_values(hash, states + (size_t)(n - 1) * hidden, hidden, "value for column",
                             err);
    tn_free(states);
    return status;
}

tern_status tern_fingerprint(uint64_t *hash, struct tern_session *session, const uint32_t *ids,
                             uint32_t n, struct tern_error *err)
{
    *hash = 0;
    if (session->model->file.spec.config->flags & TERN_MODEL_NO_HEAD)
        return hash_state(hash, session, ids, n, err);
    tern_status status = tern_session_eval(session, ids, n, NULL, err);
    if (status != TERN_OK)
        return status;
    return hash_values(hash, tern_session_logits(session), session->model->file.spec.config->vocab,
                       "logit for id", err);
}

static tern_status verify_fingerprint(const struct tern_model *model,
                                      const struct tern_sysinfo *machine,
                                      struct progress *progress, struct tern_error *err)
{
    const struct tern_file_config *c = model->file.spec.config;
    struct tern_engine *engine = NULL;
    struct tern_session *session = NULL;
    struct tern_session_params params = {.n_ctx = c->n_fingerprint_ids,
                                         .kv = TERN_KV_F32,
                                         .should_stop = should_stop,
                                         .arg = progress};
    uint64_t hash = 0;
    tern_status status = tern_engine_create(&engine, machine, NULL, err);
    if (status == TERN_OK)
        status = tern_session_create(&session, engine, model, &params, err);
    if (status == TERN_OK)
        status = tern_fingerprint(&hash, session, c->fingerprint_ids, c->n_fingerprint_ids, err);
    if (status == TERN_OK && hash != c->fingerprint_hash)
        status = tn_fail(err, TERN_INPUT,
                         "the fingerprint differs: logits hash to %016llx, at conversion "
                         "%016llx",
                         (unsigned long long)hash, (unsigned long long)c->fingerprint_hash);
    tern_session_free(session);
    tern_engine_free(engine);
    return status;
}

tern_status tern_verify(const struct tern_model *model, const struct tern_sysinfo *machine,
                        bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total),
                        void *arg, struct tern_verify_result *result, struct tern_error *err)
{
    *result = (struct tern_verify_result){.data_bytes = model->file.header->data.bytes};
    if (!machine)
        return tn_fail(err, TERN_USAGE, "no description of the machine; see tern_sysinfo_read");
    struct progress progress = {on_progress, arg, model->file.header->data.bytes, 0, false};
    uint64_t start = tn_now_ns();
    tern_status status = verify_chunks(model, &progress, err);
    result->seconds = tn_seconds_since(start);
    if (status == TERN_OK)
        status = verify_values(model, &progress, err);
    if (status == TERN_OK)
        status = tn_verify_kernels(result, model, machine->cpu_features, should_stop, &progress,
                                   err);
    if (status == TERN_OK && model->file.spec.config->n_fingerprint_ids > 0) {
        status = verify_fingerprint(model, machine, &progress, err);
        result->fingerprint_checked = true;
    }
    /* A file that changed meanwhile explains any finding. */
    const tern_status changed = tern_model_check_unchanged(model, NULL);
    if (changed != TERN_OK)
        return tern_model_check_unchanged(model, err);
    return status == TERN_OK ? tn_ok(err) : status;
}
