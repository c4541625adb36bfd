/* SPDX-License-Identifier: MIT
 *
 * Is this file intact, and does this machine compute it right?
 *
 *   1. the checksum of every 4 MiB of data
 *   2. rules that checksums do not cover: code 3 in ternary data, scales, norms and halves that
 *      are not finite
 *   3. every kernel level of this CPU against the reference, on the file's own first rows
 *   4. the fingerprint: ids in, hash of the logits out, as at conversion
 */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/log.h"
#include "base/rng.h"
#include "run/session.h"
#include "tern/measure.h"
#include "tern/sysinfo.h"

/* ---- data ---- */

static tern_status verify_chunks(const struct tern_model *model,
                                 bool (*on_progress)(void *, uint64_t, uint64_t), void *arg,
                                 struct tern_error *err)
{
    const struct tn_mfile *file = &model->file;
    for (uint32_t i = 0; i < file->n_chunks; i++) {
        tern_status status = tn_mfile_verify_chunk(file, i, err);
        if (status != TERN_OK)
            return status;
        uint64_t done = TN_MIN((uint64_t)(i + 1) * TERN_FILE_CHUNK, file->header->data.bytes);
        if (on_progress && !on_progress(arg, done, file->header->data.bytes))
            return tn_fail(err, TERN_INTERRUPTED, "interrupted after %u of %u chunks", i + 1,
                           file->n_chunks);
    }
    return TERN_OK;
}

/* First byte with the unused code 3 in one of its four fields, or n. */
static size_t find_code3(const uint8_t *bytes, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t w = tn_load_u64(bytes + i);
        if (w & w >> 1 & 0x5555555555555555u)
            break;
    }
    for (; i < n; i++)
        if (bytes[i] & bytes[i] >> 1 & 0x55)
            break;
    return i;
}

static bool all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((tn_f32_to_bits(x[i]) & 0x7F800000u) == 0x7F800000u)
            return false;
    return true;
}

/* exponent: the bits that are all set in NaN and infinities. */
static bool all_finite_halves(const uint16_t *x, size_t n, uint16_t exponent)
{
    for (size_t i = 0; i < n; i++)
        if ((x[i] & exponent) == exponent)
            return false;
    return true;
}

static tern_status verify_values(const struct tn_mfile *file, const struct tern_file_tensor *t,
                                 struct tern_error *err)
{
    char name[48];
    const void *data = tn_mfile_data(file, t);
    if (t->layout == TERN_LAYOUT_T2 || t->layout == TERN_LAYOUT_R2 || t->layout == TERN_LAYOUT_C2) {
        size_t at = find_code3(data, t->bytes);
        if (at < t->bytes)
            return tn_fail(err, TERN_INPUT,
                           "tensor \"%s\" holds the unused ternary code 3 at byte %zu; convert the "
                           "model again",
                           tn_tensor_name(name, sizeof name, t), at);
    }
    bool finite = t->layout != TERN_LAYOUT_F32 || all_finite(data, t->bytes / sizeof(float));
    if (t->layout == TERN_LAYOUT_F16 || t->layout == TERN_LAYOUT_BF16)
        finite = all_finite_halves(data, t->bytes / sizeof(uint16_t),
                                   t->layout == TERN_LAYOUT_F16 ? 0x7C00u : 0x7F80u);
    if (t->scale_bytes)
        finite = finite && all_finite(tn_mfile_scales(file, t),
                                      (size_t)t->rows * tn_layout_scales(t->layout));
    if (!finite)
        return tn_fail(err, TERN_INPUT,
                       "tensor \"%s\" holds NaN or infinity; convert the model again",
                       tn_tensor_name(name, sizeof name, t));
    return TERN_OK;
}

/* ---- kernels ---- */

#define PROBE_ROWS TN_GEMM_ROWS
#define PROBE_TOKENS 3u

/* Memory for comparing one matrix on one level. */
struct probe {
    int8_t *x;     /* [PROBE_TOKENS][stride] */
    size_t stride;
    uint32_t *index; /* [stride] 0, 1, 2, ... */
    void *prepared;  /* look-up table */
    void *scratch;   /* gemm */
    int32_t *want;   /* [PROBE_TOKENS][PROBE_ROWS] */
    int32_t *got;
};

