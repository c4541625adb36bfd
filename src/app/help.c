/* SPDX-License-Identifier: MIT
 *
 * Help: at most 80 columns; ranges and defaults are those of the parser.
 */
#include "help.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "output.h"

#define N_COLUMNS 80u
#define HELP_COLUMN 30u

/* Appends words, broken so that lines end within N_COLUMNS and go on at HELP_COLUMN, where the
 * first line begins. */
static void append_wrapped(struct tn_buf *out, const char *text)
{
    size_t column = HELP_COLUMN;
    for (size_t n; *text; text += n + strspn(text + n, " ")) {
        n = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + n > N_COLUMNS) {
            tn_buf_printf(out, "\n%*s", (int)HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            tn_buf_append(out, " ", 1);
            column++;
        }
        tn_buf_append(out, text, n);
        column += n;
    }
    tn_buf_append(out, "\n", 1);
}

/* "  -n, --max-tokens N", filled up to HELP_COLUMN. */
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
    tn_buf_printf(out, "%*s", n + 2 <= HELP_COLUMN ? (int)(HELP_COLUMN - n) : 2, "");
}

static void append_option(struct tn_buf *out, const struct tn_option_row *row)
{
    char range[128];
    struct tn_buf text = {0};
    tn_option_range_text(row, range, sizeof range);
    /* Limits that nobody meets by accident are not worth a line. */
    if (row->kind == TN_OPT_COUNT && row->high > 512)
        range[0] = '\0';
    tn_buf_append_text(&text, row->help);
    const char *initial = row->initial ? row->initial : row->otherwise;
    if (range[0] || initial)
        tn_buf_printf(&text, " (%s%s%s%s)", range, range[0] && initial ? "; " : "",
                      initial ? "default " : "", initial ? initial : "");
    append_name(out, row);
    append_wrapped(out, tn_buf_text(&text));
    out->failed |= text.failed;
    tn_buf_fini(&text);
}

static void append_options(struct tn_buf *out, enum tn_command command)
{
    for (uint32_t i = 0; i < tn_n_option_rows; i++)
        if (tn_option_rows[i].commands >> command & 1 && !tn_option_rows[i].hidden)
            append_option(out, &tn_option_rows[i]);
}

void tn_help_command(enum tn_command command)
{
    const struct tn_command_row *row = &tn_command_rows[command];
    struct tn_buf out = {0};
    tn_buf_printf(&out, "Usage: tern %s%s%s\n\n%c%s.\n%s%s", row->name,
                  row->arguments[0] ? " " : "", row->arguments,
                  toupper((unsigned char)row->summary[0]), row->summary + 1,
                  row->text[0] ? "\n" : "", row->text);
    tn_buf_append_text(&out, "\nFlags:\n");
    append_options(&out, command);
    if (strstr(row->arguments, "[MODEL]"))
        tn_buf_append_text(&out, "\nWithout MODEL: $TERN_MODEL, model.tern beside the program, "
                                 "then the demo.\n");
    tn_out_buf(&out);
}

/* One screen of 24 lines. */
void tn_help_all(void)
{
    struct tn_buf out = {0};
    tn_buf_append_text(&out, "tern runs language models, ternary (BitNet b1.58) and ordinary, "
                             "on CPUs.\n\n");
    for (uint32_t i = 0; i < TN_N_COMMANDS; i++)
        tn_buf_printf(&out, "  tern %-31s %s\n", tn_command_rows[i].example,
                      tn_command_rows[i].summary);
    tn_buf_append_text(&out, "\nA model is a file or a name that tern list shows; without one: "
                             "the demo.\nMore by tern help TOPIC: ");
    tn_help_append_topics(&out);
    tn_out_buf(&out);
}
