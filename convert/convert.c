/* SPDX-License-Identifier: MIT
 *
 * tern_convert: the order of work.
 *
 *   read     config, weight headers, tokenizer, template; every check that needs no weights
 *   declare  FILE.part, its table, free space
 *   stream   tensor after tensor
 *   hash     the input files, for the record of sources
 *   finish   seal, fingerprint on the part file, rename
 *
 * Until the last step nothing has the name FILE; a failure at any place removes the part file.
 */
#define XXH_INLINE_ALL
#include "tern/convert.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/utf8.h"
#include "config_import.h"
#include "file/mfile.h"
#include "file/mfile_write.h"
#include "json_scan.h"
#include "plat/plat.h"
#include "source.h"
#include "stream.h"
#include "tensor_plan.h"
#include "tern/tern.h"
#include "tok_import.h"

#define TOKENIZER_FILE "tokenizer.json"
#define MAX_TOKENIZER_JSON_BYTES (64u << 20)
#define HASH_PIECE_BYTES (1u << 20)
#define MAX_INPUTS (TN_ST_MAX_SHARDS + 6u)

struct job {
    const struct tern_convert_params *params;
    struct tern_convert_result *result;
    struct tern_error *err;

    char *resolved; /* the source directory */
    const char *name;
    struct tn_config_import import;
    struct tn_source source;
    struct tn_tensor_plan plan;
    struct tn_buf tokenizer;
    char *template_source;
    size_t n_template_source;
    const char *template_name;

    struct tn_mwriter_source inputs[MAX_INPUTS]; /* files of the source directory */
    uint32_t n_inputs;

    struct tn_mwriter *writer;
    struct tn_streamer stream;
};

/* ---- messages ---- */

static void say(const struct job *j, enum tern_convert_message kind, const char *format, ...)
    TN_PRINTF(3, 4);

static void say(const struct job *j, enum tern_convert_message kind, const char *format, ...)
{
    if (!j->params->on_message)
        return;
    struct tern_error message;
    va_list args;
    va_start(args, format);
    tn_vfail(&message, TERN_OK, format, args);
    va_end(args);
    j->params->on_message(j->params->arg, kind, message.detail);
}

/* ---- read ---- */

static tern_status open_input(struct job *j, const char *name, struct tn_file **file)
{
    char *path = tn_path_join(j->params->source, name);
    if (!path)
        return tn_fail(j->err, TERN_MEMORY, "no memory for a path");
    tern_status status = tn_file_open_read(file, path, j->err);
    tn_free(path);
    return status;
}

/* Notes a file as an input; `name` lives as long as the job. */
static tern_status add_input(struct job *j, const char *name)
{
    struct tn_file *file;
    tern_status status = open_input(j, name, &file);
    if (status != TERN_OK)
        return status;
    const uint64_t n_bytes = tn_file_size(file);
    tn_file_close(file);
    j->inputs[j->n_inputs++] = (struct tn_mwriter_source){.name = name, .bytes = n_bytes};
    j->result->source_bytes += n_bytes;
    return TERN_OK;
}

static tern_status check_params(struct job *j)
{
    const char *source = j->params->source;
    if ((unsigned)j->params->head > TERN_HEAD_BF16)
        return tn_fail(j->err, TERN_USAGE, "head type %d is unknown", (int)j->params->head);
    switch (tn_path_kind(source)) {
    case TN_PATH_DIR:
        break;
    case TN_PATH_ABSENT:
        return tn_fail(j->err, TERN_INPUT, "%s: no such directory", source);
    default:
        return tn_fail(j->err, TERN_INPUT,
                       "%s: not a directory; give the folder that holds config.json and "
                       "model.safetensors",
                       source);
    }
    return TERN_OK;
}

