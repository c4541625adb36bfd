/* SPDX-License-Identifier: MIT
 *
 * Ternary decode kernels for NEON (every aarch64): no multiplication. tests/hygiene/check_disasm.py
 * verifies that on the object file.
 */

/* T2 and C2: `tbl` looks 16 rows up in a table of 16 bytes; an index of four bits is a pair: the
 * codes of two columns.  A sum of two inputs, biased by 256, is in 2..510; its table has two planes
 * of bytes:
 *
 *     t + 256 = 16 * high + low,   high in 0..31,   low in 0..15
 *
 * Eight pairs (a batch) are added in bytes: 8 * 31 = 248 fits; then `uaddw` adds them to 16-bit
 * sums.
 *
 * T2: a batch is 4 groups: 16 columns x 16 rows take 8 instructions for indices, 16 look-ups, 14 +
 * 4 additions: 0.16 per weight, and loads. C2: two columns x 64 rows take 8 instructions for
 * indices, 8 look-ups, 8 additions: 0.2. R2: 16 columns of a row are one vector; masks tested from
 * the packed byte select the inputs of weight +1 and of weight -1, `sadalp` adds them up
 * separately: 0.4. */
#include <arm_neon.h>
#include <string.h>

#include "kern/ternary_layout.h"

#define BATCH_PAIRS 8u
#define PAIR_BYTES 32u /* table of a pair: 16 low bytes, 16 high bytes */
#define BATCH_BYTES (BATCH_PAIRS * PAIR_BYTES)

/* The table of a pair: entry i is 256 + (c0 - 1) a + (c1 - 1) b with the codes c0, c1 in bits 0-1
 * and 2-3 of i. */
static inline void build_table(uint8_t *table, int8_t a, int8_t b)
{
    static const int16_t a_plus[8] = {0, 0, -1, 0, 0, 0, -1, 0};
    static const int16_t a_minus[8] = {-1, 0, 0, 0, -1, 0, 0, 0};
    static const int16_t b_minus[8] = {-1, -1, -1, -1, 0, 0, 0, 0}; /* entries 0..7 */
    static const int16_t b_plus[8] = {-1, -1, -1, -1, 0, 0, 0, 0};  /* entries 8..15 */
    const int16x8_t va = vdupq_n_s16(a), vb = vdupq_n_s16(b);
    int16x8_t t = vdupq_n_s16(256);
    t = vaddq_s16(t, vandq_s16(va, vld1q_s16(a_plus)));
    t = vsubq_s16(t, vandq_s16(va, vld1q_s16(a_minus)));
    const uint16x8_t t0 =
        vreinterpretq_u16_s16(vsubq_s16(t, vandq_s16(vb, vld1q_s16(b_minus))));
    const uint16x8_t t1 = vreinterpretq_u16_s16(vaddq_s16(t, vandq_s16(vb, vld1q_s16(b_plus))));
    const uint8x16_t low = vcombine_u8(vmovn_u16(t0), vmovn_u16(t1));
    vst1q_u8(table, vandq_u8(low, vdupq_n_u8(15)));
    vst1q_u8(table + 16, vcombine_u8(vshrn_n_u16(t0, 4), vshrn_n_u16(t1, 4)));
}

/* Byte sums of up to eight pairs. */
struct planes {
    uint8x16_t low, high;
};

static TN_ALWAYS_INLINE void add_pair(struct planes *p, uint8x16_t index, const uint8_t *table)
{
    p->low = vaddq_u8(p->low, vqtbl1q_u8(vld1q_u8(table), index));
    p->high = vaddq_u8(p->high, vqtbl1q_u8(vld1q_u8(table + 16), index));
}

/* 16-bit sums of 16 rows over up to WIDE_BATCHES batches: 264 * 248 = 65472 < 65536. */
struct wide {
    uint16x8_t low[2], high[2];
};
#define WIDE_BATCHES 264u

static TN_ALWAYS_INLINE void widen(struct wide *s, const struct planes *p)
{
    s->low[0] = vaddw_u8(s->low[0], vget_low_u8(p->low));
    s->low[1] = vaddw_high_u8(s->low[1], p->low);
    s->high[0] = vaddw_u8(s->high[0], vget_low_u8(p->high));
    s->high[1] = vaddw_high_u8(s->high[1], p->high);
}

/* dst[0..3] += low + 16 * high - bias. */
static inline void add_4(int32_t *dst, uint16x4_t low, uint16x4_t high, int32x4_t bias)
{
    const uint32x4_t sum = vaddw_u16(vshll_n_u16(high, 4), low);
    vst1q_s32(dst, vaddq_s32(vld1q_s32(dst), vsubq_s32(vreinterpretq_s32_u32(sum), bias)));
}

