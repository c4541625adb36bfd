/* SPDX-License-Identifier: MIT
 *
 * The tile registers of AMX, for gemm_amx.c.  `tdpbssd` adds products of int8 inputs [16][64
 * columns] and int8 weights [16 groups][16 rows][4 columns], the order of a panel (gemm_panel.h),
 * to int32 sums [16 inputs][16 rows].
 *
 *   tile 0 to 3   sums
 *   tile 4, 5     inputs
 *   tile 6, 7     weights
 *
 * The numbers of tiles are constants in the instructions.  Between tiles_begin and tiles_end only.
 */
#ifndef TN_TILES_AMX_H
#define TN_TILES_AMX_H

#include <immintrin.h>

#include "kern/gemm_panel.h"

#define TILE_INPUTS 16u
#define TILE_ROWS 16u
#define TILE_COLS 64u
#define TILE_GROUPS (TILE_COLS / 4)
#define PANEL_GROUP_BYTES (4 * GEMM_PANEL_ROWS)
/* From the weights of 64 columns to those of the next. */
#define TILE_WEIGHTS_BYTES (TILE_GROUPS * PANEL_GROUP_BYTES)

/* The operand of `ldtilecfg`. */
struct tile_sizes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Tiles of n_inputs inputs, but at most 16.  Takes about 250 cycles. */
static inline void tiles_begin(uint32_t n_inputs)
{
    struct tile_sizes sizes = {.palette = 1};
    for (uint32_t i = 0; i < 8; i++) {
        sizes.row_bytes[i] = 64;
        sizes.rows[i] = (uint8_t)(i < 6 ? TN_MIN(n_inputs, TILE_INPUTS) : TILE_GROUPS);
    }
    /* gcc 12 thinks that the instruction reads only the first bytes of its operand. */
    __asm__ volatile("" : : "m"(sizes));
    _tile_loadconfig(&sizes);
}

static inline void tiles_end(void)
{
    _tile_release();
}

/* Before loading tiles: gcc 12 does not know that they depend on what was stored. */
static TN_ALWAYS_INLINE void tiles_see_memory(void)
{
    __asm__ volatile("" : : : "memory");
}

static TN_ALWAYS_INLINE void tiles_clear_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

#endif
