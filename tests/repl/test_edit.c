/* SPDX-License-Identifier: MIT
 *
 * The text being typed: clusters, words, killing and yanking, undo; messages of several lines;
 * history.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#if !defined(_WIN32)
#include <sys/stat.h>
#endif

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "failing_alloc.h"
#include "plat/plat.h"
#include "repl/edit.h"
#include "repl/grapheme.h"
#include "repl/history.h"
#include "repl/message.h"

#define E_ACUTE "e\xcc\x81"
#define FAMILY "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7"
#define FLAG "\xf0\x9f\x87\xab\xf0\x9f\x87\xb7"
#define HAN "\xe6\x9d\xb1"
#define HEBREW "\xd7\xa9"

static void assert_edit(struct tn_edit *e, const char *before, const char *after)
{
    const size_t n = strlen(before);
    assert_int_equal(e->text.n_bytes, n + strlen(after));
    assert_int_equal(e->cursor, n);
    assert_memory_equal(e->text.data, before, n);
    assert_memory_equal(e->text.data + n, after, strlen(after));
}

static void type(struct tn_edit *e, const char *text)
{
    assert_true(tn_edit_type(e, text, strlen(text)));
}

/* ---- clusters ---- */

static void widths(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t width;
    } cases[] = {{"a", 1}, {E_ACUTE, 1}, {HAN, 2}, {FAMILY, 2}, {FLAG, 2}, {HEBREW, 1},
                 {"\xcc\x81", 1}, {"\xe2\x80\x8b", 0}, {"\xe2\x98\xba\xef\xb8\x8f", 2},
                 {"\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd", 2}, {"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", 2}};
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        const size_t n = strlen(cases[i].text);
        struct tn_cluster cluster = tn_cluster_first(cases[i].text, n);
        assert_int_equal(cluster.n_bytes, n);
        assert_int_equal(cluster.width, cases[i].width);
    }
}

static void boundaries_agree_in_both_directions(void **state)
{
    (void)state;
    const char text[] = "a" E_ACUTE " " FAMILY FLAG FLAG "\n" HAN E_ACUTE "b\xcc\x81\xcc\x82";
    const size_t n = sizeof text - 1;
    size_t starts[64], n_starts = 0;
    for (size_t at = 0; at < n; at = tn_grapheme_next(text, n, at))
        starts[n_starts++] = at;
    assert_int_equal(n_starts, 10);
    for (size_t at = n; at > 0; at = tn_grapheme_previous(text, n, at))
        assert_int_equal(tn_grapheme_previous(text, n, at), starts[--n_starts]);
    assert_int_equal(n_starts, 0);
    for (size_t pos = 0; pos <= n; pos++)
        assert_true(tn_grapheme_snap(text, n, pos) >= pos);
}

/* Scanning from any position finds the same boundaries as reading the whole text. */
static void boundaries_do_not_depend_on_the_start(void **state)
{
    (void)state;
    static const char *const parts[] = {"a",          " ",      "\n",     "\xcc\x81",
                                        HAN,          HEBREW,   "\xf0\x9f\x87\xab",
                                        "\xf0\x9f\x91\xa9", "\xe2\x80\x8d", "\xef\xb8\x8f",
                                        "\xe1\x84\x92", "\xe1\x85\xa1", "\xe1\x86\xab",
                                        "\xed\x95\x9c", "\xe0\xa4\x95", "\xe0\xa5\x8d",
                                        "\xe0\xa4\xbf", "\xd8\x80", "\xe0\xb8\x81", "\xe0\xb8\xb3"};
    struct tn_rng rng;
    tn_rng_seed(&rng, 7);
    for (int round = 0; round < 4000; round++) {
        char text[256];
        size_t n = 0, first, last = 0;
        for (int i = 0; i < 40; i++) {
            const char *part = parts[tn_rng_next(&rng) % TN_COUNT_OF(parts)];
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
        }
        for (size_t start = 0; start < n; start = first) {
            first = start + tn_cluster_first(text + start, n - start).n_bytes;
            for (size_t pos = start; pos < first; pos++) {
                assert_int_equal(tn_grapheme_next(text, n, pos), first);
                assert_int_equal(tn_grapheme_snap(text, n, pos), pos == start ? start : first);
                assert_true(tn_grapheme_certain(text, n, pos) <= start);
            }
            assert_int_equal(tn_grapheme_previous(text, n, start), last);
            last = start;
        }
    }
}

