/* SPDX-License-Identifier: MIT
 *
 * Text that is wrapped and styled while it arrives.  Expected texts write the styles as <d>, <b>
 * and </>.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/compiler.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "repl/flow.h"
#include "repl/grapheme.h"

static void append_text(void *arg, const char *text, size_t n)
{
    tn_buf_append(arg, text, n);
}

static void append_style(void *arg, enum tn_style style)
{
    static const char *const names[] = {"</>", "<d>", "<b>"};
    tn_buf_append_text(arg, names[style]);
}

/* In pieces of n_piece characters. */
static void flow_into(struct tn_buf *out, const char *text, uint32_t columns, size_t n_piece,
                      bool has_styles)
{
    struct tn_flow flow;
    const struct tn_flow_output output = {append_text, has_styles ? append_style : NULL, out};
    tn_flow_init(&flow, &output, columns, true);
    const size_t n = strlen(text);
    for (size_t i = 0, end; i < n; i = end) {
        end = i;
        for (size_t k = 0; k < n_piece && end < n; k++) {
            uint32_t c;
            const size_t length = tn_utf8_character(text + end, n - end, &c);
            assert_true(length > 0);
            end += length;
        }
        tn_flow_write(&flow, text + i, end - i);
    }
    tn_flow_end(&flow);
    tn_flow_fini(&flow);
}

static void assert_flow(const char *text, uint32_t columns, const char *expected)
{
    for (size_t n_piece = 1; n_piece <= 64; n_piece *= 4) {
        struct tn_buf out = {0};
        flow_into(&out, text, columns, n_piece, true);
        assert_string_equal(tn_buf_text(&out), expected);
        tn_buf_fini(&out);
    }
}

#define HAN "\xe6\x9d\xb1" /* two columns */
#define ACUTE "\xcc\x81"

static void words(void **state)
{
    (void)state;
    assert_flow("one two three", 80, "one two three");
    assert_flow("one two three", 9, "one two\nthree");
    assert_flow("one two three", 8, "one two\nthree"); /* the last column stays free */
    assert_flow("one  two\n\nthree \n", 80, "one  two\n\nthree\n");
    assert_flow("a word abcdefghijklm", 9, "a word\nabcdefgh\nijklm");
    assert_flow("  in dented text here", 12, "  in dented\n  text here");
    assert_flow("- a bullet is hung", 12, "- a bullet\n  is hung");
    assert_flow("12) number is hung", 12, "12) number\n    is hung");
    assert_flow("e" ACUTE "e" ACUTE "e" ACUTE " e" ACUTE "e" ACUTE "e" ACUTE, 8,
                "e" ACUTE "e" ACUTE "e" ACUTE " e" ACUTE "e" ACUTE "e" ACUTE);
    assert_flow(HAN HAN HAN HAN HAN, 8, HAN HAN HAN "\n" HAN HAN);
    assert_flow(HAN HAN HAN "\xe3\x80\x82" HAN, 8, HAN HAN "\n" HAN "\xe3\x80\x82" HAN);
    assert_flow("abc" HAN HAN HAN "xyz", 8, "abc" HAN HAN "\n" HAN "xyz");
    assert_flow("a\tb", 80, "a       b");
}

static void marks(void **state)
{
    (void)state;
    assert_flow("a **bold one** b", 80, "a <d>**<b>bold one<d>** </>b");
    assert_flow("a **bold one** b", 10, "a <d>**<b>bold\none<d>** </>b");
    assert_flow("2 ** 3 and a*b*c", 80, "2 ** 3 and a*b*c");
    assert_flow("2**3", 80, "2<d>**<b>3</>");
    assert_flow("\\**not", 80, "\\**not");
    assert_flow("**open\nnext", 80, "<d>**<b>open</>\nnext");
    assert_flow("`a **b`", 80, "<d>`</>a **b<d>`</>");
    assert_flow("``a `b``", 80, "<d>``</>a `b<d>``</>");
    assert_flow("## Two words\nx", 80, "<d>## <b>Two words</>\nx");
    assert_flow("#include x", 80, "#include x");
    assert_flow("####### x", 80, "####### x");
    assert_flow(HAN "**" HAN HAN "**", 80, HAN "<d>**<b>" HAN HAN "<d>**</>");
}

