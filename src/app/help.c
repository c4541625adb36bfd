/* SPDX-License-Identifier: MIT
 *
 * Help: at most 80 columns; ranges and defaults are those of the parser.
 */
#include "help.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "output.h"

#define N_COLUMNS 80u
#define HELP_COLUMN 30u

/* Appends words, broken so that lines end before column 80 and go on at `indent`. */
static void append_wrapped(struct tn_buf *out, const char *text, size_t column, size_t indent)
{
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column + n > N_COLUMNS && column > indent) {
            tn_buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        }
        tn_buf_append(out, text, n);
        column += n;
        text += n;
        if (*text == ' ') {
            text++;
            tn_buf_append(out, " ", 1);
            column++;
        }
    }
    while (out->n_bytes > 0 && out->data[out->n_bytes - 1] == ' ')
        out->n_bytes--;
    tn_buf_append(out, "\n", 1);
}

static void append_option(struct tn_buf *out, const struct tn_option_row *row)
{
    char left[64];
    char range[128];
    struct tn_buf text = {0};
    int n = snprintf(left, sizeof left, "  %c%c%s --%s%s%s", row->letter ? '-' : ' ',
                     row->letter ? row->letter : ' ', row->letter ? "," : " ", row->name,
                     row->kind == TN_OPT_STATS ? "[=json]" : row->value ? " " : "",
                     row->value ? row->value : "");
    tn_option_range_text(row, range, sizeof range);
    tn_buf_append_text(&text, row->help);
    /* Limits that nobody meets by accident are not worth a line. */
    if (range[0] && !(row->kind == TN_OPT_COUNT && row->high > 512))
        tn_buf_printf(&text, "; %s", range);
    if (row->initial)
        tn_buf_printf(&text, " (default %s)", row->initial);
    tn_buf_append_text(out, left);
    size_t column = (size_t)n;
    if (column + 2 > HELP_COLUMN) {
        tn_buf_append_text(out, "\n");
        column = 0;
    }
    tn_buf_printf(out, "%*s", (int)(HELP_COLUMN - column), "");
    append_wrapped(out, tn_buf_text(&text), HELP_COLUMN, HELP_COLUMN);
    tn_buf_fini(&text);
}

static void append_options(struct tn_buf *out, enum tn_command command)
{
    for (uint32_t i = 0; i < tn_n_option_rows; i++)
        if (tn_option_rows[i].commands >> command & 1 && !tn_option_rows[i].hidden)
            append_option(out, &tn_option_rows[i]);
}

static void write_out(struct tn_buf *out)
{
    tn_out_text(tn_buf_text(out));
    tn_buf_fini(out);
}

void tn_help_command(enum tn_command command)
{
    const struct tn_command_row *row = &tn_command_rows[command];
    struct tn_buf out = {0};
    tn_buf_printf(&out, "Usage: tern %s%s%s\n\n%s%s", row->name, row->arguments[0] ? " " : "",
                  row->arguments, row->summary, row->text[0] ? ".\n\n" : ".\n");
    tn_buf_append_text(&out, row->text);
    tn_buf_append_text(&out, "\nFlags:\n");
    append_options(&out, command);
    if (strstr(row->arguments, "[MODEL]"))
        tn_buf_append_text(&out, "\nWithout MODEL: $TERN_MODEL, model.tern beside the program, "
                                 "then the demo.\n");
    write_out(&out);
}

void tn_help_all(void)
{
    struct tn_buf out = {0};
    tn_buf_append_text(&out, "tern runs ternary language models (BitNet b1.58) on ordinary CPUs."
                             "\n\nUsage: tern COMMAND [ARGUMENTS] [FLAGS]\n"
                             "       tern --prompt TEXT            the same as tern run -p TEXT\n"
                             "\nCommands:\n");
    for (uint32_t i = 0; i < TN_N_COMMANDS; i++)
        tn_buf_printf(&out, "  %-11s %s\n", tn_command_rows[i].name, tn_command_rows[i].summary);
    tn_buf_append_text(&out, "\nFlags of tern run (tern help COMMAND lists those of the others):\n");
    append_options(&out, TN_CMD_RUN);
    tn_buf_append_text(&out,
                       "\nMODEL is a .tern file, anywhere among the arguments; without it: "
                       "$TERN_MODEL,\nmodel.tern beside the program, then the demo that ships.\n"
                       "\nExit codes: 0 ok, 2 usage, 3 memory or limit, 4 output, 5 bad input, "
                       "6 not\nsupported, 74 file changed while in use, 130 interrupted.\n");
    write_out(&out);
}
