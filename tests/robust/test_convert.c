/* SPDX-License-Identifier: MIT
 *
 * Bad input to the converter: for each case the status, one line that names the error, and no files
 * left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DIR TERN_BUILD_DIR "/test_convert"
#include "robust/convert_case.h"

/* ---- replaced text ---- */

enum place { CONFIG, GENERATION, HEADER };

struct text_case {
    enum place place;
    const char *find;
    const char *replacement;
    tern_status status;
    const char *text; /* part of the message */
};

#define Q "model.layers.0.self_attn.q_proj.weight"

static const struct text_case text_cases[] = {
    /* config.json */
    {CONFIG, "{", "[", TERN_INPUT, "config.json: line"},
    {CONFIG, "\"hidden_size\": 32", "\"x\": 32", TERN_INPUT, "\"hidden_size\" is missing"},
    {CONFIG, "\"hidden_size\": 32", "\"hidden_size\": 0", TERN_INPUT, "\"hidden_size\" is 0"},
    {CONFIG, "\"hidden_size\": 32", "\"hidden_size\": -32", TERN_INPUT, "\"hidden_size\" is -32"},
    {CONFIG, "\"hidden_size\": 32", "\"hidden_size\": 32.5", TERN_INPUT, "not an integer"},
    {CONFIG, "\"hidden_size\": 32", "\"hidden_size\": \"32\"", TERN_INPUT, "not a number"},
    {CONFIG, "\"hidden_size\": 32", "\"hidden_size\": null", TERN_INPUT, "\"hidden_size\" is miss"},
    {CONFIG, "\"hidden_size\": 32", "\"hidden_size\": 99999999999999999999", TERN_INPUT,
     "1e+20, allowed are 1 to 1048576"},
    {CONFIG, "\"hidden_size\": 32", "\"hidden_size\": 33", TERN_INPUT,
     "\"num_attention_heads\" 2 does not divide \"hidden_size\" 33"},
    {CONFIG, "\"hidden_size\": 32", "\"hidden_size\": 34", TERN_INPUT, "head_dim is 17"},
    {CONFIG, "\"hidden_size\": 32", "\"hidden_size\": 64", TERN_INPUT,
     "shape [32], but config.json makes it [64]"},
    {CONFIG, "\"intermediate_size\": 64", "\"intermediate_size\": 60", TERN_INPUT,
     "mlp.ffn_sub_norm.weight\": shape [64], but config.json makes it [60]"},
    {CONFIG, "\"intermediate_size\": 64", "", TERN_INPUT, "config.json: line"},
    {CONFIG, "\"intermediate_size\": 64", "\"i\": 1", TERN_INPUT, "\"intermediate_size\" is miss"},
    {CONFIG, "\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2", TERN_INPUT,
     "\"model.layers.1.input_layernorm.weight\" is missing"},
    {CONFIG, "\"num_hidden_layers\": 1", "\"num_hidden_layers\": 1025", TERN_INPUT,
     "\"num_hidden_layers\" is 1025, allowed are 1 to 1024"},
    {CONFIG, "\"num_attention_heads\": 2", "\"num_attention_heads\": 0", TERN_INPUT,
     "\"num_attention_heads\" is 0"},
    {CONFIG, "\"num_attention_heads\": 2", "\"num_attention_heads\": 4", TERN_INPUT,
     "k_proj.weight\": shape [16, 32], but config.json makes it [8, 32]"},
    {CONFIG, "\"num_key_value_heads\": 1", "\"num_key_value_heads\": 3", TERN_INPUT,
     "\"num_key_value_heads\" 3 does not divide"},
    {CONFIG, "\"num_key_value_heads\": 1", "\"num_key_value_heads\": 0", TERN_INPUT,
     "\"num_key_value_heads\" is 0"},
    {CONFIG, "\"num_key_value_heads\": 1", "\"head_dim\": 15", TERN_INPUT, "head_dim is 15"},
    {CONFIG, "\"num_key_value_heads\": 1", "\"head_dim\": 1048576", TERN_INPUT,
     "num_attention_heads * head_dim is 2 * 1048576"},
    {CONFIG, "\"vocab_size\": 40", "\"vocab_size\": 41", TERN_INPUT,
     "\"model.embed_tokens.weight\": shape [40, 32], but config.json makes it [41, 32]"},
    {CONFIG, "\"vocab_size\": 40", "\"vocab_size\": 39", TERN_INPUT, "eos_token_id\" is 39"},
    {CONFIG, "\"max_position_embeddings\": 128", "\"max_position_embeddings\": 0", TERN_INPUT,
     "\"max_position_embeddings\" is 0"},
    {CONFIG, "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 0", TERN_INPUT, "\"rms_norm_eps\" is 0"},
    {CONFIG, "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": -1", TERN_INPUT, "rms_norm_eps\" is -"},
    {CONFIG, "\"rms_norm_eps\": 1e-05", "\"rms_norm_eps\": 1e-300", TERN_INPUT, "rms_norm_eps"},
    {CONFIG, "\"rope_theta\": 10000.0", "\"rope_theta\": 0", TERN_INPUT, "\"rope_theta\" is 0"},
    {CONFIG, "\"rope_theta\": 10000.0", "\"rope_theta\": 0.5", TERN_INPUT,
     "\"rope_theta\" is 0.5, allowed are 1 to 1e+12"},
    {CONFIG, "\"rope_theta\": 10000.0", "\"rope_theta\": \"10000\"", TERN_INPUT,
     "\"rope_theta\" is \"10000\", not a number"},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": NaN, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4}", TERN_INPUT,
     "\"rope_theta\" is \"NaN\", not a number"},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"yarn\"}", TERN_INPUT,
     "\"factor\" is missing"},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, "
     "\"attention_factor\": 0}", TERN_INPUT, "\"attention_factor\" is 0, allowed are"},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, "
     "\"mscale\": -1}", TERN_INPUT, "\"mscale\" is -1, allowed are 0 to 1000"},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 0.5}",
     TERN_INPUT, "\"factor\" is 0.5, allowed are 1 to"},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 4, "
     "\"alpha\": 1000}",
     TERN_UNSUPPORTED, "rope scaling of type \"dynamic\" with \"alpha\" is not supported"},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"dynamic\"}", TERN_INPUT,
     "\"factor\" is missing"},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"ntk-aware\", \"factor\": 4}",
     TERN_UNSUPPORTED, "\"rope_scaling\" of type \"ntk-aware\""},
    {CONFIG, "10000.0", "NaN", TERN_INPUT, "\"rope_theta\" is \"NaN\", not a number"},
    {CONFIG, "10000.0", "-Infinity", TERN_INPUT, "\"rope_theta\" is \"-Infinity\", not a"},
    {CONFIG, "10000.0", "-Inf", TERN_INPUT, "config.json: line "},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": 10000, \"rope_scaling\": {\"rope_type\": 3}", TERN_UNSUPPORTED,
     "\"rope_scaling\" of type \"?\""},
    {CONFIG, "\"rope_theta\": 10000.0", "\"rope_parameters\": {\"rope_type\": \"llama3\"}",
     TERN_INPUT, "\"factor\" is missing"},
    {CONFIG, "\"rope_theta\"", "\"rope_scaling\": {\"factor\": 4.0}, \"rope_theta\"",
     TERN_UNSUPPORTED, "\"rope_scaling\" of type \"?\""},
    {CONFIG, "\"rope_theta\"",
     "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\"}}, \"rope_theta\"",
     TERN_UNSUPPORTED, "\"rope_parameters\" of type \"?\""},
    {CONFIG, "\"rope_theta\"", "\"rope_scaling\": [], \"rope_theta\"", TERN_UNSUPPORTED,
     "\"rope_scaling\" of type \"?\""},
    {CONFIG, "\"rope_theta\"",
     "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}, \"rope_theta\"", TERN_UNSUPPORTED,
     "\"partial_rotary_factor\" is 0.5"},
    {CONFIG, "\"rope_theta\"", "\"partial_rotary_factor\": 0.25, \"rope_theta\"",
     TERN_UNSUPPORTED, "\"partial_rotary_factor\" is 0.25"},
    {CONFIG, "\"rope_theta\"", "\"rope_parameters\": {\"rope_theta\": 500000}, \"rope_theta\"",
     TERN_INPUT, "\"rope_theta\" is 10000, but 500000 in \"rope_parameters\""},
    {CONFIG, "\"hidden_act\": \"relu2\"", "\"hidden_act\": \"mish\"", TERN_UNSUPPORTED, "\"mish\""},
    {CONFIG, "\"hidden_act\": \"relu2\"", "\"hidden_act\": 3", TERN_INPUT, "\"hidden_act\""},
    {CONFIG, "\"hidden_act\"", "\"attention_bias\": true, \"hidden_act\"", TERN_INPUT,
     "\"model.layers.0.self_attn.q_proj.bias\" is missing"},
    {CONFIG, "\"hidden_act\"", "\"mlp_bias\": true, \"hidden_act\"", TERN_INPUT,
     "tensor \"model.layers.0.mlp.gate_proj.bias\" is missing"},
    {CONFIG, "\"quant_method\": \"bitnet\"", "\"quant_method\": \"gptq\"", TERN_UNSUPPORTED,
     "\"gptq\" is not supported; take"},
    {CONFIG, "\"quant_method\": \"bitnet\"", "\"quant_method\": \"bitnet\", \"use_rms_norm\": true",
     TERN_INPUT, "\"model.layers.0.self_attn.q_proj.norm.weight\" is missing"},
    {CONFIG, "\"linear_class\": \"autobitlinear\"", "\"linear_class\": \"loralinear\"",
     TERN_UNSUPPORTED, "linear_class \"loralinear\" is unknown"},
    {CONFIG, "online", "sideways", TERN_UNSUPPORTED, "quantization_mode \"sideways\""},
    {CONFIG, "\"quant_method\"", "\"modules_to_not_convert\": [\"q_proj\"], \"quant_method\"",
     TERN_UNSUPPORTED, "\"q_proj\""},
    {CONFIG, "quantization_config", "other_config", TERN_UNSUPPORTED, "not trained ternary"},
    {CONFIG, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1", TERN_INPUT,
     "\"tie_word_embeddings\" is not true or false"},
    {CONFIG, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", TERN_INPUT,
     "\"lm_head.weight\" is missing"},
    /* generation_config.json */
    {GENERATION, "39, 7", "39, 40", TERN_INPUT, "\"eos_token_id\" is 40, the vocabulary has ids 0"},
    {GENERATION, "39, 7", "-1", TERN_INPUT, "\"eos_token_id\" is -1"},
    {GENERATION, "39, 7", "\"x\"", TERN_INPUT, "\"eos_token_id\" is not an id"},
    {GENERATION, "\"bos_token_id\": 38", "\"bos_token_id\": 1e9", TERN_INPUT, "\"bos_token_id\""},
    {GENERATION, "{", "", TERN_INPUT, "generation_config.json"},
    /* header of model.safetensors */
    {HEADER, "{", " {", TERN_INPUT, "does not start with '{'"},
    {HEADER, "{", "{{", TERN_INPUT, "model.safetensors: line 1"},
    {HEADER, "{", "{\"__metadata__\":7,", TERN_INPUT, "\"__metadata__\" is not a map"},
    {HEADER, "{", "{\"__metadata__\":{\"a\":7},", TERN_INPUT, "\"__metadata__\": \"a\""},
    {HEADER, Q, "model.layers.0.self_attn.r_proj.weight", TERN_INPUT, "\"" Q "\" is missing"},
    {HEADER, Q, "model.norm.weight", TERN_INPUT, "duplicate"},
    {HEADER, "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[32,32]",
     "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[16,64]", TERN_INPUT,
     "\"" Q "\": shape [16, 64], but config.json makes it [32, 32]"},
    {HEADER, "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[32,32]",
     "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[1024]", TERN_INPUT, "\"" Q "\": shape [1024]"},
    {HEADER, "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[32,32]",
     "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[1,1,1,1,1,1,1,1,1024]", TERN_INPUT,
     "9 dimensions, at most 8"},
    {HEADER, "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[32,32]",
     "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[4194305,4194305,211106198978564]", TERN_INPUT,
     "does not fit its 2048 bytes"},
    {HEADER, "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[32,32]",
     "\"" Q "\":{\"dtype\":\"BF16\",\"shape\":[32,-32]", TERN_INPUT, "dimension 1 is not"},
    {HEADER, "\"" Q "\":{\"dtype\":\"BF16\"", "\"" Q "\":{\"dtype\":\"I16\"", TERN_INPUT,
     "\"" Q "\": dtype I16, expected BF16, F16 or F32"},
    {HEADER, "\"" Q "\":{\"dtype\":\"BF16\"", "\"" Q "\":{\"dtype\":\"F32\"", TERN_INPUT,
     "F32 [32, 32] does not fit its 2048 bytes"},
    {HEADER, "\"" Q "\":{\"dtype\":\"BF16\"", "\"" Q "\":{\"dtype\":\"X\"", TERN_INPUT,
     "dtype \"X\" is unknown"},
    {HEADER, "[0,2560]", "[2,2562]", TERN_INPUT, "tensors overlap"},
    {HEADER, "{", "{\"m.rotary_emb.inv_freq\":{\"dtype\":\"BF16\",\"shape\":[0],"
     "\"data_offsets\":[2,2]},", TERN_INPUT, "tensors overlap"},
    {HEADER, "\"model.embed_tokens.weight\":{\"dtype\":\"BF16\",\"shape\":[40,32],"
     "\"data_offsets\":[0,2560]},", "", TERN_INPUT, "\"model.embed_tokens.weight\" is missing"},
    {HEADER, "[0,2560]", "[0,2558]", TERN_INPUT, "does not fit its 2558 bytes"},
    {HEADER, "[0,2560]", "[-1,2559]", TERN_INPUT, "not a pair"},
    {HEADER, "[0,2560]", "[2560,0]", TERN_INPUT, "not a pair"},
    {HEADER, "[0,2560]", "[0,2560,0]", TERN_INPUT, "not a pair"},
    {HEADER, "[0,2560]", "[0,9223372036854775807]", TERN_INPUT, "it is truncated or damaged"},
    {HEADER, "[0,2560]", "[0,18446744073709551616]", TERN_INPUT, "more than 63 bits"},
    {HEADER, "[40,32],\"data_offsets\":[0,2560]", "[39,32],\"data_offsets\":[0,2496]", TERN_INPUT,
     "shape [39, 32], but config.json makes it [40, 32]"},
    {HEADER, "[40,32],\"data_offsets\":[0,2560]", "[41,32],\"data_offsets\":[0,2624]", TERN_INPUT,
     "tensors overlap"},
    {HEADER, "{", "{\"lm_head.weight\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":[0,0]},",
     TERN_INPUT, "\"lm_head.weight\": shape [0], but config.json makes it [40, 32]"},
    {HEADER, "{", "{\"model.x\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":[0,0]},",
     TERN_INPUT, "\"model.x\" is not part of this architecture"},
};

