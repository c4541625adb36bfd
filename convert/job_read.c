/* SPDX-License-Identifier: MIT
 *
 * Reads everything of a conversion except weights: config, headers, tokenizer, template, and the
 * names of input and output.  convert.c calls tn_job_read first.
 */
#include "convert/job.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text_match.h"
#include "base/utf8.h"
#include "convert/gguf/gguf.h"
#include "convert/hf/hf_config.h"
#include "convert/hf/template_import.h"
#include "convert/tokens/tok_gpt2.h"
#include "convert/tokens/tok_import.h"

void tn_job_say(const struct tn_job *j, enum tern_convert_message kind, const char *format, ...)
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

tern_status tn_job_open_input(struct tn_job *j, const char *name, struct tn_file **file)
{
    char *path = tn_path_join(j->folder, name);
    if (!path)
        return tn_fail(j->err, TERN_MEMORY, "no memory for a path");
    tern_status status = tn_file_open_read(file, path, j->err);
    tn_free(path);
    return status;
}

static bool is_input(const struct tn_job *j, const char *name)
{
    for (uint32_t i = 0; i < j->n_inputs; i++)
        if (strcmp(j->inputs[i].name, name) == 0)
            return true;
    return false;
}

/* Records a file as an input, once for all steps that read it; `name` must outlive the job. */
static tern_status add_input(struct tn_job *j, const char *name)
{
    struct tn_file *file;
    if (is_input(j, name))
        return TERN_OK;
    if (tn_utf8_find_bad(name, strlen(name), true) < strlen(name))
        return tn_fail(j->err, TERN_INPUT,
                       "%s: a name that is not one line of UTF-8 cannot be kept in the model; "
                       "rename the file", name);
    tern_status status = tn_job_open_input(j, name, &file);
    if (status != TERN_OK)
        return status;
    const uint64_t n_bytes = tn_file_size(file);
    j->modified_ns[j->n_inputs] = tn_file_modified_ns(file);
    tn_file_close(file);
    j->inputs[j->n_inputs++] = (struct tn_mwriter_source){.name = name, .bytes = n_bytes};
    j->result->source_bytes += n_bytes;
    return TERN_OK;
}

static tern_status check_params(struct tn_job *j)
{
    const struct tern_convert_params *p = j->params;
    if ((unsigned)p->head > TERN_HEAD_F32)
        return tn_fail(j->err, TERN_USAGE, "head type %d is unknown", (int)p->head);
    if ((unsigned)p->activations > TERN_ACTIVATIONS_FLOAT || (unsigned)p->i2s_layout > TERN_I2S_1X4)
        return tn_fail(j->err, TERN_USAGE, "activations %d or I2_S layout %d is unknown",
                       (int)p->activations, (int)p->i2s_layout);
    if ((unsigned)p->pack > TERN_PACK_AUTO)
        return tn_fail(j->err, TERN_USAGE, "layout %d is unknown", (int)p->pack);
    switch (tn_path_kind(p->source)) {
    case TN_PATH_DIR:
    case TN_PATH_FILE:
        return TERN_OK;
    case TN_PATH_ABSENT:
        return tn_fail(j->err, TERN_INPUT, "%s: no such directory or file", p->source);
    default:
        return tn_fail(j->err, TERN_INPUT,
                       "%s: neither a directory nor a file; give the folder that holds config.json "
                       "and model.safetensors, or a .gguf file",
                       p->source);
    }
}

static const char *last_component(const char *path)
{
    const char *name = path;
    for (const char *c = path; *c; c++)
        if ((*c == '/' || *c == '\\') && c[1] != '\0')
            name = c + 1;
    return name;
}

/* Removes the extension ".gguf", and "-00001-of-00003" of a split file. */
static void cut_ending(char *name)
{
    unsigned first, n;
    int n_read = 0;
    const size_t n_stem = tn_text_n_stem(name, ".gguf"), length = n_stem ? n_stem : strlen(name);
    name[length] = '\0';
    if (length > 15 && sscanf(name + length - 15, "-%5u-of-%5u%n", &first, &n, &n_read) == 2 &&
        n_read == 15)
        name[length - 15] = '\0';
}

static bool is_name(const char *name, size_t n)
{
    return n > 0 && strcspn(name, "/\\:") >= n && strspn(name, ".") < n &&
           tn_utf8_find_bad(name, n, true) == n;
}

