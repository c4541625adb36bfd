/* SPDX-License-Identifier: MIT
 *
 * Writes results to standard output and messages to standard error (output.h): escapes control
 * characters, wraps on terminals, remembers the first write error.
 */
#include "output.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "plat/plat.h"
#include "repl/flow.h"

#define HANG 2u /* indentation of wrapped rows relative to the start of their line */

/* ---- terminals ---- */

/* Characters that a terminal may interpret, except line breaks and tabs. */
static bool is_hidden(uint32_t c)
{
    return tn_is_control(c) && c != '\n' && c != '\t';
}

/* Writes \xNN, \uNNNN or \UNNNNNNNN. */
static int write_escape(enum tn_stream stream, uint32_t c)
{
    char shown[16];
    const char *format = c < 0x100 ? "\\x%02X" : c < 0x10000 ? "\\u%04X" : "\\U%08X";
    int n = snprintf(shown, sizeof shown, format, c);
    return tn_write_stream(stream, shown, (size_t)n);
}

/* Writes text verbatim, except that non-ASCII characters become escapes on a terminal without
 * UTF-8, and, with hide_controls, control characters on any terminal.  Result: that of
 * tn_write_stream. */
static int write_text(enum tn_stream stream, const char *text, size_t n, bool hide_controls)
{
    bool is_ascii = !tn_terminal_is_utf8();
    if (!(is_ascii || hide_controls) || !tn_is_terminal(stream))
        return tn_write_stream(stream, text, n);
    int result = 0;
    size_t start = 0;
    uint32_t c;
    for (size_t i = 0, length; i < n && result == 0; i += length) {
        length = tn_utf8_character(text + i, n - i, &c);
        if (length == 0) {
            length = 1;
            c = (unsigned char)text[i];
        }
        if ((is_ascii && c >= 0x80) || (hide_controls && is_hidden(c))) {
            result = tn_write_stream(stream, text + start, i - start);
            if (result == 0)
                result = write_escape(stream, c);
            start = i + length;
        }
    }
    return result != 0 ? result : tn_write_stream(stream, text + start, n - start);
}

/* ---- results ---- */

enum { OUT_READER_LEFT = 1, OUT_FAILED = 2, OUT_NO_MEMORY = 3 };

static struct {
    int result; /* of tn_write_stream, or OUT_NO_MEMORY; nonzero: closed */
    bool any;
    char last; /* last byte written */
} out;

static bool out_write(const char *text, size_t n, bool hide_controls)
{
    if (out.result != 0 || n == 0)
        return out.result == 0;
    out.result = write_text(TN_STDOUT, text, n, hide_controls);
    out.any = true;
    out.last = text[n - 1];
    return out.result == 0;
}

/* ---- answers ---- */

static struct {
    struct tn_flow flow;
    bool is_open, is_plain;
} answer;

static void write_answer(void *arg, const char *text, size_t n)
{
    (void)arg;
    (void)out_write(text, n, true);
}

static void write_style(void *arg, enum tn_style style)
{
    static const char *const sequences[] = {"\x1B[0m", "\x1B[0;2m", "\x1B[0;1m"};
    (void)arg;
    if (out.result == 0)
        out.result = tn_write_stream(TN_STDOUT, sequences[style], strlen(sequences[style]));
}

static void end_answer(void)
{
    if (!answer.is_open)
        return;
    answer.is_open = false;
    tn_flow_end(&answer.flow);
    tn_flow_fini(&answer.flow);
}

void tn_out_set_plain(bool is_plain)
{
    answer.is_plain = is_plain;
}

/* Whether this stream has styles: only on a terminal that is not dumb, without NO_COLOR. */
static bool is_styled(enum tn_stream stream)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return tn_is_terminal(stream) && !(no_color && *no_color) && term && *term &&
           strcmp(term, "dumb") != 0;
}

bool tn_out_answer(const char *text, size_t n)
{
    if (answer.is_plain || !tn_is_terminal(TN_STDOUT))
        return tn_out_generated(text, n);
    if (!answer.is_open) {
        const bool has_styles = is_styled(TN_STDOUT);
        const struct tn_flow_output output = {.text = write_answer,
                                              .style = has_styles ? write_style : NULL};
        tn_flow_init(&answer.flow, &output, tn_terminal_columns(), true);
        answer.is_open = true;
    }
    answer.flow.columns = tn_terminal_columns();
    tn_flow_write(&answer.flow, text, n);
    return out.result == 0;
}

/* ---- other results ---- */

bool tn_out_write(const void *bytes, size_t n)
{
    end_answer();
    return out_write(bytes, n, false);
}

bool tn_out_generated(const char *text, size_t n)
{
    end_answer();
    return out_write(text, n, true);
}

/* Replaces the text by its wrapped rows, for a terminal and if there is memory for them. */
static void wrap(struct tn_buf *rows, enum tn_stream stream, const char **text, size_t *n)
{
    if (tn_is_terminal(stream))
        tn_flow_append(rows, *text, *n, tn_terminal_columns(), HANG);
    if (rows->n_bytes > 0 && !rows->failed) {
        *text = rows->data;
        *n = rows->n_bytes;
    }
}

