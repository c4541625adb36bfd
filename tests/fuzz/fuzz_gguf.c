/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: a whole GGUF file, header and layout, and its arrays of texts.
 *
 * A file that is accepted has all tensors inside, without overlap.
 */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "convert/gguf/gguf.h"
#include "gguf_file.h"

struct memory {
    const uint8_t *data;
    size_t n;
};

static tern_status read_memory(void *arg, uint64_t offset, void *dst, size_t n,
                               struct tern_error *err)
{
    const struct memory *m = arg;
    (void)err;
    assert(tn_range_fits(offset, n, m->n));
    if (n)
        memcpy(dst, m->data + offset, n);
    return TERN_OK;
}

/* Checks the guarantees of tn_gguf_parse: tensors are inside the file, one after the other. */
static void check_tensors(const struct tn_gguf_part *part)
{
    uint64_t at = part->data_offset;
    for (uint32_t i = 0; i < part->n_tensors; i++) {
        const struct tn_gguf_tensor *t = &part->tensors[i];
        char shape[96];
        assert(t->name[0] && strlen(t->name) < sizeof t->name && t->rank <= TN_GGUF_MAX_RANK);
        assert(t->offset >= at && t->offset % part->alignment == 0);
        assert(tn_range_fits(t->offset, t->bytes, part->input.n_bytes));
        assert(t->type != TN_GGML_Q2_0 || part->q2_block);
        assert(strlen(tn_gguf_shape_text(shape, sizeof shape, t)) < sizeof shape);
        at = t->offset + t->bytes;
    }
}

static void check_keys(struct tn_gguf_part *part)
{
    struct tn_gguf gguf = {.parts = part, .n_parts = 1};
    struct tern_error err;
    for (uint32_t i = 0; i < part->n_keys; i++) {
        const struct tn_gguf_key *key = &part->keys[i];
        assert(tn_gguf_part_key(part, key->name) == key);
        if (key->type == TN_GGUF_STRING)
            assert(key->text[key->count] == '\0');
        if (key->type != TN_GGUF_ARRAY)
            continue;
        assert(tn_range_fits(key->offset, key->bytes, part->input.n_bytes));
        if (key->element_type == TN_GGUF_STRING) {
            struct tn_gguf_texts texts;
            assert(tn_gguf_load_texts(&texts, &gguf, key, &err) == TERN_OK);
            assert(texts.n == key->count && texts.offsets[texts.n] + 8 * texts.n == key->bytes);
            tn_gguf_texts_fini(&texts);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct memory memory = {data, n};
    struct tn_gguf_part part = {.input = {read_memory, &memory, n, "fuzz"}};
    struct tern_error err = {0};
    if (tn_gguf_parse(&part, 0, &err) == TERN_OK) {
        check_tensors(&part);
        check_keys(&part);
    } else {
        assert(err.detail[0] != '\0');
    }
    tn_gguf_part_fini(&part);
    return 0;
}

static void make_seed(struct gguf_file *f, uint8_t *dst, uint32_t i)
{
    static const char *const tokens[] = {"a", "b", "ab", ""};
    static const float scores[] = {0, -1, -2, -3};
    gguf_begin(f, dst, 2 + i % 2, 5, 7);
    gguf_key_text(f, "general.architecture", i < 2 ? "bitnet-b1.58" : "qwen3");
    gguf_key(f, "general.alignment", TN_GGUF_U32, i < 2 ? 32 : 64);
    gguf_key(f, "x.block_count", TN_GGUF_U32, 1);
    gguf_key_f32(f, "x.rope.freq_base", 10000);
    gguf_key(f, "tokenizer.ggml.add_bos_token", TN_GGUF_BOOL, 1);
    gguf_key_texts(f, "tokenizer.ggml.tokens", tokens, 4);
    gguf_key_numbers(f, "tokenizer.ggml.scores", TN_GGUF_F32, scores, 4);
    gguf_tensor(f, "token_embd.weight", TN_GGML_F16, 64, 4, 0);
    gguf_tensor(f, "output_norm.weight", TN_GGML_F32, 64, 0, 0);
    gguf_tensor(f, "blk.0.attn_q.weight", i < 2 ? TN_GGML_I2_S : TN_GGML_Q2_0, 128, 32, 64);
    gguf_tensor(f, "blk.0.attn_k.weight", i < 2 ? TN_GGML_IQ2_BN : TN_GGML_PQ2_0, 128, 2, 0);
    gguf_tensor(f, "blk.0.attn_v.weight", i < 2 ? TN_GGML_TQ2_0 : TN_GGML_IQ3_S, 256, 1, 0);
    gguf_data(f, 0);
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static struct gguf_file f;
    if (i >= 4 || capacity < GGUF_FILE_BYTES)
        return 0;
    make_seed(&f, dst, i);
    return f.n;
}
