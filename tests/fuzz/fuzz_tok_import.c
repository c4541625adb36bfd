/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: a tokenizer.json.  An accepted file gives a section that opens and encodes; if all
 * bytes have tokens, no byte of a text is lost.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "convert/tokens/tok_import.h"
#include "small_tokenizer.h"
#include "tern/model_format.h"

static bool keeps_text(const void *section)
{
    struct tern_file_tokenizer head;
    memcpy(&head, section, sizeof head);
    bool keeps = head.kind == TERN_TOKENIZER_BYTE_BPE && !(head.flags & TERN_TOK_NFC);
    for (uint32_t i = 0; i < head.n_added; i++) {
        struct tern_file_added added;
        memcpy(&added, (const char *)section + head.added.offset + i * sizeof added, sizeof added);
        keeps = keeps && !(added.flags & (TERN_ADDED_LSTRIP | TERN_ADDED_RSTRIP));
    }
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t id;
        memcpy(&id, (const char *)section + head.byte_ids.offset + i * sizeof id, sizeof id);
        keeps = keeps && id != TERN_NO_ID;
    }
    return keeps;
}

static void check_encode(const struct tern_tokenizer *t, bool keeps)
{
    static const char text[] = "the aaaaaaaa abc 12 \n\n don't <|eot_id|>\xC3\xA9\xFF\xED\xA0\x80"
                               "\xE2\x96\x81the e\xCC\x81 \xE1\x84\x80\xE1\x85\xA1";
    struct tern_ids ids = {0};
    size_t at = 0, n;
    if (tern_tokenizer_encode(t, text, sizeof text, 0, &ids, NULL) != TERN_OK)
        abort();
    for (size_t i = 0; i < ids.n; i++, at += n) {
        const char *bytes = tern_tokenizer_token_bytes(t, ids.ids[i], &n);
        if (!bytes || (keeps && (n > sizeof text - at || memcmp(text + at, bytes, n) != 0 ||
                                 tern_tokenizer_is_special(t, ids.ids[i]))))
            abort();
    }
    if (keeps && at != sizeof text)
        abort();
    tern_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tn_buf section = {0};
    struct tern_error err = {TERN_OK, ""};
    struct tern_tokenizer *t;
    tern_status status = tn_tok_import((const char *)data, n, SMALL_VOCAB, &section, &err);
    if (status == TERN_OK) {
        if (tn_tokenizer_open(&t, section.data, section.n_bytes, SMALL_VOCAB, &err) != TERN_OK)
            abort();
        check_encode(t, keeps_text(section.data));
        tn_tokenizer_close(t);
    } else if (err.status != status || err.detail[0] == '\0' || section.data) {
        abort();
    }
    tn_buf_fini(&section);
    return 0;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    struct tn_buf json = {0};
    if (i < 2)
        small_tokenizer_json(&json, i == 0);
    else if (i < 2 + SMALL_N_MARKED)
        small_marked_tokenizer_json(&json, i - 2);
    else
        return 0;
    if (json.failed || json.n_bytes > capacity)
        abort();
    size_t n = json.n_bytes;
    memcpy(dst, json.data, n);
    tn_buf_fini(&json);
    return n;
}
