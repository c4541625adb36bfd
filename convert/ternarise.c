/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of ternarise.h: plain loops over short blocks, in a form that gcc and clang
 * vectorise.
 */
#include "convert/ternarise.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/half.h"

#define BLOCK 1024u /* values per stage of a loop; a multiple of 16 */

/* ---- float types ---- */

static size_t value_bytes(enum tn_dtype dtype)
{
    assert(dtype == TN_DTYPE_BF16 || dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_F32);
    return dtype == TN_DTYPE_F32 ? 4 : 2;
}

/* Magnitude bits of infinity: values from there on are not finite. */
static uint32_t infinity_bits(enum tn_dtype dtype)
{
    return dtype == TN_DTYPE_F32 ? 0x7F800000u : dtype == TN_DTYPE_BF16 ? 0x7F80u : 0x7C00u;
}

static float value_of_bits(enum tn_dtype dtype, uint32_t bits)
{
    if (dtype == TN_DTYPE_F32)
        return tn_f32_from_bits(bits);
    return dtype == TN_DTYPE_BF16 ? tn_bf16_to_f32((uint16_t)bits)
                                  : tn_f16_to_f32((uint16_t)bits);
}

void tn_floats_load(float *dst, enum tn_dtype dtype, const void *src, size_t n)
{
    const unsigned char *bytes = src;
    if (dtype == TN_DTYPE_F32)
        memcpy(dst, src, n * sizeof *dst);
    else if (dtype == TN_DTYPE_BF16)
        for (size_t i = 0; i < n; i++)
            dst[i] = tn_bf16_to_f32(tn_load_u16(bytes + 2 * i));
    else
        for (size_t i = 0; i < n; i++)
            dst[i] = tn_f16_to_f32(tn_load_u16(bytes + 2 * i));
}

static uint32_t magnitude_bits(enum tn_dtype dtype, const unsigned char *src, size_t i)
{
    return dtype == TN_DTYPE_F32 ? tn_load_u32(src + 4 * i) & 0x7FFFFFFFu
                                 : tn_load_u16(src + 2 * i) & 0x7FFFu;
}

/* The largest magnitude of n values of two bytes.  Signed, because processors have a signed
 * maximum. */
static int16_t largest_16(const unsigned char *src, size_t n)
{
    int16_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        const int16_t bits = (int16_t)(tn_load_u16(src + 2 * i) & 0x7FFFu);
        largest = TN_MAX(largest, bits);
    }
    return largest;
}

static int32_t largest_32(const unsigned char *src, size_t n)
{
    int32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t bits = (int32_t)(tn_load_u32(src + 4 * i) & 0x7FFFFFFFu);
        largest = TN_MAX(largest, bits);
    }
    return largest;
}

static uint32_t largest_magnitude(enum tn_dtype dtype, const void *src, size_t n)
{
    return value_bytes(dtype) == 2 ? (uint32_t)largest_16(src, n) : (uint32_t)largest_32(src, n);
}

size_t tn_floats_find_nonfinite(enum tn_dtype dtype, const void *src, size_t n)
{
    const uint32_t infinity = infinity_bits(dtype);
    if (largest_magnitude(dtype, src, n) < infinity)
        return n;
    size_t i = 0;
    while (magnitude_bits(dtype, src, i) < infinity)
        i++;
    return i;
}

/* ---- absmean ---- */

void tn_absmean_add(struct tn_absmean *sum, enum tn_dtype dtype, const void *src, size_t n)
{
    assert(sum->n % 16 == 0);
    const unsigned char *bytes = src;
    const size_t step = value_bytes(dtype);
    float block[BLOCK];
    double lane[16];
    memcpy(lane, sum->lane, sizeof lane);
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t n_block = TN_MIN(n - at, (size_t)BLOCK);
        const size_t n_full = n_block / 16 * 16;
        tn_floats_load(block, dtype, bytes + at * step, n_block);
        for (size_t i = 0; i < n_full; i += 16)
            for (size_t j = 0; j < 16; j++)
                lane[j] += (double)fabsf(block[i + j]);
        for (size_t i = n_full; i < n_block; i++)
            lane[i - n_full] += (double)fabsf(block[i]);
    }
    memcpy(sum->lane, lane, sizeof lane);
    sum->n += n;
}

double tn_absmean_get(const struct tn_absmean *sum)
{
    double lane[16];
    memcpy(lane, sum->lane, sizeof lane);
    for (size_t half = 8; half >= 1; half /= 2)
        for (size_t j = 0; j < half; j++)
            lane[j] += lane[j + half];
    const double mean = lane[0] / (double)sum->n;
    return mean < 1e-5 ? 1e-5 : mean;
}

uint32_t tn_trit_threshold(enum tn_dtype dtype, double mean)
{
    const double inverse = 1.0 / mean;
    uint32_t low = 0; /* product at most 1/2 */
    uint32_t high = infinity_bits(dtype);
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if ((double)value_of_bits(dtype, middle) * inverse > 0.5)
            high = middle;
        else
            low = middle;
    }
    return high;
}

static void trits_from_16(int8_t *dst, const unsigned char *src, size_t n, uint32_t threshold)
{
    const int16_t below = (int16_t)(threshold - 1);
    for (size_t i = 0; i < n; i++) {
        const int16_t bits = (int16_t)tn_load_u16(src + 2 * i);
        const int16_t sign = (int16_t)(bits >> 15 | 1); /* -1 or 1 */
        dst[i] = (int8_t)((bits & 0x7FFF) > below ? sign : 0);
    }
}

