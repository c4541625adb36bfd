/* SPDX-License-Identifier: MIT
 *
 * tern_convert: the order of work.
 *
 *   read     config, weight headers, tokenizer, template; every check that needs no weights
 *            (job_read.c)
 *   survey   scales and tilings of the weights that only the data reveal
 *   declare  FILE.part, its table, free space
 *   stream   the data, tensor after tensor
 *   hash     the input files, for the record of sources
 *   finish   seal, cache type and fingerprint from the part file, rename
 *
 * FILE is not touched before the last step; any failure removes the part file.
 */
#define XXH_INLINE_ALL
#include "tern/convert.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"
#include "convert/cache_cost.h"
#include "convert/job.h"
#include "convert/pack_choice.h"
#include "convert/survey.h"
#include "file/model_file.h"
#include "tern/measure.h"
#include "tern/sysinfo.h"
#include "tern/tern.h"

#define HASH_PIECE_BYTES (1u << 20)
#define MIN_AVAILABLE_BYTES (8u << 20)
/* Threads that run the converted model, and the size up to which one does. */
#define MAX_THREADS 8u
#define ONE_THREAD_BYTES ((uint64_t)64 << 20)

/* ---- survey ---- */

/* Reports what the scales decided if nothing else did.  A guess that changes all logits is a
 * warning: a model that was trained in one shard also has one scale per matrix. */
static void say_inputs(const struct tn_job *j)
{
    const struct tn_tensor_plan_row *many = tn_tensor_plan_many_scales(&j->plan);
    if (!tn_tensor_plan_has_ternary(&j->plan) ||
        j->params->activations != TERN_ACTIVATIONS_AUTO ||
        j->model.import.inputs_said != TN_INPUTS_UNSAID)
        return;
    if (many)
        tn_job_say(
            j, TERN_CONVERT_NOTE,
            "inputs of products stay unrounded, because \"%s\" has several scales; --activations "
            "says otherwise",
            many->weight->name);
    else
        tn_job_say(
            j, TERN_CONVERT_WARNING,
            "nothing in the source says how inputs of products were rounded in training; every "
            "matrix has one scale, so int8 for each token is assumed; a TriLM or another model of "
            "unrounded inputs needs --activations float");
}

/* Matrices whose values are kept, for messages. */
struct kept {
    uint32_t n_ternary, n_dense;              /* number of projections: ternary; of floats that are
                                               * not */
    const struct tn_tensor_plan_row *dense;   /* the first of these */
    const struct tn_tensor_plan_row *largest; /* the largest matrix that is not ternary */
    uint64_t n_weights, n_bytes;              /* non-ternary weights; bytes of all tensors */
};

static struct kept count_kept(const struct tn_tensor_plan *plan)
{
    struct kept k = {0};
    for (uint32_t i = 0; i < plan->n_tensors; i++) {
        const struct tn_tensor_plan_row *t = &plan->tensors[i];
        const bool is_dense = tn_tensor_is_dense(t);
        const uint64_t n = (uint64_t)t->file.rows * t->file.cols;
        k.n_bytes += tn_layout_size(t->file.layout, t->file.rows, t->file.cols);
        k.n_ternary += tn_tensor_is_ternary(t) && t->file.layer != TERN_NO_LAYER;
        k.n_dense += is_dense;
        k.dense = is_dense && !k.dense ? t : k.dense;
        if (!is_dense && (t->kind != TN_TENSOR_BLOCKS || t->file.layer == TERN_NO_LAYER))
            continue;
        k.n_weights += n;
        if (!k.largest || n > (uint64_t)k.largest->file.rows * k.largest->file.cols)
            k.largest = t;
    }
    return k;
}

/* Reports the matrices that are not ternary.  A few among ternary ones are a warning: only the
 * model's maker knows whether that was intended. */
