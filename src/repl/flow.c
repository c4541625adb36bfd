/* SPDX-License-Identifier: MIT
 *
 * Wraps and styles text that arrives in pieces.
 *
 * Decides line by line (text, heading, table, fence, code) and word by word; the first word of a
 * line decides its kind.  Called for the answers of tern chat and for --help. */
#include "repl/flow.h"

#include <string.h>

#include "base/compiler.h"
#include "base/utf8.h"
#include "repl/grapheme.h"

#define MIN_COLUMNS 8u
#define TAB_COLUMNS 8u
#define MAX_HEADING 6u

/* ---- output ---- */

static void set_style(struct tn_flow *f, enum tn_style style)
{
    if (f->style != style && f->output.style)
        f->output.style(f->output.arg, style);
    f->style = style;
}

static void put(struct tn_flow *f, const char *text, size_t n)
{
    if (n > 0)
        f->output.text(f->output.arg, text, n);
}

static void put_blanks(struct tn_flow *f, uint32_t n)
{
    static const char blanks[] = "                ";
    for (uint32_t left = n; left > 0;) {
        const uint32_t n_now = TN_MIN(left, (uint32_t)sizeof blanks - 1);
        put(f, blanks, n_now);
        left -= n_now;
    }
    f->column += n;
}

/* The last column stays free: terminals differ in how they wrap there. */
static uint32_t limit_of(const struct tn_flow *f)
{
    return TN_MAX(f->columns, MIN_COLUMNS) - 1;
}

static bool is_wrapped(const struct tn_flow *f)
{
    return f->line != TN_FLOW_TABLE && f->line != TN_FLOW_CODE;
}

static void begin_row(struct tn_flow *f)
{
    put(f, "\n", 1);
    f->column = 0;
    put_blanks(f, f->indent);
}

/* Writes clusters in the current style; a word wider than a row continues in the next one. */
static void put_clusters(struct tn_flow *f, const char *text, size_t n)
{
    size_t start = 0;
    for (size_t i = 0; i < n;) {
        const struct tn_cluster c = tn_cluster_first(text + i, n - i);
        if (is_wrapped(f) && f->column + c.width > limit_of(f) && f->column > f->indent) {
            put(f, text + start, i - start);
            begin_row(f);
            start = i;
        }
        f->column += c.width;
        i += c.n_bytes;
    }
    put(f, text + start, n - start);
}

/* ---- marks within a word ---- */

static enum tn_style text_style(const struct tn_flow *f)
{
    if (f->line == TN_FLOW_FENCE)
        return TN_STYLE_DIM;
    return f->is_bold || f->line == TN_FLOW_HEADING ? TN_STYLE_BOLD : TN_STYLE_PLAIN;
}

static size_t run_length(const char *text, size_t n, char c)
{
    size_t i = 0;
    while (i < n && text[i] == c)
        i++;
    return i;
}

/* A run of backquotes opens inline code, and an equal run closes it. */
static bool toggles_code(struct tn_flow *f, size_t n_run)
{
    if (f->n_ticks != 0 && f->n_ticks != n_run)
        return false;
    f->n_ticks = f->n_ticks ? 0 : (uint32_t)n_run;
    return true;
}

/* ** opens before a character and closes after one. */
static bool toggles_bold(struct tn_flow *f, size_t n_run, bool has_before, bool has_after)
{
    if (n_run < 2 || f->n_ticks != 0 || !(f->is_bold ? has_before : has_after))
        return false;
    f->is_bold = !f->is_bold;
    return true;
}

/* Applies the mark at word[i].  Returns its length in bytes; 0: there is none. */
static size_t take_mark(struct tn_flow *f, const char *word, size_t n, size_t i, bool has_more)
{
    const char c = word[i];
    const size_t n_run = c == '*' || c == '`' ? run_length(word + i, n - i, c) : 0;
    const bool has_before = i > 0 || f->word_has_begun, has_after = i + n_run < n || has_more;
    if (n_run == 0 || !f->has_markdown || f->line == TN_FLOW_FENCE)
        return 0;
    const bool is_mark = c == '`' ? toggles_code(f, n_run)
                                  : toggles_bold(f, n_run, has_before, has_after);
    return is_mark ? n_run : 0;
}

