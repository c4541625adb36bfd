/* SPDX-License-Identifier: MIT
 *
 * Runs conversions with progress and messages, and converts a model that was named by its source
 * once (converting.h).
 */
#include "converting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "ask.h"
#include "base/alloc.h"
#include "base/error.h"
#include "hints.h"
#include "known_models.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"
#include "tern/inspect.h"
#include "tern/tern.h"

#define ASK_ABOVE_BYTES UINT64_C(1000000000)
#define HASH_DIGITS 8 /* in the name of a converted source */

/* ---- progress and messages ---- */

static void on_message(void *arg, enum tern_convert_message kind, const char *text)
{
    (void)arg;
    if (kind == TERN_CONVERT_WARNING)
        tn_warning_say("%s", text);
    else if (kind == TERN_CONVERT_NOTE)
        tn_note_say("%s", text);
    else if (tn_message_level() > 0)
        tn_info_say("%s", text);
}

static void print_result(const struct tern_convert_result *r)
{
    if (r->replaced)
        tn_note_say("replaced \"%s\"", r->output);
    char zeros[32] = "";
    if (r->n_ternary)
        snprintf(zeros, sizeof zeros, ", %.1f %% zeros",
                 100.0 * (double)r->n_zero / (double)r->n_ternary);
    tn_info_say("%s: %s -> %s, %.2f bits per weight%s, %.1f s (%s/s)", r->output,
                tn_size_decimal((double)r->source_bytes).text,
                tn_size_decimal((double)r->output_bytes).text, r->bits_per_weight, zeros,
                r->seconds,
                tn_size_decimal(r->seconds > 0 ? (double)r->source_bytes / r->seconds : 0).text);
}

tern_status tn_convert_and_say(struct tern_convert_params *params,
                               struct tern_convert_result *result, struct tern_error *err)
{
    params->on_progress = tn_progress_callback;
    params->on_message = on_message;
    tn_progress_start("converting", TN_PROGRESS_BYTES, true);
    tern_status status = tern_convert(params, result, err);
    tn_progress_end();
    if (status == TERN_OK)
        print_result(result);
    return status;
}

/* What a new model is for; NAME follows it in a command. */
static const char *use_of(const struct tern_model *model, bool has_tokenizer)
{
    const struct tern_chat_template *template = NULL;
    if (!has_tokenizer)
        return "bench";
    if (tern_model_config(model)->pooling != TERN_POOLING_NONE)
        return "embed";
    return tern_model_chat_template(&template, model, NULL) == TERN_OK && template ? "chat" : "run";
}

void tn_suggest_command(const char *output, bool has_tokenizer)
{
    struct tern_model *model;
    char *name = tn_model_typed_name(output);
    if (name && tern_model_open(&model, output, NULL) == TERN_OK) {
        const char *program = tn_typed_program(), *sign = tn_typed_quote(program);
        const char *use = use_of(model, has_tokenizer);
        tn_info_say("Try: %s%s%s %s %s%s", sign, program, sign, use, name,
                    strcmp(use, "embed") == 0 ? " FILE" :
                    strcmp(use, "run") == 0   ? " \"Once upon a time\"" : "");
        tern_model_free(model);
    }
    tn_free(name);
}

/* ---- a model named by its source ---- */

/* The last component of the path, without .gguf; new memory. */
static char *name_of(const char *source)
{
    char *resolved = tn_path_resolve(source);
    char *name = tn_path_stem(resolved ? resolved : source, ".gguf");
    tn_free(resolved);
    return name;
}

/* *folder and *path are new memory (tn_free). */
static tern_status choose_output(char **folder, char **path, const char *source, uint64_t hash,
                                 struct tern_error *err)
{
    const char *sign = tn_typed_quote(source);
    char *name = name_of(source);
    struct tn_buf file = {0};
    tern_status status = TERN_OK;
    *folder = tn_path_of_models_dir();
    tn_buf_printf(&file, "%s-%0*" PRIx32 ".tern", name ? name : "", HASH_DIGITS,
                  (uint32_t)(hash >> 32));
    *path = *folder && name && !file.failed ? tn_path_join(*folder, tn_buf_text(&file)) : NULL;
    if (!*folder)
        status = tn_fail(err, TERN_OUTPUT,
                         "\"%s\" has to be converted, and this user has no folder for models; give "
                         "one: tern convert %s%s%s -o FILE",
                         source, sign, source, sign);
    else if (!*path)
        status = tn_fail(err, TERN_MEMORY, "no memory for a path");
    tn_buf_fini(&file);
    tn_free(name);
    return status;
}

