/* SPDX-License-Identifier: MIT
 *
 * How far ahead the kernels that read memory once request its lines.  Every distance is in this
 * table, except for attention over f32 and f16 caches, so that a new processor needs one more
 * column: `bench_kern --sweep` tries other patterns.  Distances never change a result.
 *
 * A line is requested more than once.  Requests into the second-level cache hide the latency of
 * memory: the first-level cache has a dozen line buffers, and a processor drops a prefetch while
 * all of them are in use.  A stream is requested there twice, because that request may be dropped,
 * too.  The request shortly before use moves the line into the first-level cache.
 *
 * Only for kernel files: each compiles the column for its level.
 */
#ifndef TN_PREFETCH_H
#define TN_PREFETCH_H

#include <stdint.h>

#include "base/compiler.h"

/* Distances in bytes, in the order of use; 0: no such request. */
struct tn_prefetch {
    uint32_t far; /* into the second-level cache, of streams */
    uint32_t l2;  /* into the second-level cache */
    uint32_t l1;  /* into the first-level cache */
};

/* X(name, {far, l2, l1} with AVX-512, the same with AVX2, the same at other levels).
 *
 *   T2_I8, T2_X16, T2_X8  weights of the layout T2, one row of inputs
 *   T2_FEW                the same, 2 to 8 rows
 *   T5                    weights of the layout T5, only unpacked
 *   T5_X                  the same, multiplied run by run; l1 reaches the next run of a tile
 *   BLOCKS, BLOCKS_FEW    cells of matrices in blocks, one row of inputs, 2 to 8 rows
 *   R2, R2_FEW            rows of a list, at a distance of whole rows
 *   C2                    columns of a list, in batches of a kernel: 1 is the next
 *   PLANES                rows of bit planes, listed or all
 *   KEYS, VALUES          a q8 cache; values have one distance, l2 or l1
 *   SCALES                scales of column groups, beside the weights
 *   FLOATS                rows of floats and q8 tables, 4 at a time: l2 is the distance in rows, to
 *                         the next 4, l1 the distance within each row */
/* clang-format off */
#define TN_PREFETCH_LIST(X)                                                   \
    /*             AVX-512            AVX2               others */            \
    X(T2_I8,       12288, 8192, 2048, 0, 8192, 1024,     0, 8192, 1024)       \
    X(T2_X16,      12288, 8192, 2048, 0, 8192, 1024,     0, 8192, 1024)       \
    X(T2_X8,       12288, 8192, 2048, 0, 8192, 1024,     0, 8192, 1024)       \
    X(T2_FEW,      0, 12288, 4096,    0, 8192, 1024,     0, 8192, 1024)       \
    X(T5,          0, 8192, 0,        0, 8192, 0,        0, 8192, 0)          \
    X(T5_X,        12288, 8192, 1664, 0, 8192, 1664,     0, 8192, 1664)       \
    X(BLOCKS,      12288, 8192, 4096, 12288, 8192, 4096, 12288, 8192, 4096)   \
    X(BLOCKS_FEW,  12288, 8192, 4096, 12288, 8192, 4096, 12288, 8192, 4096)   \
    X(R2,          0, 10240, 0,       0, 8192, 4096,     0, 8192, 4096)       \
    X(R2_FEW,      0, 8192, 4096,     0, 8192, 4096,     0, 8192, 4096)       \
    X(C2,          0, 3, 1,           0, 2, 1,           0, 2, 1)             \
    X(PLANES,      12288, 8192, 4096, 12288, 8192, 4096, 0, 0, 8192)          \
    X(KEYS,        0, 4096, 0,        0, 8192, 1024,     0, 0, 8192)          \
    X(VALUES,      0, 4096, 0,        0, 0, 16384,       0, 0, 16384)         \
    X(SCALES,      0, 0, 1024,        0, 0, 1024,        0, 0, 1024)          \
    X(FLOATS,      0, 4, 1024,        0, 4, 1024,        0, 0, 2048)
/* clang-format on */

enum tn_prefetch_name {
#define TN_PREFETCH_ENUM(name, ...) TN_PREFETCH_##name,
    TN_PREFETCH_LIST(TN_PREFETCH_ENUM)
#undef TN_PREFETCH_ENUM
    TN_N_PREFETCHES
};

#if defined(__AVX512F__)
#define TN_PREFETCH_PICK(af, a2, a1, bf, b2, b1, cf, c2, c1) {af, a2, a1}
#elif defined(__AVX2__)
#define TN_PREFETCH_PICK(af, a2, a1, bf, b2, b1, cf, c2, c1) {bf, b2, b1}
#else
#define TN_PREFETCH_PICK(af, a2, a1, bf, b2, b1, cf, c2, c1) {cf, c2, c1}
#endif

/* Constants, so that a disabled request compiles to nothing; with TN_PREFETCH_TUNABLE, variables
 * that bench_sweep sets. */
#ifdef TN_PREFETCH_TUNABLE
extern struct tn_prefetch tn_prefetch_tuned[TN_N_PREFETCHES];
#define TN_PREFETCH_OF(name) (tn_prefetch_tuned[TN_PREFETCH_##name])
#else
static const struct tn_prefetch tn_prefetch_table[TN_N_PREFETCHES] = {
#define TN_PREFETCH_ROW(name, ...) TN_PREFETCH_PICK(__VA_ARGS__),
    TN_PREFETCH_LIST(TN_PREFETCH_ROW)
#undef TN_PREFETCH_ROW
};
#define TN_PREFETCH_OF(name) (tn_prefetch_table[TN_PREFETCH_##name])
#endif

/* Requests lines of a stream ahead of p, the line in use. */
static TN_ALWAYS_INLINE void tn_request(const void *p, struct tn_prefetch ahead)
{
    const char *at = (const char *)p;
    if (ahead.far)
        __builtin_prefetch(at + ahead.far, 0, 2);
    if (ahead.l2)
        __builtin_prefetch(at + ahead.l2, 0, 2);
    if (ahead.l1)
        __builtin_prefetch(at + ahead.l1, 0, 3);
}

/* Requests a line whose address the caller computed: in lists, skipped rows make distances
 * useless. */
static TN_ALWAYS_INLINE void tn_request_l2(const void *p, struct tn_prefetch ahead)
{
    if (ahead.l2)
        __builtin_prefetch(p, 0, 2);
}
static TN_ALWAYS_INLINE void tn_request_l1(const void *p, struct tn_prefetch ahead)
{
    if (ahead.l1)
        __builtin_prefetch(p, 0, 3);
}

/* The distance of a table entry that has only one, for callers that add it to the address. */
static TN_ALWAYS_INLINE uint32_t tn_request_distance(struct tn_prefetch ahead)
{
    return ahead.l2 ? ahead.l2 : ahead.l1;
}
static TN_ALWAYS_INLINE void tn_request_at(const void *p, struct tn_prefetch ahead)
{
    if (ahead.l2)
        __builtin_prefetch(p, 0, 2);
    else
        __builtin_prefetch(p, 0, 3);
}

#endif
