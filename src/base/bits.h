/* SPDX-License-Identifier: MIT
 *
 * Checked arithmetic on sizes that come from outside, alignment, and unaligned
 * little-endian loads.  Parsers use these instead of plain * and + on such sizes.
 */
#ifndef TN_BITS_H
#define TN_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Each stores a OP b in *out and returns true, or returns false if the result overflows. */
static inline bool tn_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool tn_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Rounds n up to a multiple of `align`, a power of two; false if the result overflows. */
static inline bool tn_align_up_u64(uint64_t n, uint64_t align, uint64_t *out)
{
    uint64_t sum;
    if (!tn_add_u64(n, align - 1, &sum))
        return false;
    *out = sum & ~(align - 1);
    return true;
}

/* The same for sizes known to be far from the limit (planned sizes, not file contents). */
static inline size_t tn_align_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

static inline uint32_t tn_div_ceil_u32(uint32_t n, uint32_t d)
{
    return n / d + (n % d != 0);
}

/* True if [offset, offset + bytes) is inside [0, limit). */
static inline bool tn_range_fits(uint64_t offset, uint64_t bytes, uint64_t limit)
{
    return offset <= limit && bytes <= limit - offset;
}

static inline bool tn_all_zero(const void *bytes, size_t n_bytes)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n_bytes; i++)
        if (b[i])
            return false;
    return true;
}

static inline uint16_t tn_load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t tn_load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Loads once from memory that others may write to, such as a mapped file, so that the value checked
 * is the value used.  p is aligned. */
static inline uint32_t tn_load_once_u32(const uint32_t *p)
{
    return *(const volatile uint32_t *)p;
}

static inline uint64_t tn_load_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline float tn_f32_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t tn_f32_to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

#endif
