/* SPDX-License-Identifier: MIT
 *
 * The request parser of http.h.
 *
 * The head is buffered, with every byte checked on arrival so that invalid input is refused at
 * once; then it is parsed as a whole.
 */
#include "server/http.h"

#include <string.h>

#include "base/compiler.h"
#include "base/text_match.h"
#include "plat/plat.h"

/* Empty lines skipped before a request; RFC 9112 requires at least one. */
#define MAX_EMPTY_LINES 2u
#define SMALL_BODY ((size_t)64 << 10)

static const char no_memory[] = "no memory for the request: other requests use it";

/* ---- text helpers ---- */

static bool is_token_char(unsigned char c)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != 0 && strchr(others, c));
}

static bool is_token(struct tn_http_text t)
{
    for (size_t i = 0; i < t.n; i++)
        if (!is_token_char((unsigned char)t.data[i]))
            return false;
    return t.n > 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool tn_http_begins(struct tn_http_text text, const char *prefix)
{
    const size_t n = strlen(prefix);
    size_t i = 0;
    while (text.data && i < n && i < text.n && lower(text.data[i]) == lower(prefix[i]))
        i++;
    return text.data && i == n;
}

bool tn_http_is(struct tn_http_text text, const char *word)
{
    return text.n == strlen(word) && tn_http_begins(text, word);
}

static struct tn_http_text trimmed(struct tn_http_text t)
{
    while (t.n > 0 && (t.data[0] == ' ' || t.data[0] == '\t'))
        t.data++, t.n--;
    while (t.n > 0 && (t.data[t.n - 1] == ' ' || t.data[t.n - 1] == '\t'))
        t.n--;
    return t;
}

/* Removes and returns the text before the first `c`, and `c`; the whole text if there is none. */
static struct tn_http_text cut(struct tn_http_text *rest, char c)
{
    const char *at = rest->n ? memchr(rest->data, c, rest->n) : NULL;
    struct tn_http_text head = {rest->data, at ? (size_t)(at - rest->data) : rest->n};
    size_t n_gone = head.n + (at ? 1 : 0);
    rest->data += n_gone;
    rest->n -= n_gone;
    return head;
}

struct tn_http_text tn_http_next_item(struct tn_http_text *list)
{
    return trimmed(cut(list, ','));
}

static bool lists_word(struct tn_http_text list, const char *word)
{
    while (list.n > 0)
        if (tn_http_is(tn_http_next_item(&list), word))
            return true;
    return false;
}

struct tn_http_text tn_http_field(const struct tn_http_request *r, const char *name,
                                  uint32_t *n_times)
{
    struct tn_http_text found = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_fields; i++)
        if (tn_http_is(r->fields[i].name, name) && n++ == 0)
            found = r->fields[i].value;
    if (n_times)
        *n_times = n;
    return found;
}

static void fail(struct tn_http_request *r, int status, const char *why)
{
    r->state = TN_HTTP_FAILED;
    r->status = status;
    r->why = why;
}

/* ---- the request line ---- */

static void read_method(struct tn_http_request *r, struct tn_http_text name)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "OPTIONS", "DELETE"};
    r->method_name = name;
    r->method = TN_HTTP_OTHER;
    if (!is_token(name) || name.n > 32) {
        fail(r, 400, "the method is not a token");
        return;
    }
    for (int i = 0; i < TN_HTTP_OTHER; i++)  /* method names are case-sensitive */
        if (name.n == strlen(names[i]) && memcmp(name.data, names[i], name.n) == 0)
            r->method = (enum tn_http_method)i;
}

