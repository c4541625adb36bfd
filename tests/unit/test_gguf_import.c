/* SPDX-License-Identifier: MIT
 *
 * The keys of GGUF files as a model's configuration: the result for each architecture, and rows of
 * one changed key with the error that names it, its value and the valid ones.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "convert/gguf/gguf.h"
#include "convert/gguf/gguf_import.h"
#include "gguf_file.h"
#include "plat/plat.h"
#include "tern/model_format.h"

#define FILE_PATH TERN_BUILD_DIR "/test_gguf_import/model.gguf"
#define HEAD_DIM 16u
#define LAYERS 7u

static unsigned char bytes[GGUF_FILE_BYTES];
static struct gguf_file file;

/* ---- a file ---- */

struct key {
    const char *name;
    uint32_t type;
    double value;
    const char *text;
};

/* Prepends "ARCH.", except to names that start with the letter of another group. */
static void put_key(const char *arch, const struct key *key)
{
    char name[128];
    const bool is_whole = strncmp(key->name, "tokenizer.", 10) == 0 ||
                          strncmp(key->name, "prism.", 6) == 0 ||
                          strncmp(key->name, "general.", 8) == 0;
    snprintf(name, sizeof name, "%s%s%s", is_whole ? "" : arch, is_whole ? "" : ".", key->name);
    if (key->text)
        gguf_key_text(&file, name, key->text);
    else if (key->type == TN_GGUF_F32)
        gguf_key_f32(&file, name, (float)key->value);
    else
        gguf_key(&file, name, key->type, (uint64_t)(int64_t)key->value);
}

static const struct key usual[] = {
    {"block_count", TN_GGUF_U32, LAYERS, NULL},
    {"context_length", TN_GGUF_U32, 4096, NULL},
    {"embedding_length", TN_GGUF_U32, 64, NULL},
    {"feed_forward_length", TN_GGUF_U32, 128, NULL},
    {"attention.head_count", TN_GGUF_U32, 4, NULL},
    {"attention.head_count_kv", TN_GGUF_U32, 2, NULL},
    {"attention.layer_norm_rms_epsilon", TN_GGUF_F32, 0.5, NULL},
    {"attention.layer_norm_epsilon", TN_GGUF_F32, 0.25, NULL},
    {"rope.freq_base", TN_GGUF_F32, 1e6, NULL},
    {"embedding_scale", TN_GGUF_F32, 12, NULL},
    {"residual_scale", TN_GGUF_F32, 0.25, NULL},
    {"logit_scale", TN_GGUF_F32, 4, NULL},
};

/* Writes the usual keys, replaced or extended by `changes`; a name without a type is left out. */
static void make(const char *arch, const struct key *changes, size_t n, const char *extra)
{
    uint64_t n_keys = 1;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) {
            gguf_begin(&file, bytes, 3, 1 + (extra != NULL), n_keys);
            gguf_key_text(&file, "general.architecture", arch);
        }
        for (size_t i = 0; i < TN_COUNT_OF(usual); i++) {
            bool is_changed = false;
            for (size_t k = 0; k < n; k++)
                is_changed = is_changed || strcmp(usual[i].name, changes[k].name) == 0;
            if (!is_changed && pass)
                put_key(arch, &usual[i]);
            n_keys += !is_changed && !pass;
        }
        for (size_t k = 0; k < n; k++) {
            const bool is_there = changes[k].type || changes[k].text || changes[k].value != 0;
            if (is_there && pass)
                put_key(arch, &changes[k]);
            n_keys += is_there && !pass;
        }
    }
    gguf_tensor(&file, "token_embd.weight", TN_GGML_F32, 64, 32, 0);
    if (extra)
        gguf_tensor(&file, extra, TN_GGML_F32, HEAD_DIM / 2, 0, 0);
    gguf_data(&file, 0);
}