static void probe_fini(struct probe *p)
{
    tn_free_aligned(p->x);
    tn_free_aligned(p->index);
    tn_free_aligned(p->prepared);
    tn_free_aligned(p->scratch);
    tn_free_aligned(p->want);
    tn_free_aligned(p->got);
}

static bool probe_init(struct probe *p, uint32_t widest)
{
    size_t sums = PROBE_TOKENS * PROBE_ROWS * sizeof(int32_t);
    p->stride = tn_kern_pad(widest);
    p->x = tn_alloc_aligned(PROBE_TOKENS * p->stride, 64);
    p->index = tn_alloc_aligned(p->stride * sizeof(uint32_t), 64);
    p->prepared = tn_alloc_aligned(TN_LUT_BYTES(widest), 64);
    p->scratch = tn_alloc_aligned(TN_GEMM_SCRATCH_BYTES, 64);
    p->want = tn_alloc_aligned(sums, 64);
    p->got = tn_alloc_aligned(sums, 64);
    if (!p->x || !p->index || !p->prepared || !p->scratch || !p->want || !p->got)
        return false;
    for (uint32_t i = 0; i < p->stride; i++)
        p->index[i] = i;
    return true;
}

static void fill_input(struct probe *p, uint32_t cols)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, cols);
    for (uint32_t t = 0; t < PROBE_TOKENS; t++)
        for (uint32_t i = 0; i < p->stride; i++)
            p->x[t * p->stride + i] =
                (int8_t)(i < cols ? (int)(tn_rng_next(&rng) % 255) - 127 : 0);
}

static void multiply(const struct tn_kernels *k, const struct tn_ternary *w, struct probe *p,
                     int32_t *dst)
{
    tn_gemm_i8_fn *gemm = w->layout == TERN_LAYOUT_T2   ? k->gemm_t2_i8
                          : w->layout == TERN_LAYOUT_R2 ? k->gemm_r2_i8
                                                        : k->gemm_c2_i8;
    int32_t x_sum[PROBE_TOKENS];
    for (uint32_t t = 0; t < PROBE_TOKENS; t++)
        x_sum[t] = k->sum_i8(p->x + t * p->stride, tn_kern_pad(w->cols));
    gemm(dst, PROBE_ROWS, w, 0, PROBE_ROWS, p->x, p->stride, x_sum, PROBE_TOKENS, p->scratch);
}

/* The first rows for the first token by the multiplication-free kernels. */
static void look_up(const struct tn_kernels *k, const struct tn_ternary *w, struct probe *p,
                    uint32_t n_rows)
{
    if (w->layout == TERN_LAYOUT_T2) {
        k->lut_t2(p->prepared, p->x, w->cols);
        k->gemv_t2_i8(p->got, w, 0, (uint32_t)tn_align_up(n_rows, TERN_T2_TILE_ROWS), p->prepared);
    } else if (w->layout == TERN_LAYOUT_R2) {
        k->prep_r2(p->prepared, p->x, w->cols);
        k->gemv_r2_i8(p->got, w, p->index, n_rows, p->prepared);
    } else {
        k->gemv_c2_i8(p->got, w, 0, PROBE_ROWS, p->index, p->x, w->cols);
    }
}

static tern_status verify_matrix(const struct tn_kernels *ref, const struct tn_kernels *k,
                                 const char *level, const struct tn_linear *linear,
                                 const char *what, struct probe *p, struct tern_error *err)
{
    const struct tn_ternary *w = &linear->w;
    uint32_t n_rows = TN_MIN(w->rows, PROBE_ROWS);
    fill_input(p, w->cols);
    multiply(ref, w, p, p->want);
    multiply(k, w, p, p->got);
    bool equal = true;
    for (uint32_t t = 0; t < PROBE_TOKENS; t++)
        equal = equal && memcmp(p->got + t * PROBE_ROWS, p->want + t * PROBE_ROWS,
                                n_rows * sizeof(int32_t)) == 0;
    look_up(k, w, p, n_rows);
    equal = equal && memcmp(p->got, p->want, n_rows * sizeof(int32_t)) == 0;
    if (!equal)
        return tn_fail(err, TERN_INTERNAL,
                       "the %s kernels differ from the reference on \"layers.0.%s\"; please report "
                       "this CPU",
                       level, what);
    return TERN_OK;
}