static void say_kept(const struct tn_job *j)
{
    const struct kept k = count_kept(&j->plan);
    if (k.n_ternary && k.n_dense)
        tn_job_say(j, TERN_CONVERT_WARNING,
                   "%u matrices are ternary and %u are not, such as \"%s\": these keep their "
                   "values in %s; if the whole model was trained ternary, the file is damaged",
                   k.n_ternary, k.n_dense, k.dense->weight->name,
                   tn_layout_name(k.dense->file.layout));
    else if (k.n_ternary && k.n_weights)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "%.1f %% of the parameters are in matrices that are not ternary: they keep the "
                   "values of the source",
                   100 * (double)k.n_weights / (double)j->plan.n_params);
    else if (k.n_weights)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "this model is not ternary: its matrices keep the values of the source, the "
                   "largest in %s; running it takes %.1f MB of memory beside the cache%s",
                   tn_layout_name(k.largest->file.layout), (double)k.n_bytes * 1e-6,
                   tn_tensor_is_dense(k.largest)
                       ? "; a GGUF file in Q4_K_M would take a third or less"
                       : "");
}

/* Reports the blocks that take more bytes than in the source. */
static void say_recoded(const struct tn_job *j)
{
    const struct tn_tensor_plan_row *first = NULL;
    uint32_t n = 0;
    double source_bytes = 0, n_bytes = 0;
    for (uint32_t i = 0; i < j->plan.n_tensors; i++) {
        const struct tn_tensor_plan_row *t = &j->plan.tensors[i];
        const struct tn_encoding *e = t->weight ? t->weight->encoding : NULL;
        if (!e || !e->recode || t->file.layout != e->layout)
            continue;
        first = first ? first : t;
        n++;
        source_bytes += (double)t->file.rows * t->file.cols / e->unit * e->unit_bytes;
        n_bytes += (double)tn_layout_size(t->file.layout, t->file.rows, t->file.cols);
    }
    if (first)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "%u matrices, such as \"%s\" in %s, are stored in a larger format that tern can "
                   "multiply, here %s: the values are unchanged, but take %.1f MB instead of %.1f",
                   n, first->weight->name, first->weight->type,
                   tn_layout_name(first->file.layout), n_bytes * 1e-6, source_bytes * 1e-6);
}

/* Programs that requantise files of rotated weights may lose the keys that describe the rotation.
 * The model with rotated weights keeps alpha and beta in floats; its predecessor does not. */
static void warn_of_lost_rotation(const struct tn_job *j)
{
    const struct tn_tensor_plan_row *alpha = NULL;
    bool is_ternary = false;
    for (uint32_t i = 0; i < j->plan.n_tensors; i++) {
        const struct tn_tensor_plan_row *t = &j->plan.tensors[i];
        if (t->file.role == TERN_ROLE_DELTA_A && tn_source_is_float(t->weight))
            alpha = t;
        is_ternary |= t->file.role == TERN_ROLE_DELTA_QKV && t->kind == TN_TENSOR_CODED;
    }
    if (j->model.is_gguf && alpha && is_ternary && j->model.import.rotation.block == 0)
        tn_job_say(j, TERN_CONVERT_WARNING,
                   "\"%s\" is in floats beside ternary projections, as in Ternary-Bonsai-2, whose "
                   "weights are rotated, but the file has no keys \"prism.hadamard.*\": if it was "
                   "made from that model, it writes nonsense", alpha->weight->name);
}

/* The table usually makes up most of an embedding model. */
static void say_table(const struct tn_job *j)
{
    if (j->params->head != TERN_HEAD_AUTO || !(j->model.import.config.flags & TERN_MODEL_NO_HEAD))
        return;
    for (uint32_t i = 0; i < j->plan.n_tensors; i++) {
        const struct tn_tensor_plan_row *t = &j->plan.tensors[i];
        const double n = (double)t->file.rows * t->file.cols;
        if (t->kind == TN_TENSOR_TABLE)
            tn_job_say(j, TERN_CONVERT_NOTE,
                       "the table of %u tokens is kept in %s, as the source has it in %s: %.1f MB; "
                       "--head q8 takes %.1f MB and moves the vectors (cosine about 0.9995)",
                       t->file.rows, tn_layout_name(t->file.layout), t->weight->type,
                       n * (t->file.layout == TERN_LAYOUT_F32 ? 4e-6 : 2e-6), n * 1e-6);
    }
}

