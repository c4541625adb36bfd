/* SPDX-License-Identifier: MIT
 *
 * tern logits: raw float32 logits at every position, for comparison with a reference.
 *
 * The rows go to FILE.part, which gets its name when it is complete; links are followed.  Outputs
 * that a file cannot replace (a pipe, /dev/stdout) are written directly.
 */
#include <inttypes.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/text_match.h"
#include "idlist.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"

#define MAX_ROWS_BYTES ((size_t)64 << 20)

struct logits {
    const struct tn_options *o;
    struct tern_session *session;
    struct tern_ids ids;
    uint32_t vocab;
};

/* Only rows of logits may be replaced; other files belong to the user. */
static tern_status check_replaceable(const char *path, struct tern_error *err)
{
    struct tn_file *file;
    if (tn_text_n_stem(path, ".f32") > 0 || tn_path_kind(path) != TN_PATH_FILE ||
        !tn_path_is_replaceable(path) || tn_file_open_read(&file, path, NULL) != TERN_OK)
        return TERN_OK;
    const uint64_t n_bytes = tn_file_size(file);
    tn_file_close(file);
    return n_bytes == 0 ? TERN_OK
                        : tn_fail(err, TERN_USAGE,
                                  "-o \"%s\": not replaced: it holds %" PRIu64
                                  " bytes and its name does not end in .f32; --force replaces it",
                                  path, n_bytes);
}

static tern_status check(struct logits *l, struct tern_error *err)
{
    const struct tn_options *o = l->o;
    if (!o->ids)
        return tn_fail(err, TERN_USAGE, "no ids; usage: tern logits [MODEL] --ids \"1 2 3\" -o "
                                        "FILE");
    if (!o->output && !o->n_greedy)
        return tn_fail(err, TERN_USAGE, "nothing to do: give -o FILE, --greedy N or both");
    if (o->output && (!o->output[0] || strcmp(o->output, "-") == 0))
        return tn_fail(err, TERN_USAGE, "-o \"%s\": give the name of a file", o->output);
    tern_status status = tn_idlist_parse(&l->ids, o->ids, strlen(o->ids), "--ids", err);
    if (status == TERN_OK && o->output && !o->force)
        status = check_replaceable(o->output, err);
    if (status == TERN_OK && l->ids.n == 0)
        status = tn_fail(err, TERN_USAGE, "--ids \"\": at least one id is needed");
    return status;
}

/* Positions of all ids and of the new ones; the last new id is not evaluated. */
static size_t n_positions(const struct logits *l)
{
    return l->ids.n + (l->o->n_greedy ? (size_t)l->o->n_greedy - 1 : 0);
}

static tern_status check_against_model(const struct logits *l, uint32_t n_ctx,
                                       struct tern_error *err)
{
    for (size_t i = 0; i < l->ids.n; i++)
        if (l->ids.ids[i] >= l->vocab)
            return tn_fail(err, TERN_USAGE, "id %u is beyond the vocabulary of %u", l->ids.ids[i],
                           l->vocab);
    if (n_positions(l) > n_ctx)
        return tn_fail(err, TERN_LIMIT, "%zu ids and %zu new ones: the context is %u", l->ids.n,
                       (size_t)l->o->n_greedy, n_ctx);
    return TERN_OK;
}

/* Evaluates all ids, in steps whose rows fit the buffer, and writes the rows. */
static tern_status write_rows(const struct logits *l, struct tn_file *file, struct tern_error *err)
{
    size_t row_bytes = (size_t)l->vocab * sizeof(float);
    size_t n_step = TN_MIN((size_t)l->o->batch, MAX_ROWS_BYTES / row_bytes);
    n_step = TN_MAX(n_step, (size_t)1);
    n_step = TN_MIN(n_step, l->ids.n);
    float *rows = tn_alloc(n_step * row_bytes);
    if (!rows)
        return tn_fail(err, TERN_MEMORY, "no memory for %zu rows of %u logits", n_step, l->vocab);
    tern_status status = TERN_OK;
    tn_progress_start("logits", TN_PROGRESS_TOKENS, false);
    for (size_t i = 0; i < l->ids.n && status == TERN_OK; i += n_step) {
        size_t n = TN_MIN(n_step, l->ids.n - i);
        tn_progress_update(i, l->ids.n);
        status = tern_session_eval(l->session, l->ids.ids + i, n, rows, err);
        if (status == TERN_OK)
            status = tn_file_write_at(file, (uint64_t)i * row_bytes, rows, n * row_bytes, err);
    }
    tn_progress_end();
    tn_free(rows);
    return status;
}

