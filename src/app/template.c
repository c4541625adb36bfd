/* SPDX-License-Identifier: MIT
 *
 * Chooses the chat template: --template NAME or FILE, else the model's; checks names in flags
 * before anything is opened.
 */
#include "template.h"

#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "output.h"
#include "plat/plat.h"
#include "prompt.h"

#define MAX_TEMPLATE_BYTES ((size_t)1 << 20)

static const char *list_templates(struct tn_buf *buf)
{
    const struct tern_chat_template *t = NULL;
    while ((t = tern_chat_template_next(t)) != NULL)
        tn_buf_printf(buf, "%s%s", buf->n_bytes ? ", " : "", tern_chat_template_name(t));
    return tn_buf_text(buf);
}

/* ---- checks before anything is opened ---- */

static tern_status check_cpu_level(const struct tn_options *o, struct tern_error *err)
{
    struct tern_engine_params params = {.n_threads = 1, .cpu_level = o->cpu};
    struct tern_engine *engine;
    if (!o->cpu)
        return TERN_OK;
    struct tern_sysinfo *machine = tn_alloc(sizeof *machine);
    if (!machine)
        return tn_fail(err, TERN_MEMORY, "no memory to describe the machine");
    tern_sysinfo_read_cpu(machine);
    tern_status status = tern_engine_create(&engine, machine, &params, err);
    tern_engine_free(engine);
    tn_free(machine);
    return status;
}

static tern_status check_template_name(const struct tn_options *o, struct tern_error *err)
{
    struct tn_buf list = {0};
    if (!o->template_name || tern_chat_template_find(o->template_name) ||
        tn_path_kind(o->template_name) == TN_PATH_FILE)
        return TERN_OK;
    tn_fail(err, TERN_USAGE, "--template \"%s\": must be one of %s, or a Jinja file",
            o->template_name, list_templates(&list));
    tn_buf_fini(&list);
    return TERN_USAGE;
}

static tern_status check_date(const struct tn_options *o, struct tern_error *err)
{
    struct tern_date date;
    if (!o->date || (strlen(o->date) == 10 && tern_date_parse(&date, o->date)))
        return TERN_OK;
    return tn_fail(err, TERN_USAGE, "--date \"%s\": must be a date as YYYY-MM-DD", o->date);
}

tern_status tn_check_names(const struct tn_options *o, struct tern_error *err)
{
    tern_status status = check_template_name(o, err);
    if (status == TERN_OK)
        status = check_date(o, err);
    return status == TERN_OK ? check_cpu_level(o, err) : status;
}

/* ---- the template ---- */

static tern_status read_template(struct tern_chat_template **out, const char *path,
                                 struct tern_error *err)
{
    char *source;
    size_t n;
    tern_status status = tn_file_read_all(&source, &n, path, MAX_TEMPLATE_BYTES, err);
    if (status != TERN_OK)
        return status;
    const size_t start = tn_prompt_mark(source, n);
    status = tern_chat_template_parse(out, source + start, n - start, err);
    tn_free(source);
    if (status != TERN_OK)
        tn_fail_prefix(err, path);
    return status;
}

static void note_missing(const struct tern_chat_template *t, const struct tern_model *model)
{
    const char *missing = tern_chat_template_missing(t, tern_model_tokenizer(model));
    if (missing)
        tn_note_say("the model has no token %s, which the template %s writes: it becomes ordinary "
                    "text, and answers may be poor",
                    missing, tern_chat_template_name(t));
}

/* The template of this name: the model's if it has that name, because it also renders tools and
 * reasoning; else the built-in one.  NULL: there is none. */
static const struct tern_chat_template *find_named(const char *name, const struct tern_model *model)
{
    const struct tern_chat_template *own;
    (void)tern_model_chat_template(&own, model, NULL);
    return own && strcmp(tern_chat_template_name(own), name) == 0 &&
                   tern_chat_template_find(name)
               ? own
               : tern_chat_template_find(name);
}

/* There is no template, or none that can be used. */
static tern_status refuse_none(const struct tn_options *o, const struct tern_error *why,
                               struct tern_error *err)
{
    struct tn_buf list = {0};
    tern_status status = TERN_OK;
    bool must = o->mode == TN_MODE_CHAT || o->command != TN_CMD_RUN;
    const char *raw = o->command == TN_CMD_RUN    ? ", or use --raw"
                      : o->command == TN_CMD_CHAT ? ", or continue texts with tern run --raw"
                                                  : "";
    if (why->status != TERN_OK)
        status = tn_fail(err, why->status, "%s; choose another with --template (%s)%s", why->detail,
                         list_templates(&list), raw);
    else if (o->system)
        status = tn_fail(err, TERN_USAGE, "--system needs a chat template; see --template");
    else if (must)
        status = tn_fail(err, TERN_USAGE,
                         "this model has no chat template; choose one with --template (%s)%s",
                         list_templates(&list), raw);
    tn_buf_fini(&list);
    return status;
}

static void set_date(struct tern_date *date, const struct tn_options *o)
{
    struct tm local;
    if (o->date)
        tern_date_parse(date, o->date);
    else if (tn_local_time(&local))
        *date = (struct tern_date){local.tm_year + 1900,   (uint8_t)(local.tm_mon + 1),
                                   (uint8_t)local.tm_mday, (uint8_t)local.tm_hour,
                                   (uint8_t)local.tm_min,  (uint8_t)TN_MIN(local.tm_sec, 59)};
}

tern_status tn_template_choose(struct tn_template *out, const struct tn_options *o,
                               struct tern_model *model, struct tern_error *err)
{
    struct tern_error why = {0};
    tern_status status = TERN_OK;
    *out = (struct tn_template){0};
    if (o->mode == TN_MODE_RAW)
        return o->system || o->template_name
                   ? tn_fail(err, TERN_USAGE, "--%s is for a chat; leave --raw out",
                             o->system ? "system" : "template")
                   : TERN_OK;
    if (!o->template_name)
        (void)tern_model_chat_template(&out->t, model, &why);
    else if (!(out->t = find_named(o->template_name, model)))
        status = read_template(&out->own, o->template_name, err);
    if (status != TERN_OK)
        return status;
    if (out->own)
        out->t = out->own;
    if (!out->t)
        return refuse_none(o, &why, err);
    if (o->template_name)
        tern_model_end_turns(model, out->t);
    tern_model_chat_params(model, out->t, &out->params);
    out->params.should_stop = tn_stop_callback; /* a model's template may run for seconds */
    set_date(&out->params.date, o);
    note_missing(out->t, model);
    return TERN_OK;
}

void tn_template_fini(struct tn_template *t)
{
    tern_chat_template_free(t->own);
    *t = (struct tn_template){0};
}