static tern_status import(struct tn_config_import *out, struct tern_error *err)
{
    struct tn_file *f;
    struct tn_source source;
    assert_int_equal(tn_file_create(&f, FILE_PATH, err), TERN_OK);
    assert_int_equal(tn_file_write_at(f, 0, bytes, file.n, err), TERN_OK);
    tn_file_close(f);
    if (tn_source_open_gguf(&source, FILE_PATH, TERN_I2S_X86, err) != TERN_OK)
        fail_msg("%s", err->detail);
    const tern_status status = tn_gguf_import(out, &source, err);
    tn_source_close(&source);
    return status;
}

static void import_ok(struct tn_config_import *out)
{
    struct tern_error err = {0};
    if (import(out, &err) != TERN_OK)
        fail_msg("%s", err.detail);
}

/* ---- what files become ---- */

static void architectures_become_families(void **state)
{
    (void)state;
    static const struct {
        const char *arch, *family;
        uint32_t activation;
        enum tn_inputs_said inputs;
        bool permutes, sub_norms, qk_norms;
    } rows[] = {
        {"bitnet-b1.58", "bitnet", TERN_ACT_RELU2, TN_INPUTS_INT8, false, true, false},
        {"bitnet-25", "bitnet", TERN_ACT_RELU2, TN_INPUTS_INT8, false, true, false},
        {"bitnet", "bitnet", TERN_ACT_SILU, TN_INPUTS_INT8, false, true, false},
        {"llama", "llama", TERN_ACT_SILU, TN_INPUTS_UNSAID, true, false, false},
        {"qwen2", "qwen2", TERN_ACT_SILU, TN_INPUTS_UNSAID, false, false, false},
        {"qwen3", "qwen3", TERN_ACT_SILU, TN_INPUTS_UNSAID, false, false, true},
        {"gemma3", "gemma3", TERN_ACT_GELU_TANH, TN_INPUTS_UNSAID, false, false, true},
        {"minicpm", "minicpm", TERN_ACT_SILU, TN_INPUTS_UNSAID, true, false, false},
        {"phi3", "phi3", TERN_ACT_SILU, TN_INPUTS_UNSAID, false, false, false},
        {"granite", "granite", TERN_ACT_SILU, TN_INPUTS_UNSAID, true, false, false},
    };
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        struct tn_config_import c;
        make(rows[i].arch, NULL, 0, NULL);
        import_ok(&c);
        assert_string_equal(c.family_name, rows[i].family);
        assert_int_equal(c.layers[0].activation, rows[i].activation);
        assert_int_equal(c.inputs_said, rows[i].inputs);
        assert_int_equal(c.fixups, rows[i].permutes ? TN_FIX_QK_ROWS : 0);
        assert_int_equal(c.needs[TERN_ROLE_ATTN_SUB_NORM], rows[i].sub_norms);
        assert_int_equal(c.needs[TERN_ROLE_Q_NORM], rows[i].qk_norms);
        assert_int_equal(c.config.head_dim, HEAD_DIM);
        assert_int_equal(c.config.vocab, 32);
        assert_true(c.config.flags & TERN_MODEL_TIED_HEAD);
        assert_true(c.config.rms_eps == 0.5f);
        tn_config_import_fini(&c);
    }
}

static void an_activation_that_is_named_counts(void **state)
{
    (void)state;
    const struct key named = {"hidden_activation", TN_GGUF_STRING, 0, "relu2"};
    struct tn_config_import c;
    make("bitnet", &named, 1, NULL);
    import_ok(&c);
    assert_int_equal(c.layers[0].activation, TERN_ACT_RELU2);
    tn_config_import_fini(&c);
}

static void a_scale_of_attention_counts(void **state)
{
    (void)state;
    const struct key named = {"attention.scale", TN_GGUF_F32, 0.125, NULL};
    struct tn_config_import c;
    make("llama", &named, 1, NULL);
    import_ok(&c);
    assert_true(c.layers[LAYERS - 1].score_scale == 0.125f);
    tn_config_import_fini(&c);
}

