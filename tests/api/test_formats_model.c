/* SPDX-License-Identifier: MIT
 *
 * Models with all matrices in one layout, each compared with an f32 model of the unpacked values:
 * with f32 inputs the logits are equal except for the order of sums, with rounded inputs they are
 * close. They have the same bits however the ids are split over evaluations, at every kernel level.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../slot_model.h"
#include "arch/arch.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/half.h"
#include "base/rng.h"
#include "demo.h"
#include "engine/engine.h"
#include "kern/blocks_source.h"
#include "model/workspace_size.h"
#include "plat/plat.h"

#define PATH TERN_BUILD_DIR "/test_formats_model.tern"
#define TWIN_PATH TERN_BUILD_DIR "/test_formats_twin.tern"
#define HIDDEN 256u
#define VOCAB 96u
#define N_LAYER 2u
#define N_IDS 24u

static struct tern_sysinfo machine;
static struct tn_rng rng;

/* ---- weights ---- */

static float random_weight(void)
{
    return (tn_rng_f32(&rng) - 0.5f) * 0.3f;
}

static void fill_floats(void *data, uint32_t layout, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float w = random_weight();
        if (layout == TERN_LAYOUT_F32)
            ((float *)data)[i] = w;
        else
            ((uint16_t *)data)[i] = layout == TERN_LAYOUT_F16
                                        ? tn_f32_to_f16(w)
                                        : (uint16_t)(tn_f32_to_bits(w) >> 16);
    }
}

/* Blocks as in GGUF files with small scales, packed. */
static void fill_blocks(uint8_t *data, const struct tern_file_tensor *t)
{
    const struct blocks_type *type = blocks_type_of(t->layout);
    const size_t n = (size_t)t->rows * (t->cols / type->block);
    uint8_t *source = malloc(n * type->n_bytes);
    assert_non_null(source);
    blocks_fill(source, type, n, FILL_BLOCKS_RANDOM, &rng);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < type->n_scales; k++) {
            const float size = type->block == 32 ? 0.002f : 0.0001f;
            const uint16_t scale = tn_f32_to_f16(size * (0.5f + tn_rng_f32(&rng)));
            memcpy(source + i * type->n_bytes + type->scale[k], &scale, sizeof scale);
        }
    tn_blocks_pack(data, t->layout, source, t->rows, t->cols);
    free(source);
}

/* Ternary codes, or integers without -128, which q8 does not use. */
static void fill_codes(uint8_t *data, uint32_t layout, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t r = tn_rng_next(&rng);
        data[i] = tn_layout_is_ternary(layout)
                      ? (uint8_t)(r % 3 | r / 3 % 3 << 2 | r / 9 % 3 << 4 | r / 27 % 3 << 6)
                      : (uint8_t)(r % 255 + 129);
    }
}

/* Norms of planes (which only a search reads), offsets and shifts stay zero. */
static void fill_scales(uint8_t *scales, const struct tern_file_tensor *t)
{
    const uint32_t bits = (uint32_t)tn_layout_weight_bytes(t->layout, 8);
    const float size = t->scale_kind == TERN_SCALE_ROW ? 0.2f / (float)(1u << (bits - 1)) : 0.15f;
    const bool is_f16 = t->scale_kind == TERN_SCALE_COL_GROUP_F16;
    const size_t n = t->scale_kind == TERN_SCALE_ROW ? t->rows
                                                     : (size_t)t->scale_bytes / (is_f16 ? 2 : 4);
    for (size_t i = 0; i < n; i++) {
        const float scale = size * (0.5f + tn_rng_f32(&rng));
        if (is_f16)
            ((uint16_t *)(void *)scales)[i] = tn_f32_to_f16(scale);
        else
            ((float *)(void *)scales)[i] = scale;
    }
}

static void fill(void *arg, uint8_t *data, uint8_t *scales, const struct tern_file_tensor *t)
{
    (void)arg;
    if (t->rows == 1) {
        for (uint32_t i = 0; i < t->cols; i++)
            ((float *)(void *)data)[i] = 0.5f + tn_rng_f32(&rng);
    } else if (t->layout <= TERN_LAYOUT_BF16) {
        fill_floats(data, t->layout, (size_t)t->rows * t->cols);
    } else if (tn_is_blocks(t->layout)) {
        fill_blocks(data, t);
    } else {
        fill_codes(data, t->layout, (size_t)t->bytes);
        fill_scales(scales, t);
    }
}

/* The same values in f32; arg: the open model. */
static void fill_twin(void *arg, uint8_t *data, uint8_t *scales, const struct tern_file_tensor *t)
{
    const struct tern_model *model = arg;
    const struct tn_weights *weights = &model->weights;
    const struct tn_matrix *w = t->role == TERN_ROLE_EMBED  ? &weights->embed
                                : t->role == TERN_ROLE_HEAD ? &weights->head
                                                            : NULL;
    struct tn_kernels kernels;
    struct tn_thread_scratch scratch = {.unpacked = malloc(weights->row_bytes + 1)};
    const struct tn_worker worker = {&kernels, &scratch};
    const struct tn_model_file *file = &model->file;
    (void)scales;
    tn_kernels_select(&kernels, 0);
    if (tn_slot_is_vector(tn_slot_of(t->role)))
        memcpy(data, tn_model_file_data(file, tn_model_file_tensor(file, t->role, t->layer)),
               (size_t)t->bytes);
    else if (!w)
        w = tn_matrix_of(&weights->layers[t->layer], t->role);
    for (uint32_t r = 0; w && r < w->rows; r++)
        w->format->unpack_row((float *)(void *)data + (size_t)r * w->cols, w, r, &worker);
    free(scratch.unpacked);
}

