/* SPDX-License-Identifier: MIT
 *
 * The ternary tensors of reference GGUF files, as decoded by reader and encodings, compared with
 * golden/trits.json of the same model's safetensors: equal trits, and equal scales if the file has
 * one for a whole matrix.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "convert/encodings.h"
#include "convert/gguf/gguf.h"
#include "trits_crc.h"

#define REFERENCE TERN_SHARED_DIR "/reference/"

static uint32_t number(const struct tn_gguf *g, const char *arch, const char *key)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", arch, key);
    const struct tn_gguf_key *found = tn_gguf_find_key(g, name);
    return found ? (uint32_t)found->value.u : 0;
}

/* Restores rows of q and k in files of arch llama: pairs (2j, 2j + 1) become (j, j + d / 2). */
static void put_back(int8_t *trits, size_t rows, size_t cols, size_t head_dim)
{
    int8_t *old = malloc(rows * cols);
    assert_non_null(old);
    memcpy(old, trits, rows * cols);
    for (size_t r = 0; r < rows; r++) {
        const size_t in_head = r % head_dim, j = in_head % (head_dim / 2);
        const size_t from = r - in_head + 2 * j + (in_head >= head_dim / 2);
        memcpy(trits + r * cols, old + from * cols, cols);
    }
    free(old);
}

/* Trits of a whole tensor in new memory; *scale is that of I2_S, else 0. */
static int8_t *decode(const struct tn_gguf *g, const struct tn_gguf_tensor *t,
                      const struct tn_encoding *e, float *scale)
{
    struct tern_error err;
    const uint32_t cols = (uint32_t)t->ne[0], unit = tn_encoding_unit(e, cols);
    const size_t n = (size_t)(t->ne[0] * t->ne[1]);
    uint8_t *raw = malloc((size_t)t->bytes);
    int8_t *trits = malloc(n);
    float *scales = malloc(n / unit * sizeof *scales);
    assert_true(raw && trits && scales && n % unit == 0);
    const struct tn_gguf_input *in = &g->parts[t->i_part].input;
    assert_int_equal(in->read_at(in->arg, t->offset, raw, (size_t)t->bytes, &err), TERN_OK);
    assert_int_equal(e->trits(trits, scales, raw, n / unit, unit), n / unit);
    *scale = t->type == TN_GGML_I2_S ? tn_f32_from_bits(tn_load_u32(raw + n / 4)) : 0;
    free(scales);
    free(raw);
    return trits;
}

static void check_tensor(const struct tn_gguf *g, const char *arch, const struct tn_gguf_tensor *t,
                         const struct tn_encoding *e, const json_t *golden, float inverse)
{
    float scale;
    int8_t *trits = decode(g, t, e, &scale);
    const uint32_t n_head = number(g, arch, "attention.head_count");
    const uint32_t n_kv = number(g, arch, "attention.head_count_kv");
    const size_t rows = (size_t)t->ne[1], cols = (size_t)t->ne[0];
    if (strcmp(arch, "llama") == 0 && strstr(t->name, "attn_q."))
        put_back(trits, rows, cols, rows / n_head);
    if (strcmp(arch, "llama") == 0 && strstr(t->name, "attn_k."))
        put_back(trits, rows, cols, rows / n_kv);
    if (!trits_have_crc(trits, rows * cols, golden))
        fail_msg("%s: other trits", t->name);
    free(trits);
    const json_t *scales = json_object_get(golden, "scales");
    if (scale != 0 && json_array_size(scales) == 1) {
        const float stored = (float)json_number_value(json_array_get(scales, 0));
        assert_true(scale == (inverse != 0 ? inverse / stored : stored));
    }
}

