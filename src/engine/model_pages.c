/* SPDX-License-Identifier: MIT
 *
 * Reads a mapped model from the disk before it is used: all of it, or all but the weights of
 * experts, which are read as tokens choose them.
 */
#include "base/error.h"
#include "engine/session.h"
#include "plat/plat.h"

#define PREFETCH_BYTES ((size_t)8 << 20)

/* Reads one byte of every page. */
static void touch_pages(const volatile unsigned char *p, size_t n, size_t page_bytes)
{
    for (size_t i = 0; i < n; i += page_bytes)
        (void)p[i];
}

tern_status tern_model_prefetch(const struct tern_model *m,
                                bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total),
                                void *arg, struct tern_error *err)
{
    const struct tn_map *map = &m->file.map;
    size_t page_bytes = tn_page_bytes();
    tn_map_advise(map, 0, TN_MIN(PREFETCH_BYTES, map->n_bytes), TN_ADVICE_WILLNEED);
    for (size_t at = 0; at < map->n_bytes; at += PREFETCH_BYTES) {
        size_t n = TN_MIN(PREFETCH_BYTES, map->n_bytes - at);
        /* Request the next stretch from the disk while this one is touched. */
        if (at + n < map->n_bytes)
            tn_map_advise(map, at + n, TN_MIN(PREFETCH_BYTES, map->n_bytes - at - n),
                          TN_ADVICE_WILLNEED);
        touch_pages(map->data + at, n, page_bytes);
        if (on_progress && !on_progress(arg, at + n, map->n_bytes))
            return tn_fail(err, TERN_INTERRUPTED, "interrupted while reading \"%s\"", m->path);
    }
    return tn_ok(err);
}

/* ---- experts on disk ---- */

void tern_model_page_experts(struct tern_model *m)
{
    struct tn_map *map = &m->file.map;
    if (m->file.spec.config->n_experts == 0)
        return;
    m->pages_experts = true;
    tn_map_read_sparsely(map);
    for (uint32_t i = 0; i < m->file.n_tensors; i++) {
        const struct tern_file_tensor *t = &m->file.tensors[i];
        if (t->n_stacked == 0)
            tn_map_advise(map, (size_t)t->offset, (size_t)t->bytes, TN_ADVICE_WILLNEED);
        if (t->scale_bytes > 0)
            tn_map_advise(map, (size_t)t->scale_offset, (size_t)t->scale_bytes,
                          TN_ADVICE_WILLNEED);
    }
}
