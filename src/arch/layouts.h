/* SPDX-License-Identifier: MIT
 *
 * Every layout of a matrix on disk, the geometry for the file checker, the writer, the converter
 * and the memory plan.  The meaning of a tile's bytes is in tern/matrix_layouts.h, the products of
 * a layout are in model/formats/.  No include guard: this file is expanded several times.
 */

/* LAYOUT(layout, shown, tile rows, columns, bytes, band, scale kinds, row floats, planes, values,
 * use, order)
 *
 *   shown         the name for users
 *   tile          rows and columns are padded to whole tiles of that many bytes
 *   band          PADDED, or WHOLE: columns are a multiple of the tile's, and the tiles of the same
 *                 rows are padded to 64 bytes together
 *   scale kinds   those that may accompany it: NONE, TENSOR, ROW, GROUP (both kinds)
 *   row floats    f32 per row in scales of kind ROW
 *   planes        of bits; scales then also hold a byte for each column and each row
 *   values        TERNARY: -1, 0, 1 and scales;  OTHER
 *   use           ANY: tables and projections;  ROW_LIST, COL_LIST: only slots of that kind
 *   order         ROWS: blocks of TN_PACK_ROWS rows follow each other;  COLUMNS */
/* clang-format off */
LAYOUT(F32,       "f32",   1,   1,    4, PADDED, NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(F16,       "f16",   1,   1,    2, PADDED, NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(BF16,      "bf16",  1,   1,    2, PADDED, NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q8,        "q8",    1,   1,    1, PADDED, ROW,            1, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q8_PLANES, "q8",    1, 128,  128, PADDED, ROW,            5, 4, OTHER,   ANY,      ROWS)
LAYOUT(Q6,        "q6",    1, 128,   96, PADDED, ROW,            4, 3, OTHER,   ANY,      ROWS)
LAYOUT(Q4,        "q4",    1, 128,   64, PADDED, ROW,            2, 1, OTHER,   ANY,      ROWS)
LAYOUT(T2,        "t2",   64, 128, 2048, PADDED, TENSOR | GROUP, 0, 0, TERNARY, ANY,      ROWS)
LAYOUT(T5,        "t5",   64, 128, 1664, PADDED, TENSOR | GROUP, 0, 0, TERNARY, ANY,      ROWS)
LAYOUT(R2,        "r2",    1, 256,   64, PADDED, TENSOR,         0, 0, TERNARY, ROW_LIST, ROWS)
LAYOUT(C2,        "c2",  256,   1,   64, PADDED, TENSOR,         0, 0, TERNARY, COL_LIST, COLUMNS)
LAYOUT(Q8_0,      "q8_0",   16,  32,  544, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q4_0,      "q4_0",   16,  32,  288, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q4_1,      "q4_1",   16,  32,  320, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q5_0,      "q5_0",   16,  32,  352, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q5_1,      "q5_1",   16,  32,  384, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(IQ4_NL,    "iq4_nl", 16,  32,  288, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(IQ4_XS,    "iq4_xs", 16, 256, 2176, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q2_K,      "q2_k",   16, 256, 1344, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q3_K,      "q3_k",   16, 256, 1760, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q4_K,      "q4_k",   16, 256, 2304, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q5_K,      "q5_k",   16, 256, 2816, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(Q6_K,      "q6_k",   16, 256, 3360, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(IQ2_S,     "iq2_s",  16, 256, 1696, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(IQ3_XXS,   "iq3_xxs", 16, 256, 2144, WHOLE, NONE,           0, 0, OTHER,   ANY,      ROWS)
LAYOUT(IQ3_S,     "iq3_s",  16, 256, 2144, WHOLE,  NONE,           0, 0, OTHER,   ANY,      ROWS)
/* clang-format on */
