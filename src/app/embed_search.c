/* SPDX-License-Identifier: MIT
 *
 * tern embed --search: compares every passage of the files with the query while reading, and keeps
 * only the best, so that no index and no vectors stay in memory.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "embed_text.h"
#include "json_io.h"
#include "output.h"
#include "passages.h"
#include "plat/plat.h"
#include "progress.h"
#include "prompt.h"

/* A passage with more tokens has too many topics for one vector, and is split. */
#define MAX_PASSAGE_TOKENS 256u

/* The default task of embedding models of this family. */
#define DEFAULT_TASK "Given a web search query, retrieve relevant passages that answer the query"

struct hit {
    double score;
    char *text; /* [n] a copy */
    size_t n;
    const char *file;
    size_t line;
};

struct search {
    const struct tn_embed *e;
    const struct tern_tokenizer *tokenizer;
    uint32_t max_tokens;
    float *query; /* [n_dim] */
    struct tn_embed_queue queue;
    struct tn_passage waiting[TN_EMBED_WAITING]; /* the queued passages */
    struct hit *best;      /* [n_best] of at most --top, best first */
    uint32_t n_best, n_top;
    const char *file;
    struct tern_error *err;
};

/* ---- the best ---- */

/* Of equal scores the first passage wins. */
static tern_status offer(struct search *s, double score, const struct tn_passage *p)
{
    uint32_t at = s->n_best;
    while (at > 0 && s->best[at - 1].score < score)
        at--;
    if (at == s->n_top)
        return TERN_OK;
    char *text = tn_alloc(p->n);
    if (!text)
        return tn_fail(s->err, TERN_MEMORY, "no memory for a passage of %zu bytes", p->n);
    memcpy(text, p->text, p->n);
    if (s->n_best == s->n_top)
        tn_free(s->best[--s->n_best].text);
    memmove(s->best + at + 1, s->best + at, (s->n_best - at) * sizeof *s->best);
    s->best[at] = (struct hit){score, text, p->n, s->file, p->line};
    s->n_best++;
    return TERN_OK;
}

/* ---- passages ---- */

static tern_status count_tokens(const struct search *s, const struct tn_passage *p, size_t *n)
{
    struct tern_ids ids = {0};
    tern_status status =
        tern_tokenizer_encode(s->tokenizer, p->text, p->n, TERN_ENCODE_ADD_SPECIAL, &ids, s->err);
    *n = ids.n;
    tern_ids_free(&ids);
    return status;
}

/* Compares the queued passages. */
static tern_status flush(struct search *s)
{
    const uint32_t n_dim = s->e->n_dim;
    uint32_t n_done;
    tern_status status = tn_embed_queue_run(&s->queue, &n_done, s->err);
    for (uint32_t i = 0; i < n_done && status == TERN_OK; i++)
        status = offer(s, tern_embed_similarity(s->query, s->queue.vectors + (size_t)i * n_dim,
                                                n_dim),
                       &s->waiting[i]);
    tn_embed_queue_clear(&s->queue);
    return status;
}

/* Splits passages in half until they are short enough: at most log2(n) levels. */
static tern_status compare(struct search *s, const struct tn_passage *p)
{
    struct tn_passage first, second;
    size_t n_tokens;
    if (tn_stop_requested())
        return tn_fail(s->err, TERN_INTERRUPTED, "interrupted");
    tern_status status = count_tokens(s, p, &n_tokens);
    if (status != TERN_OK || n_tokens == 0)
        return status;
    if (n_tokens > s->max_tokens && tn_passage_split(p, &first, &second)) {
        status = compare(s, &first);
        return status == TERN_OK ? compare(s, &second) : status;
    }
    s->waiting[s->queue.n] = *p;
    status = tn_embed_queue_add(&s->queue, NULL, p->text, p->n, s->err);
    return status == TERN_OK && tn_embed_queue_is_full(&s->queue) ? flush(s) : status;
}

static tern_status search_file(struct search *s, const char *path)
{
    char *data;
    size_t start, n;
    struct tn_passages walk;
    struct tn_passage p;
    if (!path)
        tn_prompt_say_waiting("a text to search in");
    tern_status status = tn_embed_read(&data, &start, &n, path, s->err);
    if (status != TERN_OK)
        return status;
    s->file = path ? path : "-";
    tn_passages_start(&walk, data + start, n - start, s->e->o->by_line);
    tn_progress_start("searching", TN_PROGRESS_BYTES, false);
    while (status == TERN_OK && tn_passages_next(&walk, &p)) {
        status = compare(s, &p);
        tn_progress_update((uint64_t)(walk.at - data), n);
    }
    if (status == TERN_OK)
        status = flush(s);
    tn_progress_end();
    tn_free(data);
    return status;
}

