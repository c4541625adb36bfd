/* SPDX-License-Identifier: MIT
 *
 * The kernel cases of attention, on a cache of random bytes.
 *
 * Scores, sums and the q8 variants are called with the model's head sizes.
 */
#include <string.h>

#include "base/bits.h"
#include "measure/kernel_case_work.h"

/* Iterates over the blocks of keys or values of one type that fit into the cache. */
#define EACH_BLOCK(w, at, block_bytes)                                                             \
    for (size_t at = 0; (at == 0 || at + (block_bytes) <= (w)->size.cache_bytes) &&                \
                        !tn_case_is_stopped(w);                                                   \
         at += (block_bytes))

static size_t total_bytes(const struct tn_case_work *w, size_t value_bytes)
{
    const size_t block = tn_case_block_bytes(w, value_bytes);
    return TN_MAX(w->size.cache_bytes / block, (size_t)1) * block;
}

static uint64_t qk(struct tn_case_work *w, tn_attn_qk_fn *fn, size_t value_bytes)
{
    const uint32_t n_q = tn_case_n_queries(w), dim = tn_case_cache_dim(w);
    EACH_BLOCK(w, at, tn_case_block_bytes(w, value_bytes)) {
        fn(w->s, TN_KV_BLOCK, w->q, n_q, w->cache + at, w->size.n_pos, dim, 0.125f);
        for (uint32_t i = 0; i < n_q; i++)
            tn_case_note(w, w->s + i * TN_KV_BLOCK, w->size.n_pos * sizeof(float));
    }
    return total_bytes(w, value_bytes);
}

static uint64_t pv(struct tn_case_work *w, tn_attn_pv_fn *fn, size_t value_bytes)
{
    const uint32_t n_q = tn_case_n_queries(w), dim = tn_case_cache_dim(w);
    EACH_BLOCK(w, at, tn_case_block_bytes(w, value_bytes)) {
        fn(w->o, w->p, TN_KV_BLOCK, n_q, w->cache + at, w->size.n_pos, dim);
        tn_case_note(w, w->o, (size_t)n_q * dim * sizeof(float));
    }
    return total_bytes(w, value_bytes);
}

uint64_t tn_case_attn_qk_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return qk(w, k->attn_qk_f32, sizeof(float));
}

uint64_t tn_case_attn_qk_f16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return qk(w, k->attn_qk_f16, sizeof(uint16_t));
}

uint64_t tn_case_attn_pv_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return pv(w, k->attn_pv_f32, sizeof(float));
}

uint64_t tn_case_attn_pv_f16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return pv(w, k->attn_pv_f16, sizeof(uint16_t));
}

uint64_t tn_case_attn_qk_q8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n_q = tn_case_n_queries(w), dim = tn_case_cache_dim(w);
    EACH_BLOCK(w, at, tn_case_block_bytes(w, 1)) {
        k->attn_qk_q8(w->s, TN_KV_BLOCK, w->random, w->halves, n_q, w->cache + at, w->halves,
                      w->size.n_pos, dim, 0.125f);
        for (uint32_t i = 0; i < n_q; i++)
            tn_case_note(w, w->s + i * TN_KV_BLOCK, w->size.n_pos * sizeof(float));
    }
    return total_bytes(w, 1);
}

uint64_t tn_case_attn_pv_q8(struct tn_case_work *w, const struct tn_kernels *k)
{
    const uint32_t n_q = tn_case_n_queries(w), dim = tn_case_cache_dim(w);
    EACH_BLOCK(w, at, tn_case_block_bytes(w, 1)) {
        k->attn_pv_q8(w->o, w->p, TN_KV_BLOCK, n_q, w->cache + at, w->halves, w->size.n_pos, dim,
                      NULL);
        tn_case_note(w, w->o, (size_t)n_q * dim * sizeof(float));
    }
    return total_bytes(w, 1);
}

uint64_t tn_case_max_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    const float max = k->max_f32(w->p, TN_KV_BLOCK);
    tn_case_note(w, &max, sizeof max);
    return TN_KV_BLOCK * sizeof(float);
}

uint64_t tn_case_exp_sum_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    memcpy(w->floats, w->p, TN_KV_BLOCK * sizeof(float));
    const float sum = k->exp_sum_f32(w->floats, TN_KV_BLOCK, 1.0f);
    tn_case_note(w, w->floats, TN_KV_BLOCK * sizeof(float));
    tn_case_note(w, &sum, sizeof sum);
    return TN_KV_BLOCK * 2 * sizeof(float);
}

static uint64_t store(struct tn_case_work *w, tn_kv_store_fn *fn, size_t value_bytes,
                      uint32_t n_scales)
{
    uint16_t *scales = (uint16_t *)w->ints;
    const uint32_t dim = tn_case_cache_dim(w);
    fn(w->bytes, scales, w->q, dim);
    tn_case_note(w, w->bytes, dim * value_bytes);
    tn_case_note(w, scales, n_scales * sizeof(uint16_t));
    return dim * (sizeof(float) + value_bytes) + n_scales * sizeof(uint16_t);
}

uint64_t tn_case_kv_store_f32(struct tn_case_work *w, const struct tn_kernels *k)
{
    return store(w, k->kv_store_f32, sizeof(float), 0);
}

uint64_t tn_case_kv_store_f16(struct tn_case_work *w, const struct tn_kernels *k)
{
    return store(w, k->kv_store_f16, sizeof(uint16_t), 0);
}

uint64_t tn_case_kv_store_q8(struct tn_case_work *w, const struct tn_kernels *k)
{
    return store(w, k->kv_store_q8, 1, tn_kv_q8_scales(tn_case_cache_dim(w)));
}
