/* SPDX-License-Identifier: MIT
 *
 * tern embed: turns texts into vectors, several at a time; but a line from a pipe is answered
 * before the next one is read.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "embed_text.h"
#include "idlist.h"
#include "json_io.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"
#include "prompt.h"

/* ---- vectors ---- */

struct writer {
    const struct tn_embed *e;
    struct tn_embed_queue queue;
    size_t numbers[TN_EMBED_WAITING]; /* of the queued texts, for errors */
    const char *place;                /* their source: "notes.txt, line" */
    uint64_t n_written;
    struct tern_error *err;
};

static tern_status write_vector(struct writer *w, const float *vector, size_t n_tokens)
{
    const uint32_t n_dim = w->e->n_dim;
    const uint64_t index = w->n_written++;
    if (w->e->o->raw_floats) {
        tn_progress_hide();
        tn_out_write(vector, n_dim * sizeof *vector);
        return TERN_OK;
    }
    struct tn_buf line = {0};
    tn_buf_printf(&line, "{\"index\":%llu,\"embedding\":[", (unsigned long long)index);
    for (uint32_t i = 0; i < n_dim; i++)
        tn_buf_printf(&line, "%s%.9g", i ? "," : "", (double)vector[i]);
    tn_buf_printf(&line, "],\"tokens\":%zu}\n", n_tokens);
    if (line.failed) {
        tn_buf_fini(&line);
        return tn_fail(w->err, TERN_MEMORY, "no memory for a line of %u numbers", n_dim);
    }
    tn_progress_hide();
    tn_out_buf(&line);
    return TERN_OK;
}

/* Names the text in an error: "notes.txt, line 3". */
static tern_status fail_text(struct writer *w, tern_status status, size_t number)
{
    char what[400];
    snprintf(what, sizeof what, "%.300s %zu", w->place, number);
    if (status != TERN_INTERRUPTED)
        tn_fail_prefix(w->err, what);
    return status;
}

/* Computes and writes the queued texts. */
static tern_status flush(struct writer *w)
{
    struct tn_embed_queue *q = &w->queue;
    uint32_t n_done;
    tern_status status = tn_embed_queue_run(q, &n_done, w->err), written = TERN_OK;
    if (status != TERN_OK)
        status = fail_text(w, status, w->numbers[n_done]);
    for (uint32_t i = 0; i < n_done && written == TERN_OK; i++)
        written = write_vector(w, q->vectors + (size_t)i * w->e->n_dim,
                               tn_embed_queue_n_tokens(q, i));
    tn_embed_queue_clear(q);
    return written != TERN_OK ? written : status;
}

/* The texts before a bad one still get their vectors, unless one of them is bad. */
static tern_status flush_and_fail(struct writer *w, tern_status status)
{
    struct tern_error why = *w->err;
    const tern_status before = flush(w);
    if (before == TERN_OK)
        *w->err = why;
    return before == TERN_OK ? status : before;
}

static tern_status embed_one(struct writer *w, const char *text, size_t n, size_t number)
{
    struct tn_embed_queue *q = &w->queue;
    tern_status status = tn_embed_queue_add(q, w->e->o->task, text, n, w->err);
    if (status != TERN_OK)
        return flush_and_fail(w, fail_text(w, status, number));
    w->numbers[q->n - 1] = number;
    return tn_embed_queue_is_full(q) ? flush(w) : TERN_OK;
}

static tern_status embed_ids(struct writer *w, const char *text)
{
    struct tern_ids ids = {0};
    tern_status status = tn_idlist_parse(&ids, text, strlen(text), "--ids", w->err);
    if (status == TERN_OK && ids.n == 0)
        status = tn_fail(w->err, TERN_USAGE, "--ids \"\": at least one id is needed");
    tn_progress_start("embedding", TN_PROGRESS_TOKENS, false);
    tn_progress_update(0, ids.n);
    if (status == TERN_OK)
        status = tern_embed(w->e->embedder, ids.ids, ids.n, w->queue.vectors, w->err);
    tn_progress_end();
    if (status == TERN_OK)
        status = write_vector(w, w->queue.vectors, ids.n);
    tern_ids_free(&ids);
    return status;
}

