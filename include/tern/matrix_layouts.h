/* SPDX-License-Identifier: MIT
 *
 * Layouts: how the values of a matrix are arranged in the data of a .tern file, and the scales that
 * belong to them.  Part of the specification in tern/model_format.h, which includes this header.
 */
#ifndef TERN_MATRIX_LAYOUTS_H
#define TERN_MATRIX_LAYOUTS_H

/* R = rows, C = columns of the logical matrix [R][C].  Ternary layouts store code = w + 1, so
 * -1, 0, +1 are 0, 1, 2; code 3 never occurs; padding is code 1 (zero).
 *
 * F32, F16, BF16: row-major [R][C], no padding.
 *
 * T2 (2 bits, tiles): R padded to 64, C to 128.  Bands of 256 rows, that is 4 tiles of 64 (the last
 *   band has the remaining ones); in a band, 128 columns after 128 columns; of these, tile after
 *   tile a run of 32 groups.  A group is 4 consecutive columns and 64 bytes; byte i of group g
 *   holds row i of the tile: code(4g) | code(4g+1) << 2 | code(4g+2) << 4 | code(4g+3) << 6.
 *   (The tables of 128 inputs stay in the first-level cache for a whole band, whose bytes are
 *   contiguous.)
 *
 * R2 (2 bits, rows; for `up` of squared ReLU, where whole rows are skipped): C padded to 256.
 *   Row after row; a row is C/256 blocks of 64 bytes; byte j of block b holds columns
 *   256b + j, +64, +128, +192 in bits 0-1, 2-3, 4-5, 6-7.
 *
 * C2 (2 bits, columns; for `down` of squared ReLU, where whole columns are skipped): R padded to
 *   256. Column after column (C of them, no padding); a column is R/256 blocks of 64 bytes;
 *   byte j of block b holds rows 256b + j, +64, +128, +192 in bits 0-1, 2-3, 4-5, 6-7.
 *   (R2 of the transposed matrix.)
 *
 * T5 (1.625 bits, tiles; unpacked to T2 before a product): R padded to 64, C to 128.  64 rows after
 *   64 rows; of these a run for every 128 columns.  A run is 26 planes of 64 bytes, and represents
 *   the 32 groups of a run of T2.  Groups 2i and 2i+1 become two planes L and H: for even b, bit b
 *   of byte k is the low bit (L) or the high bit (H) of the code at bits b and b+1 of byte k of
 *   group 2i, bit b+1 that of the code at the same position of group 2i+1.  So the bits at one
 *   position of L and H are a code; of five such pairs of groups, i = 5j ... 5j+4, the five codes A
 *   to E at a position are the 8 bits x y a b c p q r there in planes 8j ... 8j+7, j = 0, 1, 2,
 *   where
 *
 *     x y a   b  c     A B C           p q r     D E
 *     0 0 i   j  k     i j k           0 l m     l m
 *     0 1 0   j  k     2 j k           1 0 m     2 m
 *     0 1 1   i  k     i 2 k           1 1 l     l 2
 *     1 0 0   j  i     i j 2
 *     1 0 1   0  k     2 2 k           i, j, k, l, m: 0 or 1
 *     1 0 1   1  j     2 j 2
 *     1 1 0   0  i     i 2 2
 *     1 1 0   1  0     2 2 2
 *     1 1 1   b  c     with D = E = 2: p q r hold what x y a are for these A, B, C
 *
 *   Planes 24 and 25 are groups 30 and 31 of T2.  Planes 0 to 23 may hold codes that are not in the
 *   table; kern/t5.h defines the weights that they decode to.
 *
 * Q8: int8 [R][C], C without padding; w = q * scale[row], scale = max|w| of the row / 127,
 *   q = rne(w / scale), 0 for a row of zeros. Scales f32 [R], kind ROW.
 *
 * Q8_PLANES, Q6, Q4: integers of b = 8, 6 or 4 bits as planes of bits, so that the search for the
 * best rows reads the low bits of only a few (model/head.h).  w = q * scale[row],
 *   scale = max|w| of the row / (2^(b-1) - 1), q = rne(w / scale).  The bytes of a row store
 *     v = q - offset[column] in a centred row, v = q in others
 *     u = v * 2^shift[row] + 2^(b-1)
 *   with an integer offset for every column, near the middle of its values, and the largest shift
 *   that fits into b bits: the low bits of a row of small values are zeros that need not be read.
 *   The first plane holds the 4 high bits of u, the next two hold 1 further bit each, the last one
 *   the lowest 2: b = 4 + 1 + 1 + 2, 4 + 1 + 1 or 4.  C padded to 128 with code 0.  Rows in blocks
 *   of 512 (the last has the remaining ones); in a block plane after plane, in a plane row after
 *   row; a row of a k-bit plane is C/128 groups of 16k bytes; byte j of a group holds the columns
 *   j, j + 16k, j + 32k ... from its lowest bits up. Scales, kind ROW, without gaps:
 *     f32 [R]          scale
 *     f32 [R]          norm of v, the root of the sum of its squares
 *     f32 [planes-1][R]
 *                      for each plane except the last: the norm of (u mod 2^k - middle) / 2^shift,
 *                      the range left open by the k bits below it, where middle = (2^k - 2^shift) /
 *                      2; 0 where shift >= k.  Norms count the C columns and are rounded up.
 *     int8 [C]         offset
 *     u8 [R]           shift (below b) in bits 0-2, bit 3: centred; bits 4-7 are 0
 *
 * Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, IQ4_XS, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K: the block types of
 *   GGUF files with exactly their values: w = d * s * q - dmin * m.  C is a multiple of the block,
 *   32 or 256 columns; R is padded to 16 with zeros.  Tile after tile of 16 rows; a tile is
 *     halves   for every block of columns the 16-bit values of its rows, one array of 16 rows after
 *              the other: d; then dmin (Q2_K, Q4_K, Q5_K), m (Q4_1, Q5_1) or scales_h (IQ4_XS).
 *              Padded to 64 bytes
 *     spans    of 256 columns, the last may be shorter: words, then cells
 *   words      of types with blocks of 256: 32-bit words of the rows' scales, one array of 16 rows
 *              after the other, the 12 or 16 bytes in the source's order: Q4_K, Q5_K, Q3_K 3 words,
 *              Q6_K and Q2_K 4, IQ4_XS 1 (scales_l)
 *   cells      of 32 columns: planes of codes, one or two.  A plane is arrays of 16 rows x 32 bits.
 *              Byte k of a row's word holds columns k mod 4, from its lowest bits up:
 *                8 bits: array g has column 4 g + k
 *                4 bits: array v has columns 8 v + k and 8 v + 4 + k
 *                2 bits: array v has columns 16 v + 4 i + k, i = 0 ... 3
 *                1 bit:  columns 4 i + k, i = 0 ... 7
 *              Q8_0: 8 bits.  Q4_0, Q4_1, IQ4_NL, IQ4_XS, Q4_K: 4.  Q5_0, Q5_1, Q5_K: 4, and a
 *              plane of the fifth bits.  Q6_K: 4, and a plane of the upper 2.  Q2_K: 2.  Q3_K: 2,
 *              and one of the third bits.  Scales are finite, kind NONE.
 *
 * IQ2_S, IQ3_XXS, IQ3_S: the values of the GGUF types of these names, and IQ2_S also of IQ2_XS and
 *   IQ2_XXS, where blocks of 256 columns hold indices of a grid and signs instead of codes:
 *     w = d * f * (2 s + 1) * q
 *   IQ2_S      f = 1/8, s per 16 columns, q = -43, -25, -8, 8, 25, 43 for codes 0 to 5, 43 for 6, 7
 *   IQ3_XXS    f = 1/4, s per 32 columns, q = -62, -52, -44, ... -4, 4, ... 44, 52, 62
 *   IQ3_S      f = 1,   s per 32 columns, q = -15, -13, ... 13, 15
 *   Tiles as above.  Halves: d.  Words: s of 4 bits from the lowest up, IQ2_S 2, else 1.  Cells:
 *   IQ2_S as Q3_K, else as Q4_K.
 *
 * Reserved: T3 (1.78 bits).
 */
