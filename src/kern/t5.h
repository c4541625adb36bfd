/* SPDX-License-Identifier: MIT
 *
 * The layout T5: five trits in eight bits (tern/matrix_layouts.h), decoded with logic on whole
 * words, so that every bit of a word belongs to another five trits.  Written once for all
 * instruction sets; a file that includes this may define
 *
 *   T5_WORD_BYTES   16, 32 or 64: words are vectors, a type of the compiler, not 64 bits
 *
 * "Large" is the trit 2, whose high bit is set; the table of codes is in tern/matrix_layouts.h.
 * Codes that packing never writes decode to some trits, too.
 */
#ifndef TN_T5_H
#define TN_T5_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "tern/matrix_layouts.h"

#define T5_PLANES 8u /* of five trits */
#define T5_FIVES 3u  /* in a run; its last two groups of T2 are stored unchanged */

#ifdef T5_WORD_BYTES
typedef uint64_t word_t __attribute__((vector_size(T5_WORD_BYTES), may_alias));
#else
typedef uint64_t word_t __attribute__((may_alias));
#endif

/* The bits of a where mask has ones, those of b elsewhere. */
#if defined(T5_WORD_BYTES) && T5_WORD_BYTES == 64
#include "kern/x86/select_avx512.h"
#else
#define T5_SELECT(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))
#endif

/* D and E from p, q, r; both are large where `both` is set. */
static TN_ALWAYS_INLINE void t5_decode_pair(word_t *low, word_t *high, word_t p, word_t q, word_t r,
                                            word_t both)
{
    high[0] = both | (p & ~q);
    high[1] = both | (p & q);
    low[0] = q & (~p | r) & ~high[0];
    low[1] = r & ~high[1];
}

/* low, high [5]: the trits A to E from planes [8]: x, y, a, b, c, p, q, r. */
static TN_ALWAYS_INLINE void t5_decode(word_t *low, word_t *high, const word_t *planes)
{
    const word_t p = planes[5], q = planes[6], r = planes[7], b = planes[3], c = planes[4];
    const word_t both = planes[0] & planes[1] & planes[2];
    const word_t x = T5_SELECT(both, p, planes[0]);
    const word_t y = T5_SELECT(both, q, planes[1]);
    const word_t a = T5_SELECT(both, r, planes[2]);
    const word_t x_a = x & ~y & a, x_y = x & y;
    high[0] = (~x & y & ~a) | x_a | (x_y & b);
    high[1] = (~x & y & a) | x_y | (x_a & ~b);
    high[2] = (x & ~y & ~a) | x_y | (x_a & b);
    low[0] = T5_SELECT(x, c & ~high[0], a & (~y | b));
    low[1] = T5_SELECT(x_a, c, b) & ~high[1];
    low[2] = c & ~high[2];
    t5_decode_pair(low + 3, high + 3, p, q, r, both);
}

/* The inverse of t5_decode; no trit may have both bits set. */
static TN_ALWAYS_INLINE void t5_encode(word_t *planes, const word_t *low, const word_t *high)
{
    const word_t large_a = high[0], large_b = high[1], large_c = high[2];
    const word_t both = high[3] & high[4];
    const word_t x = large_c | (large_a & large_b);
    const word_t y = (large_a & ~large_b & ~large_c) | (large_b & (~large_a | large_c));
    const word_t a = (~large_b & ~large_c & low[0]) | (~large_a & large_b & ~large_c) |
                     (large_a & (large_b ^ large_c));
    planes[0] = both | x;
    planes[1] = both | y;
    planes[2] = both | a;
    planes[3] = low[1] | (large_b & ~large_c & low[0]) | (large_a & large_c);
    planes[4] = low[2] | (large_c & low[0]) | (large_a & large_c & low[1]);
    planes[5] = (both & x) | (~both & (high[3] | high[4]));
    planes[6] = (both & y) | (~both & (high[4] | low[3]));
    planes[7] = (both & a) | (~both & (low[4] | (high[4] & low[3])));
}

/* ---- between the planes of a trit and its two groups of T2 ---- */

#define T5_EVEN (((word_t){0}) + UINT64_C(0x5555555555555555))

static TN_ALWAYS_INLINE void t5_join(word_t *group, size_t stride, word_t low, word_t high)
{
    group[0] = T5_SELECT(T5_EVEN, low, high << 1);
    group[stride] = T5_SELECT(T5_EVEN, low >> 1, high);
}

static TN_ALWAYS_INLINE void t5_part(word_t *low, word_t *high, const word_t *group, size_t stride)
{
    *low = (group[0] & T5_EVEN) | ((group[stride] & T5_EVEN) << 1);
    *high = ((group[0] >> 1) & T5_EVEN) | (group[stride] & ~T5_EVEN);
}

/* ---- a run: 64 rows x 128 columns ---- */

#define T5_WORDS (64 / sizeof(word_t)) /* per group or plane */

static TN_ALWAYS_INLINE void t5_unpack_run(uint8_t *dst, const uint8_t *src)
{
    for (size_t w = 0; w < T5_WORDS; w++) {
        const word_t *plane = (const word_t *)src + w;
        word_t *group = (word_t *)dst + w;
        for (uint32_t five = 0; five < T5_FIVES; five++) {
            word_t planes[T5_PLANES], low[5], high[5];
            for (uint32_t i = 0; i < T5_PLANES; i++, plane += T5_WORDS)
                planes[i] = *plane;
            t5_decode(low, high, planes);
            for (uint32_t i = 0; i < 5; i++, group += 2 * T5_WORDS)
                t5_join(group, T5_WORDS, low[i], high[i]);
        }
        group[0] = plane[0];
        group[T5_WORDS] = plane[T5_WORDS];
    }
}

/* Include kern.h and prefetch.h before use. */
#define T5_UNPACK_DEFINE(isa)                                                                      \
    void tn_unpack_t5_##isa(uint8_t *dst, size_t dst_stride, const uint8_t *src, uint32_t n_runs)  \
    {                                                                                              \
        for (; n_runs > 0; n_runs--, dst += dst_stride, src += TERN_T5_RUN_BYTES) {                \
            for (uint32_t i = 0; i < TERN_T5_RUN_BYTES; i += 64)                                   \
                tn_request(src + i, TN_PREFETCH_OF(T5));                                           \
            t5_unpack_run(dst, src);                                                               \
        }                                                                                          \
    }

static TN_ALWAYS_INLINE void t5_pack_run(uint8_t *dst, const uint8_t *src)
{
    for (size_t w = 0; w < T5_WORDS; w++) {
        const word_t *group = (const word_t *)src + w;
        word_t *plane = (word_t *)dst + w;
        for (uint32_t five = 0; five < T5_FIVES; five++) {
            word_t planes[T5_PLANES], low[5], high[5];
            for (uint32_t i = 0; i < 5; i++, group += 2 * T5_WORDS)
                t5_part(&low[i], &high[i], group, T5_WORDS);
            t5_encode(planes, low, high);
            for (uint32_t i = 0; i < T5_PLANES; i++, plane += T5_WORDS)
                *plane = planes[i];
        }
        plane[0] = group[0];
        plane[T5_WORDS] = group[T5_WORDS];
    }
}

#endif