/* The last component of the source's path as given, because a link may lead to a meaningless name,
 * as in the cache of Hugging Face.  If that is not a name (".", "/"), the one of the resolved path;
 * else "model". */
static char *name_of_source(const char *source, const char *resolved)
{
    const char *last = last_component(source);
    size_t n = strcspn(last, "/\\");
    if (!is_name(last, n)) {
        last = last_component(resolved ? resolved : "");
        n = strlen(last);
    }
    return is_name(last, n) ? tn_copy_bytes(last, n) : tn_copy_text("model");
}

static tern_status look_at_source(struct tn_job *j)
{
    const char *source = j->params->source;
    j->resolved = tn_path_resolve(source);
    j->source_name = name_of_source(source, j->resolved);
    const size_t n_folder = (size_t)(last_component(source) - source);
    const bool is_file = tn_path_kind(source) == TN_PATH_FILE;
    if (!is_file)
        j->folder = tn_copy_text(source);
    else
        j->folder = n_folder ? tn_copy_bytes(source, n_folder) : tn_copy_text(".");
    if (!j->source_name || !j->folder)
        return tn_fail(j->err, TERN_MEMORY, "no memory for a path");
    if (is_file)
        cut_ending(j->source_name);
    return TERN_OK;
}

static tern_status choose_names(struct tn_job *j)
{
    tern_status status = look_at_source(j);
    if (status != TERN_OK)
        return status;
    j->name = j->params->name ? j->params->name : j->source_name;
    if (j->name[0] == '\0')
        return tn_fail(j->err, TERN_USAGE, "the name is empty");
    if (tn_utf8_find_bad(j->name, strlen(j->name), true) < strlen(j->name))
        return tn_fail(j->err, TERN_USAGE, "the name is not UTF-8 text in one line: %s", j->name);
    char *path = j->result->output;
    const size_t n_path = sizeof j->result->output;
    const char *output = j->params->output;
    const int n = output ? snprintf(path, n_path, "%s", output)
                         : snprintf(path, n_path, "%s.tern", j->source_name);
    if (n < 0 || (size_t)n >= n_path)
        return tn_fail(j->err, TERN_USAGE, "the output path is longer than %zu bytes", n_path - 1);
    if (path[0] == '\0')
        return tn_fail(j->err, TERN_USAGE, "the output path is empty");
    return TERN_OK;
}

static tern_status read_model(struct tn_job *j)
{
    struct tn_model_source *m = &j->model;
    const char *path = j->params->source;
    tern_status status = tn_model_source_open(m, path, j->params->i2s_layout, j->err);
    if (status == TERN_OK && !m->is_gguf && j->params->i2s_layout != TERN_I2S_X86)
        status = tn_fail(j->err, TERN_USAGE, "--i2s-layout is for GGUF files; folders have none");
    if (status == TERN_OK && !m->is_gguf)
        status = add_input(j, TN_CONFIG_FILE);
    if (status == TERN_OK && m->has_generation)
        status = add_input(j, TN_GENERATION_FILE);
    if (status == TERN_OK && m->has_pooling)
        status = add_input(j, TN_POOLING_FILE);
    if (status == TERN_OK && m->source.has_index)
        status = add_input(j, TN_ST_INDEX_FILE);
    for (uint32_t i = 0; i < m->source.n_files && status == TERN_OK; i++)
        status = add_input(j, m->source.files[i].name);
    if (status != TERN_OK)
        return status;
    return tn_tensor_plan_make(&j->plan, &m->import, &m->source, j->err);
}

static tern_status add_tokenizer_files(struct tn_job *j)
{
    const char *names[TN_MAX_TOKENIZER_FILES];
    const uint32_t n = tn_model_source_tokenizer_files(names, j->params->source);
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < n && status == TERN_OK; i++)
        status = add_input(j, names[i]);
    return status;
}

static tern_status read_tokenizer(struct tn_job *j)
{
    const char *splitter;
    if (!j->model.is_gguf && j->params->pre)
        return tn_fail(j->err, TERN_USAGE, "--pre is for GGUF files; %s names its splitter itself",
                       TN_TOK_FILE);
    tern_status status = tn_model_source_tokenizer(&j->tokenizer, &splitter, &j->model,
                                                   j->params->source, j->params->pre, j->err);
    if (status == TERN_OK && splitter)
        tn_job_say(j, TERN_CONVERT_NOTE, "texts are split as \"%s\" splits them", splitter);
    return status == TERN_OK && !j->model.is_gguf ? add_tokenizer_files(j) : status;
}