/* has_more: the word continues after these bytes. */
static void put_marked(struct tn_flow *f, const char *word, size_t n, bool has_more)
{
    size_t start = 0;
    for (size_t i = 0; i < n;) {
        const enum tn_style style = text_style(f);
        const bool is_escaped = word[i] == '\\' && i + 1 < n;
        const size_t n_mark = take_mark(f, word, n, i, has_more);
        if (n_mark > 0) {
            set_style(f, style);
            put_clusters(f, word + start, i - start);
            set_style(f, TN_STYLE_DIM);
            put_clusters(f, word + i, n_mark);
            start = i + n_mark;
        }
        i += n_mark > 0 ? n_mark : is_escaped && f->n_ticks == 0 ? 2 : 1;
    }
    if (start < n) {
        set_style(f, text_style(f));
        put_clusters(f, word + start, n - start);
    }
}

/* ---- words ---- */

/* "-", "*", "+", "3." and "3)". */
static bool is_bullet(const char *word, size_t n)
{
    size_t n_digits = 0;
    while (n_digits < n && word[n_digits] >= '0' && word[n_digits] <= '9')
        n_digits++;
    if (n_digits > 0)
        return n == n_digits + 1 && (word[n_digits] == '.' || word[n_digits] == ')');
    return n == 1 && strchr("-*+", word[0]);
}

/* Classifies the line by its first word.  true: the whole word is a mark. */
static bool begin_line(struct tn_flow *f, const char *word, size_t n, bool has_more)
{
    const char c = word[0];
    const size_t n_run = run_length(word, n, c);
    f->indent = TN_MIN(f->column + f->n_blanks, limit_of(f) / 2);
    if (!f->has_markdown)
        return false;
    if (c == '|') {
        f->line = TN_FLOW_TABLE;
    } else if ((c == '`' || c == '~') && n_run >= 3 && !memchr(word + n_run, '`', n - n_run)) {
        f->line = TN_FLOW_FENCE;
        f->fence = c;
        f->n_fence = (uint32_t)n_run;
    } else if (!has_more && is_bullet(word, n)) {
        f->indent = TN_MIN(f->indent + (uint32_t)n + 1, limit_of(f) / 2);
    } else if (!has_more && c == '#' && n_run == n && n <= MAX_HEADING) {
        f->line = TN_FLOW_HEADING;
    }
    return f->line == TN_FLOW_HEADING;
}

/* Notes where the second part of a two-part line begins (tn_flow_append). */
static void note_second_part(struct tn_flow *f)
{
    const uint32_t column = f->column + f->n_blanks;
    if (f->has_markdown || f->has_two_parts || f->n_blanks < 2 || column > limit_of(f) / 2)
        return;
    f->has_two_parts = true;
    f->indent = column;
}

/* Writes the first n bytes of the word, after its blanks or on a new row. */
static void put_word(struct tn_flow *f, size_t n, bool has_more)
{
    bool is_mark = false;
    const char *word = f->word.data;
    if (n == 0)
        return;
    if (!f->line_has_begun) {
        is_mark = begin_line(f, word, n, has_more);
        put_blanks(f, f->n_blanks);
        f->indent += f->hang;
        f->line_has_begun = true;
    } else {
        note_second_part(f);
        const uint32_t width = tn_text_width(word, n);
        if (is_wrapped(f) && f->column > f->indent &&
            f->column + f->n_blanks + width > limit_of(f) &&
            (f->n_blanks > 0 || f->indent + width <= limit_of(f)))
            begin_row(f);
        else
            put_blanks(f, f->n_blanks);
    }
    f->n_blanks = 0;
    if (is_mark) {
        set_style(f, TN_STYLE_DIM);
        put_clusters(f, word, n);
    } else {
        put_marked(f, word, n, has_more);
    }
    memmove(f->word.data, word + n, f->word.n_bytes - n);
    f->word.n_bytes -= n;
    f->word_has_begun = has_more;
}

/* Punctuation that must not begin a row: ideographic comma and full stop, closing brackets,
 * lengthening and repetition marks, and the wide forms of , . ! ? : ; ). */
static bool is_closing(const char *text, size_t n)
{
    static const uint16_t closing[] = {0x3001, 0x3002, 0x3005, 0x3009, 0x300B, 0x300D,
                                       0x300F, 0x3011, 0x30FC, 0xFF01, 0xFF09, 0xFF0C,
                                       0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F};
    uint32_t c;
    const size_t length = tn_utf8_character(text, n, &c);
    for (size_t i = 0; length > 0 && i < TN_COUNT_OF(closing); i++)
        if (closing[i] == c)
            return true;
    return false;
}

/* Text without blanks may be broken at wide characters: all but the last character, which combining
 * marks may still follow, becomes a word. */
static void put_wide(struct tn_flow *f)
{
    const char *word = f->word.data;
    const size_t n = f->word.n_bytes, last = tn_grapheme_previous(word, n, n);
    if (last == 0 || is_closing(word + last, n - last))
        return;
    const size_t before = tn_grapheme_previous(word, last, last);
    if (tn_cluster_first(word + last, n - last).width > 1 ||
        tn_cluster_first(word + before, last - before).width > 1)
        put_word(f, last, true);
}

