/* SPDX-License-Identifier: MIT
 *
 * The editor on a small terminal: layouts, and random keys after each of which the text is
 * well-formed, the cursor is between clusters, and the screen equals a complete redraw.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "emulator.h"
#include "plat/plat.h"
#include "repl/editor.h"
#include "repl/grapheme.h"

static struct emulator terminal, fresh;

/* ---- layouts ---- */

static void expect_rows(const char *text, size_t cursor, uint32_t columns, const char *expected,
                        size_t row, uint32_t column)
{
    struct tn_layout layout = {0};
    struct tn_prompts prompts = {"> ", ". "};
    char got[256] = "";
    assert_true(tn_layout_make(&layout, &prompts, text, strlen(text), cursor, columns));
    for (size_t i = 0; i < layout.n_rows; i++) {
        const struct tn_row *r = &layout.rows[i];
        snprintf(got + strlen(got), sizeof got - strlen(got), "%c%.*s|", ">.w"[r->kind],
                 (int)(r->end - r->start), text + r->start);
    }
    assert_string_equal(got, expected);
    assert_int_equal(layout.cursor_row, row);
    assert_int_equal(layout.cursor_column, column);
    tn_layout_fini(&layout);
}

static void rows_of_a_text(void **state)
{
    (void)state;
    expect_rows("", 0, 80, ">|", 0, 2);
    expect_rows("abc", 1, 80, ">abc|", 0, 3);
    expect_rows("a\n\nb", 2, 80, ">a|.|.b|", 1, 2);
    expect_rows("a\n", 2, 80, ">a|.|", 1, 2);
    expect_rows("ae\xcc\x81", 2, 80, ">ae\xcc\x81|", 0, 3); /* within a cluster */
    /* nine columns without the last: six for text */
    expect_rows("abcdefghij", 10, 9, ">abcdef|wghij|", 1, 6);
    expect_rows("abcdef", 6, 9, ">abcdef|", 0, 8);
    expect_rows("abcdefg", 6, 9, ">abcdef|wg|", 1, 2);
    expect_rows("abcde\xe6\x9d\xb1", 5, 9, ">abcde|w\xe6\x9d\xb1|", 1, 2);
    expect_rows("\tx", 1, 80, ">\tx|", 0, 4);
    expect_rows("abcdefghij", 0, 1, ">abcde|wfghij|", 0, 2); /* the minimum is eight columns */
}

static void columns_of_rows(void **state)
{
    (void)state;
    struct tn_layout layout = {0};
    struct tn_prompts prompts = {"> ", ". "};
    const char text[] = "abcdefgh\n\xe6\x9d\xb1z";
    assert_true(tn_layout_make(&layout, &prompts, text, strlen(text), 0, 9));
    assert_int_equal(layout.n_rows, 3);
    assert_int_equal(tn_layout_offset(&layout, text, 0, 0), 0);
    assert_int_equal(tn_layout_offset(&layout, text, 0, 4), 2);
    assert_int_equal(tn_layout_offset(&layout, text, 0, 99), 5); /* 6 is in the next row */
    assert_int_equal(tn_layout_offset(&layout, text, 1, 99), 8);
    assert_int_equal(tn_layout_offset(&layout, text, 2, 3), 9); /* inside the wide character */
    assert_int_equal(tn_layout_offset(&layout, text, 2, 4), 12);
    tn_layout_fini(&layout);
}

/* ---- the screen ---- */

static void show(struct tn_editor *ed)
{
    assert_false(ed->out.failed);
    emulator_write(&terminal, ed->out.data, ed->out.n_bytes);
    tn_buf_clear(&ed->out);
}

static void begin(struct tn_editor *ed, uint32_t columns, uint32_t rows)
{
    struct tn_prompts prompts = {"> ", ". "};
    tn_editor_start(ed, &prompts, (struct tn_terminal_size){columns, rows});
    tn_editor_draw(ed);
    show(ed);
}

static enum tn_editor_step press(struct tn_editor *ed, enum tn_key_kind kind, const char *text)
{
    struct tn_key key = {kind, text, text ? strlen(text) : 0};
    enum tn_editor_step step = tn_editor_key(ed, &key);
    if (ed->needs_draw)
        tn_editor_draw(ed);
    return step;
}

