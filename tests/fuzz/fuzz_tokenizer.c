/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: a tokenizer section and a text.
 *
 *   u16 n_text | text | section
 *
 * A section that opens encodes the text with every flag; the ids are in range and decode to whole
 * characters.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "small_tokenizer.h"
#include "tern/chat.h"
#include "text/unicode.h"

static void decode(const struct tern_tokenizer *t, const struct tern_ids *ids)
{
    struct tern_decoder decoder;
    tern_decoder_start(&decoder, t);
    for (size_t i = 0; i <= ids->n; i++) {
        size_t n = 0, n_out;
        const char *bytes = "";
        if (i < ids->n && !(bytes = tern_tokenizer_token_bytes(t, ids->ids[i], &n)))
            abort();
        char *out = tn_alloc(3 * (n + 4));
        if (!out)
            return;
        n_out = i < ids->n ? tern_decoder_push_id(&decoder, t, ids->ids[i], out)
                           : tern_decoder_flush(&decoder, out);
        if (n_out > 3 * (n + 4))
            abort();
        if (tn_utf8_find_invalid(out, n_out) < n_out)
            abort();
        tn_free(out);
    }
}

static void use(const struct tern_tokenizer *t, const char *text, size_t n)
{
    for (uint32_t flags = 0; flags < 4; flags++) {
        struct tern_ids ids = {0};
        if (tern_tokenizer_encode(t, text, n, flags, &ids, NULL) == TERN_OK) {
            char *whole;
            size_t n_whole;
            decode(t, &ids);
            if (tern_tokenizer_decode(t, ids.ids, ids.n, flags & 1, &whole, &n_whole, NULL) !=
                    TERN_OK ||
                tn_utf8_find_invalid(whole, n_whole) < n_whole)
                abort();
            tern_text_free(whole);
        }
        tern_ids_free(&ids);
    }
    uint32_t id = tern_tokenizer_find(t, text, n);
    if (id != 0xFFFFFFFFu && id >= tern_tokenizer_n_tokens(t))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2)
        return 0;
    size_t n_text = (size_t)(data[0] | data[1] << 8);
    n_text = TN_MIN(n_text, n - 2);
    size_t n_section = n - 2 - n_text;
    char *section = tn_alloc(n_section);
    if (!section)
        return 0;
    memcpy(section, data + 2 + n_text, n_section);
    struct tern_tokenizer *t;
    struct tern_error err = {TERN_OK, ""};
    tern_status status = tn_tokenizer_open(&t, section, n_section, SMALL_VOCAB, &err);
    if (status == TERN_OK) {
        use(t, (const char *)data + 2, n_text);
        tn_tokenizer_close(t);
    } else if (err.status != status || err.detail[0] == '\0' || t) {
        abort();
    }
    tn_free(section);
    return 0;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const char *const texts[] = {
        "the aaaaaaaa abc 12 \n\n don't <|eot_id|>",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabcabcabcabcabcbcbcbccccccccabbbbbbthethethe\xFF",
        "\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\xFF\xED\xA0\x80",
        " the  <|im_start|> the\xE2\x96\x81the<|eot_id|> e\xCC\x81\xCC\xA3  a",
    };
    if (i >= TN_COUNT_OF(texts) * (1 + SMALL_N_MARKED))
        return 0;
    size_t n_section;
    void *section = small_tokenizer_section(i / TN_COUNT_OF(texts), &n_section);
    i %= TN_COUNT_OF(texts);
    size_t n_text = strlen(texts[i]);
    if (2 + n_text + n_section > capacity)
        abort();
    dst[0] = (uint8_t)n_text;
    dst[1] = (uint8_t)(n_text >> 8);
    memcpy(dst + 2, texts[i], n_text);
    memcpy(dst + 2 + n_text, section, n_section);
    tn_free_aligned(section);
    return 2 + n_text + n_section;
}
