/* SPDX-License-Identifier: MIT
 *
 * Prints help: at most 80 columns, fewer on a narrower terminal; ranges and defaults come from the
 * parser's table.
 */
#include "help.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "output.h"
#include "plat/plat.h"
#include "repl/flow.h"

#define MAX_COLUMNS 80u
#define HELP_COLUMN 30u
#define NARROW_HELP_COLUMN 8u /* below the flag */

static uint32_t n_columns(void)
{
    return tn_is_terminal(TN_STDOUT) ? TN_MIN(tn_terminal_columns(), MAX_COLUMNS) : MAX_COLUMNS;
}

static bool is_narrow(void)
{
    return n_columns() < MAX_COLUMNS;
}

/* Appends words, wrapped so that lines fit the columns and continue at `start`, the column of the
 * first line. */
static void append_wrapped(struct tn_buf *out, const char *text, size_t start)
{
    size_t column = start;
    for (size_t n; *text; text += n + strspn(text + n, " ")) {
        n = strcspn(text, " ");
        if (column > start && column + 1 + n > n_columns()) {
            tn_buf_printf(out, "\n%*s", (int)start, "");
            column = start;
        } else if (column > start) {
            tn_buf_append(out, " ", 1);
            column++;
        }
        tn_buf_append(out, text, n);
        column += n;
    }
    tn_buf_append(out, "\n", 1);
}

/* Appends "  -n, --max-tokens N", padded to HELP_COLUMN. */
static void append_name(struct tn_buf *out, const struct tn_option_row *row)
{
    size_t start = out->n_bytes;
    if (row->letter)
        tn_buf_printf(out, "  -%c, ", row->letter);
    else
        tn_buf_append_text(out, "      ");
    tn_buf_printf(out, "--%s", row->name);
    if (row->kind == TN_OPT_STATS)
        tn_buf_append_text(out, "[=json]");
    else if (row->value)
        tn_buf_printf(out, " %s", row->value);
    size_t n = out->n_bytes - start;
    if (is_narrow())
        tn_buf_printf(out, "\n%*s", (int)NARROW_HELP_COLUMN, "");
    else
        tn_buf_printf(out, "%*s", n + 2 <= HELP_COLUMN ? (int)(HELP_COLUMN - n) : 2, "");
}

static void append_option(struct tn_buf *out, const struct tn_option_row *row)
{
    char range[128];
    struct tn_buf text = {0};
    tn_option_range_text(row, range, sizeof range);
    /* Limits that users do not reach by accident are not shown. */
    if (row->kind == TN_OPT_COUNT && row->high > 512)
        range[0] = '\0';
    tn_buf_append_text(&text, row->help);
    const char *initial = row->initial ? row->initial : row->otherwise;
    if (range[0] || initial)
        tn_buf_printf(&text, " (%s%s%s%s)", range, range[0] && initial ? "; " : "",
                      initial ? "default " : "", initial ? initial : "");
    append_name(out, row);
    append_wrapped(out, tn_buf_text(&text), is_narrow() ? NARROW_HELP_COLUMN : HELP_COLUMN);
    out->failed |= text.failed;
    tn_buf_fini(&text);
}

static void append_options(struct tn_buf *out, enum tn_command command)
{
    for (uint32_t i = 0; i < tn_n_option_rows; i++)
        if (tn_option_rows[i].commands >> command & 1 && !tn_option_rows[i].hidden)
            append_option(out, &tn_option_rows[i]);
}

/* Texts are written for 80 columns. */
static void append_paragraphs(struct tn_buf *out, const char *text)
{
    if (is_narrow())
        tn_flow_append(out, text, strlen(text), n_columns(), 0);
    else
        tn_buf_append_text(out, text);
}

void tn_help_command(enum tn_command command)
{
    const struct tn_command_row *row = &tn_command_rows[command];
    struct tn_buf out = {0};
    tn_buf_printf(&out, "Usage: tern %s%s%s\n\n%c%s.\n%s", row->name,
                  row->arguments[0] ? " " : "", row->arguments,
                  toupper((unsigned char)row->summary[0]), row->summary + 1,
                  row->text[0] ? "\n" : "");
    append_paragraphs(&out, row->text);
    tn_buf_append_text(&out, "\nFlags:\n");
    append_options(&out, command);
    if (strstr(row->arguments, "[MODEL]"))
        append_paragraphs(&out, "\nWithout MODEL: $TERN_MODEL, model.tern beside the program, "
                                "then the demo.\n");
    tn_out_buf(&out);
}

/* Fits a screen of 24 lines. */
void tn_help_all(void)
{
    struct tn_buf out = {0}, shown = {0};
    tn_buf_append_text(&out, "tern runs language models, ternary (BitNet b1.58) and ordinary, "
                             "on CPUs.\n\n");
    for (uint32_t i = 0; i < TN_N_COMMANDS; i++)
        tn_buf_printf(&out, "  tern %-31s %s\n", tn_command_rows[i].example,
                      tn_command_rows[i].summary);
    tn_buf_append_text(&out, "\nA model is a file or a name that tern list shows; without one: "
                             "the demo.\nMore by tern help TOPIC: ");
    tn_help_append_topics(&out);
    append_paragraphs(&shown, tn_buf_text(&out));
    shown.failed |= out.failed;
    tn_buf_fini(&out);
    tn_out_buf(&shown);
}
