/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: the files of GPT-2's tokenizer, in the order of enum tn_gpt2_file, with a NUL after
 * each; of the optional ones an empty one is absent.  Accepted files give a section that opens and
 * encodes.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "convert/tokens/tok_gpt2.h"
#include "fuzz/section.h"

#define VOCAB 100u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[] = "abc cab\n</s><s>don't\xC3\xA9\xFF";
    struct tn_gpt2_texts files = {.is_default = true};
    struct tn_buf section = {0};
    struct tern_error err = {TERN_OK, ""};
    char *bytes = tn_copy_bytes((const char *)data, n);
    size_t at = 0;
    for (int i = 0; i < TN_GPT2_N_FILES; i++) {
        files.n[i] = strlen(bytes + at);
        files.text[i] = files.n[i] || i <= TN_GPT2_MERGES ? bytes + at : NULL;
        at = TN_MIN(at + files.n[i] + 1, n);
    }
    tern_status status = tn_tok_from_gpt2(&files, VOCAB, &section, &err);
    fuzz_check_section(status, &err, &section, VOCAB, text, sizeof text);
    tn_free(bytes);
    return 0;
}

#define VOCABULARY "{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4,\"</s>\":5,\"\xC4\xA0\":6}"
#define MERGES "#version: 0.2\na b\nab c\n"

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const char decoder[] =
        VOCABULARY "\0" MERGES "\0"
        "{\"tokenizer_class\":\"GPT2Tokenizer\",\"add_bos_token\":true,\"bos_token\":\"<s>\","
        "\"added_tokens_decoder\":{\"7\":{\"content\":\"<s>\",\"special\":true},"
        "\"8\":{\"content\":\"<x>\",\"lstrip\":true}}}\0";
    static const char map[] =
        VOCABULARY "\0" MERGES "\0"
        "{\"add_eos_token\":true}\0"
        "{\"eos_token\":{\"content\":\"</s>\"},\"additional_special_tokens\":[\"<y>\"]}\0"
        "{\"<z>\":7}";
    const char *seed = i == 0 ? decoder : map;
    const size_t n = i == 0 ? sizeof decoder : sizeof map;
    if (i > 1 || n > capacity)
        return 0;
    memcpy(dst, seed, n);
    return n;
}