/* Adds the 16 sums of n_batches batches to dst. */
static void flush(int32_t *dst, const struct wide *s, uint32_t n_batches)
{
    const int32x4_t bias = vdupq_n_s32((int32_t)(n_batches << 11)); /* 8 * 256 per batch */
    for (int i = 0; i < 2; i++, dst += 8) {
        add_4(dst, vget_low_u16(s->low[i]), vget_low_u16(s->high[i]), bias);
        add_4(dst + 4, vget_high_u16(s->low[i]), vget_high_u16(s->high[i]), bias);
    }
}

/* T2: 16 columns of 16 rows of one tile. */
static TN_ALWAYS_INLINE void t2_batch(struct wide *s, const uint8_t *group, const uint8_t *table)
{
    const uint8x16_t nibble = vdupq_n_u8(15);
    struct planes p = {vdupq_n_u8(0), vdupq_n_u8(0)};
    for (uint32_t i = 0; i < 4; i++) {
        const uint8x16_t codes = vld1q_u8(group + 64 * i);
        add_pair(&p, vandq_u8(codes, nibble), table + 2 * PAIR_BYTES * i);
        add_pair(&p, vshrq_n_u8(codes, 4), table + 2 * PAIR_BYTES * i + PAIR_BYTES);
    }
    widen(s, &p);
}

/* C2: the codes of two columns, 4 x 16 rows, as four indices. */
static TN_ALWAYS_INLINE void add_columns(struct planes p[4], const uint8_t *col_a,
                                         const uint8_t *col_b, const uint8_t *table)
{
    const uint8x16_t a = vld1q_u8(col_a), b = vld1q_u8(col_b);
    const uint8x16_t m33 = vdupq_n_u8(0x33), nibble = vdupq_n_u8(15);
    /* Fields 0 and 2 of both, then fields 1 and 3. */
    const uint8x16_t f02 = vbslq_u8(m33, a, vshlq_n_u8(b, 2));
    const uint8x16_t f13 = vbslq_u8(m33, vshrq_n_u8(a, 2), b);
    add_pair(&p[0], vandq_u8(f02, nibble), table);
    add_pair(&p[1], vandq_u8(f13, nibble), table);
    add_pair(&p[2], vshrq_n_u8(f02, 4), table);
    add_pair(&p[3], vshrq_n_u8(f13, 4), table);
}

#define PART_ROWS 16u
#include "kern/pair_tables.h"
PAIR_TABLES_DEFINE(neon)

/* ---- R2 ---- */

/* The preparation of this level is a copy of x. */
void tn_prep_r2_neon(void *prep, const int8_t *x, uint32_t cols)
{
    memcpy(prep, x, tn_kern_pad(cols));
}

/* Sums of the inputs with weight +1 and with weight -1.  A `sadalp` adds at most 2 * 127 to a lane;
 * a block takes 16 of them, 8 blocks 128: 128 * 254 = 32512 < 32768. */
#define R2_FLUSH_BLOCKS 8u

static TN_ALWAYS_INLINE void r2_add(int16x8_t *plus, int16x8_t *minus, uint8x16_t codes, int q,
                                    const int8_t *x)
{
    const uint8x16_t is_two = vtstq_u8(codes, vdupq_n_u8((uint8_t)(2 << 2 * q)));
    const uint8x16_t not_zero = vtstq_u8(codes, vdupq_n_u8((uint8_t)(3 << 2 * q)));
    const int8x16_t v = vld1q_s8(x + 64 * q);
    *plus = vpadalq_s8(*plus, vandq_s8(v, vreinterpretq_s8_u8(is_two)));
    *minus = vpadalq_s8(*minus, vbicq_s8(v, vreinterpretq_s8_u8(not_zero)));
}

static int32_t r2_sum_row(const uint8_t *row, const uint8_t *near, const uint8_t *far,
                          uint32_t n_blocks, const int8_t *x)
{
    int32x4_t sum = vdupq_n_s32(0);
    while (n_blocks > 0) {
        const uint32_t n = TN_MIN(n_blocks, R2_FLUSH_BLOCKS);
        int16x8_t plus = vdupq_n_s16(0), minus = plus;
        for (uint32_t b = 0; b < n; b++, row += 64, near += 64, far += 64, x += 256) {
            tn_request_l2(far, TN_PREFETCH_OF(R2));
            tn_request_l1(near, TN_PREFETCH_OF(R2));
            for (uint32_t j = 0; j < 64; j += 16) {
                const uint8x16_t codes = vld1q_u8(row + j);
                r2_add(&plus, &minus, codes, 0, x + j);
                r2_add(&plus, &minus, codes, 1, x + j);
                r2_add(&plus, &minus, codes, 2, x + j);
                r2_add(&plus, &minus, codes, 3, x + j);
            }
        }
        sum = vpadalq_s16(sum, plus);
        sum = vsubq_s32(sum, vpaddlq_s16(minus));
        n_blocks -= n;
    }
    return vaddvq_s32(sum);
}

void tn_gemv_r2_i8_neon(int32_t *dst, const struct tn_ternary *w, const uint32_t *rows,
                        uint32_t n_rows, const void *prep)
{
    r2_sum_rows(dst, w, rows, n_rows, prep, r2_sum_row);
}