static tern_status verify_level(const struct tern_model *model, const struct tn_cpu_level *level,
                                struct probe *p, struct tern_error *err)
{
    const struct tn_layer *layer = &model->weights.layers[0];
    const struct {
        const struct tn_linear *linear;
        const char *name;
    } matrices[] = {{&layer->q, "q"}, {&layer->k, "k"}, {&layer->v, "v"}, {&layer->o, "o"},
                    {&layer->gate, "gate"}, {&layer->up, "up"}, {&layer->down, "down"}};
    struct tn_kernels ref, k;
    tn_kernels_select(&ref, 0);
    tn_kernels_select(&k, level->features);
    for (size_t i = 0; i < TN_COUNT_OF(matrices); i++) {
        tern_status status = verify_matrix(&ref, &k, level->name, matrices[i].linear,
                                           matrices[i].name, p, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

static tern_status verify_kernels(const struct tern_model *model, uint32_t features,
                                  uint32_t *n_levels, struct tern_error *err)
{
    const struct tern_file_config *c = model->file.config;
    struct probe p = {0};
    tern_status status = TERN_OK;
    if (!probe_init(&p, TN_MAX(TN_MAX(c->hidden, c->ffn), c->n_head * c->head_dim)))
        status = tn_fail(err, TERN_MEMORY, "no memory to compare kernels");
    for (uint32_t i = 0; i < tn_n_cpu_levels && status == TERN_OK; i++) {
        if (tn_cpu_levels[i].features & ~features)
            continue;
        status = verify_level(model, &tn_cpu_levels[i], &p, err);
        *n_levels += status == TERN_OK;
    }
    probe_fini(&p);
    return status;
}

/* ---- fingerprint ---- */

static tern_status verify_fingerprint(const struct tern_model *model, struct tern_error *err)
{
    const struct tern_file_config *c = model->file.config;
    struct tern_engine *engine = NULL;
    struct tern_session *session = NULL;
    struct tern_session_params params = {.n_ctx = c->n_fingerprint_ids, .kv = TERN_KV_F32};
    tern_status status = tern_engine_create(&engine, NULL, err);
    if (status == TERN_OK)
        status = tern_session_create(&session, engine, model, &params, err);
    if (status == TERN_OK)
        status = tern_session_eval(session, c->fingerprint_ids, c->n_fingerprint_ids, NULL, err);
    if (status == TERN_OK) {
        uint64_t hash = XXH3_64bits(tern_session_logits(session), c->vocab * sizeof(float));
        if (hash != c->fingerprint_hash)
            status = tn_fail(err, TERN_INPUT,
                             "the fingerprint differs: logits hash to %016llx, at conversion "
                             "%016llx",
                             (unsigned long long)hash, (unsigned long long)c->fingerprint_hash);
    }
    tern_session_free(session);
    tern_engine_free(engine);
    return status;
}

tern_status tern_verify(const struct tern_model *model,
                        bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total),
                        void *arg, struct tern_verify_result *result, struct tern_error *err)
{
    *result = (struct tern_verify_result){.data_bytes = model->file.header->data.bytes};
    struct tern_sysinfo *machine = tn_alloc(sizeof *machine);
    if (!machine)
        return tn_fail(err, TERN_MEMORY, "no memory to describe the machine");
    tern_sysinfo_read(machine);
    uint32_t features = machine->cpu_features;
    tn_free(machine);

    uint64_t start = tn_now_ns();
    tern_status status = verify_chunks(model, on_progress, arg, err);
    result->seconds = tn_seconds_since(start);
    for (uint32_t i = 0; i < model->file.n_tensors && status == TERN_OK; i++)
        status = verify_values(&model->file, &model->file.tensors[i], err);
    if (status == TERN_OK)
        status = verify_kernels(model, features, &result->n_levels, err);
    if (status == TERN_OK && model->file.config->n_fingerprint_ids > 0) {
        status = verify_fingerprint(model, err);
        result->fingerprint_checked = true;
    }
    return status == TERN_OK ? tn_ok(err) : status;
}