/* Packs ternary matrices in fewer bits, if the caller or `auto` chooses so. */
static tern_status choose_pack(struct tn_job *j)
{
    bool small = j->params->pack == TERN_PACK_SMALL;
    char why[TN_PACK_REASON_BYTES];
    if (j->params->pack == TERN_PACK_AUTO && tn_tensor_plan_has_ternary(&j->plan)) {
        tern_status status = tn_pack_choose(&small, why, &j->plan, &j->model.import, j->err);
        if (status != TERN_OK)
            return status;
        tn_job_say(j, TERN_CONVERT_NOTE, "--pack auto takes %s: %s", small ? "small" : "fast", why);
    }
    if (small)
        tn_tensor_plan_make_small(&j->plan);
    return TERN_OK;
}

static tern_status survey(struct tn_job *j)
{
    tern_status status = tn_survey(&j->stream, &j->plan, j->err);
    if (status != TERN_OK)
        return status;
    if (j->plan.twin)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "left out, because it holds the numbers of the embeddings: %s",
                   j->plan.twin->name);
    say_inputs(j);
    warn_of_lost_rotation(j);
    status = tn_tensor_plan_settle(&j->plan, &j->model.import, j->params, j->err);
    if (status == TERN_OK)
        status = choose_pack(j);
    if (status != TERN_OK)
        return status;
    say_recoded(j);
    say_kept(j);
    say_table(j);
    return TERN_OK;
}

/* ---- declare ---- */

static tern_status declare(struct tn_job *j)
{
    for (uint32_t i = 0; i < j->plan.n_tensors; i++) {
        const struct tn_tensor_plan_row *t = &j->plan.tensors[i];
        uint32_t i_tensor;
        if (t->i_matrix > 0)
            continue;
        tern_status status = tn_mwriter_declare(j->writer, &t->file, &i_tensor, j->err);
        if (status != TERN_OK)
            return status;
    }
    const struct tn_rotation_import *rotation = &j->model.import.rotation;
    struct tn_mwriter_meta meta = {
        .config = j->model.import.config,
        .layers = j->model.import.layers,
        .stop_ids = j->model.import.stop_ids.ids,
        .n_stop_ids = j->model.import.stop_ids.n,
        .family = j->model.import.family_name,
        .name = j->name,
        .template_name = j->template_name,
        .template_source = j->template_source,
        .template_source_bytes = j->n_template_source,
        .converter = "tern " TERN_VERSION_STRING,
        .n_sources = j->n_inputs,
        .sources = j->inputs,
        .rotations = rotation->rotations,
        .n_rotations = rotation->n,
        .signs = rotation->signs,
        .n_sign_bytes = rotation->n_sign_bytes,
    };
    meta.config.n_params = j->plan.n_params;
    meta.config.rotation_block = rotation->block;
    return tn_mwriter_begin(j->writer, &meta, j->tokenizer.data, j->tokenizer.n_bytes, j->err);
}

/* ---- stream ---- */

