/* SPDX-License-Identifier: MIT
 *
 * String operations shared by filters and methods.
 *
 * All keep the marks of the bytes they copy, and charge steps by the bytes they scan.
 */
#include "text/jinja/strings.h"

#include <string.h>

#include "text/unicode.h"

/* ---- case ---- */

static bool begins_word(uint32_t before, enum tn_jcase target)
{
    if (target == TN_CASE_TITLE)
        return !tn_char_is(before, TN_CHAR_CAPITAL) && !tn_char_is(before, TN_CHAR_SMALL);
    return tn_char_class(before) == TN_CHAR_SPACE ||
           (before > 0 && before < 0x80 && strchr("-({[<", (int)before));
}

static bool is_raised(uint32_t before, bool is_first, enum tn_jcase target)
{
    if (target == TN_CASE_UPPER || target == TN_CASE_LOWER)
        return target == TN_CASE_UPPER;
    return is_first || (target != TN_CASE_CAPITAL && begins_word(before, target));
}

/* Writes the character in the target case.  Returns the number of bytes.  Only the German sharp s
 * expands to two characters. */
static size_t change_case(char *dst, uint32_t c, bool is_big, enum tn_jcase target)
{
    bool is_title = target == TN_CASE_CAPITAL || target == TN_CASE_TITLE;
    if (c == 0xDF && is_big) {
        memcpy(dst, is_title ? "Ss" : "SS", 2);
        return 2;
    }
    return tn_utf8_put(!is_big    ? tn_char_lower(c)
                       : is_title ? tn_char_title(c)
                                  : tn_char_upper(c),
                       dst);
}

/* Invalid UTF-8 is copied unchanged. */
struct tn_jvalue tn_jrun_case(struct tn_jrun *run, const struct tn_jstring *s, enum tn_jcase target)
{
    struct tn_jsink sink = {0};
    uint32_t before = 0;
    for (size_t i = 0; i < s->n && run->status == TERN_OK;) {
        static const uint8_t outside[4] = {1, 1, 1, 1};
        uint32_t c;
        char utf8[4];
        const size_t length = tn_utf8_next(s->bytes + i, s->n - i, &c);
        const bool is_big = is_raised(before, i == 0, target);
        const uint8_t *marks = s->marks && s->marks[i] ? outside : NULL;
        if (c == TN_NOT_UTF8)
            tn_jsink_put(run, &sink, s->bytes + i, marks, length);
        else
            tn_jsink_put(run, &sink, utf8, marks, change_case(utf8, c, is_big, target));
        before = c;
        i += length;
    }
    return tn_jsink_take(run, &sink);
}

/* ---- strip ---- */

static bool is_in(const struct tn_jstring *chars, const char *c, size_t n)
{
    for (size_t i = 0; i < chars->n;) {
        uint32_t unused;
        size_t length = tn_utf8_next(chars->bytes + i, chars->n - i, &unused);
        if (length == n && memcmp(chars->bytes + i, c, n) == 0)
            return true;
        i += length;
    }
    return false;
}

static void strip_chars(const struct tn_jstring *s, const struct tn_jstring *chars,
                        enum tn_jside sides, size_t *begin, size_t *end)
{
    uint32_t c;
    while ((sides & TN_SIDE_LEFT) && *begin < *end) {
        size_t length = tn_utf8_next(s->bytes + *begin, *end - *begin, &c);
        if (!is_in(chars, s->bytes + *begin, length))
            break;
        *begin += length;
    }
    while ((sides & TN_SIDE_RIGHT) && *begin < *end) {
        size_t last = *end - 1;
        while (last > *begin && ((unsigned char)s->bytes[last] & 0xC0) == 0x80)
            last--;
        if (!is_in(chars, s->bytes + last, *end - last))
            break;
        *end = last;
    }
}

struct tn_jvalue tn_jrun_strip(struct tn_jrun *run, const struct tn_jstring *s,
                               const struct tn_jstring *chars, enum tn_jside sides)
{
    size_t begin = 0, end = s->n;
    if (!tn_jrun_step(run, 1 + s->n / 16 * (chars ? 1 + chars->n : 1)))
        return (struct tn_jvalue){0};
    if (chars) {
        strip_chars(s, chars, sides, &begin, &end);
    } else {
        const char *text = s->bytes;
        if (sides & TN_SIDE_LEFT)
            tn_text_skip_space(&text, &end);
        if (sides & TN_SIDE_RIGHT)
            tn_text_strip_end(text, &end);
        begin = (size_t)(text - s->bytes);
        end += begin;
    }
    return tn_jrun_part(run, s, begin, end);
}

/* ---- searching ---- */

static bool matches(const struct tn_jstring *s, size_t at, const struct tn_jstring *part)
{
    return part->n <= s->n && at <= s->n - part->n &&
           (part->n == 0 || memcmp(s->bytes + at, part->bytes, part->n) == 0);
}