static void read_version(struct tn_http_request *r, struct tn_http_text version)
{
    if (version.n != 8 || memcmp(version.data, "HTTP/", 5) != 0 || version.data[6] != '.' ||
        version.data[5] < '0' || version.data[5] > '9' || version.data[7] < '0' ||
        version.data[7] > '9')
        fail(r, 400, "the request line must end in HTTP/1.1");
    else if (memcmp(version.data, "HTTP/1.", 7) != 0 || version.data[7] > '1')
        fail(r, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    else
        r->is_1_0 = version.data[7] == '0';
}

/* Decodes %-escapes; in forms '+' is a space. */
static bool decode(struct tn_buf *out, struct tn_http_text text, bool is_form)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.data[i];
        if (c == '%') {
            int high = i + 2 < text.n ? tn_hex_digit(text.data[i + 1]) : -1;
            int low = i + 2 < text.n ? tn_hex_digit(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (is_form && c == '+') {
            c = ' ';
        }
        if (c == '\0' || !tn_buf_append(out, &c, 1))
            return false;
    }
    return true;
}

bool tn_http_query(const struct tn_http_request *r, const char *name, struct tn_buf *out)
{
    struct tn_http_text rest = r->query;
    while (rest.n > 0) {
        struct tn_http_text value = cut(&rest, '&');
        struct tn_http_text key = cut(&value, '=');
        if (key.n == strlen(name) && memcmp(key.data, name, key.n) == 0)
            return decode(out, value, true);
    }
    return false;
}

static void read_target(struct tn_http_request *r, struct tn_http_text target)
{
    for (size_t i = 0; i < target.n; i++) {
        unsigned char c = (unsigned char)target.data[i];
        if (c <= 0x20 || c >= 0x7F || c == '#') {
            fail(r, 400, "the target contains an invalid byte");
            return;
        }
    }
    struct tn_http_text rest = target;
    if (rest.n > 7 && tn_http_begins(rest, "http://")) {
        rest.data += 7, rest.n -= 7;
        const char *slash = memchr(rest.data, '/', rest.n);
        size_t n = slash ? (size_t)(slash - rest.data) : rest.n;
        r->authority = (struct tn_http_text){rest.data, n};
        rest.data += n, rest.n -= n;
        if (rest.n == 0)
            rest = (struct tn_http_text){"/", 1};
    }
    bool is_star = rest.n == 1 && rest.data[0] == '*' && r->method == TN_HTTP_OPTIONS;
    if (!is_star && (rest.n == 0 || rest.data[0] != '/')) {
        fail(r, 400, "the target must begin with /");
        return;
    }
    struct tn_http_text path = cut(&rest, '?');
    r->query = rest;
    if (decode(&r->path, path, false))
        return;
    if (r->path.failed)
        fail(r, 503, no_memory);
    else
        fail(r, 400, "the path contains an invalid %-escape");
}

static void read_request_line(struct tn_http_request *r, struct tn_http_text line)
{
    const char *first = memchr(line.data, ' ', line.n);
    const char *last = line.data + line.n;
    while (last > line.data && last[-1] != ' ')
        last--;
    if (!first || last - 1 <= first) {
        fail(r, 400, "the request line is not METHOD TARGET VERSION");
        return;
    }
    read_version(r, (struct tn_http_text){last, (size_t)(line.data + line.n - last)});
    if (r->state != TN_HTTP_FAILED)
        read_method(r, (struct tn_http_text){line.data, (size_t)(first - line.data)});
    if (r->state != TN_HTTP_FAILED)
        read_target(r, (struct tn_http_text){first + 1, (size_t)(last - 1 - first - 1)});
}

/* ---- fields ---- */

static void read_field(struct tn_http_request *r, struct tn_http_text line)
{
    struct tn_http_text rest = line;
    struct tn_http_text name = cut(&rest, ':');
    if (line.data[0] == ' ' || line.data[0] == '\t')
        fail(r, 400, "a field is continued on the next line");
    else if (name.n == line.n || !is_token(name))
        fail(r, 400, "a field has an invalid name, or a space before its colon");
    else if (r->n_fields == TN_HTTP_MAX_FIELDS)
        fail(r, 431, "more than 64 fields");
    else
        r->fields[r->n_fields++] = (struct tn_http_field){name, trimmed(rest)};
}

static bool parse_length(struct tn_http_text text, uint64_t *out)
{
    uint64_t n = 0;
    if (text.n == 0)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        /* Saturates: an overlong number stays too large. */
        n = n > UINT64_MAX / 16 ? n : n * 10 + (uint64_t)(text.data[i] - '0');
    }
    *out = n;
    return true;
}