static tern_status embed_file(struct writer *w, const char *path)
{
    char *data, place[400];
    size_t start, n, number = 0;
    tern_status status = tn_embed_read(&data, &start, &n, path, w->err);
    if (status != TERN_OK)
        return status;
    snprintf(place, sizeof place, "%.300s, line", path);
    w->place = place;
    tn_progress_start("embedding", TN_PROGRESS_BYTES, false);
    while (start < n && status == TERN_OK && tn_out_is_open()) {
        tn_progress_update(start, n);
        const char *line = data + start, *end = memchr(line, '\n', n - start);
        const size_t n_line = end ? (size_t)(end - line) : n - start;
        status = embed_one(w, line, n_line - (n_line && line[n_line - 1] == '\r'), ++number);
        start += n_line + 1;
    }
    tn_free(data);
    if (status == TERN_OK)
        status = flush(w);
    tn_progress_end();
    return status;
}

struct read_line {
    struct tn_buf text;
    bool is_too_long;
};

/* Limits the memory for a line that never ends. */
static void append_bytes(void *arg, const char *bytes, size_t n)
{
    struct read_line *line = arg;
    line->is_too_long = line->is_too_long || !tn_prompt_has_room(&line->text, n);
    if (!line->is_too_long)
        tn_buf_append(&line->text, bytes, n);
}

static tern_status check_line(const struct read_line *line, size_t number, struct tern_error *err)
{
    char name[64];
    if (line->is_too_long)
        return tn_fail(err, TERN_INPUT, "standard input, line %zu: more than %zu bytes", number,
                       TN_MAX_PROMPT_BYTES);
    if (line->text.failed)
        return tn_fail(err, TERN_MEMORY, "no memory for line %zu", number);
    snprintf(name, sizeof name, "standard input, line %zu", number);
    return tn_prompt_check_text(line->text.data, line->text.n_bytes, name, err);
}

static tern_status embed_stdin_lines(struct writer *w)
{
    struct read_line line = {0};
    struct tn_buf *text = &line.text;
    struct tern_error *err = w->err;
    tern_status status = TERN_OK;
    bool interrupted = false;
    w->place = "line";
    tn_prompt_say_waiting("a text per line");
    tn_ok(err);
    for (size_t number = 1; status == TERN_OK && tn_out_is_open(); number++) {
        tn_buf_clear(text);
        if (!tn_read_line(append_bytes, &line, &interrupted, err)) {
            status = err->status;
            break;
        }
        const size_t start = number == 1 ? tn_prompt_mark(text->data, text->n_bytes) : 0;
        status = interrupted ? tn_fail(err, TERN_INTERRUPTED, "interrupted")
                             : check_line(&line, number, err);
        status = status == TERN_OK
                     ? embed_one(w, text->data + start, text->n_bytes - start, number)
                     : flush_and_fail(w, status);
        if (status == TERN_OK && !tn_has_line())
            status = flush(w);
    }
    tn_buf_fini(text);
    return status;
}

static tern_status embed_json_array(struct writer *w, const json_t *texts)
{
    tern_status status = TERN_OK;
    if (!json_is_array(texts))
        return tn_fail(w->err, TERN_USAGE,
                       "standard input: --json takes an array of texts, [\"one\",\"two\"]");
    for (size_t i = 0; i < json_array_size(texts); i++)
        if (!json_is_string(json_array_get(texts, i)))
            return tn_fail(w->err, TERN_USAGE,
                           "standard input: element %zu of the array is not a text", i);
    w->place = "element";
    tn_progress_start("embedding", TN_PROGRESS_TEXTS, false);
    for (size_t i = 0; i < json_array_size(texts) && status == TERN_OK && tn_out_is_open(); i++) {
        const json_t *text = json_array_get(texts, i);
        tn_progress_update(i, json_array_size(texts));
        status = embed_one(w, json_string_value(text), json_string_length(text), i);
    }
    if (status == TERN_OK)
        status = flush(w);
    tn_progress_end();
    return status;
}

static tern_status embed_stdin_json(struct writer *w)
{
    char *data;
    size_t start, n;
    json_t *texts = NULL;
    tn_prompt_say_waiting("a JSON array of texts");
    tern_status status = tn_embed_read(&data, &start, &n, NULL, w->err);
    if (status == TERN_OK) {
        status = tn_json_io_read(&texts, "standard input", data + start, n - start,
                                 JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, w->err);
        tn_free(data);
    }
    if (status == TERN_OK)
        status = embed_json_array(w, texts);
    json_decref(texts);
    return status;
}

