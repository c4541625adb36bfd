/* SPDX-License-Identifier: MIT
 *
 * Shared by `tern embed` and its --search: the model that computes the vectors, and the queue of
 * texts.
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
    char **files; /* [n_files] from the arguments */
    uint32_t n_files;
    uint32_t n_dim;
};

/* Texts in the queue, which are computed together. */
#define TN_EMBED_WAITING 16u

struct tn_embed_queue {
    const struct tn_embed *e;
    struct tern_ids ids; /* of all texts, concatenated */
    size_t ends[TN_EMBED_WAITING];
    uint32_t n;
    float *vectors; /* [TN_EMBED_WAITING][n_dim] of the last tn_embed_queue_run */
};

/* Makes an empty queue for the model of `e`, which it borrows.  TERN_MEMORY. */
tern_status tn_embed_queue_init(struct tn_embed_queue *q, const struct tn_embed *e,
                                struct tern_error *err);
void tn_embed_queue_fini(struct tn_embed_queue *q);
/* Adds a text after the task's line (NULL or "": none), with the tokenizer's prefix and suffix; the
 * queue must not be full.  TERN_INPUT: no tokenizer, or no tokens. */
tern_status tn_embed_queue_add(struct tn_embed_queue *q, const char *task, const char *text,
                               size_t n, struct tern_error *err);
/* Whether to compute now: the queue has as many texts, or ids, as are useful together. */
bool tn_embed_queue_is_full(const struct tn_embed_queue *q);
size_t tn_embed_queue_n_tokens(const struct tn_embed_queue *q, uint32_t i);
/* Computes all.  The first *n_done have vectors; an error is that of the next text.  The texts stay
 * until tn_embed_queue_clear. */
tern_status tn_embed_queue_run(struct tn_embed_queue *q, uint32_t *n_done, struct tern_error *err);
void tn_embed_queue_clear(struct tn_embed_queue *q);

/* Reads a file (NULL: standard input) and checks that it is UTF-8; *data is new memory (tn_free),
 * and *start the offset of the text after a byte order mark. */
tern_status tn_embed_read(char **data, size_t *start, size_t *n, const char *path,
                          struct tern_error *err);

/* --search: prints the best passages. */
tern_status tn_embed_search(const struct tn_embed *e, struct tern_error *err);

#endif