static void read_framing(struct tn_http_request *r)
{
    uint32_t n_lengths, n_codings;
    struct tn_http_text length = tn_http_field(r, "content-length", &n_lengths);
    struct tn_http_text coding = tn_http_field(r, "transfer-encoding", &n_codings);
    if (n_lengths > 1 || n_codings > 1 || (n_lengths && n_codings))
        fail(r, 400, "more than one field gives the length of the body");
    else if (n_codings && r->is_1_0)
        fail(r, 400, "HTTP/1.0 has no transfer codings");
    else if (n_codings && !tn_http_is(coding, "chunked"))
        fail(r, 501, "the only supported transfer coding is chunked");
    else if (n_lengths && !parse_length(length, &r->n_left))
        fail(r, 400, "Content-Length is not a number");
    else if (r->n_left > TN_HTTP_MAX_BODY)
        fail(r, 413, "the body is larger than 4 MiB");
    r->is_chunked = n_codings > 0;
    r->has_body = r->is_chunked || r->n_left > 0;
}

/* Is the body compressed?  Not supported. */
static bool has_content_coding(const struct tn_http_request *r)
{
    uint32_t n_codings;
    struct tn_http_text coding = tn_http_field(r, "content-encoding", &n_codings);
    return r->has_body && n_codings > 0 && coding.n > 0 &&
           (n_codings > 1 || !tn_http_is(coding, "identity"));
}

static void read_meaning(struct tn_http_request *r)
{
    uint32_t n_hosts, n_expects;
    struct tn_http_text connection = tn_http_field(r, "connection", NULL);
    tn_http_field(r, "host", &n_hosts);
    struct tn_http_text expect = tn_http_field(r, "expect", &n_expects);
    r->keeps_alive = r->is_1_0 ? lists_word(connection, "keep-alive")
                               : !lists_word(connection, "close");
    r->expects_continue = n_expects == 1 && !r->is_1_0 && tn_http_is(expect, "100-continue");
    if (n_hosts > 1 || (n_hosts == 0 && !r->is_1_0)) /* HTTP/1.0 has no Host field */
        fail(r, 400, "there must be exactly one Host field");
    else if (n_expects > 0 && !r->expects_continue && !r->is_1_0)
        fail(r, 417, "the only supported expectation is 100-continue");
    else
        read_framing(r);
    if (r->state != TN_HTTP_FAILED && has_content_coding(r))
        fail(r, 415, "the body has a Content-Encoding; send it as plain JSON");
}

/* Parses the complete head; every line ends with CR LF. */
static void read_head(struct tn_http_request *r)
{
    struct tn_http_text rest = {r->head.data, r->head.n_bytes};
    for (bool is_first = true; rest.n > 2 && r->state != TN_HTTP_FAILED; is_first = false) {
        struct tn_http_text line = cut(&rest, '\n');
        line.n--; /* without the CR */
        if (is_first)
            read_request_line(r, line);
        else
            read_field(r, line);
    }
    if (r->state != TN_HTTP_FAILED)
        read_meaning(r);
    if (r->state != TN_HTTP_FAILED)
        r->state = TN_HTTP_HEAD_DONE;
}

static bool head_ends(const struct tn_buf *head)
{
    return head->n_bytes >= 4 && memcmp(head->data + head->n_bytes - 4, "\r\n\r\n", 4) == 0;
}

/* Consumes one byte of the head. */
static void take_head_byte(struct tn_http_request *r, char c)
{
    struct tn_buf *head = &r->head;
    unsigned char u = (unsigned char)c;
    char before = head->n_bytes ? head->data[head->n_bytes - 1] : '\0';
    size_t limit = r->n_line ? r->n_line + TN_HTTP_MAX_HEAD : TN_HTTP_MAX_LINE;
    if ((c == '\n') != (before == '\r'))
        fail(r, 400, "lines must end in CR LF");
    else if (u == 0x7F || (u < 0x20 && c != '\t' && c != '\r' && c != '\n'))
        fail(r, 400, "the head contains a control character");
    else if (head->n_bytes >= limit)
        fail(r, r->n_line ? 431 : 414, r->n_line ? "the fields are larger than 16 KiB"
                                                 : "the request line is larger than 8 KiB");
    else if (!tn_buf_append(head, &c, 1))
        fail(r, 503, no_memory);
    else if (c == '\n' && head->n_bytes == 2 && r->n_skipped++ < MAX_EMPTY_LINES)
        tn_buf_clear(head);
    else if (c == '\n' && !r->n_line)
        r->n_line = head->n_bytes;
}

