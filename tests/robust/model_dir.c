/* SPDX-License-Identifier: MIT
 *
 * The small Hugging Face folder of model_dir.h: tensors from a generator with a fixed seed, in the
 * requested encoding (latent floats or packed trits), and config.json as text.
 */
#include "robust/model_dir.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "plat/plat.h"

static const char config[] = "{\n"
                             "  \"architectures\": [\"BitNetForCausalLM\"],\n"
                             "  \"model_type\": \"bitnet\",\n"
                             "  \"hidden_size\": 32,\n"
                             "  \"intermediate_size\": 64,\n"
                             "  \"num_hidden_layers\": 1,\n"
                             "  \"num_attention_heads\": 2,\n"
                             "  \"num_key_value_heads\": 1,\n"
                             "  \"vocab_size\": 40,\n"
                             "  \"max_position_embeddings\": 128,\n"
                             "  \"hidden_act\": \"relu2\",\n"
                             "  \"rms_norm_eps\": 1e-05,\n"
                             "  \"rope_theta\": 10000.0,\n"
                             "  \"tie_word_embeddings\": true,\n"
                             "  \"bos_token_id\": 38,\n"
                             "  \"eos_token_id\": 39,\n"
                             "  \"quantization_config\": {\n"
                             "    \"quant_method\": \"bitnet\",\n"
                             "    \"linear_class\": \"autobitlinear\",\n"
                             "    \"quantization_mode\": \"online\"\n"
                             "  }\n"
                             "}\n";

static const char generation[] = "{\"bos_token_id\": 38, \"eos_token_id\": [39, 7]}\n";

struct row {
    const char *name;
    int rows; /* 0: a vector */
    int cols;
    bool is_ternary;
};

#define LAYER "model.layers.0."
static const struct row rows[] = {
    {"model.embed_tokens.weight", 40, 32, false},
    {LAYER "input_layernorm.weight", 0, 32, false},
    {LAYER "mlp.down_proj.weight", 32, 64, true},
    {LAYER "mlp.ffn_sub_norm.weight", 0, 64, false},
    {LAYER "mlp.gate_proj.weight", 64, 32, true},
    {LAYER "mlp.up_proj.weight", 64, 32, true},
    {LAYER "post_attention_layernorm.weight", 0, 32, false},
    {LAYER "self_attn.attn_sub_norm.weight", 0, 32, false},
    {LAYER "self_attn.k_proj.weight", 16, 32, true},
    {LAYER "self_attn.o_proj.weight", 32, 32, true},
    {LAYER "self_attn.q_proj.weight", 32, 32, true},
    {LAYER "self_attn.v_proj.weight", 16, 32, true},
    {"model.norm.weight", 0, 32, false},
};

/* Declares a tensor of n_bytes bytes.  Returns the address of its data. */
static unsigned char *add_tensor(struct model_dir *m, const char *name, const char *dtype,
                                 const char *shape, size_t n_bytes)
{
    char text[512];
    const size_t begin = m->n_data;
    assert(begin + n_bytes <= sizeof m->data);
    snprintf(text, sizeof text,
             "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
             m->header[1] == '\0' ? "" : ",", name, dtype, shape, begin, begin + n_bytes);
    assert(strlen(m->header) + strlen(text) + 2 < sizeof m->header);
    strcat(m->header, text);
    m->n_data += n_bytes;
    return m->data + begin;
}

static void put_float(unsigned char *dst, enum model_form form, size_t i, float value)
{
    const uint16_t half = form == MODEL_F16 ? tn_f32_to_f16(value) : tn_f32_to_bf16(value);
    if (form == MODEL_F32)
        memcpy(dst + 4 * i, &value, 4);
    else
        memcpy(dst + 2 * i, &half, 2);
}

static void add_floats(struct model_dir *m, enum model_form form, const struct row *row,
                       struct tn_rng *rng)
{
    static const char *const dtypes[] = {"BF16", "F16", "F32", "BF16", "BF16"};
    const size_t n = (size_t)(row->rows ? row->rows : 1) * (size_t)row->cols;
    char shape[64];
    if (row->rows)
        snprintf(shape, sizeof shape, "[%d,%d]", row->rows, row->cols);
    else
        snprintf(shape, sizeof shape, "[%d]", row->cols);
    unsigned char *dst =
        add_tensor(m, row->name, dtypes[form], shape, n * (form == MODEL_F32 ? 4 : 2));
    for (size_t i = 0; i < n; i++)
        put_float(dst, form, i, row->rows ? tn_rng_f32(rng) - 0.5f : 0.8f + 0.4f * tn_rng_f32(rng));
}