/* The text is editable, and drawing it on an empty terminal gives the same screen. */
static void check(struct tn_editor *ed)
{
    const struct tn_edit *e = &ed->edit;
    assert_int_equal(tn_utf8_find_bad(e->text.data, e->text.n_bytes, false), e->text.n_bytes);
    assert_int_equal(tn_grapheme_snap(e->text.data, e->text.n_bytes, e->cursor), e->cursor);
    assert_int_equal(terminal.n_wraps, 0);
    assert_int_equal(terminal.n_unknown, 0);
    assert_true(terminal.is_wrapping);
    const struct tn_screen shown = ed->screen;
    ed->screen = (struct tn_screen){.top = shown.top, .style = shown.style};
    emulator_init(&fresh, EMULATOR_ROWS, terminal.columns);
    tn_editor_draw(ed);
    emulator_write(&fresh, ed->out.data, ed->out.n_bytes);
    tn_buf_clear(&ed->out);
    const int top = terminal.row - (int)shown.cursor_row;
    assert_int_equal(ed->screen.cursor_row, shown.cursor_row);
    assert_int_equal(fresh.row, shown.cursor_row);
    assert_int_equal(fresh.column, terminal.column);
    assert_int_equal(ed->screen.n_rows, shown.n_rows);
    for (int i = 0; i < (int)shown.n_rows; i++)
        assert_true(emulator_row_equals(&terminal, top + i, &fresh, i));
    for (int row = top + (int)shown.n_rows; row < terminal.rows; row++)
        assert_true(emulator_row_is_blank(&terminal, row));
    tn_screen_fini(&ed->screen);
    ed->screen = shown;
}

static void typing_at_the_end_sends_only_that(void **state)
{
    (void)state;
    struct tn_editor ed = {.dim = ""};
    emulator_init(&terminal, 24, 80);
    begin(&ed, 80, 24);
    press(&ed, TN_KEY_TEXT, "Hello");
    assert_int_equal(ed.out.n_bytes, 5);
    show(&ed);
    check(&ed);
    press(&ed, TN_KEY_LEFT, NULL);
    assert_int_equal(ed.out.n_bytes, 1);
    show(&ed);
    press(&ed, TN_KEY_TEXT, "-"); /* "-o", one back */
    assert_int_equal(ed.out.n_bytes, 3);
    show(&ed);
    check(&ed);
    tn_editor_fini(&ed);
}

/* Of a text higher than the terminal, the rows around the cursor are shown. */
static void a_paste_that_is_higher_than_the_terminal(void **state)
{
    (void)state;
    struct tn_editor ed = {.dim = ""};
    char text[400] = "";
    emulator_init(&terminal, 6, 20);
    begin(&ed, 20, 6);
    for (int i = 0; i < 50; i++)
        snprintf(text + strlen(text), 8, "row %d\n", i);
    press(&ed, TN_KEY_PASTE, text);
    assert_true(ed.out.n_bytes < 200);
    show(&ed);
    check(&ed);
    assert_memory_equal(terminal.cells[4][2], "r", 2);
    for (int i = 0; i < 49; i++) {
        press(&ed, TN_KEY_UP, NULL);
        show(&ed);
        check(&ed);
    }
    assert_int_equal(terminal.row, 0);
    tn_editor_fini(&ed);
}

static void a_large_paste_is_quick(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    static char text[N + 1];
    struct tn_editor ed = {.dim = ""};
    for (int i = 0; i < N; i += 4)
        memcpy(text + i, i % 200 == 196 ? "abc\n" : "\xe2\x82\xac ", 4);
    emulator_init(&terminal, 24, 80);
    begin(&ed, 80, 24);
    const uint64_t start = tn_now_ns();
    press(&ed, TN_KEY_PASTE, text);
    assert_true(tn_seconds_since(start) < 60.0); /* not quadratic */
    assert_int_equal(ed.edit.text.n_bytes, N);
    assert_true(ed.out.n_bytes < 24 * 80 * 4);
    show(&ed);
    check(&ed);
    tn_editor_fini(&ed);
}

