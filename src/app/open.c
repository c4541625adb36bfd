/* SPDX-License-Identifier: MIT
 *
 * Finds and opens a model: by flag, argument, environment or the usual places; converts a source
 * first; handles files that become unreadable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/text_match.h"
#include "choose_model.h"
#include "converting.h"
#include "known_models.h"
#include "output.h"
#include "plat/plat.h"
#include "tern/inspect.h"

/* ---- finding it ---- */

/* Paths of implied models, best first, relative to the executable's folder. */
static const char *const places[] = {"model.tern", "demo.tern", "../share/tern/demo.tern"};

/* New memory (tn_free), or NULL with *tried listing the paths. */
static char *look_around(struct tn_buf *tried)
{
    char *dir = tn_path_of_executable_dir();
    char *found = NULL;
    for (size_t i = 0; dir && i < TN_COUNT_OF(places) && !found; i++) {
        char *path = tn_path_join(dir, places[i]);
        if (path && tn_path_kind(path) == TN_PATH_FILE) {
            found = path;
        } else {
            tn_buf_printf(tried, ", %s", path ? path : places[i]);
            tn_free(path);
        }
    }
    tn_free(dir);
    return found;
}

/* NULL if the command line names a model, which takes precedence. */
static const char *model_of_environment(const struct tn_options *o, const char *positional)
{
    const char *variable = getenv("TERN_MODEL");
    return !positional && !o->model && variable && variable[0] ? variable : NULL;
}

/* Finds a model if none was named. */
static tern_status find_unnamed(char **out, bool may_ask, struct tern_error *err)
{
    struct tn_buf tried = {0};
    tern_status status = TERN_OK;
    *out = look_around(&tried);
    if (!*out)
        status = may_ask ? tn_model_choose(out, err) : TERN_INPUT;
    if (status == TERN_INPUT)
        status = tn_fail(err, TERN_INPUT,
                         "no model: none was named, and none was found in $TERN_MODEL%s; tern pull "
                         "fetches one, tern convert makes one",
                         tn_buf_text(&tried));
    tn_buf_fini(&tried);
    return status;
}

static enum tn_model_places places_of(enum tn_command command)
{
    return command == TN_CMD_RUN || command == TN_CMD_CHAT ? TN_KNOWN_FOLDERS_AND_CURRENT
                                                           : TN_KNOWN_FOLDERS;
}

/* *out is new memory (tn_free). */
static tern_status find_model(char **out, const struct tn_options *o, const char *positional,
                              bool may_ask, struct tern_error *err)
{
    const char *named = positional ? positional : o->model;
    *out = NULL;
    if (positional && o->model)
        return tn_fail(err, TERN_USAGE, "two models are given: \"%s\" and --model \"%s\"%s",
                       positional, o->model,
                       o->command == TN_CMD_RUN ? "; with --model, the prompt follows -p" : "");
    if (!named)
        named = model_of_environment(o, positional);
    if (named) {
        tern_status status = tn_model_resolve(out, named, places_of(o->command), err);
        if (status != TERN_OK && model_of_environment(o, positional))
            tn_fail_prefix(err, "$TERN_MODEL");
        return status;
    }
    return find_unnamed(out, may_ask, err);
}

/* Whether it is a model's name, not a path. */
static bool is_name(const char *argument)
{
    char *path = NULL;
    const bool found = tn_path_kind(argument) == TN_PATH_ABSENT &&
                       tn_model_resolve(&path, argument, TN_KNOWN_FOLDERS, NULL) == TERN_OK &&
                       strcmp(path, argument) != 0;
    tn_free(path);
    return found;
}

bool tn_argument_is_model(const char *argument)
{
    unsigned char magic[sizeof TERN_FILE_MAGIC - 1];
    struct tn_file *file;
    if (tn_text_n_stem(argument, ".tern") > 0)
        return true;
    if (tn_path_kind(argument) != TN_PATH_FILE)
        return is_name(argument);
    if (tern_source_is_one(argument))
        return true;
    if (tn_file_open_read(&file, argument, NULL) != TERN_OK)
        return false;
    const bool begins_so = tn_file_read_at(file, 0, magic, sizeof magic, NULL) == TERN_OK &&
                           memcmp(magic, TERN_FILE_MAGIC, sizeof magic) == 0;
    tn_file_close(file);
    return begins_so;
}