/* Bytes of all weights; 0 if the conversion will report an error in the source. */
static tern_status get_size(uint64_t *n_bytes, const char *source, struct tern_error *err)
{
    struct tern_source *inspected;
    struct tern_source_summary summary;
    *n_bytes = 0;
    tern_status status = tern_source_inspect(&inspected, source, err);
    if (status != TERN_OK)
        return status;
    tern_source_get_summary(inspected, &summary);
    if (summary.is_convertible)
        *n_bytes = summary.file_bytes;
    tern_source_free(inspected);
    return TERN_OK;
}

static tern_status may_convert(const char *source, const char *path, const struct tn_options *o,
                               struct tern_error *err)
{
    const char *sign = tn_typed_quote(source);
    bool is_yes = true;
    uint64_t n_bytes;
    tern_status status = get_size(&n_bytes, source, err);
    if (status == TERN_OK && o->no_convert)
        status = tn_fail(err, TERN_USAGE,
                         "\"%s\" is not converted yet, and --no-convert is given; to convert it: "
                         "tern convert %s%s%s",
                         source, sign, source, sign);
    if (status != TERN_OK)
        return status;
    if (n_bytes > 0)
        tn_info_say("%s: %s, is converted once into %s", source,
                    tn_size_decimal((double)n_bytes).text, path);
    if (n_bytes > ASK_ABOVE_BYTES && tn_can_ask())
        status = tn_ask_yes(&is_yes, "Convert it now (y or n)? ", err);
    if (status == TERN_OK && !is_yes)
        status = tn_fail(err, TERN_USAGE, "\"%s\" was not converted", source);
    return status;
}

/* Whether `path` is a conversion of a source with the same name as that of `made`. */
static bool is_same_name(const char *path, const char *made)
{
    const size_t n = strlen(made), n_after = HASH_DIGITS + strlen(".tern");
    return n > n_after && strlen(path) == n && strncmp(path, made, n - n_after) == 0 &&
           strspn(path + n - n_after, "0123456789abcdef") == HASH_DIGITS &&
           strcmp(path, made) != 0;
}

/* Names the conversions that may be left from earlier versions of a source. */
static void say_earlier_ones(const char *made)
{
    struct tn_known_models models;
    if (tn_known_models_read(&models, TN_KNOWN_FOLDERS, NULL) != TERN_OK)
        return;
    for (size_t i = 0; i < models.n; i++) {
        const struct tn_known_model *m = &models.rows[i];
        struct tn_file *file;
        if (!is_same_name(m->path, made) || tn_file_open_read(&file, m->path, NULL) != TERN_OK)
            continue;
        const char *sign = tn_typed_quote(m->name);
        tn_note_say("a conversion of another file of this name takes %s; to delete it: tern remove "
                    "%s%s%s",
                    tn_size_decimal((double)tn_file_size(file)).text, sign, m->name, sign);
        tn_file_close(file);
    }
    tn_known_models_fini(&models);
}

tern_status tn_convert_once(char **path, const char *source, const struct tn_options *o,
                            struct tern_error *err)
{
    uint64_t hash;
    char *folder = NULL;
    struct tern_convert_params params = {.source = source};
    *path = NULL;
    tern_status status = tern_source_hash(&hash, source, err);
    if (status == TERN_OK)
        status = choose_output(&folder, path, source, hash, err);
    if (status == TERN_OK && tn_path_kind(*path) != TN_PATH_FILE) {
        struct tern_convert_result *result = tn_alloc(sizeof *result);
        status = result ? may_convert(source, *path, o, err)
                        : tn_fail(err, TERN_MEMORY, "no memory for a conversion");
        params.output = *path;
        if (status == TERN_OK)
            status = tn_dir_make(folder, err);
        if (status == TERN_OK)
            status = tn_convert_and_say(&params, result, err);
        if (status == TERN_OK)
            say_earlier_ones(*path);
        tn_free(result);
    }
    tn_free(folder);
    if (status != TERN_OK) {
        tn_free(*path);
        *path = NULL;
    }
    return status;
}