/* Is either of the word's last two characters not ASCII?  The last one has n bytes. */
static bool may_be_wide(const struct tn_flow *f, size_t n)
{
    const char *last = f->word.data + f->word.n_bytes - n;
    return ((unsigned char)last[0] | (unsigned char)last[-1]) >= 0x80;
}

/* ---- lines ---- */

static void end_line(struct tn_flow *f)
{
    set_style(f, TN_STYLE_PLAIN);
    put(f, "\n", 1);
    f->line = f->line == TN_FLOW_FENCE || f->line == TN_FLOW_CODE ? TN_FLOW_CODE : TN_FLOW_TEXT;
    f->line_has_begun = f->has_two_parts = f->is_bold = false;
    f->n_ticks = f->n_blanks = f->column = f->indent = 0;
}

/* Writes a byte of code; the start of a line is held back while it may close the block. */
static void take_code(struct tn_flow *f, char c)
{
    if (!f->line_has_begun && (c == ' ' || c == f->fence)) {
        tn_buf_append(&f->word, &c, 1);
        return;
    }
    const char *held = f->word.data;
    const size_t n = f->word.n_bytes, n_before = n - run_length(held ? held : "", n, ' ');
    const bool is_start = !f->line_has_begun;
    f->line_has_begun = true;
    if (is_start && c == '\n' && n_before >= f->n_fence) {
        set_style(f, TN_STYLE_DIM);
        f->line = TN_FLOW_TEXT;
    }
    put(f, held, n);
    tn_buf_clear(&f->word);
    if (c == '\n')
        end_line(f);
    else
        put(f, &c, 1);
}

/* Writes the complete word; the line continues with `c`. */
static void end_word(struct tn_flow *f, char c)
{
    const bool is_whole = c == ' ' || c == '\t' || c == '\n';
    if (f->word.n_bytes > 0)
        put_word(f, f->word.n_bytes, !is_whole);
    f->word_has_begun = !is_whole && f->word_has_begun;
}

static void take_blank(struct tn_flow *f, char c)
{
    end_word(f, c);
    if (c == '\n')
        end_line(f);
    else if (c == '\t')
        f->n_blanks += TAB_COLUMNS - (f->column + f->n_blanks) % TAB_COLUMNS;
    else
        f->n_blanks++;
}

/* UTF-8 length of the character at text[0]. */
static size_t character_length(const char *text, size_t n)
{
    uint32_t c;
    const size_t length = tn_utf8_character(text, n, &c);
    return length > 0 ? length : 1;
}

void tn_flow_write(struct tn_flow *f, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        const size_t length = character_length(text + i, n - i);
        if (f->line == TN_FLOW_CODE) {
            for (size_t k = 0; k < length; k++)
                take_code(f, text[i + k]);
        } else if (text[i] == ' ' || text[i] == '\t' || text[i] == '\n') {
            take_blank(f, text[i]);
        } else {
            if (!tn_buf_append(&f->word, text + i, length)) {
                f->word.failed = false;
                end_word(f, text[i]);
                put(f, text + i, length);
            } else if (f->word.n_bytes > length && may_be_wide(f, length)) {
                put_wide(f);
            }
        }
        i += length;
    }
}

void tn_flow_end(struct tn_flow *f)
{
    if (f->line == TN_FLOW_CODE) {
        put(f, f->word.data, f->word.n_bytes);
        tn_buf_clear(&f->word);
    } else {
        end_word(f, '\n');
    }
    set_style(f, TN_STYLE_PLAIN);
}

void tn_flow_init(struct tn_flow *flow, const struct tn_flow_output *output, uint32_t columns,
                  bool has_markdown)
{
    *flow = (struct tn_flow){.output = *output, .columns = columns, .has_markdown = has_markdown};
}

void tn_flow_fini(struct tn_flow *flow)
{
    tn_buf_fini(&flow->word);
}

/* ---- whole texts ---- */

static void append_text(void *arg, const char *text, size_t n)
{
    tn_buf_append(arg, text, n);
}

void tn_flow_append(struct tn_buf *out, const char *text, size_t n, uint32_t columns, uint32_t hang)
{
    struct tn_flow flow;
    const struct tn_flow_output output = {.text = append_text, .arg = out};
    tn_flow_init(&flow, &output, columns, false);
    flow.hang = hang;
    tn_flow_write(&flow, text, n);
    tn_flow_end(&flow);
    tn_flow_fini(&flow);
}
