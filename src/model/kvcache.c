/* SPDX-License-Identifier: MIT
 *
 * Layout of the key/value cache inside a block: offsets of heads, values and scales by cache type,
 * storing rows and copying them.
 */
#include "model/kvcache.h"

#include <stdbool.h>
#include <string.h>

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

struct tn_kvcache tn_kvcache_of(const struct tn_layer_dims *dims, enum tn_kv_type type)
{
    struct tn_kvcache kv = {
        .type = type,
        .n_kv_head = dims->n_kv_head,
        .dim = tn_kv_dim(dims->head_dim),
    };
    kv.row_bytes = kv.dim * value_bytes(type);
    kv.head_bytes = 2 * TN_KV_BLOCK * (kv.row_bytes + sizeof(uint16_t) * scales_per_row(&kv));
    kv.layer_bytes = kv.head_bytes * kv.n_kv_head;
    return kv;
}

struct tn_kv_rows tn_kvcache_rows(const struct tn_kvcache *kv, unsigned char *part,
                                  uint32_t i_kv_head)
{
    unsigned char *head = part + i_kv_head * kv->head_bytes;
    size_t scale_bytes = TN_KV_BLOCK * sizeof(uint16_t) * scales_per_row(kv);
    unsigned char *values = head + kv->head_bytes / 2;
    return (struct tn_kv_rows){
        .k_scales = (uint16_t *)(void *)head,
        .k = head + scale_bytes,
        .v_scales = (uint16_t *)(void *)values,
        .v = values + scale_bytes,
    };
}

/* ---- storing ---- */

/* Scatters one row over the tiles; `is_key` selects key tiles or value tiles. */
static void store_row_q8(const struct tn_kernels *kernels, uint32_t dim, uint8_t *tiles,
                         uint16_t *scales, uint32_t row, bool is_key, const float *x)
{
    for (uint32_t start = 0; start < dim; start += TN_KV_SCALE_VALUES, scales += TN_KV_BLOCK) {
        int8_t q[TN_KV_SCALE_VALUES];
        uint32_t n = TN_MIN(dim - start, TN_KV_SCALE_VALUES);
        kernels->kv_store_q8(q, &scales[row], x + start, n);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t d = start + i;
            size_t at =
                is_key ? tn_kv_q8_key_at(row, d, dim) : tn_kv_q8_value_at(row, d, dim);
            tiles[at] = (uint8_t)(q[i] + 128);
        }
    }
}

void tn_kvcache_store(const struct tn_kvcache *kv, const struct tn_kernels *kernels,
                      const struct tn_kv_rows *rows, uint32_t row, const float *key,
                      const float *value)
{
    if (kv->type == TN_KV_Q8) {
        store_row_q8(kernels, kv->dim, rows->k, rows->k_scales, row, true, key);
        store_row_q8(kernels, kv->dim, rows->v, rows->v_scales, row, false, value);
        return;
    }
    tn_kv_store_fn *store = kv->type == TN_KV_F32 ? kernels->kv_store_f32 : kernels->kv_store_f16;
    store((unsigned char *)rows->k + row * kv->row_bytes, NULL, key, kv->dim);
    store((unsigned char *)rows->v + row * kv->row_bytes, NULL, value, kv->dim);
}

/* ---- copying ---- */

static void copy_row_q8(uint32_t dim, const struct tn_kv_rows *to, uint32_t to_row,
                        const struct tn_kv_rows *from, uint32_t from_row)
{
    uint8_t *to_k = to->k, *to_v = to->v;
    const uint8_t *from_k = from->k, *from_v = from->v;
    for (uint32_t d = 0; d < dim; d += 4) /* adjacent in keys */
        memcpy(to_k + tn_kv_q8_key_at(to_row, d, dim), from_k + tn_kv_q8_key_at(from_row, d, dim),
               4);
    for (uint32_t d = 0; d < dim; d++)
        to_v[tn_kv_q8_value_at(to_row, d, dim)] = from_v[tn_kv_q8_value_at(from_row, d, dim)];
    for (uint32_t i = 0; i < tn_kv_q8_scales(dim); i++) {
        to->k_scales[i * TN_KV_BLOCK + to_row] = from->k_scales[i * TN_KV_BLOCK + from_row];
        to->v_scales[i * TN_KV_BLOCK + to_row] = from->v_scales[i * TN_KV_BLOCK + from_row];
    }
}

static void copy_bytes(void *to, uint32_t to_row, const void *from, uint32_t from_row, size_t n)
{
    memcpy((unsigned char *)to + to_row * n, (const unsigned char *)from + from_row * n, n);
}

void tn_kvcache_copy_row(const struct tn_kvcache *kv, const struct tn_kv_rows *to, uint32_t to_row,
                         const struct tn_kv_rows *from, uint32_t from_row)
{
    if (kv->type == TN_KV_Q8) {
        copy_row_q8(kv->dim, to, to_row, from, from_row);
        return;
    }
    copy_bytes(to->k, to_row, from->k, from_row, kv->row_bytes);
    copy_bytes(to->v, to_row, from->v, from_row, kv->row_bytes);
}