#define TERN_LAYOUT_LIST(X)                                                                        \
    X(F32, 1, "f32")                                                                               \
    X(F16, 2, "f16")                                                                               \
    X(BF16, 3, "bf16")                                                                             \
    X(Q8, 4, "q8")                                                                                 \
    X(Q8_PLANES, 5, "q8p")                                                                         \
    X(Q6, 6, "q6")                                                                                 \
    X(Q4, 7, "q4")                                                                                 \
    X(T2, 16, "t2")                                                                                \
    X(R2, 17, "r2")                                                                                \
    X(C2, 18, "c2")                                                                                \
    X(T3, 19, "t3")                                                                                \
    X(T5, 20, "t5")                                                                                \
    X(Q8_0, 32, "q8_0")                                                                            \
    X(Q4_0, 33, "q4_0")                                                                            \
    X(Q4_1, 34, "q4_1")                                                                            \
    X(Q5_0, 35, "q5_0")                                                                            \
    X(Q5_1, 36, "q5_1")                                                                            \
    X(IQ4_NL, 37, "iq4_nl")                                                                        \
    X(IQ4_XS, 38, "iq4_xs")                                                                        \
    X(Q2_K, 39, "q2_k")                                                                            \
    X(Q3_K, 40, "q3_k")                                                                            \
    X(Q4_K, 41, "q4_k")                                                                            \
    X(Q5_K, 42, "q5_k")                                                                            \
    X(Q6_K, 43, "q6_k")                                                                            \
    X(IQ2_S, 44, "iq2_s")                                                                          \
    X(IQ3_XXS, 45, "iq3_xxs")                                                                      \
    X(IQ3_S, 46, "iq3_s")

