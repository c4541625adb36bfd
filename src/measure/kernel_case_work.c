/* SPDX-License-Identifier: MIT
 *
 * Inputs of the kernel cases: pseudo-random with a fixed seed, and stand-ins for data that the
 * model lacks.  Calls (kernel_calls.h) get their operands here.
 */
#define XXH_INLINE_ALL
#include "measure/kernel_case_work.h"

#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/half.h"
#include "base/rng.h"

/* bytes of the stand-in's tile that hold half floats, in any layout */
#define MOST_HALVES_BYTES 512u

void tn_case_note(struct tn_case_work *w, const void *result, size_t n_bytes)
{
    if (w->hashes)
        w->hash = XXH3_64bits_withSeed(result, n_bytes, w->hash);
}

bool tn_case_is_stopped(const struct tn_case_work *w)
{
    return w->should_stop && w->should_stop(w->arg);
}

static void fill(struct tn_case_work *w)
{
    struct tn_rng rng;
    tn_rng_seed(&rng, 1);
    for (size_t i = 0; i < (size_t)w->size.n_tokens * w->widest; i++)
        w->random[i] = (int8_t)((int)(tn_rng_next(&rng) % 255) - 127);
    for (uint32_t i = 0; i < w->widest; i++) {
        w->xf[i] = 2 * TN_CASE_MAX_X * (tn_rng_f32(&rng) - 0.5f);
        w->yf[i] = tn_rng_f32(&rng) - 0.25f;
        w->x16[i] = (int16_t)(i < tn_case_config(w)->hidden ? w->random[i] : 0);
        w->halves[i] = tn_f32_to_f16(tn_rng_f32(&rng));
        w->index[i] = i;
    }
    for (uint32_t i = 0; i < TERN_PLANE_BLOCK_ROWS; i++)
        w->sums[i] = 100.0 * (tn_rng_f32(&rng) - 0.5f);
    /* Half floats of about 1/8 to 1 with either sign; read as floats they are small. */
    for (size_t i = 0; i + 1 < w->size.cache_bytes; i += 2) {
        const uint64_t x = tn_rng_next(&rng);
        w->cache[i] = (unsigned char)(x | 1);
        w->cache[i + 1] = (unsigned char)((0x30 + (x >> 8) % 12) | (x >> 16 & 0x80));
    }
}

static void fill_blocks(struct tn_case_work *w)
{
    struct tn_rng rng;
    uint8_t *bytes = w->blocks;
    tn_rng_seed(&rng, 4);
    for (size_t i = 0; i < TN_CASE_BLOCKS_BYTES; i++)
        bytes[i] = (uint8_t)tn_rng_next(&rng);
    /* Half floats of 2^-7 to 2^-3. */
    for (size_t i = 1; i < MOST_HALVES_BYTES; i += 2)
        bytes[i] = (uint8_t)(0x20 | (bytes[i] & 0x8F));
}

/* A small table of four planes, for kernels that the model's own head does not use. */
static bool make_planes(struct tn_case_work *w)
{
    const uint32_t rows = TN_CASE_STAND_IN_ROWS, cols = tn_case_config(w)->hidden;
    const size_t n_scales = (size_t)tn_layout_scale_bytes(TERN_LAYOUT_Q8_PLANES, rows, cols);
    int8_t *q = tn_alloc((size_t)rows * cols);
    w->planes_data = tn_alloc_aligned(tn_bit_planes_block_bytes(rows, cols, TN_MAX_PLANES), 64);
    w->planes_scales = tn_alloc_aligned(tn_align_up(n_scales, 64), 64);
    if (q && w->planes_data && w->planes_scales) {
        for (uint32_t i = 0; i < rows; i++) {
            ((float *)w->planes_scales)[i] = 0.01f;
            for (uint32_t j = 0; j < cols; j++)
                q[(size_t)i * cols + j] = w->random[(i * 131 + j) % w->widest];
        }
        tn_bit_planes_offsets(tn_bit_planes_place_offsets(w->planes_scales, rows, TN_MAX_PLANES), q,
                              rows, cols);
        tn_bit_planes_pack(w->planes_data, w->planes_scales, q, 0, rows, rows, cols, TN_MAX_PLANES);
        w->planes = tn_bit_planes_view(w->planes_data, w->planes_scales, rows, cols, TN_MAX_PLANES);
    }
    tn_free(q);
    return w->planes.n_planes > 0;
}

static bool allocate(struct tn_case_work *w)
{
    const size_t widest = w->widest, n_tokens = w->size.n_tokens;
    const size_t ints = TN_MAX(TN_MAX(n_tokens * TN_GEMM_ROWS, widest), (size_t)TN_C2_MAX_ROWS);
    const struct {
        void *slot; /* address of a pointer */
        size_t n_bytes;
    } list[] = {
        {&w->random, n_tokens * widest},
        {&w->x, n_tokens * widest},
        {&w->x_sum, n_tokens * sizeof(int32_t)},
        {&w->xf, widest * sizeof(float)},
        {&w->yf, widest * sizeof(float)},
        {&w->x16, widest * sizeof(int16_t)},
        {&w->halves, widest * sizeof(uint16_t)},
        {&w->index, widest * sizeof(uint32_t)},
        {&w->sums, TERN_PLANE_BLOCK_ROWS * sizeof(double)},
        {&w->prepared, TN_MAX(TN_LUT_BYTES(w->widest), n_tokens * TN_X16_BYTES(w->widest))},
        {&w->scratch, TN_KERNEL_SCRATCH_BYTES},
        {&w->ints, ints * sizeof(int32_t)},
        {&w->floats, TN_MAX(widest, (size_t)TERN_PLANE_BLOCK_ROWS * 2) * sizeof(float)},
        {&w->bytes, 4 * widest},
        {&w->out, TN_CASE_OUT_BYTES * widest},
        {&w->cache, w->size.cache_bytes},
        {&w->blocks, TN_CASE_BLOCKS_BYTES},
    };
    bool good = true;
    for (size_t i = 0; i < TN_COUNT_OF(list); i++) {
        void *memory = tn_alloc_aligned(tn_align_up(list[i].n_bytes, 64), 64);
        memcpy(list[i].slot, &memory, sizeof memory);
        good = good && memory;
    }
    return good;
}