/* The terminal starts empty, like one that has discarded rows that no longer fit. */
static void another_size(void **state)
{
    (void)state;
    static const struct tn_terminal_size sizes[] = {{20, 10}, {8, 5}, {120, 40}, {10, 3}, {80, 24}};
    struct tn_editor ed = {.dim = ""};
    emulator_init(&terminal, 24, 80);
    begin(&ed, 80, 24);
    press(&ed, TN_KEY_PASTE,
          "a line that is wider than a narrow terminal, e\xCC\x81 \xE6\x9D\xB1\nb");
    show(&ed);
    for (size_t i = 0; i < TN_COUNT_OF(sizes); i++) {
        emulator_init(&terminal, sizes[i].rows, sizes[i].columns);
        tn_editor_resize(&ed, sizes[i]);
        tn_editor_draw(&ed);
        show(&ed);
        check(&ed);
    }
    tn_editor_fini(&ed);
}

static void keys_that_leave(void **state)
{
    (void)state;
    struct tn_editor ed = {.dim = ""};
    const bool stops = TN_TERMINAL_CAN_SUSPEND;
    begin(&ed, 80, 24);
    assert_int_equal(press(&ed, TN_KEY_EOF, NULL), TN_EDITOR_END);
    assert_int_equal(press(&ed, TN_KEY_SUSPEND, NULL), stops ? TN_EDITOR_SUSPEND : TN_EDITOR_END);
    assert_int_equal(press(&ed, TN_KEY_INTERRUPT, NULL), TN_EDITOR_INTERRUPT);
    press(&ed, TN_KEY_TEXT, "text");
    assert_int_equal(press(&ed, TN_KEY_EOF, NULL), TN_EDITOR_ON);
    assert_int_equal(press(&ed, TN_KEY_SUSPEND, NULL), stops ? TN_EDITOR_SUSPEND : TN_EDITOR_ON);
    assert_string_equal(tn_buf_text(&ed.edit.text), "text");
    assert_int_equal(press(&ed, TN_KEY_INTERRUPT, NULL), TN_EDITOR_ON);
    assert_int_equal(ed.edit.text.n_bytes, 0);
    tn_editor_fini(&ed);
}

static void history_and_search(void **state)
{
    (void)state;
    struct tn_editor ed = {.dim = ""};
    struct tn_buf message = {0};
    static const char *const sent[] = {"first", "second\nline", "third"};
    emulator_init(&terminal, 24, 80);
    for (size_t i = 0; i < TN_COUNT_OF(sent); i++) {
        begin(&ed, 80, 24);
        press(&ed, TN_KEY_PASTE, sent[i]);
        assert_int_equal(press(&ed, TN_KEY_ENTER, NULL), TN_EDITOR_SEND);
        assert_true(tn_editor_take(&ed, &message));
        assert_string_equal(tn_buf_text(&message), sent[i]);
        tn_buf_clear(&message);
    }
    tn_buf_fini(&message);
    tn_buf_clear(&ed.out);
    emulator_init(&terminal, 24, 80);
    begin(&ed, 80, 24);
    press(&ed, TN_KEY_TEXT, "typed");
    for (int i = 0; i < 5; i++) /* third row, second, its first row, first, and no further */
        press(&ed, TN_KEY_UP, NULL);
    assert_string_equal(tn_buf_text(&ed.edit.text), "first");
    for (int i = 0; i < 5; i++)
        press(&ed, TN_KEY_DOWN, NULL);
    assert_string_equal(tn_buf_text(&ed.edit.text), "typed");
    press(&ed, TN_KEY_SEARCH, NULL);
    assert_string_equal(tn_buf_text(&ed.search.prompt), "search:  | "); /* of nothing yet */
    press(&ed, TN_KEY_TEXT, "ir");
    assert_int_equal(ed.search.i_found, 2);
    press(&ed, TN_KEY_SEARCH, NULL);
    assert_int_equal(ed.search.i_found, 0);
    press(&ed, TN_KEY_SEARCH_NEWER, NULL);
    press(&ed, TN_KEY_CANCEL, NULL);
    assert_string_equal(tn_buf_text(&ed.edit.text), "typed");
    press(&ed, TN_KEY_SEARCH, NULL);
    press(&ed, TN_KEY_TEXT, "line");
    press(&ed, TN_KEY_LEFT, NULL); /* accepts the match, then moves */
    assert_string_equal(tn_buf_text(&ed.edit.text), "second\nline");
    assert_int_equal(ed.edit.cursor, 6);
    show(&ed);
    check(&ed);
    tn_editor_fini(&ed);
}