bool tn_jstring_starts(struct tn_jrun *run, const struct tn_jstring *s,
                       const struct tn_jstring *part)
{
    return tn_jrun_step(run, part->n / 64) && matches(s, 0, part);
}

bool tn_jstring_ends(struct tn_jrun *run, const struct tn_jstring *s, const struct tn_jstring *part)
{
    return tn_jrun_step(run, part->n / 64) && part->n <= s->n &&
           matches(s, s->n - part->n, part);
}

/* Rabin-Karp search: the rolling hash of a window moves by a byte in constant time, and bytes are
 * compared where hashes are equal.  Time is linear in the bytes, except for texts made to collide,
 * whose comparisons are charged. */
#define HASH_BASE UINT64_C(0x9E3779B97F4A7C15)
#define WINDOWS_PER_CHARGE 4096u

static uint64_t hash_bytes(const char *p, ptrdiff_t stride, size_t n)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++)
        hash = hash * HASH_BASE + (unsigned char)p[(ptrdiff_t)i * stride];
    return hash;
}

/* HASH_BASE to the power of n, modulo 2^64. */
static uint64_t hash_power(size_t n)
{
    uint64_t power = 1, base = HASH_BASE;
    for (; n; n >>= 1, base *= base)
        power *= n & 1 ? base : 1;
    return power;
}

/* The first window equal to `part` in bytes [begin, end) of s, or the last one (the first of the
 * reversed bytes); s->n + 1: none.  1 <= part->n <= end - begin. */
static size_t find_window(struct tn_jrun *run, const struct tn_jstring *s,
                          const struct tn_jstring *part, size_t begin, size_t end, bool is_last)
{
    const ptrdiff_t stride = is_last ? -1 : 1, n = (ptrdiff_t)part->n;
    const char *p = s->bytes + (is_last ? end - 1 : begin);
    const size_t n_windows = end - begin - part->n + 1;
    if (!tn_jrun_step(run, 1 + part->n / 8))
        return s->n + 1;
    const uint64_t power = hash_power(part->n);
    const uint64_t want = hash_bytes(part->bytes + (is_last ? part->n - 1 : 0), stride, part->n);
    uint64_t hash = hash_bytes(p, stride, part->n);
    for (size_t i = 0; i < n_windows; i++, p += stride) {
        const size_t at = is_last ? end - part->n - i : begin + i;
        if (hash == want && tn_jrun_step(run, 1 + part->n / 64) && matches(s, at, part))
            return at;
        if (i % WINDOWS_PER_CHARGE == 0 &&
            !tn_jrun_step(run, TN_MIN(n_windows - i, WINDOWS_PER_CHARGE) / 16))
            break;
        if (i + 1 < n_windows)
            hash = hash * HASH_BASE + (unsigned char)p[n * stride] - power * (unsigned char)p[0];
    }
    return s->n + 1;
}

size_t tn_jstring_find(struct tn_jrun *run, const struct tn_jstring *s,
                       const struct tn_jstring *part, size_t from)
{
    if (from > s->n || part->n > s->n - from)
        return s->n + 1;
    return part->n == 0 ? from : find_window(run, s, part, from, s->n, false);
}

size_t tn_jstring_find_last(struct tn_jrun *run, const struct tn_jstring *s,
                            const struct tn_jstring *part, size_t end)
{
    if (part->n > end)
        return s->n + 1;
    return part->n == 0 ? end : find_window(run, s, part, 0, end, true);
}

/* ---- replace ---- */

/* An empty `old` matches before every character and at the end. */
static void replace_empty(struct tn_jrun *run, struct tn_jsink *sink, const struct tn_jstring *s,
                          const struct tn_jstring *replacement, int64_t most)
{
    size_t i = 0;
    for (; most != 0 && run->status == TERN_OK; most--) {
        uint32_t c;
        tn_jsink_put_string(run, sink, replacement, 0, replacement->n);
        if (i == s->n)
            return;
        size_t length = tn_utf8_next(s->bytes + i, s->n - i, &c);
        tn_jsink_put_string(run, sink, s, i, i + length);
        i += length;
    }
    tn_jsink_put_string(run, sink, s, i, s->n);
}

struct tn_jvalue tn_jrun_replace(struct tn_jrun *run, const struct tn_jstring *s,
                                 const struct tn_jstring *old, const struct tn_jstring *replacement,
                                 int64_t most)
{
    struct tn_jsink sink = {0};
    size_t at = 0;
    most = TN_MAX(most, (int64_t)-1);
    if (old->n == 0) {
        replace_empty(run, &sink, s, replacement, most);
        return tn_jsink_take(run, &sink);
    }
    for (; most != 0 && run->status == TERN_OK; most--) {
        size_t found = tn_jstring_find(run, s, old, at);
        if (found > s->n)
            break;
        tn_jsink_put_string(run, &sink, s, at, found);
        tn_jsink_put_string(run, &sink, replacement, 0, replacement->n);
        at = found + old->n;
    }
    tn_jsink_put_string(run, &sink, s, at, s->n);
    return tn_jsink_take(run, &sink);
}