static void scales_of_minicpm_are_read(void **state)
{
    (void)state;
    struct tn_config_import c;
    make("minicpm", NULL, 0, NULL);
    import_ok(&c);
    assert_true(c.config.embedding_scale == 12.0f && c.config.residual_scale == 0.25f);
    assert_true(c.config.logit_scale == 0.25f); /* inverted: the file has a divisor */
    tn_config_import_fini(&c);
}

/* The first files of MiniCPM lack them. */
static void scales_of_minicpm_have_defaults(void **state)
{
    (void)state;
    static const struct key none[] = {{"embedding_scale", 0, 0, NULL},
                                      {"residual_scale", 0, 0, NULL},
                                      {"logit_scale", 0, 0, NULL}};
    struct tn_config_import c;
    make("minicpm", none, TN_COUNT_OF(none), NULL);
    import_ok(&c);
    assert_true(c.config.embedding_scale == 12.0f);
    assert_true(c.config.residual_scale == (float)(1.4 / sqrt(LAYERS)));
    assert_true(c.config.logit_scale == 4.0f); /* 256 for a width of 64 */
    tn_config_import_fini(&c);
}

/* Every sixth layer has full attention unless the file says otherwise. */
static void windows_of_gemma_are_read(void **state)
{
    (void)state;
    const struct key keys[] = {{"attention.sliding_window", TN_GGUF_U32, 512, NULL},
                               {"attention.sliding_window_pattern", TN_GGUF_U32, 3, NULL}};
    for (size_t n = 0; n <= 2; n++) {
        struct tn_config_import c;
        make("gemma3", keys, n, NULL);
        import_ok(&c);
        for (uint32_t i = 0; i < LAYERS; i++) {
            const bool sees_all = n == 0 || (i + 1) % (n == 1 ? 6 : 3) == 0;
            assert_int_equal(c.layers[i].window, sees_all ? 0 : 512);
        }
        assert_true(c.layers[5].rope_theta == 1e6);
        assert_true(c.layers[0].rope_theta == (n ? 1e4 : 1e6));
        tn_config_import_fini(&c);
    }
}

static void ids_that_end_an_answer_are_read(void **state)
{
    (void)state;
    const struct key keys[] = {{"tokenizer.ggml.bos_token_id", TN_GGUF_U32, 1, NULL},
                               {"tokenizer.ggml.eos_token_id", TN_GGUF_U32, 2, NULL},
                               {"tokenizer.ggml.eot_token_id", TN_GGUF_U32, 31, NULL}};
    struct tn_config_import c;
    make("llama", keys, 3, NULL);
    import_ok(&c);
    assert_int_equal(c.config.bos_id, 1);
    assert_int_equal(c.stop_ids.n, 2);
    assert_int_equal(c.stop_ids.ids[0], 2);
    assert_int_equal(c.stop_ids.ids[1], 31);
    tn_config_import_fini(&c);
}

static void ids_that_are_none_are_skipped(void **state)
{
    (void)state;
    const struct key keys[] = {{"tokenizer.ggml.bos_token_id", TN_GGUF_I32, -1, NULL},
                               {"tokenizer.ggml.eos_token_id", TN_GGUF_U32, 4294967295.0, NULL},
                               {"tokenizer.ggml.eot_token_id", TN_GGUF_U16, 31, NULL}};
    struct tn_config_import c;
    make("llama", keys, 3, NULL);
    import_ok(&c);
    assert_int_equal(c.config.bos_id, TERN_NO_ID);
    assert_int_equal(c.stop_ids.n, 1);
    assert_int_equal(c.stop_ids.ids[0], 31);
    tn_config_import_fini(&c);
}

/* ---- refusals ---- */

#define BAD TERN_INPUT
#define NO TERN_UNSUPPORTED
#define U TN_GGUF_U32
#define F TN_GGUF_F32
#define S TN_GGUF_STRING

