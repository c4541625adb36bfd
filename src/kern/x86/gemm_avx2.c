/* SPDX-License-Identifier: MIT
 *
 * Ternary matrix times many int8 vectors for AVX2.
 *
 * `vpmaddubsw` multiplies 32 codes (0, 1, 2) with 32 inputs and adds pairs: at most
 * 2 * 2 * 127 = 508 in magnitude.  Those are added in int16 over the 64 groups of a panel,
 * 64 * 508 = 32512 < 32768, then `vpmaddwd` with ones widens them.  2 vectors of 8 rows x up to 4
 * tokens: two instructions per 32 multiply-adds, 2 + 4 loads per group (a fifth token would spill).
 */
#include "kern/x86/dots_avx2.h"
#include "kern/x86/gemm_few_avx2.h"
#include "kern/x86/gemm_unpack_avx2.h"

#define PANEL_COLS 256u
_Static_assert(PANEL_COLS / 4 * 508 <= 32767, "a panel's pair sums fit int16");
#define TILE_TOKENS 4u
#define TILE_SWITCH SWITCH_4

int32_t tn_sum_i8_avx2(const int8_t *x, uint32_t n)
{
    const __m256i bias = _mm256_set1_epi8((char)0x80);
    __m256i sum = _mm256_setzero_si256();
    for (uint32_t i = 0; i < n; i += 32) {
        const __m256i v = _mm256_xor_si256(_mm256_load_si256((const void *)(x + i)), bias);
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(v, _mm256_setzero_si256()));
    }
    __m128i s = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    s = _mm_add_epi64(s, _mm_unpackhi_epi64(s, s));
    return (int32_t)(_mm_cvtsi128_si64(s) - (int64_t)n * 128);
}

static TN_ALWAYS_INLINE __m256i dot(__m256i sum, __m256i codes, __m256i x)
{
    return add_pairs(sum, codes, x);
}

static TN_ALWAYS_INLINE __m256i sums_of(__m256i sum)
{
    return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}

/* Adds start to one of the two int16 of a row, so that the 8 groups of a block stay within 8 * 508
 * + 4064 = 8128. */
static TN_ALWAYS_INLINE __m256i start_at(int32_t start)
{
    return _mm256_and_si256(_mm256_set1_epi32(start), _mm256_set1_epi32(0xFFFF));
}

#include "kern/x86/gemm_rows_avx2.h"

static const struct gemm_level level = {PANEL_COLS, TILE_TOKENS, multiply};

GEMM_DEFINE_ALL_FEW(avx2, FEW_TOKENS)
X16_GEMM_DEFINE_TILE(avx2, x16_tile, TILE_TOKENS / 2)
X8_GEMM_DEFINE_TILE(avx2, x8_tile, TILE_TOKENS)