/* The official GGUF file of BitNet 2B-4T contains the template of another model, which ends every
 * question with BITNETAssistant and the end of the text. */
static tern_status correct_template(struct tn_job *j)
{
    static const char right[] =
        "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
        "message['role'] | capitalize + ': '+ message['content'] | trim + '<|eot_id|>' %}"
        "{{ content }}{% endfor %}{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}";
    const size_t n = j->n_template_source;
    if (tn_text_find(j->template_source, n, 0, "BITNETAssistant") == n)
        return TERN_OK;
    tn_job_say(j, TERN_CONVERT_WARNING,
               "the chat template in the file is not that of BitNet 2B-4T; the published one is "
               "taken, with <|eot_id|> as a stop token");
    tn_free(j->template_source);
    j->n_template_source = sizeof right - 1;
    j->template_source = tn_copy_bytes(right, j->n_template_source);
    return j->template_source ? TERN_OK
                              : tn_fail(j->err, TERN_MEMORY, "no memory for a chat template");
}

/* The built-in template that equals the model's; NULL: none, or it cannot be read. */
static const struct tern_chat_template *find_known_template(struct tn_job *j, const char *from)
{
    struct tern_chat_template *t;
    struct tern_error why;
    if (tern_chat_template_parse(&t, j->template_source, j->n_template_source, &why) != TERN_OK) {
        tn_job_say(j, TERN_CONVERT_WARNING,
                   "%s: %s: `tern chat` and `tern run` will need --template, or `tern run` --raw",
                   from, why.detail);
        return NULL;
    }
    const struct tern_chat_template *known = tern_chat_template_find(tern_chat_template_name(t));
    tern_chat_template_free(t);
    return known;
}

static tern_status read_template(struct tn_job *j)
{
    const char *from;
    tern_status status =
        tn_model_source_template(&j->template_source, &j->n_template_source, &from, &j->model,
                                 j->params->source, j->err);
    if (status == TERN_OK && from && !j->model.is_gguf)
        status = add_input(j, from);
    if (status == TERN_OK && j->template_source && j->model.is_gguf)
        status = correct_template(j);
    if (status != TERN_OK)
        return status;
    const struct tern_chat_template *known =
        j->template_source ? find_known_template(j, from) : NULL;
    if (known)
        j->template_name = tern_chat_template_name(known);
    const struct tn_answer_ends ends = {
        .template = j->template_source,
        .n_template = j->n_template_source,
        .known = known,
        .is_gguf = j->model.is_gguf,
    };
    return tn_template_add_stop_ids(&j->model.import.stop_ids, j->model.import.config.vocab, &ends,
                                    j->tokenizer.data, j->tokenizer.n_bytes, j->err);
}

/* Longrope's short factors, and the rotation without dynamic scaling, apply up to the original
 * context. */
static void limit_context(struct tn_job *j)
{
    struct tern_file_config *c = &j->model.import.config;
    const uint32_t limit = j->model.import.original_context;
    j->cut_context = limit != 0 && (limit < c->context || j->model.import.is_dynamic);
    if (j->cut_context)
        c->context = TN_MIN(limit, c->context);
}

static void say_notes(const struct tn_job *j)
{
    if (j->plan.n_buffers)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "left out, because tern computes them: %u tensors, such as *%s",
                   j->plan.n_buffers, j->plan.buffer);
    if (j->plan.n_skipped)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "left out, because only the text model is converted: %u tensors, such as %s*",
                   j->plan.n_skipped, j->plan.skipped);
    if (j->plan.n_drafts)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "left out, because %s: the draft head (%u tensors)",
                   j->model.import.draft_refusal, j->plan.n_drafts);
    if (j->model.import.config.n_draft_layer)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "the model has a draft head, which --draft uses where it makes answers faster");
    if (j->plan.idle_head)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "left out, because the file names a pooling, so it is an embedding model: %s",
                   j->plan.idle_head->name);
    if (j->cut_context)
        tn_job_say(j, TERN_CONVERT_WARNING,
                   "the context is %u: beyond it %s, which tern does not use",
                   j->model.import.config.context,
                   j->model.import.is_dynamic ? "dynamic rope scaling changes the rotation"
                                              : "longrope has other factors");
    const enum tn_weight_form form = j->plan.is_packed ? TN_FORM_PACKED : TN_FORM_LATENT;
    if (j->model.import.form != TN_FORM_UNSAID && j->model.import.form != form)
        tn_job_say(j, TERN_CONVERT_WARNING,
                   "config.json says quantization_mode \"%s\", but the weights are %s: they decide",
                   j->model.import.form == TN_FORM_PACKED ? "offline" : "online",
                   j->plan.is_packed ? "packed" : "floats");
    const bool has_head = !(j->model.import.config.flags & TERN_MODEL_NO_HEAD);
    if (has_head && !j->params->no_tokenizer && !j->template_source)
        tn_job_say(j, TERN_CONVERT_NOTE,
                   "the %s holds no chat template: `tern run` will continue prompts verbatim",
                   j->model.is_gguf ? "file" : "directory");
    if (has_head && j->model.import.stop_ids.n == 0)
        tn_job_say(j, TERN_CONVERT_WARNING,
                   "the model names no end-of-text id: it will not stop by itself");
}

