/* SPDX-License-Identifier: MIT
 *
 * The smallest model with every feature: two layers, written by the real writer with weights from a
 * generator, always the same bytes.
 */
#ifndef TINY_MODEL_H
#define TINY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "file/model_file_writer.h"
#include "tern/tern.h"

struct tiny_variant {
    uint32_t embed_layout; /* TERN_LAYOUT_Q8, _Q8_PLANES, _F16 or _BF16 */
    bool has_head;         /* not tied */
    bool has_sub_norms;
    bool is_sparse; /* up in R2, down in C2 */
    bool has_tokenizer;
    uint32_t context; /* 0 = 64 */
    bool has_experts; /* in layer 1: 3 of 32 rows, 2 used, a shared one of 48 */
    bool is_rotated;  /* every matrix that allows it, in blocks of 32, with signs for 96 columns */
    uint32_t window;  /* of layer 0; 0: none */
    bool has_draft;   /* a draft head; not with is_rotated */
};

/* hidden 64, ffn 96, 4 heads of 16, 2 key heads, vocab 40. */
struct tn_mwriter_meta tiny_model_meta(const struct tiny_variant *variant);

/* Writes everything through tn_mwriter_seal; the caller commits or aborts *out. */
tern_status tiny_model_write(struct tn_mwriter **out, const char *path,
                             const struct tiny_variant *variant, struct tern_error *err);
/* A finished file. */
tern_status tiny_model_make(const char *path, const struct tiny_variant *variant,
                            struct tern_error *err);

/* The same, opened.  false: the reason is printed. */
bool tiny_model_open(struct tern_model **out, const char *path,
                     const struct tiny_variant *variant);

/* The bytes of such a file, which is written to `path` and removed. */
struct tiny_image {
    unsigned char *bytes; /* tn_free */
    size_t n;
};
tern_status tiny_model_image(struct tiny_image *out, const char *path,
                             const struct tiny_variant *variant, struct tern_error *err);

#endif