/* Last component of the resolved source; "model" where that is no name. */
static const char *source_name(struct job *j)
{
    j->resolved = tn_path_resolve(j->params->source);
    const char *name = j->resolved ? j->resolved : "model";
    for (const char *c = name; *c; c++)
        if ((*c == '/' || *c == '\\') && c[1] != '\0')
            name = c + 1;
    const size_t n = strlen(name);
    return strpbrk(name, "/\\:") || tn_utf8_find_bad(name, n, true) < n ? "model" : name;
}

static tern_status choose_names(struct job *j)
{
    const char *last = source_name(j);
    j->name = j->params->name ? j->params->name : last;
    if (j->name[0] == '\0')
        return tn_fail(j->err, TERN_USAGE, "the name is empty");
    if (tn_utf8_find_bad(j->name, strlen(j->name), true) < strlen(j->name))
        return tn_fail(j->err, TERN_USAGE, "the name is not UTF-8 text in one line: %s", j->name);
    char *path = j->result->output;
    const size_t n_path = sizeof j->result->output;
    const char *output = j->params->output;
    const int n = output ? snprintf(path, n_path, "%s", output)
                         : snprintf(path, n_path, "%s.tern", last);
    if (n < 0 || (size_t)n >= n_path)
        return tn_fail(j->err, TERN_USAGE, "the output path is longer than %zu bytes", n_path - 1);
    if (path[0] == '\0')
        return tn_fail(j->err, TERN_USAGE, "the output path is empty");
    return TERN_OK;
}

static tern_status read_model(struct job *j)
{
    bool has_generation;
    tern_status status = tn_config_read(&j->import, &has_generation, j->params->source, j->err);
    if (status == TERN_OK)
        status = add_input(j, "config.json");
    if (status == TERN_OK && has_generation)
        status = add_input(j, "generation_config.json");
    if (status == TERN_OK)
        status = tn_source_open(&j->source, j->params->source, j->err);
    if (status == TERN_OK && j->source.has_index)
        status = add_input(j, TN_ST_INDEX_FILE);
    for (uint32_t i = 0; i < j->source.n_files && status == TERN_OK; i++)
        status = add_input(j, j->source.files[i].name);
    if (status != TERN_OK)
        return status;
    return tn_tensor_plan_make(&j->plan, &j->import, &j->source, j->params->head, j->err);
}

static tern_status read_tokenizer(struct job *j)
{
    char *json;
    size_t n_json;
    tern_status status = tn_dir_read_text(&json, &n_json, j->params->source, TOKENIZER_FILE,
                                          MAX_TOKENIZER_JSON_BYTES, j->err);
    if (status != TERN_OK)
        return status;
    if (!json)
        return tn_fail(j->err, TERN_INPUT,
                       "%s: %s is missing; --no-tokenizer converts without it", j->params->source,
                       TOKENIZER_FILE);
    status = tn_tok_import(json, n_json, j->import.config.vocab, &j->tokenizer, j->err);
    tn_free(json);
    return status == TERN_OK ? add_input(j, TOKENIZER_FILE) : status;
}

static tern_status read_template(struct job *j)
{
    const char *from;
    tern_status status = tn_template_read(&j->template_source, &j->n_template_source, &from,
                                          j->params->source, j->err);
    if (status == TERN_OK && from)
        status = add_input(j, from);
    if (status != TERN_OK || !j->template_source)
        return status;
    const struct tern_chat_template *known =
        tern_chat_template_recognise(j->template_source, j->n_template_source);
    if (!known) {
        say(j, TERN_CONVERT_WARNING,
            "the chat template in %s is not one that tern knows: `tern chat` and `tern run` will "
            "need --template, or `tern run` --raw",
            from);
        return TERN_OK;
    }
    j->template_name = tern_chat_template_name(known);
    return tn_template_add_stop_id(&j->import.config, known, j->tokenizer.data,
                                   j->tokenizer.n_bytes, j->err);
}