static void test_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof text_cases / sizeof *text_cases; i++) {
        const struct text_case *c = &text_cases[i];
        model_dir_make(&model, MODEL_BF16);
        char *const text = c->place == CONFIG       ? model.config
                           : c->place == GENERATION ? model.generation
                                                    : model.header;
        const size_t capacity = c->place == CONFIG       ? sizeof model.config
                                : c->place == GENERATION ? sizeof model.generation
                                                         : sizeof model.header;
        model_dir_replace(text, capacity, c->find, c->replacement);
        model_dir_write(&model, DIR);
        expect_failure(c->replacement, c->status, c->text);
    }
}

/* ---- values ---- */

static void test_values(void **state)
{
    (void)state;
    static const struct {
        enum model_form form;
        const char *tensor;
        size_t at;
        unsigned char bytes[2];
        const char *text;
    } cases[] = {
        {MODEL_BF16, Q, 2 * 70, {0xC0, 0x7F}, "\"" Q "\": the value at row 2, column 6 is not"},
        {MODEL_BF16, Q, 0, {0x80, 0xFF}, "\"" Q "\": the value at row 0, column 0 is not"},
        {MODEL_F16, Q, 2 * 1023, {0x00, 0x7C}, "\"" Q "\": the value at row 31, column 31 is not"},
        {MODEL_F32, Q, 4 * 64 + 2, {0x80, 0x7F}, "\"" Q "\": the value at row 2, column 0 is not"},
        {MODEL_BF16, "model.norm.weight", 2, {0x81, 0x7F}, "\"model.norm.weight\": the value at"},
        {MODEL_BF16, "model.embed_tokens.weight", 2 * 33, {0x80, 0x7F}, "row 1, column 1 is not"},
        {MODEL_PACKED, Q, 40, {0x30, 0x01}, "has, in bits 4-5 of row 1, column 8"},
        {MODEL_PACKED, Q, 40, {0x03, 0x01}, "\"" Q "\": code 3, which no ternary weight has"},
        {MODEL_PACKED, Q "_scale", 0, {0x00, 0x00}, "\"" Q "_scale\" is 0"},
        {MODEL_PACKED, Q "_scale", 0, {0x80, 0x7F}, "\"" Q "_scale\" is inf"},
        {MODEL_PACKED, Q "_scale", 0, {0x80, 0xBF}, "\"" Q "_scale\" is -1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_dir_make(&model, cases[i].form);
        memcpy(model_dir_tensor(&model, cases[i].tensor) + cases[i].at, cases[i].bytes, 2);
        model_dir_write(&model, DIR);
        expect_failure(cases[i].text, TERN_INPUT, cases[i].text);
    }
}

static void test_head_overflow(void **state)
{
    (void)state;
    static const unsigned char large[4] = {0x00, 0x00, 0x80, 0x47}; /* 65536 */
    static const unsigned char huge[4] = {0xFF, 0xFF, 0x7F, 0x7F};  /* the largest f32 */
    struct tern_error err;
    model_dir_make(&model, MODEL_F32);
    memcpy(model_dir_tensor(&model, "model.embed_tokens.weight") + 4 * 32 * 3, large, 4);
    model_dir_write(&model, DIR);
    assert_int_equal(convert(TERN_HEAD_F16, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "65536 in row 3 is too large for f16"));
    assert_nothing_left();
    assert_int_equal(convert(TERN_HEAD_BF16, &err), TERN_OK);
    tn_file_remove(OUT);
    memcpy(model_dir_tensor(&model, "model.embed_tokens.weight") + 4 * 32 * 3, huge, 4);
    model_dir_write(&model, DIR);
    assert_int_equal(convert(TERN_HEAD_BF16, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "in row 3 is too large for bf16"));
    assert_nothing_left();
}

/* ---- packed ---- */

static void test_packed_shapes(void **state)
{
    (void)state;
    model_dir_make(&model, MODEL_PACKED);
    model_dir_replace(model.header, sizeof model.header, Q "_scale", Q "_scala");
    model_dir_write(&model, DIR);
    expect_failure("scale", TERN_INPUT, "\"" Q "_scale\" is missing");
    model_dir_make(&model, MODEL_PACKED);
    model_dir_replace(model.header, sizeof model.header, Q "\":{\"dtype\":\"U8\",\"shape\":[8,32]",
                      Q "\":{\"dtype\":\"U8\",\"shape\":[32,8]");
    model_dir_write(&model, DIR);
    expect_failure("shape", TERN_INPUT, "shape [32, 8], but config.json makes it [8, 32]");
    model_dir_make(&model, MODEL_PACKED);
    model_dir_replace(model.header, sizeof model.header,
                      "k_proj.weight\":{\"dtype\":\"U8\"", "k_proj.weight\":{\"dtype\":\"I8\"");
    model_dir_write(&model, DIR);
    expect_failure("dtype", TERN_INPUT, "k_proj.weight\": dtype I8, expected U8");
}

/* ---- files ---- */

static void test_truncated(void **state)
{
    (void)state;
    model_dir_make(&model, MODEL_BF16);
    const size_t n_header = 8 + strlen(model.header);
    const size_t n_file = n_header + model.n_data;
    const size_t sizes[] = {0, 1, 7, 8, 9, n_header - 1, n_header, n_header + 1, n_file - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        model.n_cut = n_file - sizes[i];
        model_dir_write(&model, DIR);
        expect_failure("truncated", TERN_INPUT, "model.safetensors");
    }
    model.n_cut = 0;
    const size_t lengths[] = {1, n_header, (size_t)1 << 24, ((size_t)1 << 24) + 1, (size_t)-1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        model.n_header = lengths[i];
        model_dir_write(&model, DIR);
        expect_failure("header length", TERN_INPUT, "model.safetensors");
    }
}

static void test_trailing_bytes(void **state)
{
    (void)state;
    model_dir_make(&model, MODEL_BF16);
    model.n_data++;
    model_dir_write(&model, DIR);
    expect_failure("trailing byte", TERN_INPUT, "the tensors need");
}

static void test_missing_files(void **state)
{
    (void)state;
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    tn_file_remove(DIR "/model.safetensors");
    expect_failure("no weights", TERN_INPUT, "model.safetensors");
    model_dir_write(&model, DIR);
    tn_file_remove(DIR "/config.json");
    expect_failure("no config", TERN_INPUT, "config.json");
}

static void test_lfs_pointers(void **state)
{
    (void)state;
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\n"
                                  "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2"
                                  "ca24d17e2393\nsize 12345\n";
    static const char *const names[] = {"model.safetensors", "config.json",
                                        "generation_config.json"};
    model_dir_make(&model, MODEL_BF16);
    for (size_t i = 0; i < 3; i++) {
        model_dir_write(&model, DIR);
        write_test_file(DIR, names[i], pointer, strlen(pointer));
        expect_failure(names[i], TERN_INPUT, "Git-LFS pointer");
    }
}

static void test_web_pages(void **state)
{
    (void)state;
    static const char page[] = "\n<!doctype html>\n<html class=\"\"><head><meta charset=\"utf-8\">";
    static const char *const names[] = {"model.safetensors", "config.json", "generation_config.json"};
    model_dir_make(&model, MODEL_BF16);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        model_dir_write(&model, DIR);
        write_test_file(DIR, names[i], page, strlen(page));
        char expected[80];
        snprintf(expected, sizeof expected, "%s: is an HTML page", names[i]);
        expect_failure(names[i], TERN_INPUT, expected);
    }
}