/* ---- results ---- */

/* Appends a passage with its line endings replaced by spaces. */
static void append_joined(struct tn_buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] != '\r')
            tn_buf_append(out, text[i] == '\n' ? " " : text + i, 1);
}

static tern_status print_text(const struct search *s, const struct hit *hit)
{
    struct tn_buf line = {0};
    tn_buf_printf(&line, "%.3f  %s:%zu: ", hit->score, hit->file, hit->line);
    append_joined(&line, hit->text, hit->n);
    tn_buf_append_text(&line, "\n");
    const bool failed = line.failed;
    if (!failed)
        tn_out_generated(line.data, line.n_bytes); /* a file may contain anything */
    tn_buf_fini(&line);
    return failed ? tn_fail(s->err, TERN_MEMORY, "no memory for the results") : TERN_OK;
}

static tern_status print_json(const struct search *s, const struct hit *hit)
{
    json_t *row = json_object();
    json_object_set_new(row, "score", json_real(hit->score));
    json_object_set_new(row, "file", json_string(hit->file));
    json_object_set_new(row, "line", json_integer((json_int_t)hit->line));
    json_object_set_new(row, "text", json_stringn(hit->text, hit->n));
    return tn_json_io_print(row, s->err);
}

static tern_status print_best(const struct search *s)
{
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < s->n_best && status == TERN_OK && tn_out_is_open(); i++)
        status = s->e->o->json ? print_json(s, &s->best[i]) : print_text(s, &s->best[i]);
    if (status == TERN_OK && s->n_best == 0)
        tn_note_say("there is no text to search in");
    return status;
}

/* ---- the search ---- */

static const char *task_of(const struct tn_embed *e)
{
    if (tn_options_given(e->o, task))
        return e->o->task;
    return tern_model_config(e->opened.model)->pooling != TERN_POOLING_NONE ? DEFAULT_TASK : NULL;
}

/* The vector of the query. */
static tern_status embed_query(struct search *s)
{
    const char *query = s->e->o->search;
    uint32_t n_done;
    tern_status status =
        tn_embed_queue_add(&s->queue, task_of(s->e), query, strlen(query), s->err);
    if (status == TERN_OK)
        status = tn_embed_queue_run(&s->queue, &n_done, s->err);
    if (status == TERN_OK)
        memcpy(s->query, s->queue.vectors, s->e->n_dim * sizeof *s->query);
    tn_embed_queue_clear(&s->queue);
    return status;
}

static tern_status search_all(struct search *s)
{
    const struct tn_embed *e = s->e;
    tern_status status = embed_query(s);
    if (status == TERN_OK && e->n_files == 0)
        status = search_file(s, NULL);
    for (uint32_t i = 0; i < e->n_files && status == TERN_OK; i++)
        status = search_file(s, e->files[i]);
    return status == TERN_OK ? print_best(s) : status;
}

tern_status tn_embed_search(const struct tn_embed *e, struct tern_error *err)
{
    const uint32_t context = tern_model_config(e->opened.model)->context;
    struct search s = {
        .e = e,
        .tokenizer = tern_model_tokenizer(e->opened.model),
        .max_tokens = TN_MIN(MAX_PASSAGE_TOKENS, context),
        .query = tn_alloc(e->n_dim * sizeof(float)),
        .best = tn_alloc_zeroed(e->o->n_top, sizeof *s.best),
        .n_top = (uint32_t)e->o->n_top,
        .err = err,
    };
    tern_status status = tn_embed_queue_init(&s.queue, e, err);
    if (status == TERN_OK)
        status = s.query && s.best
                     ? search_all(&s)
                     : tn_fail(err, TERN_MEMORY, "no memory for a vector of %u numbers", e->n_dim);
    for (uint32_t i = 0; i < s.n_best; i++)
        tn_free(s.best[i].text);
    tn_free(s.query);
    tn_embed_queue_fini(&s.queue);
    tn_free(s.best);
    return status;
}