static void say_tensor(const struct tn_job *j, const struct tn_tensor_plan_row *t,
                       const struct tn_stream_facts *facts)
{
    char name[64];
    const size_t n_name = strlen(tn_tensor_name(name, 48, &t->file));
    if (t->file.n_stacked)
        snprintf(name + n_name, sizeof name - n_name, ".%u", t->i_matrix);
    const char *layout = tn_layout_name(t->file.layout);
    const double n = (double)t->file.rows * t->file.cols;
    if (t->file.scale_kind == TERN_SCALE_TENSOR)
        tn_job_say(j, TERN_CONVERT_TENSOR, "%s: %u x %u, %s, scale %.6g, %.1f %% zeros", name,
                   t->file.rows, t->file.cols, layout, (double)facts->scale,
                   100 * (double)facts->n_zero / n);
    else if (tn_tensor_is_ternary(t))
        tn_job_say(j, TERN_CONVERT_TENSOR, "%s: %u x %u, %s, a scale for %u columns, %.1f %% zeros",
                   name, t->file.rows, t->file.cols, layout, t->file.scale_group,
                   100 * (double)facts->n_zero / n);
    else
        tn_job_say(j, TERN_CONVERT_TENSOR, "%s: %u x %u, %s", name, t->file.rows, t->file.cols,
                   layout);
}

/* Absmean rounding turns 31.0 % of Gaussian weights into zeros, and a third of random trits are
 * zero; trained models have 36 to 42 %, single matrices 30 to 50.  Below this number of weights the
 * share is not significant. */
#define MIN_ZERO_SHARE 0.34
#define MAX_ZERO_SHARE 0.60
#define MIN_WEIGHTS_TO_JUDGE 16384u

static void judge_zeros(const struct tn_job *j)
{
    const double share = (double)j->result->n_zero / (double)TN_MAX(j->plan.n_ternary, 1u);
    if (j->plan.n_ternary < MIN_WEIGHTS_TO_JUDGE ||
        (share >= MIN_ZERO_SHARE && share <= MAX_ZERO_SHARE))
        return;
    tn_job_say(j, TERN_CONVERT_WARNING,
               "%.1f %% of the ternary weights are zero; trained models have about 36 to 42 %%%s",
               100 * share,
               share < MIN_ZERO_SHARE
                   ? ", weights that were never trained ternary about 31 %: it may write nonsense"
                   : ": are the weights complete?");
}

static tern_status stream_tensors(struct tn_job *j)
{
    j->stream.writer = j->writer;
    for (uint32_t i = 0; i < j->plan.n_tensors; i++) {
        const struct tn_tensor_plan_row *t = &j->plan.tensors[i];
        struct tn_stream_facts facts = {0};
        tern_status status = tn_stream_tensor(&j->stream, t, &facts, j->err);
        if (status != TERN_OK)
            return status;
        j->result->n_zero += facts.n_zero;
        say_tensor(j, t, &facts);
    }
    return TERN_OK;
}

/* ---- hash ---- */

static tern_status hash_input(struct tn_job *j, uint32_t i_input, XXH3_state_t *state, char *piece)
{
    const struct tn_mwriter_source *input = &j->inputs[i_input];
    struct tn_file *file;
    tern_status status = tn_job_open_input(j, input->name, &file);
    if (status != TERN_OK)
        return status;
    XXH3_64bits_reset(state);
    for (uint64_t at = 0; at < input->bytes && status == TERN_OK; at += HASH_PIECE_BYTES) {
        const size_t n = (size_t)TN_MIN(input->bytes - at, (uint64_t)HASH_PIECE_BYTES);
        status = tn_file_read_at(file, at, piece, n, j->err);
        if (status == TERN_OK) {
            XXH3_64bits_update(state, piece, n);
            status = tn_stream_progress(&j->stream, n, j->err);
        }
    }
    /* After hashing, so that the hash belongs to the same bytes as the tensors. */
    if (status == TERN_OK && (tn_file_size(file) != input->bytes ||
                              tn_file_modified_ns(file) != j->modified_ns[i_input]))
        status =
            tn_fail(j->err, TERN_INPUT, "%s changed while it was read; convert again", input->name);
    tn_file_close(file);
    if (status == TERN_OK)
        tn_mwriter_set_source(j->writer, i_input, input->bytes, XXH3_64bits_digest(state));
    return status;
}