static void test_deep_nesting(void **state)
{
    (void)state;
    static char text[200001];
    memset(text, '[', sizeof text - 1);
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    write_test_file(DIR, "config.json", text, sizeof text - 1);
    expect_failure("config", TERN_INPUT, "config.json: JSON nests deeper than 64");
}

static void test_no_tokenizer(void **state)
{
    (void)state;
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    const struct tern_convert_params params = {.source = DIR, .output = OUT};
    struct tern_convert_result result;
    struct tern_error err;
    assert_int_equal(tern_convert(&params, &result, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "tokenizer.json is missing; get it where the weights "
                                       "are from (--no-tokenizer converts without it"));
    assert_nothing_left();
}

static void expect_params_failure(const char *source, const char *output, tern_status expected,
                                  const char *text)
{
    const struct tern_convert_params params = {
        .source = source, .output = output, .no_tokenizer = true};
    struct tern_convert_result result;
    struct tern_error err;
    const tern_status status = tern_convert(&params, &result, &err);
    if (status != expected || !strstr(err.detail, text))
        fail_msg("%s -> %s: %d \"%s\"", source, output, status, err.detail);
    assert_nothing_left();
}

static void test_places(void **state)
{
    (void)state;
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    expect_params_failure(DIR "/nowhere", OUT, TERN_INPUT, "no such directory");
    expect_params_failure(DIR "/config.json", OUT, TERN_INPUT, "not a GGUF file");
    expect_params_failure(DIR, DIR, TERN_OUTPUT, "is a directory");
    expect_params_failure(DIR, DIR "/nowhere/x.tern", TERN_OUTPUT, "nowhere");
    expect_params_failure(DIR, "", TERN_USAGE, "output path is empty");
    expect_params_failure(DIR, DIR "/config.json", TERN_USAGE, "a file of the model");
    expect_params_failure(DIR, DIR "/./model.safetensors", TERN_USAGE, "a file of the model");
    write_test_file(DIR, "tokenizer.json", "{}", 2);
    expect_params_failure(DIR, DIR "/tokenizer.json", TERN_USAGE, "a file of the model");
    struct tern_error err;
    assert_int_equal(convert(TERN_HEAD_Q8, &err), TERN_OK); /* the inputs are unchanged */
    tn_file_remove(OUT);
}

