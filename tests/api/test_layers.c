/* SPDX-License-Identifier: MIT
 *
 * Layers with individual sizes: which of them equal the model's sizes changes no bit of the
 * results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../slot_model.h"
#include "arch/arch.h"
#include "base/rng.h"
#include "demo.h"
#include "plat/plat.h"

#define PATH TERN_BUILD_DIR "/test_layers.tern"
#define VOCAB 40u
#define N_IDS 24u
#define N_LAYER 2u

static struct tern_engine *engine;

/* Two kinds of layers with nothing in common. */
static const struct tn_layer_dims kinds[N_LAYER] = {
    {.n_head = 4, .n_kv_head = 2, .head_dim = 16, .ffn = 96},
    {.n_head = 6, .n_kv_head = 3, .head_dim = 24, .ffn = 160},
};

static void fill(void *arg, uint8_t *data, uint8_t *scales, const struct tern_file_tensor *t)
{
    (void)scales;
    float *x = (float *)(void *)data;
    for (uint64_t i = 0; i < t->bytes / sizeof *x; i++)
        x[i] = t->rows == 1 ? 0.5f + tn_rng_f32(arg) : (tn_rng_f32(arg) - 0.5f) * 0.5f;
}

static struct tern_file_layer layer_of(const struct tn_layer_dims *own)
{
    struct tern_file_layer layer = tn_layer_default(own->head_dim, TERN_ACT_SILU, 10000);
    layer.n_head = own->n_head;
    layer.n_kv_head = own->n_kv_head;
    layer.head_dim = own->head_dim;
    layer.ffn_dim = own->ffn;
    return layer;
}

/* The model's sizes are those of layer `model`; is_said: layers repeat them. */
static void write_model(uint32_t model, bool is_said)
{
    struct tern_file_layer layers[N_LAYER];
    struct slot_model m = {.layers = layers, .layout = TERN_LAYOUT_F32, .fill = fill};
    struct tn_rng rng;
    struct tern_error e;
    tn_rng_seed(&rng, 27);
    m.arg = &rng;
    for (uint32_t i = 0; i < N_LAYER; i++) {
        layers[i] = layer_of(&kinds[i]);
        if (i == model && !is_said)
            layers[i].n_head = layers[i].n_kv_head = layers[i].head_dim = layers[i].ffn_dim = 0;
    }
    tn_config_default(&m.config);
    m.config.inputs = TERN_INPUTS_FLOAT;
    m.config.n_layer = N_LAYER;
    m.config.hidden = 64;
    m.config.vocab = VOCAB;
    m.config.context = 512;
    m.config.n_head = kinds[model].n_head;
    m.config.n_kv_head = kinds[model].n_kv_head;
    m.config.head_dim = kinds[model].head_dim;
    m.config.ffn = kinds[model].ffn;
    if (slot_model_write(PATH, &m, &e) != TERN_OK)
        fail_msg("%s", e.detail);
}

/* Logits of all positions: a prompt, then one id at a time. */
static void eval(float *logits, enum tern_kv kv)
{
    struct tern_model *model;
    struct tern_session *session;
    const struct tern_session_params params = {.n_ctx = 300, .kv = kv};
    uint32_t ids[N_IDS];
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = 1 + i * 7 % (VOCAB - 1);
    assert_ok(tern_model_open(&model, PATH, &e));
    assert_ok(tern_session_create(&session, engine, model, &params, &e));
    assert_ok(tern_session_eval(session, ids, N_IDS / 2, logits, &e));
    for (uint32_t i = N_IDS / 2; i < N_IDS; i++) {
        assert_ok(tern_session_eval(session, &ids[i], 1, NULL, &e));
        memcpy(logits + (size_t)i * VOCAB, tern_session_logits(session), VOCAB * sizeof *logits);
    }
    tern_session_free(session);
    tern_model_free(model);
}

static void sizes_of_a_layer_are_its_own_or_the_models(void **state)
{
    (void)state;
    static float first[N_IDS * VOCAB], logits[N_IDS * VOCAB];
    for (uint32_t kv = TERN_KV_F32; kv <= TERN_KV_Q8; kv++) {
        write_model(0, false);
        eval(first, (enum tern_kv)kv);
        for (uint32_t i = 0; i < 3; i++) {
            write_model(i % 2, i > 0);
            eval(logits, (enum tern_kv)kv);
            assert_memory_equal(first, logits, sizeof first);
        }
        write_model(1, false);
        eval(logits, (enum tern_kv)kv);
        assert_memory_equal(first, logits, sizeof first);
    }
    for (uint32_t i = 1; i < N_IDS * VOCAB; i++)
        assert_true(first[i] - first[i] == 0); /* neither NaN nor infinite */
    tn_file_remove(PATH);
}

int main(void)
{
    static struct tern_sysinfo machine;
    struct tern_error e;
    tern_sysinfo_read(&machine);
    const struct tern_engine_params params = {.n_threads = 2};
    if (tern_engine_create(&engine, &machine, &params, &e) != TERN_OK) {
        fprintf(stderr, "%s\n", e.detail);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_a_layer_are_its_own_or_the_models),
    };
    const int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    tern_engine_free(engine);
    return n_failed;
}
