/* SPDX-License-Identifier: MIT
 *
 * Graphs other than LLaMA's: orders of norms, LayerNorms, plain feed-forwards, biases, positions,
 * caps. The logits have the same bits however a text is split into batches, at every kernel level;
 * and each element of a graph changes them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../slot_model.h"
#include "arch/arch.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "demo.h"
#include "plat/plat.h"

#define PATH TERN_BUILD_DIR "/test_graphs.tern"
#define HIDDEN 48u
#define VOCAB 40u
#define N_IDS 21u
#define N_LAYER 2u
#define ROLE(name) (1ull << TERN_ROLE_##name)

struct graph {
    const char *name;
    uint32_t norm, order, ffn, activation, rope, embed_width;
    float score_cap, logit_cap, rope_scale;
    uint64_t optional;
};

#define PROJECTION_BIASES                                                                          \
    (ROLE(Q_BIAS) | ROLE(K_BIAS) | ROLE(V_BIAS) | ROLE(O_BIAS) | ROLE(GATE_BIAS) |                 \
     ROLE(UP_BIAS) | ROLE(DOWN_BIAS))
#define NORM_BIASES (ROLE(ATTN_NORM_BIAS) | ROLE(FFN_NORM_BIAS) | ROLE(FINAL_NORM_BIAS))
#define ALL_BIASES (PROJECTION_BIASES | NORM_BIASES)

static const struct graph graphs[] = {
    {.name = "llama", .activation = TERN_ACT_SILU},
    {.name = "llama with biases", .activation = TERN_ACT_SILU, .optional = PROJECTION_BIASES},
    {.name = "caps", .activation = TERN_ACT_GELU_TANH, .score_cap = 0.5f, .logit_cap = 0.75f},
    {.name = "bare", .activation = TERN_ACT_SILU, .order = TERN_ORDER_BARE,
     .optional = ROLE(ATTN_POST_NORM) | ROLE(FFN_POST_NORM) | ROLE(Q_ALL_NORM) |
                 ROLE(K_ALL_NORM)},
    {.name = "magnitude", .activation = TERN_ACT_SILU, .rope_scale = 1.25f},
    {.name = "unrotated", .activation = TERN_ACT_SILU, .rope = TERN_ROPE_NONE},
    {.name = "RMSNorms in parallel", .activation = TERN_ACT_SILU, .order = TERN_ORDER_PARALLEL},
    {.name = "LayerNorms", .norm = TERN_NORM_LAYER, .ffn = TERN_FFN_PLAIN,
     .activation = TERN_ACT_GELU_TANH, .optional = ALL_BIASES},
    {.name = "LayerNorms, gated", .norm = TERN_NORM_LAYER, .activation = TERN_ACT_RELU2,
     .optional = NORM_BIASES},
    {.name = "positions", .norm = TERN_NORM_LAYER, .ffn = TERN_FFN_PLAIN, .rope = TERN_ROPE_NONE,
     .activation = TERN_ACT_RELU, .optional = ALL_BIASES | ROLE(POSITIONS)},
    {.name = "parallel", .norm = TERN_NORM_LAYER, .ffn = TERN_FFN_PLAIN,
     .order = TERN_ORDER_PARALLEL, .activation = TERN_ACT_GELU_ERF, .optional = ALL_BIASES},
    {.name = "shared", .norm = TERN_NORM_LAYER, .ffn = TERN_FFN_PLAIN, .order = TERN_ORDER_SHARED,
     .activation = TERN_ACT_GELU_TANH, .optional = NORM_BIASES | ROLE(HEAD_BIAS)},
    {.name = "after", .norm = TERN_NORM_LAYER, .ffn = TERN_FFN_PLAIN, .order = TERN_ORDER_AFTER,
     .rope = TERN_ROPE_NONE, .activation = TERN_ACT_RELU, .embed_width = 32,
     .optional = ALL_BIASES | ROLE(POSITIONS)},
};

static struct tern_sysinfo machine;

static void fill(void *arg, uint8_t *data, uint8_t *scales, const struct tern_file_tensor *t)
{
    (void)scales;
    struct tn_rng rng; /* a tensor's numbers depend on it alone */
    float *x = (float *)(void *)data;
    (void)arg;
    tn_rng_seed(&rng, t->role * 1000u + (t->layer == TERN_NO_LAYER ? 99 : t->layer));
    const bool is_norm = tn_slot_of(t->role)->kind == TN_SLOT_NORM;
    for (uint64_t i = 0; i < t->bytes / sizeof *x; i++)
        x[i] = is_norm ? 0.5f + tn_rng_f32(&rng) : (tn_rng_f32(&rng) - 0.5f) * 0.6f;
}