/* ---- shards ---- */

#define SHARD_1 "model-00001-of-00002.safetensors"
#define SHARD_2 "model-00002-of-00002.safetensors"
#define INDEX "model.safetensors.index.json"

/* Moves everything to shard 1 except one small tensor, which goes to shard 2. */
static void write_shards(const char *index_find, const char *index_replacement)
{
    static char index[8192];
    static struct model_dir second;
    model_dir_make(&model, MODEL_BF16);
    const unsigned char *norm = model_dir_tensor(&model, "model.norm.weight");
    memset(&second, 0, sizeof second);
    strcpy(second.header, "{\"model.norm.weight\":{\"dtype\":\"BF16\",\"shape\":[32],"
                          "\"data_offsets\":[0,64]}}");
    memcpy(second.data, norm, 64);
    second.n_data = 64;
    *strstr(model.header, ",\"model.norm.weight\"") = '\0';
    strcat(model.header, "}");
    model.n_data -= 64;
    strcpy(index, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    for (const char *at = model.header; (at = strstr(at, "\"model.")) != NULL; at++) {
        const size_t n = (size_t)(strchr(at + 1, '"') - at) + 1;
        strncat(index, at, n);
        strcat(index, ":\"" SHARD_1 "\",");
    }
    strcat(index, "\"model.norm.weight\":\"" SHARD_2 "\"}}");
    if (index_find)
        model_dir_replace(index, sizeof index, index_find, index_replacement);
    model_dir_write(&model, DIR);
    assert_int_equal(rename(DIR "/model.safetensors", DIR "/" SHARD_1), 0);
    unsigned char file[1024];
    const uint64_t n = strlen(second.header);
    memcpy(file, &n, 8);
    memcpy(file + 8, second.header, (size_t)n);
    memcpy(file + 8 + n, second.data, 64);
    write_test_file(DIR, SHARD_2, file, (size_t)n + 72);
    write_test_file(DIR, INDEX, index, strlen(index));
}

static void test_shards(void **state)
{
    (void)state;
    static const struct {
        const char *find;
        const char *replacement;
        const char *text;
    } cases[] = {
        {"weight_map", "weight_mop", "\"weight_map\" is missing"},
        {SHARD_2, "../" SHARD_2, "is not the name of a file in this directory"},
        {SHARD_2, "/etc/passwd", "is not the name of a file in this directory"},
        {SHARD_2, "model-00003-of-00002.safetensors", "model-00003-of-00002.safetensors"},
        {SHARD_2, SHARD_1, "\"model.norm.weight\" is missing: " INDEX " says that it is in"},
        {"\"model.norm.weight\"", "\"model.form.weight\"", "\"model.form.weight\" is missing"},
        {",\"model.norm.weight\":\"" SHARD_2 "\"", "", "\"model.norm.weight\" is missing"},
        {"\"" SHARD_1 "\"", "7", "is not the name of a file"},
        {"{", "", INDEX ": line"},
    };
    struct tern_error err;
    write_shards(NULL, NULL);
    if (convert(TERN_HEAD_Q8, &err) != TERN_OK)
        fail_msg("%s", err.detail);
    tn_file_remove(OUT);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_shards(cases[i].find, cases[i].replacement);
        expect_failure(cases[i].replacement, TERN_INPUT, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_texts, clean),
        cmocka_unit_test_setup(test_values, clean),
        cmocka_unit_test_setup(test_head_overflow, clean),
        cmocka_unit_test_setup(test_packed_shapes, clean),
        cmocka_unit_test_setup(test_truncated, clean),
        cmocka_unit_test_setup(test_trailing_bytes, clean),
        cmocka_unit_test_setup(test_missing_files, clean),
        cmocka_unit_test_setup(test_lfs_pointers, clean),
        cmocka_unit_test_setup(test_web_pages, clean),
        cmocka_unit_test_setup(test_deep_nesting, clean),
        cmocka_unit_test_setup(test_no_tokenizer, clean),
        cmocka_unit_test_setup(test_places, clean),
        cmocka_unit_test_setup(test_shards, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