/* ---- a file that becomes unreadable ---- */

static char fault_line[600];

static void on_map_fault(void)
{
    (void)tn_write_stream(TN_STDERR, fault_line, strlen(fault_line));
    tn_exit_now(tern_status_exit_code(TERN_MAPPED_IO));
}

/* Once a second file has been opened, the fault may be in either. */
static void watch_file(const char *path)
{
    struct tern_error line;
    char name[408] = "a model file";
    if (!fault_line[0])
        snprintf(name, sizeof name, "\"%.400s\"", path);
    tn_fail(&line, TERN_MAPPED_IO,
            "%s became unreadable while in use (truncated, or its drive was removed)", name);
    snprintf(fault_line, sizeof fault_line, "tern: error: %s\n", line.detail);
    tn_map_set_fault_handler(on_map_fault);
}

/* ---- open ---- */

/* Notes the loss of precision of an option that trades it for speed. */
static void say_error_of_inputs(const struct tn_options *o, const struct tern_model *model)
{
    const struct tern_model_config *c = tern_model_config(model);
    if (o->inputs == TERN_INPUTS_AS_8 && strcmp(c->inputs, "16") == 0)
        tn_note_say("inputs in 8 bits: logits move by about 0.1, in 16 bits by less than 0.001");
}

static tern_status open_engine(struct tn_opened *out, const struct tn_options *o,
                               struct tern_error *err)
{
    struct tern_engine_params params = {.n_threads = (uint32_t)o->threads,
                                        .cpu_level = o->cpu,
                                        .inputs = (enum tern_inputs_as)o->inputs};
    return tern_engine_create(&out->engine, out->machine, &params, err);
}

static tern_status read_machine(struct tn_opened *out, struct tern_error *err)
{
    out->machine = tn_alloc(sizeof *out->machine);
    if (!out->machine)
        return tn_fail(err, TERN_MEMORY, "no memory to describe the machine");
    tern_sysinfo_read(out->machine);
    return TERN_OK;
}

/* Replaces a GGUF file or a folder in *path by its .tern file. */
static tern_status convert_source(char **path, const struct tn_options *o, struct tern_error *err)
{
    char *source = *path;
    if (!tern_source_is_one(source))
        return TERN_OK;
    tern_status status = tn_convert_once(path, source, o, err);
    tn_free(source);
    return status;
}

tern_status tn_open(struct tn_opened *out, const struct tn_options *o, const char *positional,
                    uint32_t flags, struct tern_error *err)
{
    uint64_t start = tn_now_ns();
    char *path;
    *out = (struct tn_opened){0};
    tern_status status = find_model(&path, o, positional, flags & TN_OPEN_ASK, err);
    if (status == TERN_OK && flags & TN_OPEN_CONVERT)
        status = convert_source(&path, o, err);
    if (status == TERN_OK && flags & (TN_OPEN_MACHINE | TN_OPEN_ENGINE))
        status = read_machine(out, err);
    if (status == TERN_OK && flags & TN_OPEN_ENGINE)
        status = open_engine(out, o, err);
    if (status == TERN_OK) {
        watch_file(path);
        status = tern_model_open(&out->model, path, err);
        if (status != TERN_OK && model_of_environment(o, positional))
            tn_fail_prefix(err, "$TERN_MODEL");
    }
    if (status == TERN_OK && flags & TN_OPEN_TOKENIZER && !tern_model_tokenizer(out->model))
        status = tn_fail(err, TERN_INPUT,
                         "\"%s\" holds no tokenizer; convert it again without --no-tokenizer",
                         path);
    tn_free(path);
    out->load_s = tn_seconds_since(start);
    if (status == TERN_OK)
        say_error_of_inputs(o, out->model);
    else
        tn_close(out);
    return status;
}

void tn_close(struct tn_opened *opened)
{
    tern_model_free(opened->model);
    tern_engine_free(opened->engine);
    tn_free(opened->machine);
    *opened = (struct tn_opened){0};
}
