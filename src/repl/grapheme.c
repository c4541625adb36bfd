/* SPDX-License-Identifier: MIT
 *
 * Grapheme clusters and display widths, by the tables of utf8proc.
 *
 * Scans forward only; to move left, callers start from a boundary that is certain without context.
 */
#include "repl/grapheme.h"

#include <utf8proc.h>

#include "base/compiler.h"
#include "base/utf8.h"

static bool is_ascii(char c)
{
    return (unsigned char)c < 0x80;
}

/* The code point at text[pos].  Returns its bytes. */
static size_t point_at(const char *text, size_t n, size_t pos, uint32_t *c)
{
    size_t length = tn_utf8_character(text + pos, n - pos, c);
    if (length > 0)
        return length;
    *c = 0xFFFD;
    return 1;
}

/* The end of the cluster that begins at `start`. */
static size_t cluster_end(const char *text, size_t n, size_t start)
{
    if (is_ascii(text[start]) && (start + 1 == n || is_ascii(text[start + 1])))
        return start + 1;
    utf8proc_int32_t state = 0;
    uint32_t c, next;
    size_t end = start + point_at(text, n, start, &c);
    while (end < n) {
        size_t length = point_at(text, n, end, &next);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)c, (utf8proc_int32_t)next, &state))
            break;
        end += length;
        c = next;
    }
    return end;
}

static int class_of(uint32_t c)
{
    return utf8proc_get_property((utf8proc_int32_t)c)->boundclass;
}

/* Is there a boundary between these two characters whatever precedes them?  Earlier text matters
 * between flag halves, after a joiner, and in Indic scripts between a mark and a letter. */
static bool always_breaks(uint32_t before, uint32_t after)
{
    if (before < 0x80 && after < 0x80) /* CR does not occur in clean text */
        return true;
    const int class = class_of(before);
    if (class == UTF8PROC_BOUNDCLASS_REGIONAL_INDICATOR || class == UTF8PROC_BOUNDCLASS_ZWJ)
        return after < 0x80;
    if (class == UTF8PROC_BOUNDCLASS_EXTEND && class_of(after) == UTF8PROC_BOUNDCLASS_OTHER)
        return after < 0x80;
    utf8proc_int32_t state = 0;
    return utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)after,
                                            &state);
}

size_t tn_grapheme_certain(const char *text, size_t n, size_t pos)
{
    uint32_t before, after;
    if (pos >= n)
        return n == 0 ? 0 : tn_grapheme_certain(text, n, n - 1);
    pos = tn_utf8_cut(text, pos);
    (void)point_at(text, n, pos, &after);
    while (pos > 0) {
        const size_t previous = tn_utf8_cut(text, pos - 1);
        (void)point_at(text, n, previous, &before);
        if (always_breaks(before, after))
            break;
        pos = previous;
        after = before;
    }
    return pos;
}

size_t tn_grapheme_next(const char *text, size_t n, size_t pos)
{
    return pos >= n ? n : tn_grapheme_snap(text, n, pos + 1);
}

size_t tn_grapheme_previous(const char *text, size_t n, size_t pos)
{
    if (pos == 0)
        return 0;
    size_t start = tn_grapheme_certain(text, n, pos - 1);
    for (;;) {
        size_t end = cluster_end(text, n, start);
        if (end >= pos)
            return start;
        start = end;
    }
}

size_t tn_grapheme_snap(const char *text, size_t n, size_t pos)
{
    if (pos >= n)
        return n;
    size_t at = tn_grapheme_certain(text, n, pos);
    while (at < pos)
        at = cluster_end(text, n, at);
    return at;
}

static bool is_mark(uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
           category == UTF8PROC_CATEGORY_ME;
}

/* Characters that join several code points into one emoji: joiner, variation selector, skin tones,
 * flag halves. */
static bool makes_picture(uint32_t c)
{
    return c == 0x200D || c == 0xFE0F || (c >= 0x1F3FB && c <= 0x1F3FF) ||
           (c >= 0x1F1E6 && c <= 0x1F1FF);
}

/* Columns of one code point in a cluster: Korean vowels and final consonants share the column of
 * the initial one. */
static uint32_t point_width(uint32_t c, bool is_first)
{
    if (!is_first && ((c >= 0x1160 && c <= 0x11FF) || (c >= 0xD7B0 && c <= 0xD7FF)))
        return 0;
    return (uint32_t)TN_MAX(utf8proc_charwidth((utf8proc_int32_t)c), 0);
}

/* An emoji is two columns wide, other clusters are as wide as their code points together; marks
 * without a base are drawn on a blank. */
struct tn_cluster tn_cluster_first(const char *text, size_t n)
{
    size_t end = cluster_end(text, n, 0);
    if (end == 1 && is_ascii(text[0]))
        return (struct tn_cluster){1, !tn_is_control((unsigned char)text[0]), true, false};
    uint32_t c = 0, sum = 0, n_points = 0;
    bool is_picture = false, has_mark = false;
    for (size_t at = 0; at < end; n_points++) {
        at += point_at(text, end, at, &c);
        sum += point_width(c, n_points == 0);
        is_picture = is_picture || makes_picture(c);
        has_mark = has_mark || is_mark(c);
    }
    struct tn_cluster cluster = {end, TN_MIN(sum, TN_MAX_CLUSTER_WIDTH),
                                 n_points == 1 && c < 0x1F000, sum == 0 && has_mark};
    if (n_points > 1 && is_picture)
        cluster.width = 2;
    else if (cluster.is_bare)
        cluster.width = 1;
    return cluster;
}

uint32_t tn_text_width(const char *text, size_t n)
{
    uint32_t width = 0;
    for (size_t at = 0; at < n;) {
        struct tn_cluster cluster = tn_cluster_first(text + at, n - at);
        width += cluster.width;
        at += cluster.n_bytes;
    }
    return width;
}

bool tn_is_word(const char *text, size_t n)
{
    uint32_t c;
    (void)point_at(text, n, 0, &c);
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               c == '_';
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO);
}

/* ---- cleaning ---- */

/* Length of the prefix that is kept unchanged. */
static size_t clean_run(const char *bytes, size_t n)
{
    size_t at = 0;
    uint32_t c;
    while (at < n) {
        size_t length = tn_utf8_character(bytes + at, n - at, &c);
        if (length == 0 || (tn_is_control(c) && c != '\n' && c != '\t'))
            break;
        at += length;
    }
    return at;
}

bool tn_clean_append(struct tn_buf *out, const char *bytes, size_t n)
{
    const size_t n_before = out->n_bytes;
    bool ok = tn_buf_reserve(out, n);
    while (ok && n > 0) {
        size_t run = clean_run(bytes, n);
        ok = tn_buf_append(out, bytes, run);
        bytes += run;
        n -= run;
        if (n == 0 || !ok)
            break;
        uint32_t c;
        size_t length = tn_utf8_character(bytes, n, &c);
        if (length == 0)
            ok = tn_buf_append(out, "\xEF\xBF\xBD", 3);
        else if (c == '\r' && !(n > 1 && bytes[1] == '\n'))
            ok = tn_buf_append(out, "\n", 1);
        length += length == 0;
        bytes += length;
        n -= length;
    }
    if (!ok)
        out->n_bytes = n_before;
    return ok;
}
