/* SPDX-License-Identifier: MIT
 *
 * The streaming decoder equals the reference piece by piece, and does not depend on how the bytes
 * are split.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "tern/chat.h"
#include "text/unicode.h"
#include "text_data.h"

static struct data_tokenizer llama3;
static size_t n_cases;

static void check_piece(const char *name, const json_t *expected, const char *piece, size_t n)
{
    if (json_string_length(expected) != n || memcmp(json_string_value(expected), piece, n) != 0)
        fail_msg("%s: piece \"%.*s\", expected \"%s\"", name, (int)n, piece,
                 json_string_value(expected));
}

static void check_case(const json_t *line, void *arg)
{
    (void)arg;
    const char *name = json_string_value(json_object_get(line, "name"));
    const json_t *ids = json_object_get(line, "ids"), *pieces = json_object_get(line, "pieces");
    bool skip = json_is_true(json_object_get(line, "skip_special"));
    struct tern_decoder decoder = {0};
    struct tn_buf hex = {0}, text = {0};
    char piece[3 * (256 + 4)];
    assert_int_equal(json_array_size(ids), json_array_size(pieces));
    for (size_t i = 0; i < json_array_size(ids); i++) {
        uint32_t id = (uint32_t)json_integer_value(json_array_get(ids, i));
        size_t n_bytes, n = 0;
        const char *bytes = tern_tokenizer_token_bytes(llama3.t, id, &n_bytes);
        assert_non_null(bytes);
        assert_true(n_bytes <= 256);
        if (!skip || !tern_tokenizer_is_special(llama3.t, id)) {
            for (size_t k = 0; k < n_bytes; k++)
                tn_buf_printf(&hex, "%02x", (unsigned char)bytes[k]);
            n = tern_decoder_push(&decoder, bytes, n_bytes, piece);
        }
        check_piece(name, json_array_get(pieces, i), piece, n);
        tn_buf_append(&text, piece, n);
    }
    size_t n = tern_decoder_flush(&decoder, piece);
    check_piece(name, json_object_get(line, "tail"), piece, n);
    tn_buf_append(&text, piece, n);
    check_piece(name, json_object_get(line, "text"), text.data ? text.data : "", text.n_bytes);
    assert_string_equal(tn_buf_text(&hex), json_string_value(json_object_get(line, "bytes")));
    tn_buf_fini(&hex);
    tn_buf_fini(&text);
    n_cases++;
}

static void test_golden(void **state)
{
    (void)state;
    data_tokenizer_open(&llama3, TERN_TEXT_DATA "/llama3.tokenizer.json", 128256);
    data_json_lines(TERN_TEXT_DATA "/llama3.decode.jsonl", check_case, NULL);
    assert_int_equal(n_cases, 107);
    data_tokenizer_close(&llama3);
}

static struct data_tokenizer llama2;

/* The whole text at once; piece by piece the same, unless invalid byte tokens follow characters
 * that were already emitted. */
static void check_text(const json_t *line, void *arg)
{
    (void)arg;
    const char *name = json_string_value(json_object_get(line, "name"));
    const json_t *ids = json_object_get(line, "ids"), *expected = json_object_get(line, "text");
    bool skip = json_is_true(json_object_get(line, "skip_special"));
    uint32_t list[64];
    size_t n_ids = json_array_size(ids), n_text;
    assert_true(n_ids <= 64);
    for (size_t i = 0; i < n_ids; i++)
        list[i] = (uint32_t)json_integer_value(json_array_get(ids, i));
    char *text;
    struct tern_error err;
    assert_int_equal(
        tern_tokenizer_decode(llama2.t, list, n_ids, skip, &text, &n_text, &err), TERN_OK);
    check_piece(name, expected, text ? text : "", n_text);
    tern_text_free(text);

    struct tern_decoder decoder;
    struct tn_buf streamed = {0};
    char piece[3 * (64 + 4)];
    tern_decoder_start(&decoder, llama2.t);
    for (size_t i = 0; i < n_ids; i++)
        if (!skip || !tern_tokenizer_is_special(llama2.t, list[i]))
            tn_buf_append(&streamed, piece,
                          tern_decoder_push_id(&decoder, llama2.t, list[i], piece));
    tn_buf_append(&streamed, piece, tern_decoder_flush(&decoder, piece));
    if (!strstr(name, "C3A9FF") && !strstr(name, "F09F9880FF") && !strstr(name, "41E2"))
        check_piece(name, expected, streamed.data ? streamed.data : "", streamed.n_bytes);
    tn_buf_fini(&streamed);
    n_cases++;
}