static const struct {
    const char *arch;
    struct key key;
    tern_status status;
    const char *message;
} wrong[] = {
    {"llama", {"block_count", 0, 0, NULL}, BAD, "key \"llama.block_count\" is missing"},
    {"llama", {"block_count", S, 0, "two"}, BAD, "is of type STRING, expected an integer"},
    {"llama", {"block_count", TN_GGUF_I32, -1, NULL}, BAD, "is -1, allowed are 1 to"},
    {"llama", {"block_count", U, 4e9, NULL}, BAD, "\"llama.block_count\" is 4000000000, allowed"},
    {"llama", {"block_count", F, 7, NULL}, BAD, "is of type F32, expected an integer"},
    {"llama", {"context_length", 0, 0, NULL}, BAD, "\"llama.context_length\" is missing"},
    {"llama", {"context_length", TN_GGUF_I32, -5, NULL}, BAD, "context_length\" is -5, allowed"},
    {"llama", {"embedding_length", 0, 0, NULL}, BAD, "embedding_length\" is missing"},
    {"llama", {"embedding_length", U, 4e9, NULL}, BAD, "embedding_length\" is 4000000000"},
    {"llama", {"feed_forward_length", 0, 0, NULL}, BAD, "feed_forward_length\" is missing"},
    {"llama", {"feed_forward_length", U, 4e9, NULL}, BAD, "feed_forward_length\" is 4000000000"},
    {"llama", {"attention.head_count", 0, 0, NULL}, BAD, "attention.head_count\" is missing"},
    {"llama", {"attention.head_count", U, 5, NULL}, BAD, "head_count_kv 2 does not divide"},
    {"llama", {"attention.head_count_kv", U, 3, NULL}, BAD, "head_count_kv 3 does not divide"},
    {"llama", {"attention.head_count_kv", TN_GGUF_I32, -2, NULL}, BAD, "head_count_kv\" is -2"},
    {"llama", {"attention.key_length", U, 15, NULL}, BAD, "4 heads of 15 values"},
    {"llama", {"attention.key_length", U, 1, NULL}, BAD, "key_length\" is 1, allowed are 2 to"},
    {"llama", {"attention.value_length", U, 32, NULL}, NO, "value_length 32 differs"},
    {"llama", {"vocab_size", U, 33, NULL}, BAD, "vocab_size is 33, but tensor"},
    {"llama", {"vocab_size", TN_GGUF_BOOL, 1, NULL}, BAD, "is of type BOOL, expected an integer"},
    {"llama", {"attention.layer_norm_rms_epsilon", 0, 0, NULL}, BAD, "epsilon\" is missing"},
    {"llama", {"attention.layer_norm_rms_epsilon", F, -1, NULL}, BAD, "epsilon\" is -1, allowed"},
    {"llama", {"attention.layer_norm_rms_epsilon", F, 2, NULL}, BAD, "epsilon\" is 2, allowed"},
    {"llama", {"attention.layer_norm_rms_epsilon", S, 0, "x"}, BAD, "expected a number"},
    {"llama", {"rope.freq_base", F, 0.5, NULL}, BAD, "rope.freq_base\" is 0.5, allowed are 1 to"},
    {"llama", {"rope.freq_base", S, 0, "x"}, BAD, "is of type STRING, expected a number"},
    {"llama", {"rope.dimension_count", U, 8, NULL}, NO, "dimension_count 8 is not the 16"},
    {"phi3", {"rope.dimension_count", U, 18, NULL}, BAD, "count is 18: it must be an even"},
    {"phi3", {"rope.dimension_count", U, 7, NULL}, BAD, "count is 7: it must be an even"},
    {"llama", {"rope.scaling.type", S, 0, "yarn"}, BAD, "rope.scaling.factor\" is missing"},
    {"gemma3", {"rope.scaling.type", S, 0, "yarn"}, BAD, "rope.scaling.factor\" is missing"},
    {"gemma3", {"rope.scaling.type", S, 0, "ntk"}, NO, "rope.scaling.type\" is \"ntk\""},
    {"llama", {"rope.scaling.type", S, 0, "dynamic"}, NO, "rope.scaling.type\" is \"dynamic\""},
    {"gptneox", {"attention.layer_norm_epsilon", 0, 0, NULL}, BAD, "norm_epsilon\" is missing"},
    {"gptneox", {"attention.layer_norm_epsilon", F, 2, NULL}, BAD, "epsilon\" is 2, allowed"},
    {"gptneox", {"use_parallel_residual", U, 1, NULL}, BAD, "is of type U32, expected a truth"},
    {"gptneox", {"attention.head_count_kv", U, 1, NULL}, NO, "a key head for several query"},
    {"llama", {"rope.scaling.type", U, 1, NULL}, BAD, "is of type U32, expected a text"},
    {"llama", {"rope.scaling.factor", F, 0.5, NULL}, BAD, "factor\" is 0.5, allowed are 1 to"},
    {"llama", {"rope.scale_linear", F, -4, NULL}, BAD, "scale_linear\" is -4, allowed are 0 to"},
    {"llama", {"rope.scaling.type", S, 0, "longrope"}, BAD, "rope_factors_short.weight\" is miss"},
    {"llama", {"rope.scaling.attn_factor", F, -2, NULL}, BAD, "attn_factor\" is -2, allowed"},
    {"llama", {"attention.sliding_window", U, 64, NULL}, NO, "sliding_window 64: windows are sup"},
    {"qwen3", {"attention.causal", TN_GGUF_BOOL, 0, NULL}, NO, "only causal models run"},
    {"qwen3", {"attention.scale", F, -1, NULL}, BAD, "attention.scale\" is -1, allowed"},
    {"gemma3", {"attention.sliding_window", U, 4e9, NULL}, BAD, "sliding_window\" is 4000000000"},
    {"gemma3", {"attention.query_pre_attn_scalar", F, -1, NULL}, BAD, "scalar\" is -1, allowed"},
    {"llama", {"final_logit_softcapping", F, 30, NULL}, NO, "caps are supported in other"},
    {"llama", {"attn_logit_softcapping", F, 50, NULL}, NO, "caps are supported in other"},
    {"llama", {"expert_count", U, 8, NULL}, NO, "expert_count 8: experts are supported in other"},
    {"llama", {"expert_shared_count", U, 1, NULL}, NO, "expert_shared_count 1: shared experts"},
    {"llama", {"rope.freq_base", F, -NAN, NULL}, BAD, "rope.freq_base\" is nan, allowed are"},
    {"gemma3", {"final_logit_softcapping", F, -30, NULL}, BAD, "softcapping\" is -30, allowed"},
    {"gemma3", {"attn_logit_softcapping", F, 1e-9, NULL}, BAD, "is 9.99999971718069e-10, allowed"},
    {"gemma3", {"pooling_type", U, 5, NULL}, BAD, "pooling_type\" is 5, allowed are 0 to 4"},
    {"gemma3", {"pooling_type", U, 4, NULL}, NO, "pooling_type 4 (ranking)"},
    {"minicpm", {"logit_scale", F, -4, NULL}, BAD, "logit_scale\" is -4, allowed"},
    {"bitnet", {"hidden_activation", S, 0, "tanh"}, NO, "hidden_activation\" is \"tanh\""},
    {"bitnet", {"hidden_activation", U, 1, NULL}, NO, "hidden_activation\" is \"\""},
    {"llama", {"tokenizer.ggml.eos_token_id", U, 32, NULL}, BAD, "is 32, allowed are 0 to 31"},
    {"llama", {"tokenizer.ggml.bos_token_id", S, 0, "x"}, BAD, "expected an integer"},
    {"qwen3", {"prism.hadamard.block", U, 1024, NULL}, NO, "key \"prism.hadamard.block\""},
    {"qwen3", {"prism.hadamard.version", U, 2, NULL}, NO, "version\" is 2, which is not supp"},
    {"qwen3", {"prism.hadamard.version", S, 0, "1"}, BAD, "version\" is missing, or of the"},
    {"qwen3", {"prism.hadamard.version", U, 1, NULL}, BAD, "block_size\" is missing"},
    {"qwen3", {"prism.hadamard.block_size", U, 64, NULL}, BAD, "version\" is missing"},
    {"bert", {"x", U, 1, NULL}, NO, "the architecture \"bert\" is not supported"},
    {"", {"x", U, 1, NULL}, NO, "the architecture \"\" is not supported"},
};

