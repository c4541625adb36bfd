/* SPDX-License-Identifier: MIT
 *
 * Packs rows of integers into planes of bits (bit_planes.h) for the converter: chooses the shift
 * and offset of each row and computes the norms from which model/head.c bounds logits.
 */
#include "kern/bit_planes.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Layout of scales: arrays of one float per row: the scale, the norm of v, and an open norm for
 * each plane except the last. */
static float *scale_array(void *scales, uint32_t rows, uint32_t i)
{
    return (float *)scales + (size_t)i * rows;
}

int8_t *tn_bit_planes_place_offsets(void *scales, uint32_t rows, uint32_t n_planes)
{
    return (int8_t *)scale_array(scales, rows, n_planes + 1);
}

struct tn_bit_planes tn_bit_planes_view(const void *data, const void *scales, uint32_t rows,
                                        uint32_t cols, uint32_t n_planes)
{
    const float *floats = scales;
    const int8_t *offsets = (const int8_t *)(floats + (size_t)(n_planes + 1) * rows);
    return (struct tn_bit_planes){
        .data = data,
        .scales = floats,
        .norms = floats + rows,
        .open = floats + 2 * (size_t)rows,
        .offsets = offsets,
        .forms = (const uint8_t *)offsets + cols,
        .rows = rows,
        .cols = cols,
        .n_planes = n_planes,
    };
}

size_t tn_bit_planes_block_bytes(uint32_t n, uint32_t cols, uint32_t n_planes)
{
    return n * tn_plane_row_bytes(cols, tn_bit_planes_bits(n_planes));
}

const uint8_t *tn_bit_planes_block(const struct tn_bit_planes *w, uint32_t block_row,
                                   uint32_t i_plane)
{
    uint32_t n = TN_MIN(TERN_PLANE_BLOCK_ROWS, w->rows - block_row);
    size_t before = tn_plane_row_bytes(w->cols, tn_bit_planes_bits(w->n_planes));
    size_t inside = tn_plane_row_bytes(w->cols, tn_bit_planes_bits(i_plane));
    return w->data + block_row * before + n * inside;
}

const uint8_t *tn_bit_planes_row(const struct tn_bit_planes *w, uint32_t row, uint32_t i_plane)
{
    const uint32_t inside = row % TERN_PLANE_BLOCK_ROWS;
    return tn_bit_planes_block(w, row - inside, i_plane) + inside * tn_plane_row(w->cols, i_plane);
}

/* ---- packing ---- */

#define GROUP_WORDS (TN_PLANE_COLS / 8)
#define BYTES(b) (0x0101010101010101u * (uint8_t)(b)) /* eight times */

/* Codes of TN_PLANE_COLS columns, zeros past the last one.  They are shifted eight at a time:
 * compilers widen single bytes to 32 bits for that. */
union group {
    uint8_t byte[TN_PLANE_COLS];
    uint64_t word[GROUP_WORDS];
};

/* Packs codes of `bits` bits: code j is stored in byte j % n_bytes, field j / n_bytes. */
static TN_ALWAYS_INLINE void put_group_of(uint8_t *dst, const union group *code, uint32_t bits)
{
    const uint32_t n_words = GROUP_WORDS / 8 * bits;
    uint64_t packed[GROUP_WORDS / 2] = {0};
    for (uint32_t field = 0; field < 8 / bits; field++)
        for (uint32_t i = 0; i < n_words; i++)
            packed[i] |= code->word[field * n_words + i] << field * bits;
    memcpy(dst, packed, n_words * sizeof *packed);
}

/* The same, with the number of bits a compile-time constant. */
static void put_group(uint8_t *dst, const union group *code, uint32_t bits)
{
    if (bits == 1)
        put_group_of(dst, code, 1);
    else if (bits == 2)
        put_group_of(dst, code, 2);
    else
        put_group_of(dst, code, 4);
}

/* How a row becomes planes: u = (q - offset) * 2^shift + bias, which fits 8 bits. */
struct row_form {
    const int8_t *q, *offsets;
    int8_t keep; /* a mask for offsets, -1: subtract them, 0: do not */
    uint32_t shift;
    uint8_t bias;
};

/* The largest shift below `bits` that keeps [least, most] within `bits` bits; -1: none. */
static int32_t largest_shift(int32_t least, int32_t most, uint32_t bits)
{
    const int32_t limit = 1 << (bits - 1);
    int32_t shift = -1;
    while (shift + 1 < (int32_t)bits && least * (1 << (shift + 1)) >= -limit &&
           most * (1 << (shift + 1)) < limit)
        shift++;
    return shift;
}

/* Subtracts the offsets if that allows a larger shift. */
static struct row_form choose_form(const int8_t *q, const int8_t *offsets, uint32_t cols,
                                   uint32_t bits)
{
    int16_t least = 0, most = 0, least_centred = 0, most_centred = 0; /* narrow types: more fit in a
                                                                       * vector */
    for (uint32_t c = 0; c < cols; c++) {
        const int16_t v = q[c], centred = (int16_t)(q[c] - offsets[c]);
        least = TN_MIN(least, v);
        most = TN_MAX(most, v);
        least_centred = TN_MIN(least_centred, centred);
        most_centred = TN_MAX(most_centred, centred);
    }
    const int32_t shift = largest_shift(least, most, bits);
    const int32_t shift_centred = largest_shift(least_centred, most_centred, bits);
    const bool is_centred = shift_centred > shift;
    return (struct row_form){q, offsets, is_centred ? -1 : 0,
                             (uint32_t)(is_centred ? shift_centred : shift),
                             (uint8_t)(1 << (bits - 1))};
}

