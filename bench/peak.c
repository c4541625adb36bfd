/* SPDX-License-Identifier: MIT
 *
 * Measures the limits of this machine: the rate at which it reads memory, and the rate of its int8
 * multiply-add instructions.  Kernels are reported as shares of these, so that numbers of different
 * machines can be compared.
 */
#include "bench/peak.h"

#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "base/stream.h"
#include "plat/plat.h"

#if TN_ARCH_X86_64
#include <immintrin.h>
#elif TN_ARCH_AARCH64
#include <arm_neon.h>
#endif

static volatile uint64_t sink;

/* Memory is read in pieces of about a millisecond, and the best piece counts: on a shared machine
 * other processes slow down some of them. */
#define PIECE_BYTES ((size_t)16 << 20)

double tn_peak_stream(const void *data, size_t n_bytes, unsigned n_runs)
{
    double best = 0;
    for (unsigned i = 0; i < n_runs; i++)
        for (size_t at = 0; at + PIECE_BYTES <= n_bytes; at += PIECE_BYTES) {
            const uint64_t begin = tn_now_ns();
            sink = tn_read_stream((const uint8_t *)data + at, PIECE_BYTES);
            best = TN_MAX(best, (double)PIECE_BYTES / (double)(tn_now_ns() - begin));
        }
    return best;
}

/* Prefetch distances in rows; each row is requested twice, because a processor drops prefetches
 * while all its line buffers are in use. */
static const uint32_t rows_ahead[] = {16, 8};
#define N_AHEAD TN_COUNT_OF(rows_ahead)

/* Returns a value that depends on all bytes of the listed rows. */
static uint64_t read_rows(const uint8_t *data, const uint32_t *rows, uint32_t n, size_t row_bytes)
{
    typedef uint64_t vec __attribute__((vector_size(16)));
    vec sums[4] = {{0}}, v[4];
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *row = data + rows[i] * row_bytes, *ahead[N_AHEAD];
        for (size_t k = 0; k < N_AHEAD; k++)
            ahead[k] = data + rows[TN_MIN(i + rows_ahead[k], n - 1)] * row_bytes;
        for (size_t at = 0; at < row_bytes; at += 64) {
            for (size_t k = 0; k < N_AHEAD; k++)
                TN_PREFETCH(ahead[k] + at);
            memcpy(v, row + at, sizeof v);
            for (int k = 0; k < 4; k++)
                sums[k] ^= v[k];
        }
    }
    const vec all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
    return all[0] ^ all[1];
}

double tn_peak_rows(const void *data, size_t n_bytes, size_t row_bytes, double density,
                    unsigned n_runs)
{
    static uint32_t rows[PIECE_BYTES / 64]; /* active in every piece; drawn before the clock
                                             * starts */
    uint32_t n = 0;
    struct tn_rng rng;
    tn_rng_seed(&rng, 11);
    for (uint32_t i = 0; i < PIECE_BYTES / row_bytes; i++)
        if ((double)tn_rng_f32(&rng) < density)
            rows[n++] = i;
    double best = 0;
    for (unsigned i = 0; i < n_runs; i++)
        for (size_t at = 0; at + PIECE_BYTES <= n_bytes && n > 0; at += PIECE_BYTES) {
            const uint64_t begin = tn_now_ns();
            sink = read_rows((const uint8_t *)data + at, rows, n, row_bytes);
            best = TN_MAX(best, (double)(n * row_bytes) / (double)(tn_now_ns() - begin));
        }
    return best;
}

#define PEAK_LOOPS 200000u
#define PEAK_CHAINS 12 /* enough to hide the latency, and few enough for the registers */

/* Defines loop_<name>: PEAK_LOOPS x PEAK_CHAINS independent steps a = step(a, x, y); the compiler
 * can neither see through x and y nor drop a. */
#define PEAK_LOOP(name, features, sum_type, input_type, reg, zero, one, step)                      \
    __attribute__((target(features))) static void loop_##name(void)                                \
    {                                                                                              \
        input_type x = one, y = one;                                                               \
        sum_type a[PEAK_CHAINS];                                                                   \
        _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_CHAINS; i++) a[i] = zero;                \
        for (unsigned n = 0; n < PEAK_LOOPS; n++) {                                                \
            _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_CHAINS; i++)                         \
            {                                                                                      \
                __asm__ volatile("" : "+" reg(x), "+" reg(y));                                     \
                a[i] = step(a[i], x, y);                                                           \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_CHAINS; i++)                             \
            __asm__ volatile("" : : reg(a[i]));                                                    \
    }