static void trits_from_32(int8_t *dst, const unsigned char *src, size_t n, uint32_t threshold)
{
    const int32_t below = (int32_t)(threshold - 1);
    for (size_t i = 0; i < n; i++) {
        const int32_t bits = (int32_t)tn_load_u32(src + 4 * i);
        const int32_t sign = bits >> 31 | 1;
        dst[i] = (int8_t)((bits & 0x7FFFFFFF) > below ? sign : 0);
    }
}

void tn_trits_from_floats(int8_t *dst, enum tn_dtype dtype, const void *src, size_t n,
                          uint32_t threshold)
{
    if (value_bytes(dtype) == 2)
        trits_from_16(dst, src, n, threshold);
    else
        trits_from_32(dst, src, n, threshold);
}

/* ---- scale * trit ---- */

static bool exact_16(int8_t *dst, const unsigned char *src, size_t n, int16_t largest)
{
    uint16_t other = 0;
    for (size_t i = 0; i < n; i++) {
        const int16_t bits = (int16_t)tn_load_u16(src + 2 * i);
        const int16_t magnitude = bits & 0x7FFF;
        const int16_t sign = (int16_t)(bits >> 15 | 1); /* -1 or 1 */
        other |= (uint16_t)(magnitude != 0 && magnitude != largest);
        dst[i] = (int8_t)(magnitude ? sign : 0);
    }
    return !other;
}

static bool exact_32(int8_t *dst, const unsigned char *src, size_t n, int32_t largest)
{
    uint32_t other = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t bits = (int32_t)tn_load_u32(src + 4 * i);
        const int32_t magnitude = bits & 0x7FFFFFFF;
        const int32_t sign = bits >> 31 | 1;
        other |= (uint32_t)(magnitude != 0 && magnitude != largest);
        dst[i] = (int8_t)(magnitude ? sign : 0);
    }
    return !other;
}

bool tn_trits_exact(int8_t *dst, float *scale, enum tn_dtype dtype, const void *src, size_t n)
{
    const uint32_t largest = largest_magnitude(dtype, src, n);
    *scale = value_of_bits(dtype, largest);
    return value_bytes(dtype) == 2 ? exact_16(dst, src, n, (int16_t)largest)
                                   : exact_32(dst, src, n, (int32_t)largest);
}

size_t tn_trits_count_far(enum tn_dtype dtype, const void *src, size_t n)
{
    const float scale = value_of_bits(dtype, largest_magnitude(dtype, src, n));
    const float margin = scale / 16;
    size_t n_far = 0;
    for (size_t k = 0; k < n; k++) {
        const float w = value_of_bits(dtype, magnitude_bits(dtype, src, k));
        n_far += w > margin && scale - w > margin;
    }
    return n_far;
}

double tn_trits_distance(enum tn_dtype dtype, const void *src, size_t n, size_t *i)
{
    const double scale = (double)value_of_bits(dtype, largest_magnitude(dtype, src, n));
    double worst = 0;
    *i = 0;
    for (size_t k = 0; k < n; k++) {
        const double w = (double)value_of_bits(dtype, magnitude_bits(dtype, src, k));
        const double d = scale > 0 ? fmin(w, scale - w) / scale : 0;
        if (d > worst) {
            worst = d;
            *i = k;
        }
    }
    return worst;
}

/* ---- codes ---- */

bool tn_trits_from_codes(int8_t *dst, const uint8_t *src, size_t n, uint32_t shift)
{
    uint8_t bad = 0;
    switch (shift) {
    case 0:
        tn_codes_to_trits(dst, src, n, 0, &bad);
        break;
    case 2:
        tn_codes_to_trits(dst, src, n, 2, &bad);
        break;
    case 4:
        tn_codes_to_trits(dst, src, n, 4, &bad);
        break;
    default:
        assert(shift == 6);
        tn_codes_to_trits(dst, src, n, 6, &bad);
    }
    return !bad;
}

#define COUNTERS 16u

size_t tn_trits_count_zeros(const int8_t *trits, size_t n)
{
    const size_t n_full = n / COUNTERS * COUNTERS;
    size_t n_zero = 0, at = 0;
    while (at < n_full) {
        uint8_t count[COUNTERS] = {0}; /* as narrow as the weights: exact for 255 rounds */
        const size_t end = TN_MIN(n_full, at + 255 * (size_t)COUNTERS);
        for (; at < end; at += COUNTERS)
            for (size_t i = 0; i < COUNTERS; i++)
                count[i] = (uint8_t)(count[i] + (trits[at + i] == 0));
        for (size_t i = 0; i < COUNTERS; i++)
            n_zero += count[i];
    }
    for (; at < n; at++)
        n_zero += trits[at] == 0;
    return n_zero;
}

/* ---- rows of small integers ---- */

float tn_round_row(int8_t *dst, const float *src, size_t n, int32_t max)
{
    uint32_t max_bits = 0; /* magnitudes compare like their bits */
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = tn_f32_to_bits(src[i]) & 0x7FFFFFFFu;
        max_bits = TN_MAX(max_bits, bits);
    }
    const float limit = (float)max;
    const float scale = tn_f32_from_bits(max_bits) / limit;
    if (scale == 0.0f) {
        memset(dst, 0, n);
        return 0.0f;
    }
    for (size_t i = 0; i < n; i++) {
        /* Adding and subtracting 1.5 * 2^23 rounds to nearest even; |w / scale| is at most about
         * `max`, more only if scale is subnormal. */
        const float q = src[i] / scale + 12582912.0f - 12582912.0f;
        dst[i] = (int8_t)(q > limit ? limit : q < -limit ? -limit : q);
    }
    return scale;
}