/* Deletes a word of 100,000 letters in scripts without blanks: scanning the whole text for each
 * letter would take minutes. */
static void long_words_take_linear_time(void **state)
{
    (void)state;
    static const char *const letters[] = {HAN, HEBREW, FLAG, "\xe2\x9d\xa4\xef\xb8\x8f",
                                          "\xe0\xa4\x95\xe0\xa5\x8d", "\xed\x95\x9c"};
    static const enum tn_edit_to ways[] = {TN_EDIT_BLANK_LEFT, TN_EDIT_WORD_LEFT};
    for (size_t i = 0; i < TN_COUNT_OF(letters) * TN_COUNT_OF(ways); i++) {
        struct tn_edit e = {0};
        struct tn_buf text = {0};
        tn_buf_append_text(&text, "one ");
        for (int k = 0; k < 100000; k++)
            tn_buf_append_text(&text, letters[i / 2]);
        const uint64_t start = tn_now_ns();
        assert_true(tn_edit_insert(&e, text.data, text.n_bytes));
        assert_true(tn_edit_kill(&e, ways[i % 2]));
        assert_true(e.cursor <= 4);
        assert_true(tn_edit_yank(&e));
        tn_edit_move(&e, TN_EDIT_START);
        tn_edit_move(&e, TN_EDIT_WORD_RIGHT);
        tn_edit_move(&e, TN_EDIT_WORD_RIGHT);
        assert_true(tn_now_ns() - start < 5000000000u);
        tn_buf_fini(&text);
        tn_edit_fini(&e);
    }
}

static void backspace_takes_whole_clusters(void **state)
{
    (void)state;
    static const char *const clusters[] = {E_ACUTE, FAMILY, FLAG, HAN, HEBREW};
    for (size_t i = 0; i < TN_COUNT_OF(clusters); i++) {
        struct tn_edit e = {0};
        type(&e, "x");
        type(&e, clusters[i]);
        assert_true(tn_edit_delete(&e, TN_EDIT_LEFT));
        assert_edit(&e, "x", "");
        tn_edit_fini(&e);
    }
}

/* Deleting text can join two clusters; the cursor must not be inside the result. */
static void the_cursor_stays_on_boundaries(void **state)
{
    (void)state;
    struct tn_edit e = {0};
    type(&e, "ex");
    type(&e, "\xcc\x81"); /* combines with the x */
    tn_edit_move(&e, TN_EDIT_START);
    tn_edit_move(&e, TN_EDIT_RIGHT);
    type(&e, "-");
    assert_edit(&e, "e-", "x\xcc\x81");
    assert_true(tn_edit_replace(&e, 2, 3, "", 0)); /* the x is removed, its accent stays */
    assert_edit(&e, "e-\xcc\x81", "");
    tn_edit_fini(&e);
}

static void inserted_text_is_cleaned(void **state)
{
    (void)state;
    struct tn_edit e = {0};
    assert_true(tn_edit_insert(&e, "a\x1b\x07" "b\r\nc\xff\xc2\x85\td\0e", 14));
    assert_edit(&e, "ab\nc\xef\xbf\xbd\tde", "");
    tn_edit_fini(&e);
}

/* ---- moving and killing ---- */

static void words_and_lines(void **state)
{
    (void)state;
    struct tn_edit e = {0};
    type(&e, "one  two-three\nf\xc3\xbcnf");
    tn_edit_move(&e, TN_EDIT_WORD_LEFT);
    assert_edit(&e, "one  two-three\n", "f\xc3\xbcnf");
    tn_edit_move(&e, TN_EDIT_WORD_LEFT);
    assert_edit(&e, "one  two-", "three\nf\xc3\xbcnf");
    tn_edit_move(&e, TN_EDIT_LINE_END);
    assert_edit(&e, "one  two-three", "\nf\xc3\xbcnf");
    tn_edit_move(&e, TN_EDIT_BLANK_LEFT);
    assert_edit(&e, "one  ", "two-three\nf\xc3\xbcnf");
    tn_edit_move(&e, TN_EDIT_LINE_START);
    tn_edit_move(&e, TN_EDIT_LEFT); /* nothing before it */
    assert_edit(&e, "", "one  two-three\nf\xc3\xbcnf");
    tn_edit_move(&e, TN_EDIT_WORD_RIGHT);
    tn_edit_move(&e, TN_EDIT_WORD_RIGHT);
    assert_edit(&e, "one  two", "-three\nf\xc3\xbcnf");
    tn_edit_move(&e, TN_EDIT_END);
    tn_edit_move(&e, TN_EDIT_RIGHT);
    assert_edit(&e, "one  two-three\nf\xc3\xbcnf", "");
    tn_edit_fini(&e);
}