static void write_model(const struct graph *g)
{
    struct tern_file_layer layers[N_LAYER];
    struct slot_model m = {.layers = layers, .layout = TERN_LAYOUT_F32, .fill = fill,
                           .optional = g->optional};
    struct tern_error e;
    for (uint32_t i = 0; i < N_LAYER; i++) {
        layers[i] = tn_layer_default(12, g->activation, 10000);
        layers[i].ffn = g->ffn ? g->ffn : TERN_FFN_GATED;
        layers[i].rope = g->rope ? g->rope : TERN_ROPE_HALF;
        layers[i].rope_scale = g->rope_scale;
        layers[i].window = i == 0 ? 7 : 0;
    }
    tn_config_default(&m.config);
    m.config.inputs = TERN_INPUTS_FLOAT;
    m.config.n_layer = N_LAYER;
    m.config.hidden = HIDDEN;
    m.config.vocab = VOCAB;
    m.config.context = 64;
    m.config.n_head = 4;
    m.config.n_kv_head = 2;
    m.config.head_dim = 12;
    m.config.ffn = 80;
    m.config.norm = g->norm;
    m.config.order = g->order;
    m.config.embed_width = g->embed_width;
    m.config.score_cap = g->score_cap;
    m.config.logit_cap = g->logit_cap;
    if (slot_model_write(PATH, &m, &e) != TERN_OK)
        fail_msg("%s: %s", g->name, e.detail);
}

/* Logits of all positions, in batches of n_step ids. */
static void eval(float *logits, struct tern_engine *engine, uint32_t n_step)
{
    struct tern_model *model;
    struct tern_session *session;
    const struct tern_session_params params = {.n_ctx = 64, .kv = TERN_KV_F32};
    uint32_t ids[N_IDS];
    for (uint32_t i = 0; i < N_IDS; i++)
        ids[i] = 1 + i * 7 % (VOCAB - 1);
    assert_ok(tern_model_open(&model, PATH, &e));
    assert_ok(tern_session_create(&session, engine, model, &params, &e));
    for (uint32_t i = 0, n; i < N_IDS; i += n) {
        n = n_step < N_IDS - i ? n_step : N_IDS - i;
        assert_ok(tern_session_eval(session, &ids[i], n, logits + (size_t)i * VOCAB, &e));
    }
    tern_session_free(session);
    tern_model_free(model);
}

static struct tern_engine *engine_of(uint32_t n_threads, const char *level)
{
    struct tern_engine *engine;
    const struct tern_engine_params params = {.n_threads = n_threads, .cpu_level = level};
    assert_ok(tern_engine_create(&engine, &machine, &params, &e));
    return engine;
}

static void cuts_and_levels_give_the_same_bits(void **state)
{
    (void)state;
    static const uint32_t steps[] = {1, 2, 5, 9, 16};
    static float first[N_IDS * VOCAB], logits[N_IDS * VOCAB];
    struct tern_engine *best = engine_of(2, NULL), *ref = engine_of(1, "ref");
    for (uint32_t i = 0; i < TN_COUNT_OF(graphs); i++) {
        write_model(&graphs[i]);
        eval(first, best, N_IDS);
        for (uint32_t k = 0; k < N_IDS * VOCAB; k++)
            assert_true(first[k] - first[k] == 0); /* neither NaN nor infinite */
        for (uint32_t k = 0; k < TN_COUNT_OF(steps); k++) {
            eval(logits, k % 2 ? ref : best, steps[k]);
            if (memcmp(first, logits, sizeof first) != 0)
                fail_msg("%s: batches of %u", graphs[i].name, steps[k]);
        }
    }
    tern_engine_free(best);
    tern_engine_free(ref);
    tn_file_remove(PATH);
}

/* Tensors have the same numbers in all graphs. */
static void graphs_differ(void **state)
{
    (void)state;
    static float logits[TN_COUNT_OF(graphs)][N_IDS * VOCAB];
    struct tern_engine *engine = engine_of(1, NULL);
    for (uint32_t i = 0; i < TN_COUNT_OF(graphs); i++) {
        write_model(&graphs[i]);
        eval(logits[i], engine, N_IDS);
        for (uint32_t k = 0; k < i; k++)
            if (memcmp(logits[i], logits[k], sizeof logits[i]) == 0)
                fail_msg("%s gives the logits of %s", graphs[i].name, graphs[k].name);
    }
    tern_engine_free(engine);
    tn_file_remove(PATH);
}

static void logits_are_capped(void **state)
{
    (void)state;
    static float logits[N_IDS * VOCAB];
    struct tern_engine *engine = engine_of(1, NULL);
    struct graph g = graphs[2];
    float largest = 0;
    write_model(&g);
    eval(logits, engine, N_IDS);
    for (uint32_t i = 0; i < N_IDS * VOCAB; i++)
        largest = logits[i] > largest ? logits[i] : largest;
    assert_true(largest > 0.5f * g.logit_cap && largest <= g.logit_cap);
    tern_engine_free(engine);
    tn_file_remove(PATH);
}

int main(void)
{
    tern_sysinfo_read(&machine);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_and_levels_give_the_same_bits),
        cmocka_unit_test(graphs_differ),
        cmocka_unit_test(logits_are_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
