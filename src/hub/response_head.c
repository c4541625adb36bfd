/* SPDX-License-Identifier: MIT
 *
 * Parses the head of an HTTP response (response_head.h): status line and the few headers that
 * downloads need.
 */
#include "hub/response_head.h"

#include <ctype.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/text_match.h"

struct line {
    const char *text;
    size_t n; /* length without the line ending */
};

/* Takes a line; false: no complete line. */
static bool take_line(struct line *out, const char **next, const char *end)
{
    const char *newline = memchr(*next, '\n', (size_t)(end - *next));
    if (!newline)
        return false;
    *out = (struct line){*next, (size_t)(newline - *next)};
    if (out->n > 0 && out->text[out->n - 1] == '\r')
        out->n--;
    *next = newline + 1;
    return true;
}

/* The value if the line is the header `name` (lower case), else NULL. */
static const char *value_of(const struct line *line, const char *name, size_t *n)
{
    const size_t n_name = strlen(name);
    if (line->n <= n_name || line->text[n_name] != ':')
        return NULL;
    for (size_t i = 0; i < n_name; i++)
        if (tolower((unsigned char)line->text[i]) != name[i])
            return NULL;
    const char *value = line->text + n_name + 1, *end = line->text + line->n;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *n = (size_t)(end - value);
    return value;
}

/* The number at the start of a text of n bytes, or `otherwise`. */
static uint64_t number_of(const char *text, size_t n, uint64_t otherwise)
{
    uint64_t number = 0;
    size_t i = 0;
    for (; i < n && isdigit((unsigned char)text[i]); i++) {
        if (number > (UINT64_MAX - 9) / 10)
            return otherwise;
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    return i > 0 ? number : otherwise;
}

static void read_header(struct tn_response_head *out, const struct line *line)
{
    size_t n;
    const char *value;
    if ((value = value_of(line, "location", &n)) != NULL) {
        n = TN_MIN(n, sizeof out->location - 1);
        memcpy(out->location, value, n);
        out->location[n] = '\0';
    } else if ((value = value_of(line, "content-length", &n)) != NULL) {
        out->content_bytes = number_of(value, n, TN_LENGTH_UNKNOWN);
    } else if ((value = value_of(line, "content-range", &n)) != NULL) {
        if (n > 6 && memcmp(value, "bytes ", 6) == 0)
            out->range_first = number_of(value + 6, n - 6, TN_LENGTH_UNKNOWN);
    } else if ((value = value_of(line, "retry-after", &n)) != NULL) {
        const uint64_t seconds = number_of(value, n, 0);
        out->retry_after_s = seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
    } else if ((value = value_of(line, "link", &n)) != NULL) {
        out->has_next_page = tn_text_find(value, n, 0, "rel=\"next\"") < n;
    }
}

/* The status of "HTTP/1.1 200 OK", "HTTP/2 200"; 0: another protocol. */
static int status_of(const struct line *line)
{
    const char *blank = memchr(line->text, ' ', line->n);
    if (line->n < 5 || memcmp(line->text, "HTTP/", 5) != 0 || !blank)
        return 0;
    const size_t n = line->n - (size_t)(blank + 1 - line->text);
    const uint64_t status = number_of(blank + 1, n, 0);
    return status >= 100 && status <= 599 ? (int)status : 0;
}

/* Reads one head, interim or not.  True: it is complete, and *next is after it. */
static bool read_head(struct tn_response_head *out, const char **next, const char *end)
{
    struct line line;
    *out = (struct tn_response_head){.content_bytes = TN_LENGTH_UNKNOWN,
                                     .range_first = TN_LENGTH_UNKNOWN};
    if (!take_line(&line, next, end))
        return false;
    out->status = status_of(&line);
    if (out->status == 0)
        return true;
    while (take_line(&line, next, end)) {
        if (line.n == 0)
            return true;
        read_header(out, &line);
    }
    return false;
}

size_t tn_response_head_parse(struct tn_response_head *out, const char *bytes, size_t n,
                              tern_status *status, struct tern_error *err)
{
    const char *next = bytes, *end = bytes + n;
    *status = TERN_OK;
    do {
        if (!read_head(out, &next, end)) {
            if (n >= TN_RESPONSE_HEAD_MAX_BYTES)
                *status = tn_fail(err, TERN_NETWORK, "the head of a response is beyond %u bytes",
                                  TN_RESPONSE_HEAD_MAX_BYTES);
            return 0;
        }
    } while (out->status >= 100 && out->status < 200);
    if (out->status == 0)
        *status = tn_fail(err, TERN_NETWORK, "the server does not answer in HTTP");
    return *status == TERN_OK ? (size_t)(next - bytes) : 0;
}