/* The query is a mark that belongs to a letter of the older entry. */
static void a_match_within_a_cluster(void **state)
{
    (void)state;
    struct tn_editor ed = {.dim = ""};
    static const char mark[] = "\xcc\x81";
    char tall[64];
    memset(tall, '\n', sizeof tall);
    memcpy(tall + sizeof tall - 2, mark, 2);
    assert_true(tn_history_add(&ed.history, "e\xcc\x81", 3));
    assert_true(tn_history_add(&ed.history, tall, sizeof tall));
    emulator_init(&terminal, 24, 80);
    begin(&ed, 80, 24);
    press(&ed, TN_KEY_SEARCH, NULL);
    press(&ed, TN_KEY_TEXT, mark);
    assert_int_equal(ed.search.i_found, 1);
    assert_int_equal(ed.layout.cursor_row, 62);
    press(&ed, TN_KEY_SEARCH, NULL);
    assert_int_equal(ed.search.i_found, 0);
    assert_int_equal(ed.layout.cursor_row, 0);
    assert_int_equal(ed.screen.n_rows, 1);
    tn_editor_fini(&ed);
}

/* ---- completion ---- */

static void offer(void *arg, const char *line, size_t cursor, size_t *start, bool *wants_file,
                  void (*add)(void *to, const char *candidate), void *to)
{
    static const char *const words[] = {"/set ", "/save", "/system", "/sav\xc3\xa9"};
    (void)arg, (void)wants_file;
    *start = 0;
    for (size_t i = 0; i < TN_COUNT_OF(words); i++)
        if (strncmp(words[i], line, cursor) == 0)
            add(to, words[i]);
}

static void completion_goes_as_far_as_it_can(void **state)
{
    (void)state;
    struct tn_editor ed = {.dim = "", .completer = {NULL, offer}};
    emulator_init(&terminal, 24, 80);
    begin(&ed, 80, 24);
    press(&ed, TN_KEY_TEXT, "/sa");
    press(&ed, TN_KEY_TAB, NULL);
    assert_string_equal(tn_buf_text(&ed.edit.text), "/sav");
    show(&ed);
    press(&ed, TN_KEY_TAB, NULL); /* no longer prefix: the candidates are listed */
    show(&ed);
    assert_int_equal(terminal.row, 2);
    check(&ed);
    press(&ed, TN_KEY_TEXT, "e");
    press(&ed, TN_KEY_TAB, NULL);
    assert_string_equal(tn_buf_text(&ed.edit.text), "/save ");
    press(&ed, TN_KEY_KILL_TO_START, NULL);
    press(&ed, TN_KEY_TEXT, "nothing");
    press(&ed, TN_KEY_TAB, NULL);
    assert_string_equal(tn_buf_text(&ed.edit.text), "nothing");
    show(&ed);
    check(&ed);
    tn_editor_fini(&ed);
}

/* ---- random keys ---- */

static const char *const pieces[] = {
    "a", "b ", "word", "\t", "\n", "e\xcc\x81", "\xcc\x81", "\xe6\x9d\xb1\xe4\xba\xac", "\\",
    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7", "\xe2\x80\x8d", "\xf0\x9f\x87\xab",
    "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd", "\xe2\x98\xba\xef\xb8\x8f", "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
    "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xb7\xe0\xa4\xbf", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab",
    "\xe2\x80\xae", "\xff\x1b[31m", "one\ntwo\r\nthree", "\"\"\"", "/s",
    "a long line of text that is wider than the terminal is, more than once, for sure",
};