enum tern_layout {
#define TERN_LAYOUT_ENUM(name, number, text) TERN_LAYOUT_##name = number,
    TERN_LAYOUT_LIST(TERN_LAYOUT_ENUM)
#undef TERN_LAYOUT_ENUM
    TERN_N_LAYOUTS /* one more than the last number */
};

#define TERN_T2_TILE_ROWS 64u
#define TERN_T2_BAND_ROWS 256u
#define TERN_T2_COL_ALIGN 128u
#define TERN_T2_RUN_BYTES 2048u /* 64 rows x 128 columns; for T5: */
#define TERN_T5_RUN_BYTES 1664u
#define TERN_R2_COL_ALIGN 256u
#define TERN_C2_ROW_ALIGN 256u
#define TERN_PLANE_COL_ALIGN 128u
#define TERN_PLANE_BLOCK_ROWS 512u
#define TERN_BLOCK_TILE_ROWS 16u
/* The last byte of a row's scales. */
#define TERN_PLANE_SHIFT 7u
#define TERN_PLANE_CENTRED 8u

/* Granularity of scales: w = t * scale. */
enum tern_scale_kind {
    TERN_SCALE_NONE = 0,
    TERN_SCALE_TENSOR = 1, /* tern_file_tensor.scale; T2, T5, R2, C2 with int8 inputs */
    TERN_SCALE_ROW = 2,    /* f32 [R] at scale_offset; q8, q6, q4 */
    /* T2, T5 with inputs that are not rounded to int8: a scale for each row and each scale_group
     * columns, which is a multiple of 64, or at least C: one per row.  Scales are in the order in
     * which a product reads T2: within every 256 rows group after group, within a group the rows,
     * padded to 64 with zeros.  A scale is finite; it may be negative. */
    TERN_SCALE_COL_GROUP = 4,     /* f32 */
    TERN_SCALE_COL_GROUP_F16 = 5, /* f16 */
};

#endif