static void add_packed(struct model_dir *m, const struct row *row, struct tn_rng *rng)
{
    char shape[64];
    char scale[128];
    const size_t n = (size_t)row->rows / 4 * (size_t)row->cols;
    snprintf(shape, sizeof shape, "[%d,%d]", row->rows / 4, row->cols);
    unsigned char *dst = add_tensor(m, row->name, "U8", shape, n);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++)
            dst[i] |= (unsigned char)(tn_rng_next(rng) % 3 << (2 * k));
    snprintf(scale, sizeof scale, "%s_scale", row->name);
    put_float(add_tensor(m, scale, "BF16", "[1]", 2), MODEL_BF16, 0, 0.25f);
}

/* Adds twice as many query heads, with head_dim given, and a head. */
static void add_wide(struct model_dir *m, const struct row *row, struct tn_rng *rng)
{
    struct row wide = *row;
    if (strstr(row->name, "q_proj"))
        wide.rows *= 2;
    if (strstr(row->name, "o_proj") || strstr(row->name, "attn_sub_norm"))
        wide.cols *= 2;
    add_floats(m, MODEL_WIDE, &wide, rng);
    if (strstr(row->name, "embed_tokens")) {
        wide.name = "lm_head.weight";
        add_floats(m, MODEL_WIDE, &wide, rng);
    }
}

void model_dir_make(struct model_dir *m, enum model_form form)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, 1);
    memset(m, 0, sizeof *m);
    strcpy(m->config, config);
    strcpy(m->generation, generation);
    strcpy(m->header, "{");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (form == MODEL_PACKED && rows[i].is_ternary)
            add_packed(m, &rows[i], &rng);
        else if (form == MODEL_WIDE)
            add_wide(m, &rows[i], &rng);
        else
            add_floats(m, form, &rows[i], &rng);
    }
    strcat(m->header, "}");
    if (form == MODEL_PACKED)
        model_dir_replace(m->config, sizeof m->config, "online", "offline");
    if (form == MODEL_WIDE) {
        model_dir_replace(m->config, sizeof m->config, "\"num_attention_heads\": 2",
                          "\"num_attention_heads\": 4, \"head_dim\": 16");
        model_dir_replace(m->config, sizeof m->config, "true", "false");
    }
}

void model_dir_replace(char *text, size_t capacity, const char *find, const char *replacement)
{
    char *at = strstr(text, find);
    if (!at) {
        fprintf(stderr, "\"%s\" is not in the text\n", find);
        abort();
    }
    const size_t n_find = strlen(find);
    const size_t n_new = strlen(replacement);
    assert(strlen(text) - n_find + n_new < capacity);
    memmove(at + n_new, at + n_find, strlen(at + n_find) + 1);
    memcpy(at, replacement, n_new);
}

unsigned char *model_dir_tensor(struct model_dir *m, const char *name)
{
    char quoted[160];
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(m->header, quoted);
    assert(at);
    at = strstr(at, "\"data_offsets\":[");
    assert(at);
    return m->data + strtoul(at + strlen("\"data_offsets\":["), NULL, 10);
}

void write_test_file(const char *dir, const char *name, const void *bytes, size_t n)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) {
        fprintf(stderr, "cannot write %s\n", path);
        abort();
    }
}

void model_dir_write(const struct model_dir *m, const char *dir)
{
    static const char *const others[] = {
        "model.safetensors.index.json",     "tokenizer.json",
        "tokenizer_config.json",            "chat_template.jinja",
        "chat_template.json",
        "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", dir, others[i]);
        tn_file_remove(path);
    }
    write_test_file(dir, "config.json", m->config, strlen(m->config));
    write_test_file(dir, "generation_config.json", m->generation, strlen(m->generation));
    static unsigned char file[8 + sizeof m->header + sizeof m->data];
    const size_t n = strlen(m->header);
    const uint64_t n_said = m->n_header ? m->n_header : n;
    memcpy(file, &n_said, 8);
    memcpy(file + 8, m->header, n);
    memcpy(file + 8 + n, m->data, m->n_data);
    assert(m->n_cut <= 8 + n + m->n_data);
    write_test_file(dir, "model.safetensors", file, 8 + n + m->n_data - m->n_cut);
}