/* ---- split, join ---- */

static void split_at(struct tn_jrun *run, struct tn_jvalue list, const struct tn_jstring *s,
                     const struct tn_jstring *separator, int64_t most)
{
    size_t at = 0;
    for (; most != 0 && run->status == TERN_OK; most--) {
        size_t found = tn_jstring_find(run, s, separator, at);
        if (found > s->n)
            break;
        tn_jrun_add(run, list, tn_jrun_part(run, s, at, found));
        at = found + separator->n;
    }
    tn_jrun_add(run, list, tn_jrun_part(run, s, at, s->n));
}

static void reverse(struct tn_jlist *list)
{
    for (size_t i = 0, k = list->n; i + 1 < k; i++) {
        struct tn_jvalue item = list->items[i];
        list->items[i] = list->items[--k];
        list->items[k] = item;
    }
}

/* Splits from the end, last piece first, then reverses the list. */
static void split_from_end(struct tn_jrun *run, struct tn_jvalue list, const struct tn_jstring *s,
                           const struct tn_jstring *separator, int64_t most)
{
    size_t end = s->n;
    for (; most != 0 && run->status == TERN_OK; most--) {
        size_t found = tn_jstring_find_last(run, s, separator, end);
        if (found > s->n)
            break;
        tn_jrun_add(run, list, tn_jrun_part(run, s, found + separator->n, end));
        end = found;
    }
    tn_jrun_add(run, list, tn_jrun_part(run, s, 0, end));
    if (run->status == TERN_OK)
        reverse(list.list);
}

/* Splits at runs of white space; after `most` words the remainder keeps its white space. */
static void split_words(struct tn_jrun *run, struct tn_jvalue list, const struct tn_jstring *s,
                        int64_t most)
{
    const char *text = s->bytes;
    size_t n = s->n;
    while (run->status == TERN_OK) {
        tn_text_skip_space(&text, &n);
        if (n == 0)
            break;
        size_t begin = (size_t)(text - s->bytes), end = s->n;
        if (most-- == 0) {
            n = 0;
        } else {
            tn_text_skip_word(&text, &n);
            end = (size_t)(text - s->bytes);
        }
        tn_jrun_add(run, list, tn_jrun_part(run, s, begin, end));
    }
}

struct tn_jvalue tn_jrun_split(struct tn_jrun *run, const struct tn_jstring *s,
                               const struct tn_jstring *separator, int64_t most, bool from_end)
{
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, TN_J_LIST, 0));
    if (!tn_jrun_step(run, s->n / 16))
        return list;
    if (separator && separator->n == 0)
        return tn_jrun_fail(run, TERN_USAGE, "the separator of split is empty");
    most = TN_MAX(most, (int64_t)-1);
    if (!separator && from_end && most >= 0)
        return tn_jrun_fail(run, TERN_UNSUPPORTED,
                            "rsplit with a limit and without a separator is not supported");
    if (!separator)
        split_words(run, list, s, most);
    else if (from_end)
        split_from_end(run, list, s, separator, most);
    else
        split_at(run, list, s, separator, most);
    return list;
}

/* Bytes of the line break at `at`; 0: none.  Python's set, except FS, GS and RS. */
static size_t line_end(const struct tn_jstring *s, size_t at)
{
    uint32_t c;
    size_t length = tn_utf8_next(s->bytes + at, s->n - at, &c);
    if (c == '\r' && at + 1 < s->n && s->bytes[at + 1] == '\n')
        return 2;
    bool ends = (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
                c == 0x2029;
    return ends ? length : 0;
}

struct tn_jvalue tn_jrun_split_lines(struct tn_jrun *run, const struct tn_jstring *s,
                                     bool keeps_ends)
{
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, TN_J_LIST, 0));
    size_t begin = 0;
    if (!tn_jrun_step(run, s->n / 16))
        return list;
    for (size_t i = 0; i < s->n && run->status == TERN_OK;) {
        size_t length = line_end(s, i);
        if (length) {
            tn_jrun_add(run, list, tn_jrun_part(run, s, begin, i + (keeps_ends ? length : 0)));
            begin = i + length;
        }
        i += length ? length : 1;
    }
    if (begin < s->n)
        tn_jrun_add(run, list, tn_jrun_part(run, s, begin, s->n));
    return list;
}

struct tn_jvalue tn_jrun_join(struct tn_jrun *run, const struct tn_jstring *separator,
                              const struct tn_jlist *items)
{
    struct tn_jsink sink = {0};
    for (size_t i = 0; i < items->n && tn_jrun_step(run, 1); i++) {
        if (i && separator)
            tn_jsink_put_string(run, &sink, separator, 0, separator->n);
        tn_jsink_put_str(run, &sink, items->items[i]);
    }
    return tn_jsink_take(run, &sink);
}
