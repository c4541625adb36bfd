/* SPDX-License-Identifier: MIT
 *
 * The key/value cache: where each row lies in a block.  Pure arithmetic; blocks
 * come from a pool (run/cache_pool.h), and a sequence has a list of them.
 *
 * Positions come in blocks of TN_KV_BLOCK.  A block holds all layers, so that
 * growth is one range; inside, everything lies in the order in which attention
 * reads it:
 *
 *   block b:  layer 0: head 0: K scales  K [256][dim]  V scales  V [256][dim]
 *                      head 1: ...
 *             layer 1: ...
 *
 * dim is head_dim padded with zeros to a multiple of 16.  Types: f32, f16, or
 * int8 with one f16 scale per 64 values of a row, in tiles (kern.h).
 */
#ifndef TN_KVCACHE_H
#define TN_KVCACHE_H

#include <stddef.h>
#include <stdint.h>

#include "kern/kern.h"
#include "tern/model_format.h"

/* The numbers of enum tern_kv (tern.h). */
enum tn_kv_type { TN_KV_F32 = 0, TN_KV_F16 = 1, TN_KV_Q8 = 2 };

/* What all blocks of a model's cache have in common. */
struct tn_kvcache {
    enum tn_kv_type type;
    uint32_t n_kv_head;
    uint32_t dim;          /* padded head_dim */
    uint32_t n_blocks;     /* of a sequence of n_ctx positions */
    size_t row_bytes;      /* one row of values */
    size_t head_bytes;     /* K, V and scales of one head in one block */
    size_t block_bytes;    /* all layers */
};

/* The rows of one head in one block. */
struct tn_kv_rows {
    void *k;             /* [256][dim], q8: tiles */
    void *v;             /* [256][dim], q8: tiles */
    uint16_t *k_scales;  /* [ceil(dim / 64)][256], q8 only */
    uint16_t *v_scales;
};

/* Sizes for a model and n_ctx positions. */
void tn_kvcache_plan(struct tn_kvcache *out, const struct tern_file_config *config,
                     enum tn_kv_type type, uint32_t n_ctx);
struct tn_kv_rows tn_kvcache_rows(const struct tn_kvcache *kv, unsigned char *block, uint32_t layer,
                                  uint32_t i_kv_head);
/* head_dim rounded up to what attention kernels need. */
uint32_t tn_kv_dim(uint32_t head_dim);
/* Bytes per position in a full block, rounded up. */
uint64_t tn_kv_bytes_per_token(const struct tern_file_config *config, enum tn_kv_type type);

#endif
