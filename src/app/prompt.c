/* SPDX-License-Identifier: MIT
 *
 * Reads the prompt from -p, a file or standard input (prompt.h), and checks that it is UTF-8.
 */
#include "prompt.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text_match.h"
#include "base/utf8.h"
#include "output.h"
#include "plat/plat.h"

tern_status tn_prompt_check(const struct tn_options *o, struct tern_error *err)
{
    if (o->prompt || o->file || !tn_is_terminal(TN_STDIN))
        return TERN_OK;
    return tn_fail(err, TERN_USAGE,
                   "no prompt: give one with -p \"TEXT\" or -f FILE, or talk with tern chat");
}

void tn_prompt_append(void *text, const char *bytes, size_t n)
{
    struct tn_buf *buf = text;
    if (tn_prompt_has_room(buf, n))
        tn_buf_append(buf, bytes, n);
    else
        buf->failed = true;
}

void tn_prompt_say_waiting(const char *what)
{
    if (tn_is_terminal(TN_STDIN))
        tn_info_say("waiting for %s; " TN_KEY_OF_END " on an empty line ends it", what);
}

static bool begins_with(const char *data, size_t n, const char *bytes, size_t n_bytes)
{
    return n >= n_bytes && memcmp(data, bytes, n_bytes) == 0;
}

size_t tn_prompt_mark(const char *text, size_t n)
{
    return begins_with(text, n, "\xEF\xBB\xBF", 3) ? 3 : 0;
}

tern_status tn_prompt_check_text(const char *text, size_t n, const char *name,
                                 struct tern_error *err)
{
    if (begins_with(text, n, "\xFF\xFE", 2) || begins_with(text, n, "\xFE\xFF", 2))
        return tn_fail(err, TERN_INPUT, "\"%s\" is UTF-16; save it as UTF-8", name);
    size_t bad = tn_utf8_find_invalid(text, n);
    if (bad < n)
        return tn_fail(err, TERN_INPUT, "\"%s\" is not UTF-8: byte %zu is 0x%02X", name, bad,
                       (unsigned char)text[bad]);
    return TERN_OK;
}

static tern_status append_text(struct tn_buf *out, const char *data, size_t n, const char *name,
                               struct tern_error *err)
{
    size_t start = tn_prompt_mark(data, n);
    tern_status status = tn_prompt_check_text(data, n, name, err);
    if (status != TERN_OK)
        return status;
    if (!tn_buf_append(out, data + start, n - start))
        return tn_fail(err, TERN_MEMORY, "no memory for a prompt of %zu bytes", n);
    return TERN_OK;
}

tern_status tn_prompt_read(struct tn_buf *out, const struct tn_options *o, struct tern_error *err)
{
    if (o->prompt && (!tn_buf_append_text(out, o->prompt) ||
                      (o->file && !tn_buf_append_text(out, "\n\n"))))
        return tn_fail(err, TERN_MEMORY, "no memory for the prompt");
    if (o->prompt && !o->file)
        return TERN_OK;
    char *data;
    size_t n;
    bool from_stdin = !o->file || strcmp(o->file, "-") == 0;
    const char *name = from_stdin ? "standard input" : o->file;
    tern_status status =
        from_stdin ? tn_stdin_read_all(&data, &n, TN_MAX_PROMPT_BYTES, err)
                   : tn_file_read_all(&data, &n, o->file, TN_MAX_PROMPT_BYTES, err);
    if (status == TERN_OK)
        status = append_text(out, data, n, name, err);
    tn_free(data);
    if (status == TERN_OK && !o->file && out->n_bytes == 0)
        status = tn_fail(err, TERN_USAGE,
                         "no prompt: standard input is empty; usage: tern run [MODEL] -p TEXT");
    return status;
}

void tn_prompt_trim_newlines(struct tn_buf *prompt)
{
    while (prompt->n_bytes > 0 && (prompt->data[prompt->n_bytes - 1] == '\n' ||
                                   prompt->data[prompt->n_bytes - 1] == '\r'))
        prompt->n_bytes--;
}

bool tn_prompt_is_blank(const char *text, size_t n)
{
    return tn_text_n_space(text, n) == n;
}
