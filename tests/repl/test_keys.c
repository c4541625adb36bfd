/* SPDX-License-Identifier: MIT
 *
 * Decoding of keys: the result is the same however the bytes are split.
 *
 * Each case is fed whole, in pieces, and byte by byte.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "repl/keys.h"

/* A key as text: characters verbatim, pastes in brackets, otherwise the number of the kind. */
static void note(struct tn_buf *out, const struct tn_key *key)
{
    if (key->kind == TN_KEY_TEXT)
        tn_buf_append(out, key->text, key->n_text);
    else if (key->kind == TN_KEY_PASTE)
        tn_buf_printf(out, "<paste %.*s>", (int)key->n_text, key->text);
    else
        tn_buf_printf(out, "<%d>", key->kind);
}

/* Feeds the bytes in pieces of `piece`. */
static char *decode(const char *bytes, size_t n, size_t piece)
{
    struct tn_keys keys = {0};
    struct tn_buf out = {0};
    struct tn_key key;
    for (size_t at = 0; at < n; at += piece) {
        assert_true(tn_keys_feed(&keys, bytes + at, TN_MIN(piece, n - at)));
        while (tn_keys_next(&keys, false, &key))
            note(&out, &key);
    }
    while (tn_keys_next(&keys, true, &key))
        note(&out, &key);
    assert_false(tn_keys_is_partial(&keys));
    tn_keys_fini(&keys);
    tn_buf_append(&out, "", 1);
    return out.data;
}

static void expect(const char *bytes, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(bytes) + 1; piece++) {
        char *got = decode(bytes, strlen(bytes), piece);
        assert_string_equal(got, expected);
        tn_free(got);
    }
}

static void expect_key(const char *bytes, enum tn_key_kind kind)
{
    char text[16];
    snprintf(text, sizeof text, "<%d>", kind);
    expect(bytes, text);
}

static void control_keys(void **state)
{
    (void)state;
    expect_key("\r", TN_KEY_ENTER);
    expect_key("\n", TN_KEY_ENTER);
    expect_key("\t", TN_KEY_TAB);
    expect_key("\x7f", TN_KEY_BACKSPACE);
    expect_key("\b", TN_KEY_BACKSPACE);
    expect_key("\x01", TN_KEY_HOME);
    expect_key("\x03", TN_KEY_INTERRUPT);
    expect_key("\x04", TN_KEY_EOF);
    expect_key("\x12", TN_KEY_SEARCH);
    expect_key("\x17", TN_KEY_KILL_BLANK_WORD);
    expect_key("\x1a", TN_KEY_SUSPEND);
    expect_key("\x1f", TN_KEY_UNDO);
    expect_key("\x11", TN_KEY_UNKNOWN);
}

static void sequences_of_several_terminals(void **state)
{
    (void)state;
    expect_key("\x1b[A", TN_KEY_UP);
    expect_key("\x1bOA", TN_KEY_UP);
    expect_key("\x1b[D", TN_KEY_LEFT);
    expect_key("\x1b[1;5D", TN_KEY_WORD_LEFT);
    expect_key("\x1b[1;3C", TN_KEY_WORD_RIGHT);
    expect_key("\x1b[1;2C", TN_KEY_RIGHT);
    expect_key("\x1b[H", TN_KEY_HOME);
    expect_key("\x1bOF", TN_KEY_END);
    expect_key("\x1b[1~", TN_KEY_HOME);
    expect_key("\x1b[4~", TN_KEY_END);
    expect_key("\x1b[7~", TN_KEY_HOME);
    expect_key("\x1b[3~", TN_KEY_DELETE);
    expect_key("\x1b[3;5~", TN_KEY_KILL_WORD_RIGHT);
    expect_key("\x1b[5~", TN_KEY_OLDER);
    expect_key("\x1b[1;5H", TN_KEY_TEXT_START);
    expect_key("\x1b" "b", TN_KEY_WORD_LEFT);
    expect_key("\x1b\x7f", TN_KEY_KILL_WORD_LEFT);
    expect_key("\x1b\r", TN_KEY_NEWLINE);
    expect_key("\x1b[15~", TN_KEY_UNKNOWN);
    expect_key("\x1b[[A", TN_KEY_UNKNOWN); /* F1 of the Linux console */
    expect_key("\x1b[<0;10;20M", TN_KEY_UNKNOWN);
    expect_key("\x1b[999999999999;5~", TN_KEY_UNKNOWN);
    expect_key("\x1bx", TN_KEY_UNKNOWN);
    expect_key("\x1b[200", TN_KEY_UNKNOWN);
}

static void escape_alone_is_a_key(void **state)
{
    (void)state;
    struct tn_keys keys = {0};
    struct tn_key key;
    expect_key("\x1b", TN_KEY_ESCAPE);
    assert_true(tn_keys_feed(&keys, "\x1b", 1));
    assert_false(tn_keys_next(&keys, false, &key)); /* the rest of a sequence may follow */
    assert_true(tn_keys_is_partial(&keys));
    assert_true(tn_keys_feed(&keys, "[A", 2));
    assert_true(tn_keys_next(&keys, false, &key));
    assert_int_equal(key.kind, TN_KEY_UP);
    tn_keys_fini(&keys);
}

static void text_in_all_sizes(void **state)
{
    (void)state;
    expect("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z", "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z");
    char enter[32];
    snprintf(enter, sizeof enter, "ab<%d>c<%d>", TN_KEY_ENTER, TN_KEY_LEFT);
    expect("ab\rc\x1b[D", enter);
    expect("\xff\xc3(", "\xff\xc3("); /* invalid UTF-8 is cleaned when it is inserted */
}

static void pastes_are_one_key(void **state)
{
    (void)state;
    char text[96];
    expect("\x1b[200~one\rtwo\r\nthree\n\x1b[201~", "<paste one\ntwo\nthree\n>");
    snprintf(text, sizeof text, "x<paste >y<%d>", TN_KEY_ENTER);
    expect("x\x1b[200~\x1b[201~y\r", text);
    /* control characters and sequences in it have no effect; tabs stay */
    expect("\x1b[200~a\x03\x04\x1b[31mb\tc\x7f\xc2\x9b" "d\x1b[201\xff\x1b[201~",
           "<paste a[31mb\tcd[201\xef\xbf\xbd>");
    /* without an end mark */
    expect("\x1b[200~abc", "<paste abc>");
    expect("\x1b[200~abc\x1b[20", "<paste abc[20>");
}

static void a_long_paste_in_small_pieces(void **state)
{
    (void)state;
    const size_t n = 1 << 20;
    char *bytes = malloc(n + 12);
    memcpy(bytes, "\x1b[200~", 6);
    for (size_t i = 0; i < n; i++)
        bytes[6 + i] = (char)(i % 97 == 96 ? '\r' : 'a' + i % 23);
    memcpy(bytes + 6 + n, "\x1b[201~", 6);
    char *got = decode(bytes, n + 12, 1000);
    assert_int_equal(strlen(got), n + 8);
    assert_memory_equal(got, "<paste abc", 10);
    tn_free(got);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_keys),
        cmocka_unit_test(sequences_of_several_terminals),
        cmocka_unit_test(escape_alone_is_a_key),
        cmocka_unit_test(text_in_all_sizes),
        cmocka_unit_test(pastes_are_one_key),
        cmocka_unit_test(a_long_paste_in_small_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
