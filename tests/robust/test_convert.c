/* SPDX-License-Identifier: MIT
 *
 * Bad input to the converter: for each case the status, one line that names
 * what is wrong, and nothing left behind; the same when the user stops it or
 * memory runs out at any place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/half.h"
#include "base/buf.h"
#include "convert/config_import.h"
#include "convert/tok_import.h"
#include "file/mfile.h"
#include "plat/plat.h"
#include "robust/model_dir.h"
#include "tern/convert.h"

#define DIR TERN_BUILD_DIR "/test_convert" /* made by CMake */
#define OUT DIR "/out.tern"
#define PART OUT ".part"

static struct model_dir model;

static tern_status convert(enum tern_head_type head, struct tern_error *err)
{
    const struct tern_convert_params params = {
        .source = DIR, .output = OUT, .head = head, .no_tokenizer = true};
    struct tern_convert_result result;
    return tern_convert(&params, &result, err);
}

static void assert_nothing_left(void)
{
    assert_int_equal(tn_path_kind(OUT), TN_PATH_ABSENT);
    assert_int_equal(tn_path_kind(PART), TN_PATH_ABSENT);
}

static void expect_failure(const char *what, tern_status expected, const char *text)
{
    struct tern_error err;
    const tern_status status = convert(TERN_HEAD_Q8, &err);
    if (status != expected || err.status != expected || !strstr(err.detail, text) ||
        strchr(err.detail, '\n'))
        fail_msg("%s: status %d \"%s\", expected %d \"...%s...\"", what, status, err.detail,
                 expected, text);
    assert_nothing_left();
}

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
    {CONFIG, "\"rope_theta\": 10000.0", "\"r\": 0", TERN_INPUT, "\"rope_theta\" is missing"},
    {CONFIG, "\"rope_theta\": 10000.0",
     "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": \"yarn\"}", TERN_UNSUPPORTED,
     "\"rope_scaling\" of type \"yarn\""},
    {CONFIG, "\"rope_theta\": 10000.0", "\"rope_parameters\": {\"rope_type\": \"llama3\"}",
     TERN_UNSUPPORTED, "\"rope_parameters\" of type \"llama3\""},
    {CONFIG, "\"hidden_act\": \"relu2\"", "\"hidden_act\": \"gelu\"", TERN_UNSUPPORTED, "\"gelu\""},
    {CONFIG, "\"hidden_act\": \"relu2\"", "\"hidden_act\": 3", TERN_INPUT, "\"hidden_act\""},
    {CONFIG, "\"hidden_act\"", "\"attention_bias\": true, \"hidden_act\"", TERN_UNSUPPORTED,
     "\"attention_bias\" is true"},
    {CONFIG, "\"hidden_act\"", "\"mlp_bias\": true, \"hidden_act\"", TERN_UNSUPPORTED, "mlp_bias"},
    {CONFIG, "\"quant_method\": \"bitnet\"", "\"quant_method\": \"gptq\"", TERN_UNSUPPORTED,
     "\"gptq\" is not ternary"},
    {CONFIG, "\"quant_method\": \"bitnet\"", "\"quant_method\": \"bitnet\", \"use_rms_norm\": true",
     TERN_UNSUPPORTED, "use_rms_norm"},
    {CONFIG, "\"linear_class\": \"autobitlinear\"", "\"linear_class\": \"bitlinear\"",
     TERN_UNSUPPORTED, "weight_scale divides"},
    {CONFIG, "online", "sideways", TERN_UNSUPPORTED, "quantization_mode \"sideways\""},
    {CONFIG, "\"quant_method\"", "\"modules_to_not_convert\": [\"q_proj\"], \"quant_method\"",
     TERN_UNSUPPORTED, "\"q_proj\""},
    {CONFIG, "quantization_config", "other_config", TERN_UNSUPPORTED, "not trained ternary"},
    {CONFIG, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false", TERN_INPUT,
     "\"lm_head.weight\" is missing"},
    /* generation_config.json */
    {GENERATION, "39, 7", "39, 40", TERN_INPUT, "\"eos_token_id\" is 40, the vocabulary has ids 0"},
    {GENERATION, "39, 7", "-1", TERN_INPUT, "\"eos_token_id\" is -1"},
    {GENERATION, "39, 7", "\"x\"", TERN_INPUT, "\"eos_token_id\" is not an id"},
    {GENERATION, "39, 7", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", TERN_UNSUPPORTED,
     "more than 16 ids"},
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
    {HEADER, "[0,2560]", "[2,2562]", TERN_INPUT, "there is a hole"},
    {HEADER, "[0,2560]", "[0,2558]", TERN_INPUT, "does not fit its 2558 bytes"},
    {HEADER, "[0,2560]", "[-1,2559]", TERN_INPUT, "not a pair"},
    {HEADER, "[0,2560]", "[2560,0]", TERN_INPUT, "not a pair"},
    {HEADER, "[0,2560]", "[0,2560,0]", TERN_INPUT, "not a pair"},
    {HEADER, "[0,2560]", "[0,9223372036854775807]", TERN_INPUT, "it is truncated or damaged"},
    {HEADER, "[0,2560]", "[0,18446744073709551616]", TERN_INPUT, "too big integer"},
    {HEADER, "[40,32],\"data_offsets\":[0,2560]", "[39,32],\"data_offsets\":[0,2496]", TERN_INPUT,
     "there is a hole"},
    {HEADER, "[40,32],\"data_offsets\":[0,2560]", "[41,32],\"data_offsets\":[0,2624]", TERN_INPUT,
     "tensors overlap"},
    {HEADER, "{", "{\"lm_head.weight\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":[0,0]},",
     TERN_INPUT, "\"lm_head.weight\" contradicts"},
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
    assert_non_null(strstr(err.detail, "tokenizer.json is missing; --no-tokenizer"));
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
    expect_params_failure(DIR "/config.json", OUT, TERN_INPUT, "not a directory");
    expect_params_failure(DIR, DIR, TERN_OUTPUT, "is a directory");
    expect_params_failure(DIR, DIR "/nowhere/x.tern", TERN_OUTPUT, "nowhere");
    expect_params_failure(DIR, "", TERN_USAGE, "output path is empty");
    expect_params_failure(DIR, DIR "/config.json", TERN_USAGE, "a file of the model");
    expect_params_failure(DIR, DIR "/./model.safetensors", TERN_USAGE, "a file of the model");
    write_test_file(DIR, "tokenizer.json", "{}", 2);
    expect_params_failure(DIR, DIR "/tokenizer.json", TERN_USAGE, "a file of the model");
    struct tern_error err;
    assert_int_equal(convert(TERN_HEAD_Q8, &err), TERN_OK); /* the inputs are as they were */
    tn_file_remove(OUT);
}