static void one_wrong_key_is_named(void **state)
{
    (void)state;
    int n_wrong = 0;
    for (size_t i = 0; i < TN_COUNT_OF(wrong); i++) {
        struct tn_config_import c;
        struct tern_error err = {0};
        make(wrong[i].arch, &wrong[i].key, 1, NULL);
        const tern_status status = import(&c, &err);
        if (status == TERN_OK)
            tn_config_import_fini(&c);
        if (status == wrong[i].status && strstr(err.detail, wrong[i].message))
            continue;
        n_wrong++;
        print_error("%s %s: status %d \"%s\", expected %d \"%s\"\n", wrong[i].arch,
                    wrong[i].key.name, status, err.detail, wrong[i].status, wrong[i].message);
    }
    assert_int_equal(n_wrong, 0);
}

/* YaRN with one more key; 4096 positions of training, extended four times. */
static void yarn_is_read(void **state)
{
    (void)state;
    static const struct {
        struct key key;
        tern_status status;
        const char *message;
        double attn_factor; /* 0: none */
    } rows[] = {
        {{"vocab_size", U, 32, NULL}, TERN_OK, "", 0},
        {{"rope.scaling.factor", F, 0.5, NULL}, BAD, "factor\" is 0.5, allowed are 1 to", 0},
        {{"rope.scaling.original_context_length", U, 1, NULL}, BAD, "original context of 1,", 0},
        {{"rope.scaling.original_context_length", S, 0, "x"}, BAD, "expected a number", 0},
        {{"rope.scaling.yarn_beta_fast", F, 0, "x"}, BAD, "expected a number", 0},
        {{"rope.scaling.yarn_beta_slow", F, -1, NULL}, BAD, "beta_slow\" is -1, allowed", 0},
        {{"rope.scaling.yarn_ext_factor", F, 0.5, NULL}, NO, "ext_factor 0.5 is not supported", 0},
        {{"rope.scaling.yarn_ext_factor", F, -1, NULL}, TERN_OK, "", 0},
        {{"rope.scaling.yarn_ext_factor", F, -1, NULL}, TERN_OK, "", 1},
        {{"rope.scaling.yarn_ext_factor", F, -1, NULL}, NO, "only 1.139 is", 0.5},
        {{"rope.scaling.yarn_ext_factor", F, 1, NULL}, NO, "only 1.139 is", 1},
        {{"rope.scaling.yarn_attn_factor", F, 1, NULL}, NO, "only 1.139 is", 0},
        {{"rope.scaling.yarn_attn_factor", F, 1.1386, NULL}, TERN_OK, "", 0},
        {{"rope.scaling.yarn_log_multiplier", F, 0.1, NULL}, NO, "multiplier 0.1 is not", 0},
        {{"rope.freq_base", F, 1, NULL}, BAD, "a rope theta of 1 slows no pair", 0},
    };
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        struct key keys[4] = {rows[i].key, {"rope.scaling.type", S, 0, "yarn"},
                              {"rope.scaling.factor", F, 4, NULL},
                              {"rope.scaling.yarn_attn_factor", F, rows[i].attn_factor, NULL}};
        struct tn_config_import c;
        struct tern_error err = {0};
        make("qwen3", keys, strstr(rows[i].key.name, "scaling.factor") ? 2
                             : rows[i].attn_factor != 0                   ? 4
                                                                          : 3, NULL);
        assert_int_equal(import(&c, &err), rows[i].status);
        assert_non_null(strstr(err.detail, rows[i].message));
        if (rows[i].status != TERN_OK)
            continue;
        assert_true(c.rope_factors[0] == 1 && c.rope_factors[HEAD_DIM / 2 - 1] == 4);
        const float magnitude = 1.13862944f; /* 0.1 ln 4 + 1 */
        assert_float_equal(c.layers[0].rope_scale, magnitude, 1e-6);
        assert_true(c.layers[0].score_scale == 0.25f);
        tn_config_import_fini(&c);
    }
}