static void kills_are_yanked(void **state)
{
    (void)state;
    struct tn_edit e = {0};
    assert_false(tn_edit_yank(&e));
    type(&e, "one two three");
    assert_true(tn_edit_kill(&e, TN_EDIT_WORD_LEFT));
    assert_true(tn_edit_kill(&e, TN_EDIT_WORD_LEFT)); /* joins the first kill */
    assert_edit(&e, "one ", "");
    tn_edit_move(&e, TN_EDIT_START);
    assert_true(tn_edit_kill(&e, TN_EDIT_WORD_RIGHT)); /* a new kill */
    assert_edit(&e, "", " ");
    assert_true(tn_edit_yank(&e));
    assert_edit(&e, "one", " ");
    assert_true(tn_edit_yank_pop(&e));
    assert_edit(&e, "two three", " ");
    assert_true(tn_edit_yank_pop(&e)); /* back to the first entry */
    assert_edit(&e, "one", " ");
    tn_edit_move(&e, TN_EDIT_END);
    assert_false(tn_edit_yank_pop(&e));
    assert_true(tn_edit_kill(&e, TN_EDIT_START));
    assert_edit(&e, "", "");
    assert_false(tn_edit_kill(&e, TN_EDIT_END));
    tn_edit_fini(&e);
}

static void transposing(void **state)
{
    (void)state;
    struct tn_edit e = {0};
    type(&e, "ab" E_ACUTE);
    assert_true(tn_edit_transpose(&e));
    assert_edit(&e, "a" E_ACUTE "b", "");
    tn_edit_move(&e, TN_EDIT_LEFT);
    assert_true(tn_edit_transpose(&e));
    assert_edit(&e, "ab" E_ACUTE, "");
    tn_edit_move(&e, TN_EDIT_START);
    assert_false(tn_edit_transpose(&e));
    tn_edit_fini(&e);
}

/* ---- undo ---- */

static void typing_is_undone_by_the_word(void **state)
{
    (void)state;
    struct tn_edit e = {0};
    for (const char *c = "Hello big world"; *c; c++)
        assert_true(tn_edit_type(&e, c, 1));
    assert_true(tn_edit_undo(&e));
    assert_edit(&e, "Hello big ", "");
    assert_true(tn_edit_undo(&e));
    assert_edit(&e, "Hello ", "");
    assert_true(tn_edit_redo(&e));
    assert_edit(&e, "Hello big ", "");
    assert_true(tn_edit_undo(&e));
    assert_true(tn_edit_undo(&e));
    assert_edit(&e, "", "");
    assert_false(tn_edit_undo(&e));
    type(&e, "x");
    assert_false(tn_edit_redo(&e)); /* something else was typed */
    tn_edit_fini(&e);
}

static void everything_can_be_undone(void **state)
{
    (void)state;
    struct tn_edit e = {0};
    type(&e, "one two");
    assert_true(tn_edit_kill(&e, TN_EDIT_WORD_LEFT));
    assert_true(tn_edit_yank(&e));
    assert_true(tn_edit_insert(&e, "\nline", 5));
    tn_edit_move(&e, TN_EDIT_START);
    assert_true(tn_edit_delete(&e, TN_EDIT_RIGHT));
    assert_true(tn_edit_replace(&e, 0, e.text.n_bytes, "other", 5));
    int n = 0;
    while (tn_edit_undo(&e))
        n++;
    assert_int_equal(n, 6);
    assert_edit(&e, "", "");
    while (tn_edit_redo(&e))
        ;
    assert_edit(&e, "other", "");
    tn_edit_fini(&e);
}

/* Whichever allocation fails, the text is the old or the new one. */
static void nothing_breaks_without_memory(void **state)
{
    (void)state;
    for (size_t n = 0; n < 40; n++) {
        struct tn_edit e = {0};
        fail_alloc_after(n);
        (void)tn_edit_type(&e, "one two three", 13);
        const size_t n_typed = e.text.n_bytes;
        assert_true(n_typed == 0 || n_typed == 13);
        bool killed = tn_edit_kill(&e, TN_EDIT_WORD_LEFT);
        assert_int_equal(e.text.n_bytes, killed ? 8 : n_typed);
        (void)tn_edit_yank(&e);
        (void)tn_edit_undo(&e);
        (void)tn_edit_transpose(&e);
        assert_true(e.cursor <= e.text.n_bytes);
        fail_alloc_stop();
        tn_edit_fini(&e);
    }
}