static void say_notes(const struct job *j)
{
    if (j->plan.n_ignored)
        say(j, TERN_CONVERT_NOTE, "left out, because tern computes it: *.rotary_emb.inv_freq (%u)",
            j->plan.n_ignored);
    const enum tn_weight_form form = j->plan.is_packed ? TN_FORM_PACKED : TN_FORM_LATENT;
    if (j->import.form != TN_FORM_UNSAID && j->import.form != form)
        say(j, TERN_CONVERT_WARNING,
            "config.json says quantization_mode \"%s\", but the weights are %s: they decide",
            j->import.form == TN_FORM_PACKED ? "offline" : "online",
            j->plan.is_packed ? "packed" : "floats");
    if (!j->params->no_tokenizer && !j->template_source)
        say(j, TERN_CONVERT_NOTE,
            "the directory holds no chat template: `tern run` will continue prompts as they are");
    if (j->import.config.n_stop_ids == 0)
        say(j, TERN_CONVERT_WARNING,
            "the model names no end-of-text id: it will not stop by itself");
}

/* TERN_USAGE if the output would replace this file of the source directory. */
static tern_status check_not_input(struct job *j, const char *name)
{
    char *path = tn_path_join(j->params->source, name);
    if (!path)
        return tn_fail(j->err, TERN_MEMORY, "no memory for a path");
    const bool same = tn_path_same(path, j->result->output);
    tn_free(path);
    if (!same)
        return TERN_OK;
    return tn_fail(j->err, TERN_USAGE,
                   "%s is a file of the model that is converted; choose another output",
                   j->result->output);
}

static tern_status check_output(struct job *j)
{
    /* Not read without a tokenizer, but just as precious. */
    static const char *const others[] = {TOKENIZER_FILE, "tokenizer_config.json",
                                         "chat_template.jinja"};
    const char *output = j->result->output;
    const enum tn_path_kind kind = tn_path_kind(output);
    if (kind == TN_PATH_DIR || kind == TN_PATH_OTHER)
        return tn_fail(j->err, TERN_OUTPUT, "%s: is %s, give the name of a file", output,
                       kind == TN_PATH_DIR ? "a directory" : "not a regular file");
    j->result->replaced = kind == TN_PATH_FILE;
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < j->n_inputs && status == TERN_OK; i++)
        status = check_not_input(j, j->inputs[i].name);
    for (size_t i = 0; i < TN_COUNT_OF(others) && status == TERN_OK; i++)
        status = check_not_input(j, others[i]);
    return status;
}

static tern_status read_everything(struct job *j)
{
    tern_status status = check_params(j);
    if (status == TERN_OK)
        status = choose_names(j);
    if (status == TERN_OK)
        status = read_model(j);
    if (status == TERN_OK && !j->params->no_tokenizer)
        status = read_tokenizer(j);
    if (status == TERN_OK && !j->params->no_tokenizer)
        status = read_template(j);
    if (status == TERN_OK)
        status = check_output(j);
    if (status == TERN_OK)
        say_notes(j);
    return status;
}

/* ---- declare ---- */

static tern_status declare(struct job *j)
{
    for (uint32_t i = 0; i < j->plan.n_tensors; i++) {
        uint32_t i_tensor;
        tern_status status =
            tn_mwriter_declare(j->writer, &j->plan.tensors[i].file, &i_tensor, j->err);
        if (status != TERN_OK)
            return status;
    }
    struct tn_mwriter_meta meta = {
        .config = j->import.config,
        .name = j->name,
        .template_name = j->template_name,
        .template_source = j->template_source,
        .template_source_bytes = j->n_template_source,
        .converter = "tern " TERN_VERSION_STRING,
        .n_sources = j->n_inputs,
        .sources = j->inputs,
    };
    meta.config.flags = j->plan.is_tied ? TERN_MODEL_TIED_HEAD : 0;
    meta.config.n_params = j->plan.n_params;
    return tn_mwriter_begin(j->writer, &meta, j->tokenizer.data, j->tokenizer.n_bytes, j->err);
}

/* ---- stream ---- */