static const char *hf_name(const char *name)
{
    static const char *const names[][2] = {
        {"attn_q.weight", "self_attn.q_proj"},      {"attn_k.weight", "self_attn.k_proj"},
        {"attn_v.weight", "self_attn.v_proj"},      {"attn_output.weight", "self_attn.o_proj"},
        {"ffn_gate.weight", "mlp.gate_proj"},       {"ffn_up.weight", "mlp.up_proj"},
        {"ffn_down.weight", "mlp.down_proj"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(names); i++)
        if (strcmp(names[i][0], name) == 0)
            return names[i][1];
    return NULL;
}

/* Returns the number of compared tensors. */
static uint32_t check_file(const char *folder, const char *name, const json_t *golden,
                           enum tern_i2s_layout i2s)
{
    char path[1024];
    struct tn_gguf g;
    struct tern_error err;
    uint32_t n_checked = 0;
    snprintf(path, sizeof path, REFERENCE "gguf/%s/%s.gguf", folder, name);
    if (tn_gguf_open(&g, path, &err) != TERN_OK)
        fail_msg("%s: %s", path, err.detail);
    const char *arch = tn_gguf_find_key(&g, "general.architecture")->text;
    /* Arch llama comes from files whose weight_scale divides. */
    const float inverse = strcmp(arch, "llama") == 0 ? 1.0f : 0.0f;
    for (uint32_t i = 0; i < g.n_tensors; i++) {
        const struct tn_gguf_tensor *t = &g.tensors[i];
        const struct tn_encoding *e = tn_encoding_find(t->type, g.parts[t->i_part].q2_block, i2s);
        unsigned layer;
        char part[64], key[128];
        assert_true(e || t->type == TN_GGML_F32 || t->type == TN_GGML_F16 ||
                    t->type == TN_GGML_BF16);
        if (!e || !e->trits || sscanf(t->name, "blk.%u.%63s", &layer, part) != 2)
            continue;
        snprintf(key, sizeof key, "model.layers.%u.%s", layer, hf_name(part));
        check_tensor(&g, arch, t, e, json_object_get(golden, key), inverse);
        n_checked++;
    }
    tn_gguf_close(&g);
    return n_checked;
}

static void check_folder(const char *folder, const char *const *names, uint32_t n_tensors)
{
    char path[1024];
    snprintf(path, sizeof path, REFERENCE "models/%s/golden/trits.json", folder);
    json_t *golden = json_load_file(path, 0, NULL);
    assert_non_null(golden);
    for (; *names; names++) {
        const enum tern_i2s_layout i2s = strstr(*names, "arm64") ? TERN_I2S_ARM
                                       : strstr(*names, "1x4") ? TERN_I2S_1X4
                                                               : TERN_I2S_X86;
        const uint32_t n = check_file(folder, *names, golden, i2s);
        /* Some files store columns that fit no block as floats. */
        if (n == 0 || n > n_tensors)
            fail_msg("%s/%s: %u tensors compared, expected %u", folder, *names, n, n_tensors);
    }
    json_decref(golden);
}

static void bitnet_packed(void **state)
{
    (void)state;
    static const char *const names[] = {
        "i2_s",   "i2_s-nopre", "i2_s-norms-f16", "i2_s-arch-bitnet-25", "i2_s-arch-bitnet-relu2",
        "i2_s-embed-f32", "i2_s-embed-bf16", "i2_s-embed-q8_0", "i2_s-embed-q6_k",
        "i2_s-align64-v2", "i2_s-arm64-layout", "i2_s-1x4-layout", "tq1_0", "tq2_0", "iq1_bn",
        "iq2_bn", "q2_0", "q2_0_g128", "pq2_0", "ptq1_0", NULL};
    check_folder("tiny-bitnet-packed", names, 21);
}

static void bitnet_latents(void **state)
{
    (void)state;
    static const char *const names[] = {"i2_s", "iq2_bn", "tq2_0", NULL};
    check_folder("tiny-bitnet-bf16", names, 21);
}

static void rows_of_q_and_k_are_permuted_in_llama(void **state)
{
    (void)state;
    static const char *const hf1bit[] = {"i2_s", "iq1_bn", "iq2_bn", "q2_0", "tq2_0", NULL};
    static const char *const falcon[] = {"i2_s", "i2_s-keylength", "iq2_bn", "tq1_0", NULL};
    check_folder("tiny-hf1bit", hf1bit, 14);
    check_folder("tiny-falcon-e", falcon, 14);
}

static void many_scales(void **state)
{
    (void)state;
    static const char *const trilm[] = {"q2_0", NULL};
    static const char *const bonsai[] = {"q2_0_g128", "q2_0",   "pq2_0",
                                         "ptq1_0",    "q2_0-embed-q6_k", NULL};
    check_folder("tiny-trilm", trilm, 7);
    check_folder("tiny-bonsai", bonsai, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitnet_packed),
        cmocka_unit_test(bitnet_latents),
        cmocka_unit_test(rows_of_q_and_k_are_permuted_in_llama),
        cmocka_unit_test(many_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