/* ---- shards ---- */

#define SHARD_1 "model-00001-of-00002.safetensors"
#define SHARD_2 "model-00002-of-00002.safetensors"
#define INDEX "model.safetensors.index.json"

/* Moves everything to shard 1 and one small tensor to shard 2. */
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

/* ---- accepted ---- */

static void expect_success(const char *find, const char *replacement)
{
    struct tern_error err;
    model_dir_make(&model, MODEL_BF16);
    model_dir_replace(model.config, sizeof model.config, find, replacement);
    model_dir_write(&model, DIR);
    if (convert(TERN_HEAD_Q8, &err) != TERN_OK)
        fail_msg("%s: %s", replacement, err.detail);
    tn_file_remove(OUT);
    assert_nothing_left();
}

static void test_odd_but_right(void **state)
{
    (void)state;
    expect_success("{", "{\"model_max_length\": 1000000000000000019884624838656,");
    expect_success("{", "{\"hidden_size\": 7, \"quantization_config\": null,"); /* last counts */
    expect_success("\"num_key_value_heads\": 1,",
                   "\"num_key_value_heads\": 1.0, \"head_dim\": 16,");
    expect_success("\"rope_theta\": 10000.0",
                   "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000}");
    expect_success("\"rope_theta\"", "\"rope_scaling\": null, \"rope_theta\"");
    expect_success("\"tie_word_embeddings\": true,", "");
    expect_success("relu2", "silu");
    expect_success("\"bos_token_id\": 38,", "");
}

