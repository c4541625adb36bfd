/* SPDX-License-Identifier: MIT
 *
 * The model's weights as typed views into the mapped file.  Nothing is copied;
 * a struct tn_weights lives as long as the file is open.  Read-only.
 */
#ifndef TN_WEIGHTS_H
#define TN_WEIGHTS_H

#include "file/mfile.h"
#include "kern/planes.h"

/* A ternary projection: y = (W . q) * (scale * activation scale). */
struct tn_linear {
    struct tn_ternary w;
    float scale;
};

/* Embedding or head: [rows][cols] in q8 (with scales [rows]), in planes of bits (q8, q6, q4), f16
 * or bf16. */
struct tn_table {
    const void *data;
    const float *scales;
    uint32_t layout;
    uint32_t rows;
    uint32_t cols;
    struct tn_planes planes; /* n_planes 0: not in planes */
};

struct tn_layer {
    const float *attn_norm;     /* [hidden] */
    const float *ffn_norm;      /* [hidden] */
    const float *attn_sub_norm; /* [n_head * head_dim], or NULL */
    const float *ffn_sub_norm;  /* [ffn], or NULL */
    struct tn_linear q, k, v, o;
    struct tn_linear gate, up, down;
    /* The layer's stretch of the file, for read-ahead and for giving pages back. */
    uint64_t begin, end;
};

struct tn_weights {
    const struct tern_file_config *config;
    struct tn_table embed; /* [vocab][hidden] */
    struct tn_table head;  /* the same as embed when tied */
    const float *final_norm; /* [hidden] */
    struct tn_layer *layers; /* [n_layer], heap */
};

/* Binds names to views. `file` was opened by tn_mfile_open, which checked presence and shapes. */
tern_status tn_weights_bind(struct tn_weights *out, const struct tn_mfile *file,
                            struct tern_error *err);
void tn_weights_fini(struct tn_weights *weights);

#endif