static const enum tn_key_kind plain_keys[] = {
    TN_KEY_ENTER, TN_KEY_NEWLINE, TN_KEY_TAB, TN_KEY_BACKSPACE, TN_KEY_BACKSPACE, TN_KEY_DELETE,
    TN_KEY_LEFT, TN_KEY_LEFT, TN_KEY_RIGHT, TN_KEY_UP, TN_KEY_DOWN, TN_KEY_HOME, TN_KEY_END,
    TN_KEY_WORD_LEFT, TN_KEY_WORD_RIGHT, TN_KEY_TEXT_START, TN_KEY_TEXT_END, TN_KEY_OLDER,
    TN_KEY_NEWER, TN_KEY_OLDEST, TN_KEY_NEWEST, TN_KEY_KILL_TO_END, TN_KEY_KILL_TO_START,
    TN_KEY_KILL_BLANK_WORD, TN_KEY_KILL_WORD_LEFT, TN_KEY_KILL_WORD_RIGHT, TN_KEY_YANK,
    TN_KEY_YANK_POP, TN_KEY_TRANSPOSE, TN_KEY_UNDO, TN_KEY_UNDO, TN_KEY_REDO, TN_KEY_SEARCH,
    TN_KEY_SEARCH_NEWER, TN_KEY_CANCEL, TN_KEY_ESCAPE, TN_KEY_REDRAW, TN_KEY_EOF, TN_KEY_UNKNOWN,
};

static uint32_t below(struct tn_rng *rng, uint32_t n)
{
    return (uint32_t)(tn_rng_next(rng) >> 33) % n;
}

static enum tn_editor_step press_random(struct tn_editor *ed, struct tn_rng *rng)
{
    const uint32_t kind = below(rng, 10);
    if (kind < 5)
        return press(ed, plain_keys[below(rng, TN_COUNT_OF(plain_keys))], NULL);
    return press(ed, kind == 9 ? TN_KEY_PASTE : TN_KEY_TEXT,
                 pieces[below(rng, TN_COUNT_OF(pieces))]);
}

static void random_keys_on(uint32_t columns, uint32_t rows, uint64_t seed, int n_keys)
{
    struct tn_rng rng;
    struct tn_buf message = {0};
    struct tn_editor ed = {.dim = "\x1b[2m", .completer = {NULL, offer}};
    tn_rng_seed(&rng, seed);
    emulator_init(&terminal, (int)rows, (int)columns);
    emulator_write(&terminal, "answer\r\n", 8);
    begin(&ed, columns, rows);
    for (int i = 0; i < n_keys; i++) {
        enum tn_editor_step step = press_random(&ed, &rng);
        show(&ed);
        check(&ed);
        if (step == TN_EDITOR_ON && ed.edit.text.n_bytes < 2000)
            continue;
        tn_editor_leave(&ed, "");
        show(&ed);
        assert_int_equal(terminal.column, 0);
        tn_buf_clear(&message);
        if (step == TN_EDITOR_SEND)
            assert_true(tn_editor_take(&ed, &message));
        begin(&ed, columns, rows);
    }
    tn_buf_fini(&message);
    tn_editor_fini(&ed);
}

static void random_keys(void **state)
{
    (void)state;
    static const struct {
        uint32_t columns, rows;
    } sizes[] = {{80, 24}, {20, 10}, {9, 6}, {8, 3}, {40, 1}, {120, 40}};
    for (size_t i = 0; i < TN_COUNT_OF(sizes); i++)
        for (uint64_t seed = 0; seed < 4; seed++)
            random_keys_on(sizes[i].columns, sizes[i].rows, i * 100 + seed, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_text),
        cmocka_unit_test(columns_of_rows),
        cmocka_unit_test(typing_at_the_end_sends_only_that),
        cmocka_unit_test(a_paste_that_is_higher_than_the_terminal),
        cmocka_unit_test(a_large_paste_is_quick),
        cmocka_unit_test(history_and_search),
        cmocka_unit_test(a_match_within_a_cluster),
        cmocka_unit_test(another_size),
        cmocka_unit_test(keys_that_leave),
        cmocka_unit_test(completion_goes_as_far_as_it_can),
        cmocka_unit_test(random_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