bool tn_out_wrapped(const char *text, size_t n)
{
    struct tn_buf rows = {0};
    wrap(&rows, TN_STDOUT, &text, &n);
    const bool is_open = tn_out_generated(text, n);
    tn_buf_fini(&rows);
    return is_open;
}

bool tn_out_text(const char *text)
{
    return tn_out_write(text, strlen(text));
}

bool tn_out_printf(const char *format, ...)
{
    struct tn_buf buf = {0};
    va_list args;
    va_start(args, format);
    tn_buf_vprintf(&buf, format, args);
    va_end(args);
    return tn_out_buf(&buf);
}

bool tn_out_buf(struct tn_buf *buf)
{
    if (buf->failed && out.result == 0)
        out.result = OUT_NO_MEMORY;
    bool good = tn_out_write(buf->data, buf->n_bytes);
    tn_buf_fini(buf);
    return good;
}

bool tn_out_end_line(void)
{
    end_answer();
    return !out.any || out.last == '\n' || tn_out_write("\n", 1);
}

bool tn_out_is_open(void)
{
    return out.result == 0;
}

bool tn_out_has_failed(void)
{
    return out.result != 0 && out.result != OUT_READER_LEFT;
}

int tn_out_finish(int exit_code)
{
    end_answer();
    if (out.result == 0 || (exit_code != 0 && exit_code != 130))
        return exit_code;
    if (out.result == OUT_READER_LEFT)
        return exit_code; /* the reader had all it wanted */
    if (out.result == OUT_NO_MEMORY)
        return tn_error_say(TERN_MEMORY, "no memory for the output");
    return tn_error_say(TERN_OUTPUT, "standard output cannot be written (disk full or closed?)");
}

/* ---- messages ---- */

static int message_level;
static void (*before_message)(void);

void tn_message_set_before(void (*before)(void))
{
    before_message = before;
}

void tn_message_set_level(int level)
{
    message_level = level;
}

int tn_message_level(void)
{
    return message_level;
}

static void write_wrapped(const char *text, size_t n, bool hide_controls)
{
    struct tn_buf rows = {0};
    wrap(&rows, TN_STDERR, &text, &n);
    (void)write_text(TN_STDERR, text, n, hide_controls);
    tn_buf_fini(&rows);
}

/* Allocates nothing, because the message may report that memory is exhausted. */
static void print_message(const char *prefix, const char *text)
{
    char line[sizeof((struct tern_error *)0)->detail + 32];
    if (before_message)
        before_message();
    int n = snprintf(line, sizeof line, "%s%s\n", prefix, text);
    write_wrapped(line, (size_t)n, false);
}

int tn_error_print(const struct tern_error *err)
{
    print_message("tern: error: ", err->detail[0] ? err->detail : tern_status_text(err->status));
    return tern_status_exit_code(err->status);
}

/* Formats into an error detail: one line, valid UTF-8, no control characters. */
#define FORMAT_DETAIL(err, format)                                                                 \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        tn_vfail((err), TERN_OK, format, args);                                                    \
        va_end(args);                                                                              \
    } while (0)

int tn_error_say(tern_status status, const char *format, ...)
{
    struct tern_error err;
    FORMAT_DETAIL(&err, format);
    err.status = status;
    return tn_error_print(&err);
}

void tn_warning_say(const char *format, ...)
{
    struct tern_error err;
    FORMAT_DETAIL(&err, format);
    print_message("tern: warning: ", err.detail);
}

void tn_note_say(const char *format, ...)
{
    struct tern_error err;
    if (message_level < 0)
        return;
    FORMAT_DETAIL(&err, format);
    print_message("tern: note: ", err.detail);
}

void tn_info_say(const char *format, ...)
{
    struct tern_error err;
    if (message_level < 0)
        return;
    FORMAT_DETAIL(&err, format);
    print_message("", err.detail);
}

void tn_message_text(const char *text, size_t n)
{
    (void)write_text(TN_STDERR, text, n, true);
}

void tn_message_wrapped(const char *text, size_t n)
{
    write_wrapped(text, n, true);
}

const char *tn_message_dim(void)
{
    return is_styled(TN_STDERR) ? "\x1B[2m" : "";
}

const char *tn_message_plain(void)
{
    return is_styled(TN_STDERR) ? "\x1B[0m" : "";
}

/* ---- numbers for display ---- */

static struct tn_size_text scale(double n, double step, const char *const *units)
{
    struct tn_size_text t;
    uint32_t i = 0;
    for (; n >= step && units[i + 1]; i++)
        n /= step;
    snprintf(t.text, sizeof t.text, i == 0 ? "%.0f%s" : n < 99.95 ? "%.1f%s" : "%.0f%s", n,
             units[i]);
    return t;
}

struct tn_size_text tn_size_decimal(double bytes)
{
    static const char *const units[] = {" bytes", " kB", " MB", " GB", " TB", NULL};
    return scale(bytes, 1000.0, units);
}

struct tn_size_text tn_size_binary(double bytes)
{
    static const char *const units[] = {" bytes", " KiB", " MiB", " GiB", " TiB", NULL};
    return scale(bytes, 1024.0, units);
}

struct tn_size_text tn_count_text(double n)
{
    static const char *const units[] = {"", " K", " M", " B", " T", NULL};
    return scale(n, 1000.0, units);
}