/* ---- notes and warnings ---- */

struct messages {
    unsigned n[3]; /* by kind */
    char last[512];
};

static void take_message(void *arg, enum tern_convert_message kind, const char *text)
{
    struct messages *m = arg;
    m->n[kind]++;
    if (kind != TERN_CONVERT_TENSOR)
        snprintf(m->last, sizeof m->last, "%s", text);
}

static void expect_message(enum tern_convert_message kind, const char *text)
{
    struct messages messages = {{0}, ""};
    const struct tern_convert_params params = {.source = DIR, .output = OUT, .no_tokenizer = true,
                                               .on_message = take_message, .arg = &messages};
    struct tern_convert_result result;
    struct tern_error err;
    if (tern_convert(&params, &result, &err) != TERN_OK)
        fail_msg("%s: %s", text, err.detail);
    assert_int_equal(messages.n[TERN_CONVERT_TENSOR], 13);
    assert_int_equal(messages.n[TERN_CONVERT_NOTE], kind == TERN_CONVERT_NOTE);
    assert_int_equal(messages.n[TERN_CONVERT_WARNING], kind == TERN_CONVERT_WARNING);
    if (!strstr(messages.last, text))
        fail_msg("\"%s\" is not in \"%s\"", text, messages.last);
    tn_file_remove(OUT);
}

static void test_messages(void **state)
{
    (void)state;
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    expect_message(TERN_CONVERT_TENSOR, "");
    model_dir_replace(model.header, sizeof model.header, "{",
                      "{\"model.layers.0.self_attn.rotary_emb.inv_freq\":{\"dtype\":\"F32\","
                      "\"shape\":[0],\"data_offsets\":[0,0]},");
    model_dir_write(&model, DIR);
    expect_message(TERN_CONVERT_NOTE, "*.rotary_emb.inv_freq (1)");
    model_dir_make(&model, MODEL_BF16);
    model_dir_replace(model.config, sizeof model.config, "online", "offline");
    model_dir_write(&model, DIR);
    expect_message(TERN_CONVERT_WARNING, "quantization_mode \"offline\", but the weights are fl");
    model_dir_make(&model, MODEL_PACKED);
    model_dir_replace(model.config, sizeof model.config, "\"eos_token_id\": 39,", "");
    model_dir_replace(model.generation, sizeof model.generation, "[39, 7]", "null");
    model_dir_write(&model, DIR);
    expect_message(TERN_CONVERT_WARNING, "no end-of-text id");
}

/* ---- chat templates ---- */

static void expect_template(const char *json, tern_status expected, const char *source)
{
    char *text;
    size_t n;
    struct tern_error err;
    assert_int_equal(tn_template_parse(&text, &n, json, strlen(json), &err), expected);
    if (source)
        assert_string_equal(text, source);
    else
        assert_null(text);
    assert_int_equal(n, source ? strlen(source) : 0);
    tn_free(text);
}

static void test_template_places(void **state)
{
    (void)state;
    expect_template("{}", TERN_OK, NULL);
    expect_template("{\"chat_template\": null}", TERN_OK, NULL);
    expect_template("{\"chat_template\": \"a\\nb\"}", TERN_OK, "a\nb");
    expect_template("{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"},"
                    "{\"name\": \"default\", \"template\": \"d\"}]}",
                    TERN_OK, "d");
    expect_template("{\"chat_template\": \"a\\u0000b\"}", TERN_INPUT, NULL);
    expect_template("{\"chat_template\": \"a\\u001bb\"}", TERN_INPUT, NULL);
    expect_template("{\"chat_template\"", TERN_INPUT, NULL);
    static const char latin1[] = "caf\xE9";
    char *text;
    size_t n;
    const char *from;
    struct tern_error err;
    write_test_file(DIR, "chat_template.jinja", latin1, strlen(latin1));
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "chat_template.jinja: byte 0xe9 at offset 3"));
    write_test_file(DIR, "chat_template.jinja", "new", 3);
    write_test_file(DIR, "tokenizer_config.json", "{\"chat_template\": \"old\"}", 24);
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_OK);
    assert_string_equal(text, "new");
    tn_free(text);
    tn_file_remove(DIR "/chat_template.jinja");
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_OK);
    assert_string_equal(text, "old");
    tn_free(text);
}

