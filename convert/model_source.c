/* SPDX-License-Identifier: MIT
 *
 * Opens a model of either kind (model_source.h) and dispatches to convert/hf/ or convert/gguf/:
 * description, tokenizer, chat template.
 */
#include "convert/model_source.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/draft_import.h"
#include "convert/gguf/gguf.h"
#include "convert/gguf/gguf_import.h"
#include "convert/hf/hf_config.h"
#include "convert/hf/template_import.h"
#include "convert/tokens/tok_gguf.h"
#include "convert/tokens/tok_gpt2.h"
#include "convert/tokens/tok_import.h"
#include "plat/plat.h"

#define MAX_TOKENIZER_JSON_BYTES (64u << 20)
_Static_assert(TN_GPT2_N_FILES <= TN_MAX_TOKENIZER_FILES, "room for the files of a tokenizer");

/* ---- folders of GGUF files ---- */

struct gguf_files {
    char first[100]; /* one of the names */
    uint32_t n;
};

static bool note_gguf(void *arg, const char *name)
{
    struct gguf_files *files = arg;
    static const char *const endings[] = {".gguf", NULL};
    if (tn_name_ends(endings, name) && files->n++ == 0)
        snprintf(files->first, sizeof files->first, "%s", name);
    return true;
}

static bool holds(const char *dir, const char *name)
{
    char *path = tn_path_join(dir, name);
    const bool is_there = path && tn_path_kind(path) != TN_PATH_ABSENT;
    tn_free(path);
    return is_there;
}

/* Recognises a repository of GGUF files that was downloaded completely. */
static tern_status refuse_gguf_folder(const char *dir, struct tern_error *err)
{
    struct gguf_files files = {.n = 0};
    if (tn_path_kind(dir) != TN_PATH_DIR || holds(dir, TN_CONFIG_FILE) ||
        holds(dir, TN_ST_SINGLE_FILE) || holds(dir, TN_ST_INDEX_FILE) ||
        !tn_dir_walk(dir, note_gguf, &files) || files.n == 0)
        return TERN_OK;
    return tn_fail(err, TERN_INPUT, "%s: holds GGUF files, such as %s: give one of the %u", dir,
                   files.first, files.n);
}

/* Only hadamard.json says that the weights of a folder are rotated; without the rotation the model
 * writes nonsense. */
static tern_status refuse_rotated_folder(const char *dir, struct tern_error *err)
{
    if (!holds(dir, "hadamard.json"))
        return TERN_OK;
    return tn_fail(err, TERN_UNSUPPORTED,
                   "%s: holds hadamard.json: its weights are rotated by Hadamard matrices, which "
                   "are supported in GGUF files (\"prism.hadamard.*\"): convert that of the model",
                   dir);
}

/* ---- both kinds ---- */

/* Evaluates the other files of the directory. */
static tern_status recognise(struct tn_model_source *out, const char *dir, struct tern_error *err)
{
    tn_config_recognise(&out->import, &out->source);
    tn_draft_recognise(&out->import, &out->source);
    return out->import.config.flags & TERN_MODEL_NO_HEAD
               ? tn_config_read_pooling(&out->import, &out->has_pooling, dir, err)
               : TERN_OK;
}

tern_status tn_model_source_open_weights(struct tn_model_source *out, const char *path,
                                         enum tern_i2s_layout i2s, struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    out->is_gguf = tn_path_kind(path) == TN_PATH_FILE;
    tern_status status = refuse_gguf_folder(path, err);
    if (status != TERN_OK)
        return status;
    return out->is_gguf ? tn_source_open_gguf(&out->source, path, i2s, err)
                        : tn_source_open(&out->source, path, err);
}

/* Refuses GGUF files that are published beside models and are none. */
static tern_status refuse_other_kinds(const struct tn_gguf *gguf, struct tern_error *err)
{
    static const struct {
        const char *key, *text, *what;
    } rows[] = {
        {"general.type", "adapter", "a LoRA adapter; tern runs models with adapters merged in"},
        {"general.type", "imatrix", "an importance matrix, an aid for making smaller models"},
        {"general.type", "mmproj", "the part of a model that sees pictures or hears"},
        {"general.architecture", "clip", "the part of a model that sees pictures or hears"},
    };
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        size_t n;
        const char *text = tn_gguf_text(gguf, rows[i].key, &n);
        if (text && strcmp(text, rows[i].text) == 0)
            return tn_fail(err, TERN_UNSUPPORTED, "this file has no model, but %s", rows[i].what);
    }
    return TERN_OK;
}

tern_status tn_model_source_import(struct tn_model_source *out, const char *path,
                                   struct tern_error *err)
{
    if (out->is_gguf) {
        tern_status status = refuse_other_kinds(out->source.gguf, err);
        if (status == TERN_OK)
            status = tn_gguf_import(&out->import, &out->source, err);
        if (status == TERN_OK)
            tn_draft_recognise(&out->import, &out->source);
        return status;
    }
    tern_status status = refuse_rotated_folder(path, err);
    if (status == TERN_OK)
        status = tn_config_read(&out->import, &out->has_generation, path, err);
    return status == TERN_OK ? recognise(out, path, err) : status;
}