static size_t feed_head(struct tn_http_request *r, const char *bytes, size_t n)
{
    size_t i = 0;
    while (i < n && r->state == TN_HTTP_HEAD) {
        take_head_byte(r, bytes[i++]);
        if (r->state == TN_HTTP_HEAD && head_ends(&r->head))
            read_head(r);
    }
    return i;
}

/* ---- the body ---- */

enum { CHUNK_SIZE, CHUNK_EXTENSION, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_CR, CHUNK_LF, TRAILER,
       TRAILER_LINE, TRAILER_LF, END_LF };

void tn_http_continue(struct tn_http_request *r)
{
    r->state = r->has_body ? TN_HTTP_BODY : TN_HTTP_DONE;
    r->body = (struct tn_http_text){"", 0};
    r->n_skipped = 0;
    r->chunk = CHUNK_SIZE;
}

/* Commits pages for n_bytes of the body. */
static bool commit_pages(struct tn_http_request *r, size_t n_bytes)
{
    const size_t step = (size_t)256 << 10;
    struct tn_http_pages *p = &r->pages;
    if (!p->data)
        *p = (struct tn_http_pages){.data = tn_pages_reserve(TN_HTTP_MAX_BODY),
                                    .budget = r->budget};
    const size_t n_needed = (n_bytes + step - 1) / step * step;
    const size_t n_more = n_needed - TN_MIN(p->n_committed, n_needed);
    if (!p->data || (p->budget && !tn_budget_take(p->budget, n_more)))
        return false;
    if (n_more > 0 && !tn_pages_commit(p->data + p->n_committed, n_more)) {
        if (p->budget)
            tn_budget_release(p->budget, n_more);
        return false;
    }
    p->n_committed += n_more;
    return true;
}

void tn_http_free_pages(struct tn_http_pages *p)
{
    if (p->data)
        tn_pages_release(p->data, TN_HTTP_MAX_BODY);
    if (p->budget)
        tn_budget_release(p->budget, p->n_committed);
    *p = (struct tn_http_pages){0};
}

struct tn_http_pages tn_http_take_pages(struct tn_http_request *r)
{
    const struct tn_http_pages pages = r->pages;
    r->pages = (struct tn_http_pages){0};
    r->body = (struct tn_http_text){"", 0};
    return pages;
}

static bool append_body(struct tn_http_request *r, const char *bytes, size_t n)
{
    bool was_small = !r->pages.data;
    if (was_small && r->body.n + n <= SMALL_BODY) {
        if (!tn_buf_append(&r->small_body, bytes, n))
            return false;
        r->body = (struct tn_http_text){r->small_body.data, r->small_body.n_bytes};
        return true;
    }
    if (!commit_pages(r, r->body.n + n))
        return false;
    if (was_small && r->body.n > 0)
        memcpy(r->pages.data, r->body.data, r->body.n);
    memcpy(r->pages.data + r->body.n, bytes, n);
    r->pages.n = r->body.n + n;
    r->body = (struct tn_http_text){r->pages.data, r->pages.n};
    return true;
}

static size_t take_data(struct tn_http_request *r, const char *bytes, size_t n)
{
    size_t n_taken = n < r->n_left ? n : (size_t)r->n_left;
    if (r->body.n + n_taken > TN_HTTP_MAX_BODY)
        fail(r, 413, "the body is larger than 4 MiB");
    else if (!append_body(r, bytes, n_taken))
        fail(r, 503, "no memory for the request");
    r->n_left -= n_taken;
    return n_taken;
}