static tern_status hash_inputs(struct tn_job *j)
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
    const struct tn_job *j = arg;
    return !tn_stream_report(&j->stream);
}

/* Results that only running the model gives. */
struct measured {
    struct tn_cache_cost cost;
    uint32_t ids[4]; /* [n_ids] ids of the fingerprint */
    uint32_t n_ids;
    uint64_t hash;
};

/* Hash of the logits after a few fixed ids, computed like `tern verify` does. */
static tern_status measure_fingerprint(struct measured *m, struct tn_job *j,
                                       struct tern_engine *engine, const struct tern_model *model)
{
    const struct tern_session_params params = {.n_ctx = m->n_ids,
                                               .kv = TERN_KV_F32,
                                               .n_batch = m->n_ids,
                                               .drop_pages = true,
                                               .should_stop = should_stop,
                                               .arg = j};
    struct tern_session *session;
    tern_status status = tern_session_create(&session, engine, model, &params, j->err);
    if (status == TERN_OK) /* finite weights can still overflow */
        status = tern_fingerprint(&m->hash, session, m->ids, m->n_ids, j->err);
    tern_session_free(session);
    return status;
}

/* Measures the part file, which must not be written to meanwhile. */
static tern_status measure(struct measured *m, struct tn_job *j, struct tern_engine *engine)
{
    struct tern_model *model;
    const char *path = tn_mwriter_part_path(j->writer);
    tern_status status = tern_model_open(&model, path, j->err);
    if (status == TERN_INPUT && tn_path_kind(path) == TN_PATH_ABSENT)
        status = tn_fail(j->err, TERN_OUTPUT, "%s: was removed while it was written", path);
    if (status == TERN_OK)
        status = measure_fingerprint(m, j, engine, model);
    if (status == TERN_OK && tern_model_config(model)->has_head)
        status = tn_cache_cost_measure(&m->cost, engine, model, should_stop, j, j->err);
    tern_model_free(model);
    return status;
}

/* An engine for a model of n_bytes.  Small ones take one thread: learning how many cores may be
 * used takes longer than running them. */
static tern_status create_engine(struct tern_engine **out, uint64_t n_bytes,
                                 struct tern_error *err)
{
    const bool is_small = n_bytes < ONE_THREAD_BYTES;
    struct tern_engine_params params = {0};
    struct tern_sysinfo *machine = tn_alloc(sizeof *machine);
    *out = NULL;
    if (!machine)
        return tn_fail(err, TERN_MEMORY, "no memory to describe the processor");
    (is_small ? tern_sysinfo_read_cpu : tern_sysinfo_read)(machine);
    params.n_threads = is_small ? 1 : TN_MIN(machine->n_allowed, MAX_THREADS);
    tern_status status = tern_engine_create(out, machine, &params, err);
    tn_free(machine);
    return status;
}

static tern_status choose_cache(struct tn_job *j, const struct tn_cache_cost *cost)
{
    if (!tn_cache_cost_is_too_high(cost))
        return TERN_OK;
    tn_job_say(j, TERN_CONVERT_NOTE,
               "the cache of this model will be f16: q8 costs it %.4f nats per token, f16 %.4f; "
               "--kv q8 uses q8 all the same",
               cost->q8_nats, cost->f16_nats);
    return tn_mwriter_set_cache(j->writer, TERN_FILE_CACHE_F16, j->err);
}

static tern_status add_measurements(struct tn_job *j)
{
    const uint32_t vocab = j->model.import.config.vocab;
    struct measured m = {.ids = {TN_MIN(1u, vocab - 1), vocab / 3, vocab / 2, vocab - 1}};
    struct tern_engine *engine;
    m.n_ids = TN_MIN((uint32_t)TN_COUNT_OF(m.ids), j->model.import.config.context);
    tern_status status = create_engine(&engine, tn_mwriter_file_bytes(j->writer), j->err);
    if (status == TERN_OK)
        status = measure(&m, j, engine);
    tern_engine_free(engine);
    if (status == TERN_OK)
        status = choose_cache(j, &m.cost);
    if (status == TERN_OK)
        status = tn_mwriter_set_fingerprint(j->writer, m.ids, m.n_ids, m.hash, j->err);
    return status;
}

