/* SPDX-License-Identifier: MIT
 *
 * The key/value cache: the position of each row in a block, and storing it.  Blocks come from a
 * pool (engine/cache_pool.h), and a sequence has a list of them.
 *
 * Positions are grouped in blocks of TN_KV_BLOCK.  A block holds all layers that have keys
 * (model/state.h has their offsets), so that growth is one range; the data of a layer are in the
 * order in which attention reads them:
 *
 *   head 0: K scales  K [256][dim]  V scales  V [256][dim]
 *   head 1: ...
 *
 * dim is head_dim padded with zeros to a multiple of 16.  Types: f32, f16, or int8 with one f16
 * scale per 64 values of a row, in tiles (kern.h).
 */
#ifndef TN_KVCACHE_H
#define TN_KVCACHE_H

#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "kern/kern.h"
#include "tern/model_format.h"

/* The numbers of enum tern_kv (tern.h). */
enum tn_kv_type { TN_KV_F32 = 0, TN_KV_F16 = 1, TN_KV_Q8 = 2 };

/* The sizes of a layer's data in a block. */
struct tn_kvcache {
    enum tn_kv_type type;
    uint32_t n_kv_head;
    uint32_t dim;          /* padded head_dim */
    size_t row_bytes;      /* one row of values */
    size_t head_bytes;     /* K, V and scales of one head in one block */
    size_t layer_bytes;    /* of all heads */
};

/* The rows of one head in one block. */
struct tn_kv_rows {
    void *k;             /* [256][dim], q8: tiles */
    void *v;             /* [256][dim], q8: tiles */
    uint16_t *k_scales;  /* [ceil(dim / 64)][256], q8 only */
    uint16_t *v_scales;
};

struct tn_kvcache tn_kvcache_of(const struct tn_layer_dims *dims, enum tn_kv_type type);
/* The rows of a head in a layer's data of a block. */
struct tn_kv_rows tn_kvcache_rows(const struct tn_kvcache *kv, unsigned char *part,
                                  uint32_t i_kv_head);
/* Stores a rotated key and a value, [dim] each, as row `row` (position % TN_KV_BLOCK). */
void tn_kvcache_store(const struct tn_kvcache *kv, const struct tn_kernels *kernels,
                      const struct tn_kv_rows *rows, uint32_t row, const float *key,
                      const float *value);
/* Copies the key and the value of a row to a row of another block. */
void tn_kvcache_copy_row(const struct tn_kvcache *kv, const struct tn_kv_rows *to, uint32_t to_row,
                         const struct tn_kv_rows *from, uint32_t from_row);
/* head_dim rounded up to the multiple that attention kernels need. */
uint32_t tn_kv_dim(uint32_t head_dim);

#endif