/* Writes a part file next to the file that `target` names. */
static tern_status replace_file(const struct logits *l, const char *target, struct tern_error *err)
{
    struct tn_buf part = {0};
    struct tn_file *file;
    tn_buf_printf(&part, "%s.part", target);
    if (part.failed)
        return tn_fail(err, TERN_MEMORY, "no memory for a path");
    tern_status status = tn_file_create_part(&file, tn_buf_text(&part), err);
    tn_buf_fini(&part);
    if (status != TERN_OK)
        return status;
    status = write_rows(l, file, err);
    if (status == TERN_OK)
        return tn_file_finish_part(file, target, err);
    tn_file_abort_part(file);
    return status;
}

static tern_status write_directly(const struct logits *l, const char *path, struct tern_error *err)
{
    struct tn_file *file;
    tern_status status = tn_file_create(&file, path, err);
    if (status != TERN_OK)
        return status;
    status = write_rows(l, file, err);
    tn_file_close(file);
    return status;
}

static tern_status write_file(const struct logits *l, struct tern_error *err)
{
    const char *path = l->o->output;
    const enum tn_path_kind kind = tn_path_kind(path);
    if (kind == TN_PATH_DIR || kind == TN_PATH_BROKEN)
        return tn_fail(err, TERN_OUTPUT, "%s: is %s, give the name of a file", path,
                       kind == TN_PATH_DIR ? "a directory" : "a broken symbolic link");
    if (!tn_path_is_replaceable(path))
        return write_directly(l, path, err);
    char *target = tn_path_target(path);
    tern_status status = target ? replace_file(l, target, err)
                                : tn_fail(err, TERN_MEMORY, "no memory for a path");
    tn_free(target);
    return status;
}

static void show_prefill(void *arg, size_t n_done, size_t n_total)
{
    (void)arg;
    tn_progress_update(n_done, n_total);
}

static void print_id(void *arg, uint32_t id)
{
    bool *any = arg;
    tn_progress_end();
    tn_out_printf("%s%u", *any ? " " : "", id);
    *any = true;
}

static tern_status print_greedy(const struct logits *l, struct tern_error *err)
{
    struct tern_sampler_params params = {.top_p = 1.0f, .repeat_penalty = 1.0f};
    bool any = false;
    struct tern_generate_params generate = {
        .max_tokens = (uint32_t)l->o->n_greedy,
        .ignore_eos = true,
        .on_token = print_id,
        .on_prefill = show_prefill,
        .arg = &any,
    };
    struct tern_generate_result result;
    tern_status status = tern_sampler_create(&generate.sampler, &params, l->vocab, err);
    tn_progress_start("logits", TN_PROGRESS_TOKENS, false);
    tn_progress_update(0, l->ids.n);
    if (status == TERN_OK)
        status = tern_generate(l->session, l->ids.ids, l->ids.n, &generate, &result, err);
    tn_progress_end();
    tn_out_end_line();
    if (status == TERN_OK && result.stop == TERN_STOP_INTERRUPT)
        status = tn_fail(err, TERN_INTERRUPTED, "interrupted");
    tern_sampler_free(generate.sampler);
    return status;
}

static tern_status run(struct logits *l, struct tn_opened *opened, struct tern_error *err)
{
    const struct tern_model_config *config = tern_model_config(opened->model);
    l->vocab = config->vocab;
    if (l->o->output && tn_path_same(l->o->output, tern_model_path(opened->model)))
        return tn_fail(err, TERN_USAGE, "-o \"%s\" is the model itself", l->o->output);
    tern_status status = check_against_model(l, config->context, err);
    if (status != TERN_OK)
        return status;
    struct tern_session_params params;
    tern_session_params_default(&params, opened->model);
    params.kv = (enum tern_kv)l->o->kv;
    params.n_ctx = (uint32_t)n_positions(l);
    params.n_batch = (uint32_t)TN_MIN(l->o->batch, params.n_ctx);
    params.should_stop = tn_should_stop;
    status = tern_session_create(&l->session, opened->engine, opened->model, &params, err);
    if (status == TERN_OK && l->o->output)
        status = write_file(l, err);
    if (status == TERN_OK && l->o->n_greedy)
        status = print_greedy(l, err);
    tern_session_free(l->session);
    return status;
}

int tn_cmd_logits(const struct tn_options *o)
{
    struct tern_error err = {0};
    struct tn_opened opened = {0};
    struct logits l = {.o = o};
    tern_status status = check(&l, &err);
    if (status == TERN_OK)
        status = tn_open(&opened, o, tn_first_argument(o), TN_OPEN_ENGINE, &err);
    if (status == TERN_OK)
        status = run(&l, &opened, &err);
    tn_close(&opened);
    tern_ids_free(&l.ids);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}
