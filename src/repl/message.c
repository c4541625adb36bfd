/* SPDX-License-Identifier: MIT
 *
 * Decides when a typed message is complete, and strips its continuation marks.
 *
 * Used by both line readers, so that terminals and pipes accept the same syntax.
 */
#include "repl/message.h"

#include <string.h>

#define QUOTES "\"\"\""
#define N_QUOTES 3

static size_t skip_blanks(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && strchr(" \t\n", text[at]) && text[at])
        at++;
    return at;
}

static size_t trim_blanks(const char *text, size_t n)
{
    while (n > 0 && strchr(" \t\n", text[n - 1]) && text[n - 1])
        n--;
    return n;
}

static bool is_block(const char *text, size_t n, size_t *start)
{
    *start = skip_blanks(text, n);
    return n - *start >= N_QUOTES && memcmp(text + *start, QUOTES, N_QUOTES) == 0;
}

enum tn_message_state tn_message_state(const char *text, size_t n)
{
    size_t start;
    if (is_block(text, n, &start)) {
        const size_t end = trim_blanks(text, n);
        return end - start >= 2 * N_QUOTES && memcmp(text + end - N_QUOTES, QUOTES, N_QUOTES) == 0
                   ? TN_MESSAGE_WHOLE
                   : TN_MESSAGE_OPEN;
    }
    return n > 0 && text[n - 1] == '\\' ? TN_MESSAGE_BACKSLASH : TN_MESSAGE_WHOLE;
}

bool tn_message_take(struct tn_buf *out, const char *text, size_t n)
{
    size_t start;
    if (!is_block(text, n, &start)) {
        while (n > 0 && text[n - 1] == '\n')
            n--;
        return tn_buf_append(out, text, n);
    }
    size_t end = trim_blanks(text, n) - N_QUOTES;
    start += N_QUOTES;
    if (start < end && text[start] == '\n')
        start++;
    if (start < end && text[end - 1] == '\n')
        end--;
    if (start < end && text[start] == '/' && !tn_buf_append(out, "/", 1))
        return false;
    return tn_buf_append(out, text + start, end - start);
}
