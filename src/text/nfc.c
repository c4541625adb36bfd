/* SPDX-License-Identifier: MIT
 *
 * Normalisation form C (Unicode Standard Annex 15).
 *
 * Works segment by segment: a starter and the combining marks after it.  Decompositions,
 * compositions and combining classes are those of the reference tokenizers (unicode_tables.c),
 * which are older than the classes of the splitters.  Most texts need only the quick check, which
 * skips ASCII, Latin-1, CJK and Cyrillic letters.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "text/unicode.h"

/* Represents the invalid byte b as a pseudo character beyond Unicode. */
#define RAW_BYTE 0x110000u

#define HANGUL_S 0xAC00u
#define HANGUL_L 0x1100u
#define HANGUL_V 0x1161u
#define HANGUL_T 0x11A7u
#define N_L 19u
#define N_V 21u
#define N_T 28u

struct mark {
    uint32_t c;
    uint8_t class; /* canonical combining class, 0 for a starter */
};

/* The current segment: its first character is a starter, except at the start of a text. */
struct segment {
    struct mark *marks;
    size_t n, room;
    struct mark *sorted; /* scratch of sort_long, [room], allocated on demand */
    size_t n_sorted;
    struct tn_buf *out;
    bool failed;
};

static uint8_t table_class(uint32_t c)
{
    return c < 0x110000 ? tn_unicode_combining[tn_unicode_combining_block[c >> 8]][c & 0xFF] : 0;
}

static uint8_t combining_class(uint32_t c)
{
    uint8_t class = table_class(c);
    return class == TN_STARTER_TOUCHED ? 0 : class;
}

bool tn_nfc_is_normal(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        i += tn_utf8_next(text + i, n - i, &c);
        if (c >= 0x300 && table_class(c) != 0)
            return false;
    }
    return true;
}

/* ---- one segment ---- */

static void put(struct segment *s, uint32_t c)
{
    char bytes[4];
    bool raw = c >= RAW_BYTE;
    bytes[0] = (char)(c - RAW_BYTE);
    s->failed |= !tn_buf_append(s->out, bytes, raw ? 1 : tn_utf8_put(c, bytes));
}

static void sort_short(struct mark *marks, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct mark mark = marks[i];
        size_t k = i;
        for (; k > 0 && marks[k - 1].class > mark.class; k--)
            marks[k] = marks[k - 1];
        marks[k] = mark;
    }
}

/* Stable counting sort. */
static void sort_long(struct segment *s, struct mark *marks, size_t n)
{
    if (n > s->n_sorted) {
        tn_free(s->sorted);
        s->sorted = tn_alloc(n * sizeof *s->sorted);
        s->n_sorted = s->sorted ? n : 0;
        if (!s->sorted) {
            s->failed = true;
            return;
        }
    }
    size_t starts[257] = {0};
    for (size_t i = 0; i < n; i++)
        starts[marks[i].class + 1]++;
    for (size_t i = 1; i < TN_COUNT_OF(starts); i++)
        starts[i] += starts[i - 1];
    for (size_t i = 0; i < n; i++)
        s->sorted[starts[marks[i].class]++] = marks[i];
    memcpy(marks, s->sorted, n * sizeof *marks);
}

static uint32_t compose_hangul(uint32_t a, uint32_t b)
{
    if (a - HANGUL_L < N_L && b - HANGUL_V < N_V)
        return HANGUL_S + ((a - HANGUL_L) * N_V + (b - HANGUL_V)) * N_T;
    if (a - HANGUL_S < N_L * N_V * N_T && (a - HANGUL_S) % N_T == 0 && b - HANGUL_T - 1 < N_T - 1)
        return a + (b - HANGUL_T);
    return 0;
}

/* The primary composite of a and b; 0: none. */
static uint32_t compose(uint32_t a, uint32_t b)
{
    uint32_t low = 0, high = tn_unicode_n_compositions;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct tn_unicode_pair *pair =
            &tn_unicode_decompositions[tn_unicode_compositions[middle]];
        if (pair->first == a && pair->second == b)
            return pair->whole;
        if (pair->first < a || (pair->first == a && pair->second < b))
            low = middle + 1;
        else
            high = middle;
    }
    return compose_hangul(a, b);
}

/* Once per segment: sorts the marks and composes those that are not blocked with the starter. */
static void finish_marks(struct segment *s)
{
    if (s->n == 0)
        return;
    size_t first = s->marks[0].class == 0, kept = first;
    size_t n_marks = s->n - first;
    if (n_marks > 32)
        sort_long(s, s->marks + first, n_marks);
    else
        sort_short(s->marks + first, n_marks);
    for (size_t i = first; i < s->n; i++) {
        struct mark mark = s->marks[i];
        bool blocked = kept > first && s->marks[kept - 1].class == mark.class;
        uint32_t whole = first && !blocked ? compose(s->marks[0].c, mark.c) : 0;
        if (whole)
            s->marks[0].c = whole;
        else
            s->marks[kept++] = mark;
    }
    s->n = kept;
}

static void add_mark(struct segment *s, struct mark mark)
{
    struct mark *marks = tn_grow(s->marks, sizeof *marks, s->n, &s->room);
    if (!marks) {
        s->failed = true;
        return;
    }
    s->marks = marks;
    s->marks[s->n++] = mark;
}

static void put_segment(struct segment *s)
{
    for (size_t i = 0; i < s->n; i++)
        put(s, s->marks[i].c);
    s->n = 0;
}

/* Adds a character without a decomposition. */
static void add(struct segment *s, uint32_t c)
{
    struct mark mark = {c, combining_class(c)};
    if (mark.class == 0 && s->n > 0) {
        finish_marks(s);
        uint32_t whole = s->n == 1 && s->marks[0].class == 0 ? compose(s->marks[0].c, c) : 0;
        if (whole) {
            s->marks[0].c = whole;
            return;
        }
        put_segment(s);
    }
    add_mark(s, mark);
}

static void add_decomposed(struct segment *s, uint32_t c)
{
    if (c - HANGUL_S < N_L * N_V * N_T) {
        uint32_t place = c - HANGUL_S;
        add(s, HANGUL_L + place / (N_V * N_T));
        add(s, HANGUL_V + place / N_T % N_V);
        if (place % N_T)
            add(s, HANGUL_T + place % N_T);
        return;
    }
    uint32_t rest[8];
    size_t n_rest = 0;
    for (;;) {
        uint32_t low = 0, high = tn_unicode_n_decompositions;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (tn_unicode_decompositions[middle].whole < c)
                low = middle + 1;
            else
                high = middle;
        }
        const struct tn_unicode_pair *pair = &tn_unicode_decompositions[low];
        if (low == tn_unicode_n_decompositions || pair->whole != c)
            break;
        if (pair->second && n_rest < TN_COUNT_OF(rest))
            rest[n_rest++] = pair->second;
        c = pair->first;
    }
    add(s, c);
    while (n_rest > 0)
        add(s, rest[--n_rest]);
}

bool tn_nfc_append(struct tn_buf *out, const char *text, size_t n)
{
    struct segment s = {.out = out};
    for (size_t i = 0; i < n && !s.failed;) {
        uint32_t c;
        unsigned char byte = (unsigned char)text[i];
        i += tn_utf8_next(text + i, n - i, &c);
        if (c == TN_NOT_UTF8)
            add(&s, RAW_BYTE + byte);
        else if (c < 0xC0)
            add(&s, c);
        else
            add_decomposed(&s, c);
    }
    finish_marks(&s);
    put_segment(&s);
    tn_free(s.marks);
    tn_free(s.sorted);
    return !s.failed;
}