/* With less the system may kill the process during the conversion (measured in control groups: the
 * smallest model needs 6.5 MiB from here on, for buffers, measuring sessions and pages being
 * written), and the part file would remain. */
static tern_status check_memory(const struct tn_job *j)
{
    struct tern_monitor *monitor;
    struct tern_monitor_sample now;
    tern_status status = tern_monitor_open(&monitor, NULL, j->err);
    if (status != TERN_OK)
        return status;
    tern_monitor_read(monitor, &now);
    tern_monitor_close(monitor);
    if (now.available_bytes >= MIN_AVAILABLE_BYTES)
        return TERN_OK;
    return tn_fail(j->err, TERN_MEMORY,
                   "converting needs at least %.1f MiB of memory, %.1f MiB are available",
                   MIN_AVAILABLE_BYTES / 0x1p20, (double)now.available_bytes / 0x1p20);
}

static tern_status write_file(struct tn_job *j)
{
    tern_status status = check_memory(j);
    if (status == TERN_OK)
        status = tn_mwriter_create(&j->writer, j->result->output, j->err);
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
        status = add_measurements(j);
    if (status != TERN_OK) {
        tn_mwriter_abort(j->writer);
        return status;
    }
    j->result->output_bytes = tn_mwriter_file_bytes(j->writer);
    return tn_mwriter_commit(j->writer, j->err);
}

static void prepare_stream(struct tn_job *j)
{
    j->stream.source = &j->model.source;
    j->stream.params = j->params;
    j->stream.n_source = j->result->source_bytes;
    j->stream.factors = j->plan.factors;
    j->stream.n_total = j->result->source_bytes + tn_survey_cost(&j->plan); /* including hashing */
    for (uint32_t i = 0; i < j->plan.n_tensors; i++)
        j->stream.n_total += tn_stream_cost(&j->plan.tensors[i]);
}

static void free_job(struct tn_job *j)
{
    if (!j)
        return;
    tn_stream_drop_buffers(&j->stream);
    tn_tensor_plan_fini(&j->plan);
    tn_model_source_close(&j->model);
    tn_buf_fini(&j->tokenizer);
    tn_free(j->template_source);
    tn_free(j->resolved);
    tn_free(j->folder);
    tn_free(j->source_name);
    tn_free(j);
}

static tern_status run_job(struct tn_job *j)
{
    tern_status status = tn_job_read(j);
    if (status == TERN_OK) {
        prepare_stream(j);
        status = survey(j);
    }
    if (status == TERN_OK)
        status = write_file(j);
    if (status == TERN_OK)
        judge_zeros(j);
    return status;
}

tern_status tern_convert(const struct tern_convert_params *params,
                         struct tern_convert_result *result, struct tern_error *err)
{
    const uint64_t begin = tn_now_ns();
    memset(result, 0, sizeof *result);
    tn_ok(err);
    struct tn_job *job = tn_alloc_zeroed(1, sizeof *job);
    if (!job)
        return tn_fail(err, TERN_MEMORY, "no memory for the conversion");
    *job = (struct tn_job){.params = params, .result = result, .err = err};
    const tern_status status = run_job(job);
    if (status == TERN_INTERRUPTED) /* reading, or computing to measure the result */
        (void)tn_fail(err, status, "conversion stopped; nothing was written");
    if (status == TERN_OK) {
        result->n_ternary = job->plan.n_ternary;
        result->bits_per_weight = 8 * (double)result->output_bytes / (double)job->plan.n_params;
        result->seconds = tn_seconds_since(begin);
    }
    free_job(job);
    return status;
}