tern_status tn_model_source_open(struct tn_model_source *out, const char *path,
                                 enum tern_i2s_layout i2s, struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    if (tn_path_kind(path) == TN_PATH_FILE) {
        tern_status status = tn_model_source_open_weights(out, path, i2s, err);
        return status == TERN_OK ? tn_model_source_import(out, path, err) : status;
    }
    tern_status status = refuse_gguf_folder(path, err);
    if (status == TERN_OK)
        status = refuse_rotated_folder(path, err);
    if (status == TERN_OK)
        status = tn_config_read(&out->import, &out->has_generation, path, err);
    if (status == TERN_OK)
        status = tn_source_open(&out->source, path, err);
    return status == TERN_OK ? recognise(out, path, err) : status;
}

/* ---- tokenizer ---- */

uint32_t tn_model_source_tokenizer_files(const char *names[TN_MAX_TOKENIZER_FILES],
                                         const char *path)
{
    uint32_t n = 0;
    if (holds(path, TN_TOK_FILE)) {
        names[n++] = TN_TOK_FILE;
        return n;
    }
    for (int i = 0; i < TN_GPT2_N_FILES; i++) {
        if (holds(path, tn_gpt2_file_names[i]))
            names[n++] = tn_gpt2_file_names[i];
        else if (i == TN_GPT2_VOCAB || i == TN_GPT2_MERGES)
            return 0;
    }
    return n;
}

bool tn_model_source_has_tokenizer(const struct tn_model_source *m, const char *path)
{
    const char *names[TN_MAX_TOKENIZER_FILES];
    if (!m->is_gguf)
        return tn_model_source_tokenizer_files(names, path) > 0;
    const struct tn_gguf_key *model = tn_gguf_find_key(m->source.gguf, "tokenizer.ggml.model");
    return model && (model->type != TN_GGUF_STRING || strcmp(model->text, "none") != 0);
}

static tern_status read_json_tokenizer(struct tn_buf *section, uint32_t vocab, const char *path,
                                       struct tern_error *err)
{
    char *json;
    size_t n_json;
    tern_status status =
        tn_dir_read_text(&json, &n_json, path, TN_TOK_FILE, MAX_TOKENIZER_JSON_BYTES, err);
    if (status == TERN_OK && !json) /* removed since it was found */
        return tn_fail(err, TERN_INPUT, "%s: %s is missing", path, TN_TOK_FILE);
    if (status == TERN_OK)
        status = tn_tok_import(json, n_json, vocab, section, err);
    tn_free(json);
    return status;
}

static tern_status read_gpt2_tokenizer(struct tn_buf *section, const struct tn_model_source *m,
                                       const char *path, struct tern_error *err)
{
    struct tn_gpt2_texts files = {.is_default = m->import.family->has_gpt2_tokenizer};
    tern_status status = TERN_OK;
    for (int i = 0; i < TN_GPT2_N_FILES && status == TERN_OK; i++)
        status = tn_dir_read_text(&files.text[i], &files.n[i], path, tn_gpt2_file_names[i],
                                  MAX_TOKENIZER_JSON_BYTES, err);
    if (status == TERN_OK && (!files.text[TN_GPT2_VOCAB] || !files.text[TN_GPT2_MERGES]))
        status = tn_fail(err, TERN_INPUT,
                         "%s: %s is missing; get it where the weights are from (--no-tokenizer "
                         "converts without it, for logits, bench and verify)",
                         path, TN_TOK_FILE);
    if (status == TERN_OK)
        status = tn_tok_from_gpt2(&files, m->import.config.vocab, section, err);
    for (int i = 0; i < TN_GPT2_N_FILES; i++)
        tn_free(files.text[i]);
    return status;
}

tern_status tn_model_source_tokenizer(struct tn_buf *section, const char **splitter,
                                      const struct tn_model_source *m, const char *path,
                                      const char *pre, struct tern_error *err)
{
    const uint32_t vocab = m->import.config.vocab;
    *splitter = NULL;
    if (m->is_gguf)
        return tn_tok_from_gguf(m->source.gguf, pre, vocab, splitter, section, err);
    return holds(path, TN_TOK_FILE) ? read_json_tokenizer(section, vocab, path, err)
                                    : read_gpt2_tokenizer(section, m, path, err);
}

/* ---- chat template ---- */

tern_status tn_model_source_template(char **text, size_t *n, const char **from,
                                     const struct tn_model_source *m, const char *path,
                                     struct tern_error *err)
{
    static const char key[] = "tokenizer.chat_template";
    if (!m->is_gguf)
        return tn_template_read(text, n, from, path, err);
    const struct tn_gguf_key *found = tn_gguf_find_key(m->source.gguf, key);
    const char *source = tn_gguf_text(m->source.gguf, key, n);
    *text = NULL;
    *from = path;
    if (found && !source)
        return tn_gguf_fail_type(found, "a text", err);
    if (!source || *n == 0)
        return TERN_OK;
    tern_status status = tn_template_check(key, source, *n, err);
    if (status != TERN_OK)
        return status;
    *text = tn_copy_bytes(source, *n);
    return *text ? TERN_OK
                 : tn_fail(err, TERN_MEMORY, "no memory for a chat template of %zu bytes", *n);
}

void tn_model_source_close(struct tn_model_source *out)
{
    tn_config_import_fini(&out->import);
    tn_source_close(&out->source);
}