/* The square root of sum / 4^shift, rounded up, so that the norm is never too small. */
static float norm_above(double sum, uint32_t shift)
{
    return (float)(sqrt(sum) / (1 << shift) * 1.000001);
}

/* u of n columns from c on; intermediate values are modulo 256. */
static void row_codes(union group *u, const struct row_form *f, uint32_t c, uint32_t n)
{
    const int8_t *q = f->q + c, *offsets = f->offsets + c;
    const uint64_t kept = BYTES(0xFFu << f->shift);
    for (uint32_t j = 0; j < n; j++)
        u->byte[j] = (uint8_t)(q[j] - (offsets[j] & f->keep));
    for (uint32_t i = 0; i < GROUP_WORDS; i++)
        u->word[i] = u->word[i] << f->shift & kept;
    for (uint32_t j = 0; j < n; j++)
        u->byte[j] = (uint8_t)(u->byte[j] + f->bias);
}

/* Sum of squares of u - bias. */
static uint32_t sum_of_values(const uint8_t *u, uint32_t n, int16_t bias)
{
    int32_t sum = 0;
    for (uint32_t j = 0; j < n; j++) {
        const int16_t v = (int16_t)(u[j] - bias);
        sum += v * v;
    }
    return (uint32_t)sum;
}

/* Sum of squares of what the `open` lowest bits add: twice the distance from their middle, which
 * turns halves into integers. */
static uint32_t sum_of_open(const uint8_t *u, uint32_t n, uint32_t open, uint32_t shift)
{
    const uint8_t top = (uint8_t)((1 << open) - 1);
    const int16_t twice_middle = (int16_t)(shift < open ? (1 << open) - (1 << shift) : 0);
    int32_t sum = 0;
    for (uint32_t j = 0; j < n; j++) {
        const int16_t d = (int16_t)(2 * (u[j] & top) - twice_middle);
        sum += d * d;
    }
    return (uint32_t)sum;
}

/* The `bits` bits of u above the `open` lowest. */
static void put_bits(uint8_t *dst, const union group *u, uint32_t bits, uint32_t open)
{
    const uint64_t mask = BYTES((1u << bits) - 1);
    union group code;
    for (uint32_t i = 0; i < GROUP_WORDS; i++)
        code.word[i] = u->word[i] >> open & mask;
    put_group(dst, &code, bits);
}

/* The norms of a row, stored beside its bits. */
struct row_norms {
    float values;
    float open[TN_MAX_PLANES]; /* of the bits below each plane, relative to their middle */
};

/* Packs one row; plane i goes to dst[i]. */
static struct row_norms pack_row(uint8_t *const dst[TN_MAX_PLANES], const struct row_form *f,
                                 uint32_t cols, uint32_t n_planes)
{
    uint64_t squares = 0, open_squares[TN_MAX_PLANES] = {0};
    for (uint32_t c = 0; c < cols; c += TN_PLANE_COLS) {
        const uint32_t n = TN_MIN(TN_PLANE_COLS, cols - c);
        union group u = {{0}};
        row_codes(&u, f, c, n);
        squares += sum_of_values(u.byte, n, f->bias);
        for (uint32_t i = 0; i < n_planes; i++) {
            const uint32_t open = tn_bit_planes_bits(n_planes) - tn_bit_planes_bits(i + 1);
            put_bits(dst[i] + c / 8 * tn_plane_bits(i), &u, tn_plane_bits(i), open);
            open_squares[i] += open ? sum_of_open(u.byte, n, open, f->shift) : 0;
        }
    }
    struct row_norms norms = {.values = norm_above((double)squares, f->shift)};
    for (uint32_t i = 0; i < n_planes; i++)
        norms.open[i] = norm_above(0.25 * (double)open_squares[i], f->shift);
    return norms;
}

void tn_bit_planes_pack(uint8_t *dst, void *scales, const int8_t *q, uint32_t row, uint32_t n,
                        uint32_t rows, uint32_t cols, uint32_t n_planes)
{
    const int8_t *offsets = tn_bit_planes_place_offsets(scales, rows, n_planes);
    uint8_t *forms = (uint8_t *)tn_bit_planes_place_offsets(scales, rows, n_planes) + cols;
    for (uint32_t r = 0; r < n; r++, q += cols) {
        const struct row_form f = choose_form(q, offsets, cols, tn_bit_planes_bits(n_planes));
        uint8_t *planes[TN_MAX_PLANES] = {0}, *plane = dst;
        for (uint32_t i = 0; i < n_planes; i++) {
            planes[i] = plane + r * tn_plane_row(cols, i);
            plane += n * tn_plane_row(cols, i);
        }
        const struct row_norms norms = pack_row(planes, &f, cols, n_planes);
        forms[row + r] = (uint8_t)(f.shift | (f.keep ? TERN_PLANE_CENTRED : 0));
        scale_array(scales, rows, 1)[row + r] = norms.values;
        for (uint32_t i = 0; i + 1 < n_planes; i++)
            scale_array(scales, rows, 2 + i)[row + r] = norms.open[i];
    }
}

void tn_bit_planes_offsets(int8_t *offsets, const int8_t *q, uint32_t n, uint32_t cols)
{
    for (uint32_t c = 0; c < cols; c++) {
        uint32_t count[256] = {0}, below = 0, u = 0;
        for (uint32_t r = 0; r < n; r++)
            count[q[(size_t)r * cols + c] + 128]++;
        while ((below += count[u]) <= (n - 1) / 2)
            u++;
        offsets[c] = (int8_t)((int32_t)u - 128);
    }
}