#if TN_ARCH_X86_64

#define MADD_256(a, x, y) _mm256_add_epi16(a, _mm256_maddubs_epi16(x, y))
#define MADD_128(a, x, y) _mm_add_epi16(a, _mm_maddubs_epi16(x, y))

PEAK_LOOP(ssse3, "ssse3", __m128i, __m128i, "x", _mm_setzero_si128(), _mm_set1_epi8(1), MADD_128)
PEAK_LOOP(avx2, "avx2", __m256i, __m256i, "x", _mm256_setzero_si256(), _mm256_set1_epi8(1),
          MADD_256)
PEAK_LOOP(avxvnni, "avx2,avxvnni", __m256i, __m256i, "x", _mm256_setzero_si256(),
          _mm256_set1_epi8(1), _mm256_dpbusd_avx_epi32)
PEAK_LOOP(avx512, "avx512f,avx512vnni", __m512i, __m512i, "v", _mm512_setzero_si512(),
          _mm512_set1_epi8(1), _mm512_dpbusd_epi32)

#if TN_HAS_AMX
/* PEAK_LOOPS x PEAK_CHAINS products of tiles that are all zero, in four chains. */
__attribute__((target("amx-tile,amx-int8"))) static void loop_amx(void)
{
    static const uint8_t config[64] = {[0] = 1,
                                       [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64,
                                       [26] = 64, [48] = 16, [49] = 16, [50] = 16, [51] = 16,
                                       [52] = 16, [53] = 16};
    __asm__ volatile("" : : "m"(config));
    _tile_loadconfig(config);
    for (unsigned n = 0; n < PEAK_LOOPS * PEAK_CHAINS / 4; n++) {
        _tile_dpbssd(0, 4, 5);
        _tile_dpbssd(1, 4, 5);
        _tile_dpbssd(2, 4, 5);
        _tile_dpbssd(3, 4, 5);
    }
    _tile_release();
}
#endif

static const struct {
    const char *isa;
    void (*loop)(void);
    unsigned macs; /* per step */
} peaks[] = {
#if TN_HAS_AMX
    {"amx", loop_amx, 16 * 16 * 64},
#endif
    {"ssse3", loop_ssse3, 16},
    {"avx2", loop_avx2, 32},
    {"avxvnni", loop_avxvnni, 32},
    {"avx512", loop_avx512, 64},
};

#elif TN_ARCH_AARCH64

#define MLAL(a, x, y) vmlal_s8(a, vget_low_s8(x), vget_low_s8(y))

PEAK_LOOP(neon, "arch=armv8-a", int16x8_t, int8x16_t, "w", vdupq_n_s16(0), vdupq_n_s8(1), MLAL)
PEAK_LOOP(dotprod, "arch=armv8.2-a+dotprod", int32x4_t, int8x16_t, "w", vdupq_n_s32(0),
          vdupq_n_s8(1), vdotq_s32)
PEAK_LOOP(i8mm, "arch=armv8.2-a+i8mm", int32x4_t, int8x16_t, "w", vdupq_n_s32(0), vdupq_n_s8(1),
          vmmlaq_s32)

static const struct {
    const char *isa;
    void (*loop)(void);
    unsigned macs; /* per step */
} peaks[] = {
    {"neon", loop_neon, 8},
    {"dotprod", loop_dotprod, 16},
    {"i8mm", loop_i8mm, 32},
};

#else
#error "no multiply-add loop for this architecture"
#endif

double tn_peak_macs(const char *isa)
{
    for (size_t i = 0; i < TN_COUNT_OF(peaks); i++) {
        if (strcmp(peaks[i].isa, isa) != 0)
            continue;
        double best = 0;
        for (int run = 0; run < 5; run++) {
            const uint64_t begin = tn_now_ns();
            peaks[i].loop();
            const double ns = (double)(tn_now_ns() - begin);
            best = TN_MAX(best, (double)PEAK_LOOPS * PEAK_CHAINS * peaks[i].macs / ns);
        }
        return best;
    }
    return 0;
}