static void end_chunk_size(struct tn_http_request *r, char c)
{
    if (r->n_digits == 0 || (c != '\r' && c != ';'))
        fail(r, 400, "a chunk has no hexadecimal size");
    else
        r->chunk = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
}

static void take_size_byte(struct tn_http_request *r, char c)
{
    int digit = tn_hex_digit(c);
    if (digit < 0) {
        end_chunk_size(r, c);
        return;
    }
    r->n_left = r->n_left * 16 + (uint64_t)digit;
    if (++r->n_digits > 8)
        fail(r, 400, "the size of a chunk has more than 8 digits");
    else if (r->n_left > TN_HTTP_MAX_BODY)
        fail(r, 413, "the body is larger than 4 MiB");
}

/* Skips extensions and trailers, which are ignored; limited in length, without control characters.
 */
static void skip_byte(struct tn_http_request *r, char c, int at_cr)
{
    unsigned char u = (unsigned char)c;
    if (c == '\r')
        r->chunk = at_cr;
    else if (u == 0x7F || (u < 0x20 && c != '\t'))
        fail(r, 400, "the chunked coding contains a control character");
    else if (++r->n_skipped > 4096)
        fail(r, 431, "the extensions and trailers of the body exceed 4 KiB");
}

static void expect_byte(struct tn_http_request *r, char c, char expected, int next)
{
    if (c == expected)
        r->chunk = next;
    else
        fail(r, 400, "a chunk does not end where its size says");
}

static void take_coding_byte(struct tn_http_request *r, char c)
{
    switch (r->chunk) {
    case CHUNK_SIZE:
        take_size_byte(r, c);
        break;
    case CHUNK_EXTENSION:
        skip_byte(r, c, CHUNK_SIZE_LF);
        break;
    case CHUNK_SIZE_LF:
        expect_byte(r, c, '\n', r->n_left ? CHUNK_DATA : TRAILER);
        break;
    case CHUNK_CR:
        expect_byte(r, c, '\r', CHUNK_LF);
        break;
    case CHUNK_LF:
        expect_byte(r, c, '\n', CHUNK_SIZE);
        r->n_digits = 0;
        break;
    case TRAILER:
        r->chunk = TRAILER_LINE;
        skip_byte(r, c, END_LF);
        break;
    case TRAILER_LINE:
        skip_byte(r, c, TRAILER_LF);
        break;
    case TRAILER_LF:
        expect_byte(r, c, '\n', TRAILER);
        break;
    default: /* END_LF */
        expect_byte(r, c, '\n', END_LF);
        if (r->state == TN_HTTP_BODY)
            r->state = TN_HTTP_DONE;
        break;
    }
}

static size_t feed_chunked(struct tn_http_request *r, const char *bytes, size_t n)
{
    size_t i = 0;
    while (i < n && r->state == TN_HTTP_BODY) {
        if (r->chunk == CHUNK_DATA) {
            i += take_data(r, bytes + i, n - i);
            if (r->n_left == 0)
                r->chunk = CHUNK_CR;
        } else {
            take_coding_byte(r, bytes[i++]);
        }
    }
    return i;
}

static size_t feed_length(struct tn_http_request *r, const char *bytes, size_t n)
{
    size_t n_taken = take_data(r, bytes, n);
    if (r->state == TN_HTTP_BODY && r->n_left == 0)
        r->state = TN_HTTP_DONE;
    return n_taken;
}

size_t tn_http_feed(struct tn_http_request *r, const char *bytes, size_t n)
{
    if (r->state == TN_HTTP_HEAD)
        return feed_head(r, bytes, n);
    if (r->state == TN_HTTP_BODY)
        return r->is_chunked ? feed_chunked(r, bytes, n) : feed_length(r, bytes, n);
    return 0;
}

void tn_http_fini(struct tn_http_request *r)
{
    tn_buf_fini(&r->head);
    tn_buf_fini(&r->path);
    tn_buf_fini(&r->small_body);
    tn_http_free_pages(&r->pages);
    *r = (struct tn_http_request){.budget = r->budget};
}