/* TERN_USAGE if `path`, which will be written, is this file of the source directory. */
static tern_status check_not_input(struct tn_job *j, const char *path, const char *name)
{
    char *input = tn_path_join(j->folder, name);
    if (!input)
        return tn_fail(j->err, TERN_MEMORY, "no memory for a path");
    const bool same = tn_path_same(input, path);
    tn_free(input);
    if (!same)
        return TERN_OK;
    return tn_fail(j->err, TERN_USAGE,
                   "%s is a file of the model being converted; choose another output", path);
}

static tern_status check_no_inputs(struct tn_job *j, const char *path)
{
    /* Not read without a tokenizer, but must not be overwritten either. */
    static const char *const others[] = {TN_TOK_FILE, "chat_template.jinja", "chat_template.json"};
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < j->n_inputs && status == TERN_OK; i++)
        status = check_not_input(j, path, j->inputs[i].name);
    for (size_t i = 0; i < TN_COUNT_OF(others) && !j->model.is_gguf && status == TERN_OK; i++)
        status = check_not_input(j, path, others[i]);
    for (size_t i = 0; i < TN_GPT2_N_FILES && !j->model.is_gguf && status == TERN_OK; i++)
        status = check_not_input(j, path, tn_gpt2_file_names[i]);
    return status;
}

/* Protects other files against a typing error.  Unreadable files are left to the renaming. */
static tern_status check_replaceable(const char *path, struct tern_error *err)
{
    char magic[sizeof TERN_FILE_MAGIC - 1];
    struct tn_file *file;
    if (tn_file_open_read(&file, path, NULL) != TERN_OK)
        return TERN_OK;
    const uint64_t n_bytes = tn_file_size(file);
    const bool is_model = n_bytes >= sizeof magic &&
                          tn_file_read_at(file, 0, magic, sizeof magic, NULL) == TERN_OK &&
                          memcmp(magic, TERN_FILE_MAGIC, sizeof magic) == 0;
    tn_file_close(file);
    return is_model || n_bytes == 0
               ? TERN_OK
               : tn_fail(err, TERN_USAGE,
                         "%s: not replaced: it holds %" PRIu64
                         " bytes and is not a .tern file; --force replaces it",
                         path, n_bytes);
}

/* The part file, which is written first, must not replace an input either. */
static tern_status check_output(struct tn_job *j)
{
    const char *output = j->result->output;
    const enum tn_path_kind kind = tn_path_kind(output);
    if (kind == TN_PATH_DIR || kind == TN_PATH_OTHER)
        return tn_fail(j->err, TERN_OUTPUT, "%s: is %s, give the name of a file", output,
                       kind == TN_PATH_DIR ? "a directory" : "not a regular file");
    j->result->replaced = kind == TN_PATH_FILE;
    char *part = tn_mwriter_part_of(output);
    if (!part)
        return tn_fail(j->err, TERN_MEMORY, "no memory for a path");
    tern_status status = check_no_inputs(j, output);
    if (status == TERN_OK)
        status = check_no_inputs(j, part);
    if (status == TERN_OK && kind == TN_PATH_FILE && !j->params->force)
        status = check_replaceable(output, j->err);
    tn_free(part);
    return status;
}

tern_status tn_job_read(struct tn_job *j)
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
    if (status != TERN_OK)
        return status;
    limit_context(j);
    say_notes(j);
    return TERN_OK;
}