/* A template's own end token stops the model even if generation_config.json forgot it. */
static void test_template_stop_id(void **state)
{
    (void)state;
    char *json;
    size_t n;
    struct tern_error err;
    struct tn_buf section = {0};
    struct tn_tok_facts facts;
    struct tern_file_config config = {.vocab = 4096, .n_stop_ids = 1, .stop_ids = {4081}};
    assert_int_equal(tn_file_read_all(&json, &n, TERN_SOURCE_DIR "/dist/demo/tokenizer.json",
                                      1u << 20, &err), TERN_OK);
    assert_int_equal(tn_tok_import(json, n, config.vocab, &section, &facts, &err), TERN_OK);
    tn_free(json);
    for (int i = 0; i < 2; i++) { /* once is enough */
        assert_int_equal(tn_template_add_stop_id(&config, "bitnet-2b-4t", section.data,
                                                 section.n_bytes, &err), TERN_OK);
        assert_int_equal(config.n_stop_ids, 2);
        assert_int_equal(config.stop_ids[1], 4089);
    }
    assert_int_equal(tn_template_add_stop_id(&config, "chatml", section.data, section.n_bytes,
                                             &err), TERN_OK);
    assert_int_equal(config.n_stop_ids, 2);
    tn_buf_fini(&section);
}

/* The file holds what the small files say. */
static void test_facts(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_mfile file;
    model_dir_make(&model, MODEL_PACKED);
    model_dir_write(&model, DIR);
    assert_int_equal(convert(TERN_HEAD_BF16, &err), TERN_OK);
    assert_int_equal(tn_mfile_open(&file, OUT, &err), TERN_OK);
    const struct tern_file_config *c = file.config;
    assert_int_equal(c->n_layer, 1);
    assert_int_equal(c->hidden, 32);
    assert_int_equal(c->ffn, 64);
    assert_int_equal(c->n_head, 2);
    assert_int_equal(c->n_kv_head, 1);
    assert_int_equal(c->head_dim, 16);
    assert_int_equal(c->vocab, 40);
    assert_int_equal(c->context, 128);
    assert_int_equal(c->flags, TERN_MODEL_TIED_HEAD);
    assert_int_equal(c->bos_id, 38);
    assert_int_equal(c->n_stop_ids, 2);
    assert_int_equal(c->stop_ids[0], 39);
    assert_int_equal(c->stop_ids[1], 7);
    assert_int_equal(c->n_fingerprint_ids, 4);
    assert_int_equal(c->fingerprint_ids[3], 39);
    assert_int_equal(c->sources.bytes / sizeof(struct tern_file_source), 3);
    assert_int_equal(c->n_params, 40 * 32 + 4 * 32 + 64 + 3 * 64 * 32 + 2 * 16 * 32 + 2 * 32 * 32);
    const struct tern_file_tensor *q = tn_mfile_tensor(&file, TERN_ROLE_Q, 0);
    assert_true(q->scale == 0.25f);
    tn_mfile_close(&file);
    tn_file_remove(OUT);
}