static void write_model(const char *path, uint32_t layout,
                        void (*fill_tensor)(void *, uint8_t *, uint8_t *,
                                            const struct tern_file_tensor *),
                        void *arg)
{
    struct tern_file_layer layers[N_LAYER];
    struct slot_model m = {.layers = layers, .layout = layout, .fill = fill_tensor, .arg = arg};
    struct tern_error e;
    for (uint32_t i = 0; i < N_LAYER; i++)
        layers[i] = tn_layer_default(64, TERN_ACT_SILU, 10000);
    tn_config_default(&m.config);
    m.config.inputs = TERN_INPUTS_FLOAT;
    m.config.n_layer = N_LAYER;
    m.config.hidden = HIDDEN;
    m.config.ffn = 2 * HIDDEN;
    m.config.n_head = 4;
    m.config.n_kv_head = 2;
    m.config.head_dim = 64;
    m.config.vocab = VOCAB;
    m.config.context = 256;
    if (slot_model_write(path, &m, &e) != TERN_OK)
        fail_msg("%s", e.detail);
}

/* ---- logits ---- */

/* Logits of all positions, `step` ids at a time. */
static void eval(float *logits, const struct tern_model *model, const char *level,
                 enum tern_inputs_as inputs, uint32_t step)
{
    const struct tern_engine_params params = {.n_threads = 2, .cpu_level = level,
                                              .inputs = inputs};
    const struct tern_session_params session_params = {.n_ctx = 64, .kv = TERN_KV_F32};
    struct tern_engine *engine;
    struct tern_session *session;
    uint32_t ids[N_IDS];
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = 1 + i * 7 % (VOCAB - 1);
    assert_ok(tern_engine_create(&engine, &machine, &params, &e));
    assert_ok(tern_session_create(&session, engine, model, &session_params, &e));
    for (uint32_t i = 0; i < N_IDS; i += step)
        assert_ok(tern_session_eval(session, ids + i, step, logits + (size_t)i * VOCAB, &e));
    tern_session_free(session);
    tern_engine_free(engine);
}

static double largest(const float *x, const float *y)
{
    double most = 0;
    for (uint32_t i = 0; i < N_IDS * VOCAB; i++) {
        const double distance = fabs((double)x[i] - (y ? (double)y[i] : 0));
        if (!(distance <= most)) /* also fails for NaN */
            most = distance;
    }
    return most;
}

static void check_layout(uint32_t layout)
{
    const struct {
        enum tern_inputs_as inputs;
        double error; /* relative to the largest logit */
    } forms[] = {{TERN_INPUTS_AS_F32, 2e-5},
                 {TERN_INPUTS_AS_MODEL, tn_is_blocks(layout) ? 0.1 : 5e-3},
                 {TERN_INPUTS_AS_16, 5e-3},
                 {TERN_INPUTS_AS_8, 0.1}};
    static float twin[N_IDS * VOCAB], first[N_IDS * VOCAB], again[N_IDS * VOCAB];
    struct tern_model *model, *twin_model;
    write_model(PATH, layout, fill, NULL);
    assert_ok(tern_model_open(&model, PATH, &e));
    write_model(TWIN_PATH, TERN_LAYOUT_F32, fill_twin, model);
    assert_ok(tern_model_open(&twin_model, TWIN_PATH, &e));
    eval(twin, twin_model, NULL, TERN_INPUTS_AS_F32, N_IDS);
    for (size_t i = 0; i < TN_COUNT_OF(forms); i++) {
        eval(first, model, NULL, forms[i].inputs, N_IDS);
        if (!(largest(first, twin) <= forms[i].error * largest(twin, NULL)))
            fail_msg("%s, inputs %d: off by %g of %g", tn_layout_name(layout),
                     (int)forms[i].inputs, largest(first, twin), largest(twin, NULL));
        for (uint32_t step = 1; step <= 8; step += 7) { /* single rows, several rows */
            eval(again, model, NULL, forms[i].inputs, step);
            assert_memory_equal(first, again, sizeof first);
        }
        eval(again, model, "ref", forms[i].inputs, N_IDS);
        assert_memory_equal(first, again, sizeof first);
    }
    tern_model_free(model);
    tern_model_free(twin_model);
    tn_file_remove(PATH);
    tn_file_remove(TWIN_PATH);
}

static void every_layout_makes_a_model(void **state)
{
    (void)state;
    for (uint32_t layout = 1; layout < TERN_N_LAYOUTS; layout++) {
        const struct tn_layout_spec *spec = tn_layout_find(layout);
        if (spec && spec->use == TN_USE_ANY)
            check_layout(layout);
    }
}

int main(void)
{
    tern_sysinfo_read(&machine);
    tn_rng_seed(&rng, 27);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_layout_makes_a_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