tern_status tn_case_work_init(struct tn_case_work *out, const struct tern_model *model,
                              const struct tn_case_size *size, struct tern_error *err)
{
    *out = (struct tn_case_work){.model = model, .size = *size};
    const struct tern_file_config *c = tn_case_config(out);
    const uint32_t dim = tn_case_cache_dim(out);
    uint32_t widest = TN_MAX(c->n_head * c->head_dim, tn_case_n_queries(out) * dim);
    widest = TN_MAX(widest, TN_MAX(c->hidden, c->ffn));
    widest = TN_MAX(widest, tn_case_n_queries(out) * TN_KV_BLOCK); /* scores of a block */
    widest = TN_MAX(widest, tn_kv_q8_scales(dim) * TN_KV_BLOCK); /* scales of a block */
    widest = TN_MAX(widest, TN_CASE_TABLE_ROWS); /* results of a table */
    out->widest = tn_kern_pad(widest);
    out->size.cache_bytes = TN_MAX(size->cache_bytes, tn_case_block_bytes(out, sizeof(float)));
    bool good = allocate(out);
    if (good) {
        fill(out);
        fill_blocks(out);
        good = !size->with_stand_ins || make_planes(out);
    }
    if (good)
        return TERN_OK;
    tn_case_work_fini(out);
    return tn_fail(err, TERN_MEMORY, "no memory to try the kernels");
}

void tn_case_work_fini(struct tn_case_work *w)
{
    void *const list[] = {w->random, w->x,    w->x_sum,    w->xf,   w->yf,    w->x16, w->halves,
                          w->index,  w->sums, w->prepared, w->scratch, w->ints,  w->floats,
                          w->bytes,  w->out,  w->cache,
                          w->planes_data, w->planes_scales, w->blocks};
    for (size_t i = 0; i < TN_COUNT_OF(list); i++)
        tn_free_aligned(list[i]);
    *w = (struct tn_case_work){0};
}

/* ---- calls (kernel_calls.h) ---- */

/* Inputs of one type share their memory, except floats: the first are xf, all others yf. */
static void *input(const struct tn_case_work *w, const struct tn_operand *o, bool is_first,
                   size_t *n_used)
{
    const size_t at = *n_used;
    switch (o->type) {
    case TN_OPERAND_I8:
        return w->random;
    case TN_OPERAND_I32:
        return w->index;
    case TN_OPERAND_F32:
        *n_used += is_first ? 0 : o->n;
        return is_first ? w->xf : w->yf + at;
    case TN_OPERAND_F64:
        return w->sums;
    default:
        return w->halves;
    }
}

void tn_case_describe(struct tn_case_work *w, struct tn_kernel_call *c, enum tn_call_op op)
{
    size_t n_used = 0, out = 0;
    c->fn = NULL;
    c->n_operands = 0;
    tn_kernel_calls[op].run(c);
    for (uint32_t i = 0; i < c->n_operands; i++) {
        struct tn_operand *o = &c->operands[i];
        if (tn_operand_is_written(o)) {
            o->data = w->out + out;
            out += tn_align_up(tn_operand_bytes(o), 64);
        } else {
            o->data = o->use == TN_OPERAND_ROWS ? w->cache : input(w, o, i == 0, &n_used);
        }
    }
}

void tn_case_call(struct tn_case_work *w, struct tn_kernel_call *c, enum tn_call_op op,
                  void (*fn)(void))
{
    size_t n_used = 0;
    for (uint32_t i = 0; i < c->n_operands; i++) {
        const struct tn_operand *o = &c->operands[i];
        if (o->use > TN_OPERAND_OUT)
            memcpy(o->data, input(w, o, i == 0, &n_used), tn_operand_bytes(o));
        else if (o->use == TN_OPERAND_OUT && w->hashes)
            memset(o->data, 0, tn_operand_bytes(o)); /* bytes that a kernel leaves are equal */
    }
    c->fn = fn;
    c->n_operands = 0;
    tn_kernel_calls[op].run(c);
    for (uint32_t i = 0; i < c->n_operands; i++)
        if (tn_operand_is_written(&c->operands[i]))
            tn_case_note(w, c->operands[i].data, tn_operand_bytes(&c->operands[i]));
}

uint64_t tn_case_call_bytes(const struct tn_kernel_call *c)
{
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < c->n_operands; i++) {
        const struct tn_operand *o = &c->operands[i];
        n_bytes += tn_operand_bytes(o) * (tn_operand_is_read(o) + tn_operand_is_written(o));
    }
    return n_bytes;
}