/* ---- messages ---- */

static void assert_message(const char *text, const char *expected)
{
    struct tn_buf out = {0};
    assert_int_equal(tn_message_state(text, strlen(text)), TN_MESSAGE_WHOLE);
    assert_true(tn_message_take(&out, text, strlen(text)));
    assert_string_equal(tn_buf_text(&out), expected);
    tn_buf_fini(&out);
}

static void complete_messages_are_detected(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum tn_message_state is;
    } cases[] = {{"", TN_MESSAGE_WHOLE},
                 {"a\\", TN_MESSAGE_BACKSLASH},
                 {"a\\ ", TN_MESSAGE_WHOLE},
                 {"\"\"\"", TN_MESSAGE_OPEN},
                 {" \n\"\"\"a", TN_MESSAGE_OPEN},
                 {"\"\"\"\"\"", TN_MESSAGE_OPEN},
                 {"\"\"\"a\\", TN_MESSAGE_OPEN},
                 {"say \"\"\"", TN_MESSAGE_WHOLE}};
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++)
        assert_int_equal(tn_message_state(cases[i].text, strlen(cases[i].text)), cases[i].is);
    assert_message("a\nb\n\n", "a\nb");
    assert_message("\"\"\"\none\n two\n\"\"\" ", "one\n two");
    assert_message("\"\"\"x\"\"\"", "x");
    assert_message("\"\"\"\"\"\"", "");
    assert_message("\"\"\"/clear\"\"\"", "//clear");
    assert_message("/clear", "/clear");
}

/* ---- history ---- */

#define HISTORY "test_edit_history.tmp"

static void add(struct tn_history *h, const char *text)
{
    assert_true(tn_history_add(h, text, strlen(text)));
}

static void history_is_searched(void **state)
{
    (void)state;
    struct tn_history h = {0};
    size_t at = 99;
    assert_int_equal(tn_history_find(&h, 0, false, "a", 1, &at), 0);
    add(&h, "alpha");
    add(&h, "Beta alpha");
    add(&h, "Beta alpha");
    add(&h, "");
    add(&h, "gamma");
    assert_int_equal(h.n_entries, 3);
    assert_int_equal(tn_history_find(&h, 3, false, "alpha", 5, &at), 1);
    assert_int_equal(at, 5);
    assert_int_equal(tn_history_find(&h, 1, false, "alpha", 5, &at), 0);
    assert_int_equal(tn_history_find(&h, 0, false, "alpha", 5, &at), 3);
    assert_int_equal(tn_history_find(&h, 0, true, "alpha", 5, &at), 1);
    assert_int_equal(tn_history_find(&h, 3, false, "beta", 4, &at), 1);
    assert_int_equal(tn_history_find(&h, 3, false, "ALPHA", 5, &at), 3);
    for (int i = 0; i < TN_HISTORY_ENTRIES + 5; i++) {
        char text[16];
        snprintf(text, sizeof text, "entry %d", i);
        add(&h, text);
    }
    assert_int_equal(h.n_entries, TN_HISTORY_ENTRIES);
    assert_memory_equal(h.entries[0].text, "entry 5", 7);
    tn_history_fini(&h);
}

