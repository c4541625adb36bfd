/* SPDX-License-Identifier: MIT
 *
 * The kernel cases of attention, on a cache of random bytes.
 *
 * Scores, sums and the q8 variants are called with the model's head sizes.
 */
#include "base/bits.h"
#include "measure/kernel_case_work.h"

static struct tn_call_dims dims_of(const struct tn_case_work *w)
{
    return (struct tn_call_dims){.n = TN_KV_BLOCK,
                                 .head_dim = tn_case_cache_dim(w),
                                 .n_q = tn_case_n_queries(w),
                                 .n_pos = w->size.n_pos,
                                 .score_stride = TN_KV_BLOCK,
                                 .scale = 0.125f,
                                 .max = TN_CASE_MAX_X};
}

/* Attention is called for every block of keys or values that fits into the cache. */
static uint64_t run(struct tn_case_work *w, enum tn_call_op op, void (*fn)(void))
{
    struct tn_kernel_call c = {.dims = dims_of(w)};
    tn_case_describe(w, &c, op);
    const struct tn_operand *rows = &c.operands[1];
    if (rows->use != TN_OPERAND_ROWS) {
        tn_case_call(w, &c, op, fn);
        return tn_case_call_bytes(&c);
    }
    const size_t block = tn_case_block_bytes(w, rows->align);
    const size_t n_bytes = TN_MAX(w->size.cache_bytes / block, (size_t)1) * block;
    for (size_t at = 0; at < n_bytes && !tn_case_is_stopped(w); at += block) {
        c.operands[1].data = w->cache + at;
        tn_case_call(w, &c, op, fn);
    }
    return n_bytes;
}

#define CACHE_CASE(op) TN_CASE_DEFINE(op, run(w, TN_CALL_##op, (void (*)(void))k->op))
TN_CALL_CACHE_OPS(CACHE_CASE)