static void say_tensor(const struct job *j, const struct tn_tensor_plan_row *t,
                       const struct tn_stream_facts *facts)
{
    char name[48];
    tn_tensor_name(name, sizeof name, &t->file);
    const char *layout = tn_layout_name(t->file.layout);
    const double n = (double)t->file.rows * t->file.cols;
    if (t->file.scale_kind == TERN_SCALE_TENSOR)
        say(j, TERN_CONVERT_TENSOR, "%s: %u x %u, %s, scale %.6g, %.1f %% zeros", name,
            t->file.rows, t->file.cols, layout, (double)facts->scale,
            100 * (double)facts->n_zero / n);
    else
        say(j, TERN_CONVERT_TENSOR, "%s: %u x %u, %s", name, t->file.rows, t->file.cols, layout);
}

static tern_status stream_tensors(struct job *j)
{
    j->stream.writer = j->writer;
    for (uint32_t i = 0; i < j->plan.n_tensors; i++) {
        struct tn_stream_facts facts;
        tern_status status =
            tn_stream_tensor(&j->stream, &j->plan.tensors[i], i, &facts, j->err);
        if (status != TERN_OK)
            return status;
        j->result->n_zero += facts.n_zero;
        say_tensor(j, &j->plan.tensors[i], &facts);
    }
    return TERN_OK;
}

/* ---- hash ---- */

static tern_status hash_input(struct job *j, uint32_t i_input, XXH3_state_t *state, char *piece)
{
    const struct tn_mwriter_source *input = &j->inputs[i_input];
    struct tn_file *file;
    tern_status status = open_input(j, input->name, &file);
    if (status != TERN_OK)
        return status;
    if (tn_file_size(file) != input->bytes)
        status = tn_fail(j->err, TERN_INPUT, "%s changed while it was read", input->name);
    XXH3_64bits_reset(state);
    for (uint64_t at = 0; at < input->bytes && status == TERN_OK; at += HASH_PIECE_BYTES) {
        const size_t n = (size_t)TN_MIN(input->bytes - at, (uint64_t)HASH_PIECE_BYTES);
        status = tn_file_read_at(file, at, piece, n, j->err);
        if (status == TERN_OK) {
            XXH3_64bits_update(state, piece, n);
            status = tn_stream_progress(&j->stream, n, j->err);
        }
    }
    tn_file_close(file);
    if (status == TERN_OK)
        tn_mwriter_set_source(j->writer, i_input, input->bytes, XXH3_64bits_digest(state));
    return status;
}

static tern_status hash_inputs(struct job *j)
{
    XXH3_state_t *state = tn_alloc_aligned(sizeof *state, 64);
    char *piece = tn_alloc(HASH_PIECE_BYTES);
    tern_status status = TERN_OK;
    if (!state || !piece)
        status = tn_fail(j->err, TERN_MEMORY, "no memory to hash the input files");
    for (uint32_t i = 0; i < j->n_inputs && status == TERN_OK; i++)
        status = hash_input(j, i, state, piece);
    tn_free(piece);
    tn_free_aligned(state);
    return status;
}

/* ---- finish ---- */

static bool should_stop(void *arg)
{
    const struct job *j = arg;
    const struct tern_convert_params *p = j->params;
    return p->on_progress && !p->on_progress(p->arg, j->stream.n_done, j->stream.n_total);
}

/* Finite weights can overflow all the same; nothing could be done with such a model. */
static tern_status check_logits(const struct job *j, const float *logits)
{
    for (uint32_t i = 0; i < j->import.config.vocab; i++)
        if (!isfinite(logits[i]))
            return tn_fail(j->err, TERN_INPUT,
                           "the model computes no finite logit for id %u: its weights are damaged, "
                           "or too large for 32-bit floats",
                           i);
    return TERN_OK;
}

