/* SPDX-License-Identifier: MIT
 *
 * What `tern embed` and its --search share: the model that makes the vectors, and their texts.
 */
#ifndef TN_EMBED_TEXT_H
#define TN_EMBED_TEXT_H

#include "app.h"
#include "base/buf.h"
#include "tern/embed.h"

struct tn_embed {
    const struct tn_options *o;
    struct tn_opened opened;
    struct tern_embedder *embedder;
    char **files; /* [n_files] of the arguments */
    uint32_t n_files;
    uint32_t n_dim;
};

/* The vector of a text behind the task's line (NULL or "": none): dst [n_dim]. */
tern_status tn_embed_text(const struct tn_embed *e, const char *task, const char *text, size_t n,
                          float *dst, size_t *n_tokens, struct tern_error *err);

/* The bytes of a file (NULL: of standard input), checked to be UTF-8; *data is new memory (tn_free)
 * and *start where the text begins, behind a byte order mark. */
tern_status tn_embed_read(char **data, size_t *start, size_t *n, const char *path,
                          struct tern_error *err);

/* --search: prints the best passages. */
tern_status tn_embed_search(const struct tn_embed *e, struct tern_error *err);

#endif