static void code(void **state)
{
    (void)state;
    assert_flow("```c\nint a  =  1; /* long line */\n```\none two three", 9,
                "<d>```c</>\nint a  =  1; /* long line */\n<d>```</>\none two\nthree");
    assert_flow("```\n``\n  ```\nx", 80, "<d>```</>\n``\n<d>  ```</>\nx");
    assert_flow("~~~\n```\n**x**\n~~~\n", 80, "<d>~~~</>\n```\n**x**\n<d>~~~</>\n");
    assert_flow("```\ncut off", 80, "<d>```</>\ncut off");
    assert_flow("```\n  ``", 80, "<d>```</>\n  ``");
    assert_flow("| a long row | of a table |\n", 9, "| a long row | of a table |\n");
}

static void whole_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t columns, hang;
        const char *expected;
    } cases[] = {
        {"note: one two three\nfour", 14, 2, "note: one two\n  three\nfour"},
        {"/a    what it does\n", 16, 2, "/a    what it\n      does\n"},
        {"a **b** `c`\n", 80, 2, "a **b** `c`\n"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(cases); i++) {
        struct tn_buf out = {0};
        tn_flow_append(&out, cases[i].text, strlen(cases[i].text), cases[i].columns, cases[i].hang);
        assert_string_equal(tn_buf_text(&out), cases[i].expected);
        tn_buf_fini(&out);
    }
}

/* Removes blanks, line endings and styles, and checks the width of every row. */
static void check_rows(const struct tn_buf *out, uint32_t columns, struct tn_buf *bare)
{
    for (size_t i = 0; i < out->n_bytes; i++)
        if (!strchr(" \n", out->data[i]))
            tn_buf_append(bare, &out->data[i], 1);
    for (size_t start = 0, end; start < out->n_bytes; start = end + 1) {
        for (end = start; end < out->n_bytes && out->data[end] != '\n';)
            end++;
        assert_true(tn_text_width(out->data + start, end - start) < columns);
    }
}

/* Only blanks and line endings change, no row is too wide, and any size of pieces works. */
static void random_texts(void **state)
{
    (void)state;
    static const char *const parts[] = {"a", "word", " ", "  ", "\n", "**", "`", "*", "#", "- ",
                                        HAN, ("e" ACUTE), "1. ", "longer-word", "\\", "_"};
    struct tn_rng rng;
    tn_rng_seed(&rng, 7);
    for (int i = 0; i < 2000; i++) {
        struct tn_buf text = {0}, first = {0}, second = {0}, expected = {0}, bare = {0};
        const uint32_t columns = 8 + (uint32_t)(tn_rng_next(&rng) % 30);
        for (uint64_t k = tn_rng_next(&rng) % 40; k > 0; k--)
            tn_buf_append_text(&text, parts[tn_rng_next(&rng) % TN_COUNT_OF(parts)]);
        flow_into(&first, tn_buf_text(&text), columns, SIZE_MAX, false);
        flow_into(&second, tn_buf_text(&text), columns, 1, false);
        assert_string_equal(tn_buf_text(&first), tn_buf_text(&second));
        if (!strstr(tn_buf_text(&text), "```")) {
            check_rows(&first, columns, &bare);
            for (size_t k = 0; k < text.n_bytes; k++)
                if (!strchr(" \n", text.data[k]))
                    tn_buf_append(&expected, &text.data[k], 1);
            assert_string_equal(tn_buf_text(&bare), tn_buf_text(&expected));
        }
        tn_buf_fini(&text);
        tn_buf_fini(&first);
        tn_buf_fini(&second);
        tn_buf_fini(&expected);
        tn_buf_fini(&bare);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),       cmocka_unit_test(marks),        cmocka_unit_test(code),
        cmocka_unit_test(whole_texts), cmocka_unit_test(random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