/* Hash of the logits after a few fixed ids, computed on the part file as `tern verify` will. */
static tern_status compute_fingerprint(struct job *j, struct tern_engine *engine,
                                       const uint32_t *ids, uint32_t n_ids, uint64_t *hash)
{
    struct tern_model *model = NULL;
    struct tern_session *session = NULL;
    struct tern_session_params params;
    tern_session_params_default(&params);
    params.n_ctx = n_ids;
    params.kv = TERN_KV_F32;
    params.n_batch = n_ids;
    params.drop_pages = true;
    params.should_stop = should_stop;
    params.arg = j;
    tern_status status = tern_model_open(&model, tn_mwriter_part_path(j->writer), j->err);
    if (status == TERN_OK)
        status = tern_session_create(&session, engine, model, &params,
                                     j->err);
    if (status == TERN_OK)
        status = tern_session_eval(session, ids, n_ids, NULL, j->err);
    if (status == TERN_OK)
        status = check_logits(j, tern_session_logits(session));
    if (status == TERN_OK)
        *hash = XXH3_64bits(tern_session_logits(session),
                            j->import.config.vocab * sizeof(float));
    tern_session_free(session);
    tern_model_free(model);
    return status;
}

static tern_status add_fingerprint(struct job *j)
{
    const uint32_t vocab = j->import.config.vocab;
    const uint32_t ids[] = {TN_MIN(1u, vocab - 1), vocab / 3, vocab / 2, vocab - 1};
    const uint32_t n_ids = TN_MIN((uint32_t)TN_COUNT_OF(ids), j->import.config.context);
    const struct tern_engine_params params = {.n_threads = 1};
    struct tern_engine *engine;
    tern_status status = tern_engine_create(&engine, &params, j->err);
    if (status != TERN_OK)
        return status;
    uint64_t hash = 0;
    status = compute_fingerprint(j, engine, ids, n_ids, &hash);
    tern_engine_free(engine);
    if (status == TERN_OK)
        status = tn_mwriter_set_fingerprint(j->writer, ids, n_ids, hash, j->err);
    return status;
}

static tern_status write_file(struct job *j)
{
    tern_status status = tn_mwriter_create(&j->writer, j->result->output, j->err);
    if (status == TERN_OK)
        status = declare(j);
    if (status == TERN_OK)
        status = stream_tensors(j);
    if (status == TERN_OK)
        status = hash_inputs(j);
    tn_stream_drop_buffers(&j->stream);
    if (status == TERN_OK)
        status = tn_mwriter_seal(j->writer, j->err);
    if (status == TERN_OK)
        status = add_fingerprint(j);
    if (status != TERN_OK) {
        tn_mwriter_abort(j->writer);
        return status;
    }
    j->result->output_bytes = tn_mwriter_file_bytes(j->writer);
    return tn_mwriter_commit(j->writer, j->err);
}

static void prepare_stream(struct job *j)
{
    j->stream.source = &j->source;
    j->stream.params = j->params;
    j->stream.n_total = j->result->source_bytes; /* to hash them */
    for (uint32_t i = 0; i < j->plan.n_tensors; i++)
        j->stream.n_total += tn_stream_cost(&j->plan.tensors[i]);
}

static void free_job(struct job *j)
{
    tn_tensor_plan_fini(&j->plan);
    tn_source_close(&j->source);
    tn_buf_fini(&j->tokenizer);
    tn_free(j->template_source);
    tn_free(j->resolved);
}

tern_status tern_convert(const struct tern_convert_params *params,
                         struct tern_convert_result *result, struct tern_error *err)
{
    const uint64_t begin = tn_now_ns();
    memset(result, 0, sizeof *result);
    tn_ok(err);
    struct job job = {.params = params, .result = result, .err = err};
    tern_status status = read_everything(&job);
    if (status == TERN_OK) {
        prepare_stream(&job);
        status = write_file(&job);
    }
    if (status == TERN_OK) {
        result->n_ternary = job.plan.n_ternary;
        result->bits_per_weight = 8 * (double)result->output_bytes / (double)job.plan.n_params;
        result->seconds = tn_seconds_since(begin);
    }
    free_job(&job);
    return status;
}