static void test_byte_fallback(void **state)
{
    (void)state;
    data_tokenizer_open(&llama2, TERN_TEXT_DATA "/llama-spm.tokenizer.json", 32000);
    n_cases = 0;
    data_json_lines(TERN_TEXT_DATA "/llama-spm.decode.jsonl", check_text, NULL);
    assert_int_equal(n_cases, 52);
    char *text;
    size_t n_text;
    struct tern_error err;
    assert_int_equal(
        tern_tokenizer_decode(llama2.t, &(uint32_t){32000}, 1, false, &text, &n_text, &err),
        TERN_USAGE);
    assert_null(text);
    /* A zero-initialised decoder continues a text: no space is dropped. */
    struct tern_decoder decoder = {0};
    char piece[64];
    assert_int_equal(tern_decoder_push_id(&decoder, llama2.t, 15043, piece), 6);
    assert_memory_equal(piece, " Hello", 6);
    data_tokenizer_close(&llama2);
}

/* Random bytes in random pieces: the text equals that of one push, and every piece has whole
 * characters. */
static void test_any_cut(void **state)
{
    (void)state;
    static const unsigned char likely[] = {0x41, 0x80, 0xBF, 0xC2, 0xE0, 0xA0, 0x9F,
                                           0xED, 0xF0, 0x90, 0xF4, 0x8F, 0xFF, 0xE4};
    struct tn_rng rng;
    tn_rng_seed(&rng, 1);
    for (int round = 0; round < 20000; round++) {
        char bytes[24], whole[3 * 28], cut[3 * 28 + 12], *out = cut;
        size_t n = tn_rng_next(&rng) % (sizeof bytes + 1);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)likely[tn_rng_next(&rng) % sizeof likely];
        struct tern_decoder one = {0}, many = {0};
        size_t n_whole = tern_decoder_push(&one, bytes, n, whole);
        n_whole += tern_decoder_flush(&one, whole + n_whole);
        for (size_t i = 0, part; i < n; i += part) {
            part = 1 + tn_rng_next(&rng) % 4;
            part = part < n - i ? part : n - i;
            char room[3 * 8];
            size_t n_piece = tern_decoder_push(&many, bytes + i, part, room);
            assert_true(n_piece <= 3 * (part + 4));
            assert_int_equal(tn_utf8_find_invalid(room, n_piece), n_piece);
            memcpy(out, room, n_piece);
            out += n_piece;
        }
        out += tern_decoder_flush(&many, out);
        assert_int_equal(out - cut, n_whole);
        assert_memory_equal(cut, whole, n_whole);
    }
}

/* Pieces have no buffer of fixed size: the longest token is decoded completely, alone and streamed.
 */
static void the_longest_token_is_whole(void **state)
{
    (void)state;
    struct tern_error err;
    struct tern_ids ids = {0};
    char *longest = NULL, *text, *piece;
    size_t n_longest = 0, n;
    uint32_t i_longest = 0;
    data_tokenizer_open(&llama3, TERN_TEXT_DATA "/llama3.tokenizer.json", 128256);
    for (uint32_t id = 0; id < 128000; id++) {
        assert_int_equal(tern_tokenizer_decode(llama3.t, &id, 1, false, &text, &n, &err), TERN_OK);
        if (n > n_longest && !memchr(text, '\xEF', n)) { /* whole characters */
            tern_text_free(longest);
            longest = text;
            n_longest = n;
            i_longest = id;
        } else {
            tern_text_free(text);
        }
    }
    assert_int_equal(n_longest, 128);
    assert_int_equal(tern_tokenizer_encode(llama3.t, longest, n_longest, 0, &ids, &err), TERN_OK);
    assert_int_equal(ids.n, 1);
    assert_int_equal(ids.ids[0], i_longest);
    struct tern_decoder decoder = {0};
    piece = malloc(3 * (n_longest + 4));
    assert_int_equal(tern_decoder_push_id(&decoder, llama3.t, i_longest, piece), n_longest);
    assert_memory_equal(piece, longest, n_longest);
    free(piece);
    tern_text_free(longest);
    tern_ids_free(&ids);
    data_tokenizer_close(&llama3);
}

int main(void)
{
    if (data_missing())
        return data_missing();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_byte_fallback),
        cmocka_unit_test(test_any_cut),
        cmocka_unit_test(the_longest_token_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