static tern_status embed_all(const struct tn_embed *e, struct tern_error *err)
{
    struct writer w = {.e = e, .err = err};
    tern_status status = tn_embed_queue_init(&w.queue, e, err);
    if (status == TERN_OK && e->o->ids)
        status = embed_ids(&w, e->o->ids);
    else if (status == TERN_OK && e->o->json)
        status = embed_stdin_json(&w);
    else if (status == TERN_OK && e->n_files == 0)
        status = embed_stdin_lines(&w);
    for (uint32_t i = 0; i < e->n_files && status == TERN_OK; i++)
        status = embed_file(&w, e->files[i]);
    tn_embed_queue_fini(&w.queue);
    return status;
}

/* ---- the command ---- */

static tern_status check(const struct tn_embed *e, struct tern_error *err)
{
    const struct tn_options *o = e->o;
    if (o->search && !o->search[0])
        return tn_fail(err, TERN_USAGE, "--search \"\": the query is empty");
    if (o->search && (o->ids || o->raw_floats))
        return tn_fail(err, TERN_USAGE, "--search prints passages; it cannot be combined with %s",
                       o->ids ? "--ids" : "--raw");
    if (!o->search && (o->by_line || tn_options_given(o, n_top)))
        return tn_fail(err, TERN_USAGE, "%s needs --search QUERY",
                       o->by_line ? "--lines" : "--top");
    if (o->ids && (o->json || o->task))
        return tn_fail(err, TERN_USAGE, "--ids is one text of ids; it cannot be combined with %s",
                       o->json ? "--json" : "--task");
    if (!o->search && e->n_files > 0 && (o->ids || o->json))
        return tn_fail(err, TERN_USAGE, "texts from \"%s\" and from %s: give one of them",
                       e->files[0], o->ids ? "--ids" : "--json's standard input");
    return TERN_OK;
}

static void say_what_is_made(const struct tn_embed *e)
{
    const struct tern_model_config *c = tern_model_config(e->opened.model);
    const enum tern_pooling pooling = tern_embedder_pooling(e->embedder);
    struct tern_model_info info;
    tern_model_get_info(e->opened.model, &info);
    if (c->pooling == TERN_POOLING_NONE)
        tn_note_say("\"%s\" was made to write text, not for embeddings: its vectors tell texts "
                    "apart poorly",
                    info.name);
    else if (pooling != c->pooling)
        tn_note_say("\"%s\" states %s pooling; vectors of %s pooling must not be mixed with its "
                    "own",
                    info.name, tern_pooling_text(c->pooling), tern_pooling_text(pooling));
    tn_info_say("embedding: %s, %s pooling%s, %u of %u dimensions", info.name,
                tern_pooling_text(pooling),
                pooling == c->pooling && !e->o->pooling ? " (as the file states)" : "", e->n_dim,
                c->hidden);
}

static tern_status open_all(struct tn_embed *e, struct tern_error *err)
{
    const struct tn_options *o = e->o;
    const bool first_is_model = o->n_positional > 0 && tn_argument_is_model(o->positional[0]);
    const struct tern_embed_params params = {
        .pooling = (enum tern_pooling)o->pooling,
        .n_dim = (uint32_t)o->n_dim,
        .should_stop = tn_should_stop,
    };
    e->files = o->positional + first_is_model;
    e->n_files = o->n_positional - first_is_model;
    tern_status status = check(e, err);
    if (status == TERN_OK)
        status = tn_open(&e->opened, o, first_is_model ? o->positional[0] : NULL,
                         o->ids ? TN_OPEN_ENGINE : TN_OPEN_ENGINE | TN_OPEN_TOKENIZER, err);
    if (status == TERN_OK)
        status =
            tern_embedder_create(&e->embedder, e->opened.engine, e->opened.model, &params, err);
    if (status != TERN_OK)
        return status;
    e->n_dim = tern_embedder_dim(e->embedder);
    say_what_is_made(e);
    return TERN_OK;
}

int tn_cmd_embed(const struct tn_options *o)
{
    struct tern_error err = {0};
    struct tn_embed e = {.o = o};
    tern_status status = open_all(&e, &err);
    if (status == TERN_OK)
        status = o->search ? tn_embed_search(&e, &err) : embed_all(&e, &err);
    tern_embedder_free(e.embedder);
    tn_close(&e.opened);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}
