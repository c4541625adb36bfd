/* SPDX-License-Identifier: MIT
 *
 * Queues the texts of `tern embed` and computes their vectors together (embed_text.h), because
 * short texts share a batch.
 */
#include "embed_text.h"

#include "base/alloc.h"
#include "base/error.h"
#include "plat/plat.h"
#include "prompt.h"

#define MAX_TEXT_BYTES ((size_t)1 << 30)

/* This many queued ids fill a batch of the model. */
#define FULL_IDS 256u

tern_status tn_embed_queue_init(struct tn_embed_queue *q, const struct tn_embed *e,
                                struct tern_error *err)
{
    *q = (struct tn_embed_queue){.e = e};
    q->vectors = tn_alloc((size_t)TN_EMBED_WAITING * e->n_dim * sizeof *q->vectors);
    return q->vectors ? TERN_OK
                      : tn_fail(err, TERN_MEMORY, "no memory for %u vectors of %u numbers",
                                TN_EMBED_WAITING, e->n_dim);
}

void tn_embed_queue_fini(struct tn_embed_queue *q)
{
    tern_ids_free(&q->ids);
    tn_free(q->vectors);
}

void tn_embed_queue_clear(struct tn_embed_queue *q)
{
    q->ids.n = q->n = 0;
}

bool tn_embed_queue_is_full(const struct tn_embed_queue *q)
{
    return q->n == TN_EMBED_WAITING || q->ids.n >= FULL_IDS;
}

static size_t start_of(const struct tn_embed_queue *q, uint32_t i)
{
    return i > 0 ? q->ends[i - 1] : 0;
}

size_t tn_embed_queue_n_tokens(const struct tn_embed_queue *q, uint32_t i)
{
    return q->ends[i] - start_of(q, i);
}

static tern_status encode(struct tn_embed_queue *q, const char *text, size_t n,
                          struct tern_error *err)
{
    const struct tern_model *model = q->e->opened.model;
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(model);
    const size_t n_before = q->ids.n;
    if (!tokenizer)
        return tn_fail(err, TERN_INPUT, "\"%s\" has no tokenizer: text cannot be encoded",
                       tern_model_path(model));
    tern_status status =
        tern_tokenizer_encode(tokenizer, text, n, TERN_ENCODE_ADD_SPECIAL, &q->ids, err);
    if (status == TERN_OK && q->ids.n == n_before)
        status = tn_fail(err, TERN_INPUT, "an empty text has no tokens, so it has no vector");
    if (status == TERN_OK)
        q->ends[q->n++] = q->ids.n;
    return status;
}

tern_status tn_embed_queue_add(struct tn_embed_queue *q, const char *task, const char *text,
                               size_t n, struct tern_error *err)
{
    if (!task || !task[0])
        return encode(q, text, n, err);
    struct tn_buf whole = {0};
    tn_buf_printf(&whole, "Instruct: %s\nQuery: ", task);
    tn_buf_append(&whole, text, n);
    tern_status status =
        whole.failed ? tn_fail(err, TERN_MEMORY, "no memory for a text of %zu bytes", n)
                     : encode(q, whole.data, whole.n_bytes, err);
    tn_buf_fini(&whole);
    return status;
}

tern_status tn_embed_queue_run(struct tn_embed_queue *q, uint32_t *n_done, struct tern_error *err)
{
    struct tern_embed_ids texts[TN_EMBED_WAITING];
    size_t n = 0;
    for (uint32_t i = 0; i < q->n; i++)
        texts[i] = (struct tern_embed_ids){q->ids.ids + start_of(q, i),
                                           tn_embed_queue_n_tokens(q, i)};
    tern_status status =
        q->n ? tern_embed_list(q->e->embedder, texts, q->n, q->vectors, &n, err) : TERN_OK;
    *n_done = (uint32_t)n;
    return status;
}

tern_status tn_embed_read(char **data, size_t *start, size_t *n, const char *path,
                          struct tern_error *err)
{
    tern_status status = path ? tn_file_read_all(data, n, path, MAX_TEXT_BYTES, err)
                              : tn_stdin_read_all(data, n, MAX_TEXT_BYTES, err);
    if (status != TERN_OK)
        return status;
    *start = tn_prompt_mark(*data, *n);
    status = tn_prompt_check_text(*data, *n, path ? path : "standard input", err);
    if (status != TERN_OK) {
        tn_free(*data);
        *data = NULL;
    }
    return status;
}
