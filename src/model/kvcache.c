/* SPDX-License-Identifier: MIT
 *
 * Layout of the key/value cache.
 */
#include "model/kvcache.h"

#include <assert.h>

#include "base/bits.h"

static size_t value_bytes(enum tn_kv_type type)
{
    return type == TN_KV_F32 ? 4 : type == TN_KV_F16 ? 2 : 1;
}

static uint32_t scales_per_row(const struct tn_kvcache *kv)
{
    return kv->type == TN_KV_Q8 ? tn_kv_q8_scales(kv->dim) : 0;
}

uint32_t tn_kv_dim(uint32_t head_dim)
{
    return (uint32_t)tn_align_up(head_dim, 16);
}

void tn_kvcache_plan(struct tn_kvcache *out, const struct tern_file_config *config,
                     enum tn_kv_type type, uint32_t n_ctx)
{
    *out = (struct tn_kvcache){
        .type = type,
        .n_kv_head = config->n_kv_head,
        .dim = tn_kv_dim(config->head_dim),
        .n_blocks = tn_div_ceil_u32(n_ctx, TN_KV_BLOCK),
    };
    out->row_bytes = out->dim * value_bytes(type);
    out->head_bytes =
        2 * TN_KV_BLOCK * (out->row_bytes + sizeof(uint16_t) * scales_per_row(out));
    /* Blocks start on pages of any system (16 KiB on Apple silicon). */
    out->block_bytes = tn_align_up(out->head_bytes * config->n_kv_head * config->n_layer, 16384);
}

struct tn_kv_rows tn_kvcache_rows(const struct tn_kvcache *kv, unsigned char *block, uint32_t layer,
                                  uint32_t i_kv_head)
{
    assert(block && "callers make blocks usable before they evaluate");
    unsigned char *head = block + ((size_t)layer * kv->n_kv_head + i_kv_head) * kv->head_bytes;
    size_t scale_bytes = TN_KV_BLOCK * sizeof(uint16_t) * scales_per_row(kv);
    unsigned char *values = head + kv->head_bytes / 2;
    return (struct tn_kv_rows){
        .k_scales = (uint16_t *)(void *)head,
        .k = head + scale_bytes,
        .v_scales = (uint16_t *)(void *)values,
        .v = values + scale_bytes,
    };
}

uint64_t tn_kv_bytes_per_token(const struct tern_file_config *config, enum tn_kv_type type)
{
    struct tn_kvcache kv;
    tn_kvcache_plan(&kv, config, type, TN_KV_BLOCK);
    return (kv.head_bytes * config->n_kv_head * config->n_layer + TN_KV_BLOCK - 1) / TN_KV_BLOCK;
}