/* Without a type of scaling, or in the spelling of the first files. */
static void linear_factors_are_read(void **state)
{
    (void)state;
    static const struct key type = {"rope.scaling.type", S, 0, "linear"};
    static const char *const names[] = {"rope.scaling.factor", "rope.scale_linear"};
    for (int i = 0; i < 4; i++) {
        const struct key keys[] = {{names[i / 2], F, 4, NULL}, type};
        struct tn_config_import c;
        make("llama", keys, 1 + i % 2, NULL);
        import_ok(&c);
        assert_true(c.rope_factors[0] == 4 && c.rope_factors[HEAD_DIM / 2 - 1] == 4);
        tn_config_import_fini(&c);
        const struct key none = {names[i / 2], F, 0, NULL};
        make("llama", &none, 1, NULL);
        import_ok(&c);
        assert_null(c.rope_factors);
        tn_config_import_fini(&c);
        make("llama", &type, 1, NULL);
        import_ok(&c);
        assert_null(c.rope_factors);
        tn_config_import_fini(&c);
    }
}

/* Some files state the width of all experts that a token uses. */
static void width_of_experts_is_derived(void **state)
{
    (void)state;
    for (uint32_t used = 2; used <= 8; used += 6) {
        const struct key keys[] = {{"expert_count", U, 8, NULL},
                                   {"expert_used_count", U, used, NULL},
                                   {"feed_forward_length", U, used == 8 ? 7 : 128, NULL}};
        struct tn_config_import c;
        struct tern_error err = {0};
        make("qwen3moe", keys, TN_COUNT_OF(keys), NULL);
        if (used == 8) {
            assert_int_equal(import(&c, &err), TERN_INPUT);
            assert_non_null(strstr(err.detail, "feed_forward_length 7 is less than the 8 experts"));
            continue;
        }
        import_ok(&c);
        assert_int_equal(c.config.expert_ffn, 64);
        tn_config_import_fini(&c);
    }
}

