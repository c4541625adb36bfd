/* SPDX-License-Identifier: MIT
 *
 * Finding and opening a model.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"

/* ---- where is it ---- */

/* Places where a model may lie that nobody named, best first, below the executable's folder. */
static const char *const places[] = {"model.tern", "demo.tern", "../share/tern/demo.tern"};

/* New memory (tn_free), or NULL with *tried listing the places. */
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

/* NULL where a model is named on the command line, which counts more. */
static const char *model_of_environment(const struct tn_options *o, const char *positional)
{
    const char *variable = getenv("TERN_MODEL");
    return !positional && !o->model && variable && variable[0] ? variable : NULL;
}

/* *out is new memory (tn_free). */
static tern_status find_model(char **out, const struct tn_options *o, const char *positional,
                              struct tern_error *err)
{
    const char *named = positional ? positional : o->model;
    *out = NULL;
    if (positional && o->model)
        return tn_fail(err, TERN_USAGE, "two models are given: \"%s\" and --model \"%s\"",
                       positional, o->model);
    if (!named)
        named = model_of_environment(o, positional);
    if (named) {
        size_t n = strlen(named) + 1;
        *out = tn_alloc(n);
        if (!*out)
            return tn_fail(err, TERN_MEMORY, "no memory for a path");
        memcpy(*out, named, n);
        return TERN_OK;
    }
    struct tn_buf tried = {0};
    *out = look_around(&tried);
    tern_status status = TERN_OK;
    if (!*out)
        status = tn_fail(err, TERN_INPUT,
                         "no model: none was named, and none was found in $TERN_MODEL%s; make one "
                         "with tern convert",
                         tn_buf_text(&tried));
    tn_buf_fini(&tried);
    return status;
}

/* ---- a file that changes under us ---- */

static char fault_line[600];

static void on_map_fault(void)
{
    (void)tn_write_stream(TN_STDERR, fault_line, strlen(fault_line));
    tn_exit_now(tern_status_exit_code(TERN_MAPPED_IO));
}

static void watch_file(const char *path)
{
    struct tern_error line;
    tn_fail(&line, TERN_MAPPED_IO,
            "\"%.400s\" became unreadable while in use (truncated, or its drive was removed)",
            path);
    snprintf(fault_line, sizeof fault_line, "tern: error: %s\n", line.detail);
    tn_map_set_fault_handler(on_map_fault);
}

/* ---- open ---- */

static tern_status open_engine(struct tn_opened *out, const struct tn_options *o,
                               struct tern_error *err)
{
    struct tern_engine_params params = {.n_threads = (uint32_t)o->threads, .cpu_level = o->cpu};
    return tern_engine_create(&out->engine, &params, err);
}

static tern_status read_machine(struct tn_opened *out, struct tern_error *err)
{
    out->machine = tn_alloc(sizeof *out->machine);
    if (!out->machine)
        return tn_fail(err, TERN_MEMORY, "no memory to describe the machine");
    tern_sysinfo_read(out->machine);
    return TERN_OK;
}

tern_status tn_open(struct tn_opened *out, const struct tn_options *o, const char *positional,
                    uint32_t flags, struct tern_error *err)
{
    uint64_t start = tn_now_ns();
    char *path;
    *out = (struct tn_opened){0};
    tern_status status = find_model(&path, o, positional, err);
    if (status == TERN_OK && flags & TN_OPEN_ENGINE)
        status = open_engine(out, o, err);
    if (status == TERN_OK && flags & TN_OPEN_MACHINE)
        status = read_machine(out, err);
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
    if (status != TERN_OK)
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

/* ---- stopping ---- */

bool tn_stop_requested(void)
{
    return tn_interrupt_count() > 0 || tn_terminate_requested();
}

bool tn_progress_callback(void *arg, uint64_t n_done, uint64_t n_total)
{
    (void)arg;
    tn_progress_update(n_done, n_total);
    return !tn_stop_requested();
}

/* ---- template ---- */

static const char *list_templates(struct tn_buf *buf)
{
    const struct tern_chat_template *t = NULL;
    while ((t = tern_chat_template_next(t)) != NULL)
        tn_buf_printf(buf, "%s%s", buf->n_bytes ? ", " : "", tern_chat_template_name(t));
    return tn_buf_text(buf);
}

static tern_status check_cpu_level(const struct tn_options *o, struct tern_error *err)
{
    struct tern_engine_params params = {.n_threads = 1, .cpu_level = o->cpu};
    struct tern_engine *engine;
    if (!o->cpu)
        return TERN_OK;
    tern_status status = tern_engine_create(&engine, &params, err);
    tern_engine_free(engine);
    return status;
}

tern_status tn_check_names(const struct tn_options *o, struct tern_error *err)
{
    if (!o->template_name || tern_chat_template_find(o->template_name))
        return check_cpu_level(o, err);
    struct tn_buf list = {0};
    tn_fail(err, TERN_USAGE, "--template \"%s\": must be one of %s", o->template_name,
            list_templates(&list));
    tn_buf_fini(&list);
    return TERN_USAGE;
}

static void note_missing(const struct tern_chat_template *t, const struct tern_model *model)
{
    const char *missing = tern_chat_template_missing(t, tern_model_tokenizer(model));
    if (missing)
        tn_note_say("the model has no token %s, which the template %s writes: it becomes ordinary "
                    "text, and answers may be poor",
                    missing, tern_chat_template_name(t));
}

tern_status tn_choose_template(const struct tern_chat_template **out, const struct tn_options *o,
                               const struct tern_model *model, struct tern_error *err)
{
    struct tern_model_info info;
    tern_model_get_info(model, &info);
    bool must = o->mode == TN_MODE_CHAT || o->command != TN_CMD_RUN || o->template_name;
    *out = NULL;
    if (o->mode != TN_MODE_RAW)
        *out = o->template_name ? tern_chat_template_find(o->template_name)
                                : tern_model_chat_template(model);
    if (o->mode == TN_MODE_RAW && (o->system || o->template_name))
        return tn_fail(err, TERN_USAGE, "--%s is for a chat; leave --raw out",
                       o->system ? "system" : "template");
    if (!*out && o->system)
        return tn_fail(err, TERN_USAGE, "--system needs a chat template; see --template");
    if (*out)
        note_missing(*out, model);
    if (*out || o->mode == TN_MODE_RAW)
        return TERN_OK;
    struct tn_buf list = {0};
    tern_status status = TERN_OK;
    const char *raw = o->command == TN_CMD_RUN ? ", or use --raw" : "";
    if (info.has_template)
        status = tn_fail(err, TERN_UNSUPPORTED,
                         "the chat template of this model is not implemented; choose one with "
                         "--template (%s)%s",
                         list_templates(&list), raw);
    else if (must)
        status = tn_fail(err, TERN_USAGE,
                         "this model has no chat template; choose one with --template (%s)%s",
                         list_templates(&list), raw);
    tn_buf_fini(&list);
    return status;
}
