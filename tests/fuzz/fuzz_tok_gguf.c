/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: the tokenizer keys of a GGUF file.
 *
 *   u8 flags, u8 n_merges, u8 n_pre, pre; merges: u8 n, text; tokens: u8 type, i8 score, u8 n, text
 *
 * Accepted keys give a section that opens and encodes.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "convert/tokens/tok_gguf.h"
#include "fuzz/section.h"

#define MAX_TOKENS 600u
#define MAX_MERGES 256u

struct input {
    char pre[256];
    char bytes[65536];
    uint32_t token_offsets[MAX_TOKENS + 1], merge_offsets[MAX_MERGES + 1];
    float scores[MAX_TOKENS];
    int32_t types[MAX_TOKENS];
};

/* Reads up to n_max texts, each after its length; tokens also after type and score. */
static uint32_t read_texts(struct input *in, const uint8_t **data, size_t *n, uint32_t n_max,
                           bool are_tokens, size_t *n_bytes)
{
    uint32_t count = 0, *offsets = are_tokens ? in->token_offsets : in->merge_offsets;
    size_t n_before = are_tokens ? 3 : 1;
    offsets[0] = (uint32_t)*n_bytes;
    while (count < n_max && *n >= n_before) {
        size_t length = (*data)[n_before - 1];
        length = TN_MIN(length, *n - n_before);
        if (length > sizeof in->bytes - *n_bytes)
            break;
        if (are_tokens) {
            in->types[count] = (*data)[0];
            in->scores[count] = (int8_t)(*data)[1];
        }
        memcpy(in->bytes + *n_bytes, *data + n_before, length);
        *n_bytes += length;
        offsets[++count] = (uint32_t)*n_bytes;
        *data += n_before + length;
        *n -= n_before + length;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[] = "the aa abc 12\n\n<s> don't\xC3\xA9\xFF e\xCC\x81 \xE2\x96\x81the";
    static struct input in;
    if (n < 3 || n - 3 < data[2])
        return 0;
    uint8_t flags = data[0], n_merges = data[1], n_pre = data[2];
    memcpy(in.pre, data + 3, n_pre);
    in.pre[n_pre] = '\0';
    data += 3 + n_pre;
    n -= 3 + (size_t)n_pre;
    size_t n_bytes = 0;
    uint32_t merges = read_texts(&in, &data, &n, n_merges, false, &n_bytes);
    uint32_t tokens = read_texts(&in, &data, &n, MAX_TOKENS, true, &n_bytes);
    struct tn_tok_keys keys = {
        .model = flags & 1 ? "llama" : "gpt2",
        .pre = in.pre,
        .tokens = {in.bytes, in.token_offsets, tokens},
        .merges = {in.bytes, in.merge_offsets, merges},
        .scores = in.scores,
        .types = in.types,
        .bos_id = flags & 2 ? 0 : 0xFFFFFFFFu,
        .eos_id = flags & 4 ? 1 : 0xFFFFFFFFu,
        .unk_id = flags & 8 ? 2 : 0xFFFFFFFFu,
        .add_bos = (flags >> 4 & 1) - 1,
        .add_eos = flags >> 5 & 1,
        .add_space_prefix = flags >> 6 & 1,
    };
    struct tn_buf section = {0};
    struct tern_error err = {TERN_OK, ""};
    tern_status status = tn_tok_from_keys(&keys, NULL, MAX_TOKENS, NULL, &section, &err);
    fuzz_check_section(status, &err, &section, MAX_TOKENS, text, sizeof text);
    return 0;
}

static size_t put(uint8_t *dst, const uint8_t *before, size_t n_before, const char *text)
{
    size_t n = strlen(text);
    if (n_before)
        memcpy(dst, before, n_before);
    dst[n_before] = (uint8_t)n;
    memcpy(dst + n_before + 1, text, n);
    return n_before + 1 + n;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const char *const pres[] = {"gpt-2", "qwen2", "llama-bpe", "falcon", "deepseek-coder"};
    static const char *const tokens[] = {"<unk>", "<s>", "\n\n", "a",  "b",  "c",  "t",
                                         "h",     "e",   "ab",   "th", "the", "aa", "\xE2\x96\x81",
                                         "\xE2\x96\x81the", "\xC4\xA0"};
    if (i >= TN_COUNT_OF(pres) + 2 || capacity < 1000)
        return 0;
    bool characters = i >= TN_COUNT_OF(pres);
    const char *pre = characters ? "default" : pres[i];
    size_t n = put(dst, (uint8_t[]){(uint8_t)(characters ? i * 64 + 0x27 : 0x26), 3}, 2, pre);
    n += put(dst + n, NULL, 0, "t h");
    n += put(dst + n, NULL, 0, "th e");
    n += put(dst + n, NULL, 0, "a a");
    for (uint32_t id = 0; id < TN_COUNT_OF(tokens); id++) {
        uint8_t type = id == 0 ? 2 : id == 1 ? 3 : id == 2 ? 4 : 1;
        n += put(dst + n, (uint8_t[]){type, (uint8_t)-id}, 2, tokens[id]);
    }
    return n;
}