/* A head of its own, and more heads than hidden / head_dim. */
static void test_wide_and_untied(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_mfile file;
    model_dir_make(&model, MODEL_WIDE);
    for (int i = 0; i < 2; i++) {
        model_dir_write(&model, DIR);
        if (convert(TERN_HEAD_BF16, &err) != TERN_OK)
            fail_msg("%s", err.detail);
        assert_int_equal(tn_mfile_open(&file, OUT, &err), TERN_OK);
        assert_int_equal(file.config->flags, 0);
        const struct tern_file_tensor *embed =
            tn_mfile_tensor(&file, TERN_ROLE_EMBED, TERN_NO_LAYER);
        const struct tern_file_tensor *head = tn_mfile_tensor(&file, TERN_ROLE_HEAD, TERN_NO_LAYER);
        assert_memory_equal(tn_mfile_data(&file, embed),
                            model_dir_tensor(&model, "model.embed_tokens.weight"), 40 * 32 * 2);
        assert_memory_equal(tn_mfile_data(&file, head), model_dir_tensor(&model, "lm_head.weight"),
                            40 * 32 * 2);
        const struct tern_file_tensor *o = tn_mfile_tensor(&file, TERN_ROLE_O, 0);
        assert_int_equal(o->rows, 32);
        assert_int_equal(o->cols, 64);
        tn_mfile_close(&file);
        tn_file_remove(OUT);
        /* Without the key, the tensor decides. */
        if (i == 0)
            model_dir_replace(model.config, sizeof model.config,
                              "\"tie_word_embeddings\": false,", "");
    }
}

/* weight_scale of shape [] is as good as [1]. */
static void test_scale_without_dimension(void **state)
{
    (void)state;
    struct tern_error err;
    model_dir_make(&model, MODEL_PACKED);
    model_dir_replace(model.header, sizeof model.header, "[1]", "[]");
    model_dir_write(&model, DIR);
    assert_int_equal(convert(TERN_HEAD_Q8, &err), TERN_OK);
    tn_file_remove(OUT);
    model_dir_replace(model.header, sizeof model.header, "[1]", "[1,1]");
    model_dir_write(&model, DIR);
    expect_failure("scale [1,1]", TERN_INPUT, "shape [1, 1], but config.json makes it [1]");
}

/* q8 stays within half a step of every weight, bf16 is exact. */
static void test_head_values(void **state)
{
    (void)state;
    static const enum tern_head_type heads[] = {TERN_HEAD_Q8, TERN_HEAD_F16, TERN_HEAD_BF16};
    struct tern_error err;
    model_dir_make(&model, MODEL_F32);
    model_dir_write(&model, DIR);
    const unsigned char *src = model_dir_tensor(&model, "model.embed_tokens.weight");
    for (size_t h = 0; h < 3; h++) {
        struct tn_mfile file;
        assert_int_equal(convert(heads[h], &err), TERN_OK);
        assert_int_equal(tn_mfile_open(&file, OUT, &err), TERN_OK);
        const struct tern_file_tensor *t = tn_mfile_tensor(&file, TERN_ROLE_EMBED, TERN_NO_LAYER);
        const int8_t *q = tn_mfile_data(&file, t);
        const uint16_t *half = tn_mfile_data(&file, t);
        for (size_t i = 0; i < 40 * 32; i++) {
            float w;
            memcpy(&w, src + 4 * i, 4);
            if (heads[h] == TERN_HEAD_Q8) {
                const float scale = tn_mfile_scales(&file, t)[i / 32];
                assert_in_range(q[i] + 127, 0, 254);
                const float distance = w - (float)q[i] * scale;
                assert_true(distance <= 0.501f * scale && distance >= -0.501f * scale);
            } else if (heads[h] == TERN_HEAD_F16) {
                assert_int_equal(half[i], tn_f32_to_f16(w));
            } else {
                assert_int_equal(half[i], tn_f32_to_bf16(w));
            }
        }
        tn_mfile_close(&file);
        tn_file_remove(OUT);
    }
}

/* ---- interruption and memory ---- */

struct stopper {
    unsigned n_calls;
    unsigned stop_at;
};

static bool stop_later(void *arg, uint64_t n_done, uint64_t n_total)
{
    struct stopper *s = arg;
    assert_true(n_done <= n_total);
    return ++s->n_calls != s->stop_at;
}