static void history_lies_in_a_file(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_history a = {0}, b = {0}, c = {0};
    tn_file_remove(HISTORY);
    assert_int_equal(tn_history_open(&a, HISTORY, &err), TERN_OK);
    assert_int_equal(tn_history_open(&b, HISTORY, &err), TERN_OK);
    add(&a, "two\nlines \\n");
    assert_int_equal(tn_history_save(&a, &err), TERN_OK);
    add(&b, "from another");
    assert_int_equal(tn_history_save(&b, &err), TERN_OK);
    add(&a, "third");
    assert_int_equal(tn_history_save(&a, &err), TERN_OK);
    assert_int_equal(tn_history_open(&c, HISTORY, &err), TERN_OK);
    assert_int_equal(c.n_entries, 3);
    assert_memory_equal(c.entries[0].text, "two\nlines \\n", 12);
    assert_memory_equal(c.entries[1].text, "from another", 12);
    assert_memory_equal(c.entries[2].text, "third", 5);
#if !defined(_WIN32)
    struct stat st;
    assert_int_equal(stat(HISTORY, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
#endif
    tn_history_fini(&a);
    tn_history_fini(&b);
    tn_history_fini(&c);
    tn_file_remove(HISTORY);
}

static void write_history(const char *bytes, size_t n)
{
    struct tern_error err;
    struct tn_file *file;
    assert_int_equal(tn_file_create(&file, HISTORY, &err), TERN_OK);
    assert_int_equal(tn_file_write_at(file, 0, bytes, n, &err), TERN_OK);
    tn_file_close(file);
}

static void a_strange_history_is_shown_clean(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_history h = {0};
    static const char bytes[] = "a\x1b[31mb\n\xff\r\n\n\\";
    write_history(bytes, sizeof bytes - 1);
    assert_int_equal(tn_history_open(&h, HISTORY, &err), TERN_OK);
    assert_int_equal(h.n_entries, 3);
    assert_int_equal(h.entries[0].n_bytes, 6);
    assert_memory_equal(h.entries[0].text, "a[31mb", 6);
    tn_history_fini(&h);
    assert_int_equal(tn_history_open(&h, ".", &err), TERN_INPUT);
    tn_file_remove(HISTORY);
}

/* A wrong name after --history must not cost a file: neither at the start nor later. */
static void other_files_are_not_replaced(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_history h = {0};
    static char lines[2 * (TN_HISTORY_ENTRIES + 1)];
    for (size_t i = 0; i < sizeof lines; i += 2) {
        lines[i] = (char)('a' + i / 2 % 2);
        lines[i + 1] = '\n';
    }
    write_history("TERN\0\1", 6);
    assert_int_equal(tn_history_open(&h, HISTORY, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "byte 4 is 0"));
    write_history(lines, sizeof lines);
    assert_int_equal(tn_history_open(&h, HISTORY, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "1001 lines"));
    tn_history_fini(&h);
    write_history(lines, sizeof lines - 2);
    assert_int_equal(tn_history_open(&h, HISTORY, &err), TERN_OK);
    assert_int_equal(h.n_entries, TN_HISTORY_ENTRIES);
    add(&h, "new");
    write_history("TERN\0\1", 6);
    assert_int_equal(tn_history_save(&h, &err), TERN_INPUT);
    char *data;
    size_t n;
    assert_int_equal(tn_file_read_all(&data, &n, HISTORY, 100, &err), TERN_OK);
    assert_int_equal(n, 6);
    tn_free(data);
    tn_history_fini(&h);
    tn_file_remove(HISTORY);
}

/* Every line break takes two bytes in the file, which may have 64 MiB. */
static void the_file_can_always_be_read_again(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_history h = {0}, again = {0};
    static char text[TN_HISTORY_MAX_SAVED];
    memset(text, '\n', sizeof text);
    assert_int_equal(tn_history_open(&h, HISTORY, &err), TERN_OK);
    for (int i = 0; i < 520; i++) {
        text[0] = (char)('a' + i % 26);
        assert_true(tn_history_add(&h, text, sizeof text));
    }
    assert_int_equal(tn_history_save(&h, &err), TERN_OK);
    assert_int_equal(tn_history_open(&again, HISTORY, &err), TERN_OK);
    assert_in_range(again.n_entries, 500, 519);
    assert_int_equal(again.entries[again.n_entries - 1].text[0], text[0]);
    add(&h, "new");
    assert_int_equal(tn_history_save(&h, &err), TERN_OK);
    tn_history_fini(&h);
    tn_history_fini(&again);
    tn_file_remove(HISTORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths),
        cmocka_unit_test(boundaries_agree_in_both_directions),
        cmocka_unit_test(boundaries_do_not_depend_on_the_start),
        cmocka_unit_test(long_words_take_linear_time),
        cmocka_unit_test(backspace_takes_whole_clusters),
        cmocka_unit_test(the_cursor_stays_on_boundaries),
        cmocka_unit_test(inserted_text_is_cleaned),
        cmocka_unit_test(words_and_lines),
        cmocka_unit_test(kills_are_yanked),
        cmocka_unit_test(transposing),
        cmocka_unit_test(typing_is_undone_by_the_word),
        cmocka_unit_test(everything_can_be_undone),
        cmocka_unit_test(nothing_breaks_without_memory),
        cmocka_unit_test(complete_messages_are_detected),
        cmocka_unit_test(history_is_searched),
        cmocka_unit_test(history_lies_in_a_file),
        cmocka_unit_test(a_strange_history_is_shown_clean),
        cmocka_unit_test(other_files_are_not_replaced),
        cmocka_unit_test(the_file_can_always_be_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