/* The zeros in the file are not valid factors. */
static void factors_are_checked(void **state)
{
    (void)state;
    static const char *const names[] = {"rope_freqs.weight", "rope_factors_short.weight"};
    for (int i = 0; i < 2; i++) {
        struct tn_config_import c;
        struct tern_error err = {0};
        make("llama", NULL, 0, names[i]);
        assert_int_equal(import(&c, &err), TERN_INPUT);
        assert_non_null(strstr(err.detail, names[i]));
        assert_non_null(strstr(err.detail, "[0] is 0, allowed are"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(architectures_become_families),
        cmocka_unit_test(an_activation_that_is_named_counts),
        cmocka_unit_test(a_scale_of_attention_counts),
        cmocka_unit_test(scales_of_minicpm_are_read),
        cmocka_unit_test(scales_of_minicpm_have_defaults),
        cmocka_unit_test(windows_of_gemma_are_read),
        cmocka_unit_test(ids_that_end_an_answer_are_read),
        cmocka_unit_test(ids_that_are_none_are_skipped),
        cmocka_unit_test(one_wrong_key_is_named),
        cmocka_unit_test(yarn_is_read),
        cmocka_unit_test(linear_factors_are_read),
        cmocka_unit_test(width_of_experts_is_derived),
        cmocka_unit_test(factors_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