static void test_stop_anywhere(void **state)
{
    (void)state;
    static const char before[] = "not a model, but mine";
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    struct stopper stopper = {0, 0};
    struct tern_convert_params params = {.source = DIR, .output = OUT, .no_tokenizer = true,
                                         .on_progress = stop_later, .arg = &stopper};
    struct tern_convert_result result;
    struct tern_error err;
    assert_int_equal(tern_convert(&params, &result, &err), TERN_OK);
    const unsigned n_calls = stopper.n_calls;
    assert_true(n_calls > 20);
    write_test_file(DIR, "out.tern", before, sizeof before);
    for (unsigned i = 1; i <= n_calls; i++) {
        stopper = (struct stopper){0, i};
        assert_int_equal(tern_convert(&params, &result, &err), TERN_INTERRUPTED);
        assert_int_equal(tn_path_kind(PART), TN_PATH_ABSENT);
    }
    char *text;
    size_t n;
    assert_int_equal(tn_file_read_all(&text, &n, OUT, 1000, &err), TERN_OK);
    assert_int_equal(n, sizeof before);
    assert_memory_equal(text, before, n);
    tn_free(text);
    tn_file_remove(OUT);
}

/* Fails allocation number `fail_at`, and all later ones if `for_ever`. */
struct short_memory {
    unsigned n;
    unsigned fail_at;
    bool for_ever;
};

static int allow(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    struct short_memory *s = arg;
    s->n++;
    return s->n < s->fail_at || (s->n > s->fail_at && !s->for_ever);
}

static void run_out_of_memory(bool for_ever, enum model_form form)
{
#if defined(_WIN32)
    skip(); /* paths need memory for UTF-16 there: without it every file looks absent */
#endif
    model_dir_make(&model, form);
    model_dir_write(&model, DIR);
    for (unsigned i = 1;; i++) {
        struct short_memory memory = {0, i, for_ever};
        struct tern_error err;
        tn_alloc_set_hook(allow, &memory);
        const tern_status status = convert(TERN_HEAD_Q8, &err);
        tn_alloc_set_hook(NULL, NULL);
        if (status == TERN_OK && memory.n < i)
            break;
        if (status == TERN_OK && !for_ever) {
            tn_file_remove(OUT); /* an allocation that may fail (a hint, a fallback) */
            continue;
        }
        if (status != TERN_MEMORY)
            fail_msg("allocation %u: status %d, \"%s\"", i, status, err.detail);
        if (err.detail[0] == '\0' || tn_path_kind(OUT) != TN_PATH_ABSENT ||
            tn_path_kind(PART) != TN_PATH_ABSENT)
            fail_msg("allocation %u: \"%s\", or a file is left", i, err.detail);
        assert_true(i < 100000);
    }
    tn_file_remove(OUT);
}

static void test_memory_fails_once(void **state)
{
    (void)state;
    run_out_of_memory(false, MODEL_BF16);
}

static void test_memory_fails_for_ever(void **state)
{
    (void)state;
    run_out_of_memory(true, MODEL_PACKED);
}

/* What an earlier test or run may have left. */
static int clean(void **state)
{
    (void)state;
    tn_file_remove(OUT);
    tn_file_remove(PART);
    return 0;
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
        cmocka_unit_test_setup(test_deep_nesting, clean),
        cmocka_unit_test_setup(test_no_tokenizer, clean),
        cmocka_unit_test_setup(test_places, clean),
        cmocka_unit_test_setup(test_shards, clean),
        cmocka_unit_test_setup(test_odd_but_right, clean),
        cmocka_unit_test_setup(test_messages, clean),
        cmocka_unit_test_setup(test_template_places, clean),
        cmocka_unit_test_setup(test_template_stop_id, clean),
        cmocka_unit_test_setup(test_facts, clean),
        cmocka_unit_test_setup(test_wide_and_untied, clean),
        cmocka_unit_test_setup(test_scale_without_dimension, clean),
        cmocka_unit_test_setup(test_head_values, clean),
        cmocka_unit_test_setup(test_stop_anywhere, clean),
        cmocka_unit_test_setup(test_memory_fails_once, clean),
        cmocka_unit_test_setup(test_memory_fails_for_ever, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
