/* SPDX-License-Identifier: MIT
 *
 * tern probe: shows the resources of this machine and the plan for a model, with reasons.
 * probe_text.c and probe_json.c print them.
 */
#include <stdlib.h>

#include "app.h"
#include "base/alloc.h"
#include "base/error.h"
#include "output.h"
#include "planned.h"
#include "probe.h"
#include "tern/inspect.h"
#include "tern/measure.h"

static tern_status check_flags(const struct tn_options *o, struct tern_error *err)
{
    if (o->probe_root && o->record)
        return tn_fail(err, TERN_USAGE,
                       "--record \"%s\" records this machine, --probe-root \"%s\" replays another: "
                       "give one of them",
                       o->record, o->probe_root);
    return TERN_OK;
}

static tern_status read_machine(struct tn_probe *p, const struct tn_options *o,
                                struct tern_error *err)
{
    if (o->probe_root)
        return tern_sysinfo_read_root(&p->machine, o->probe_root, err);
    tern_sysinfo_read(&p->machine);
    return TERN_OK;
}

/* The sizes of a source after conversion. */
static tern_status look_at_source(struct tn_probe *p, const char *path, struct tern_error *err)
{
    struct tern_source *source;
    struct tern_source_sizes sizes;
    tern_status status = tern_source_inspect(&source, path, err);
    if (status != TERN_OK)
        return status;
    status = tern_source_get_sizes(source, &sizes, err);
    tern_source_free(source);
    if (status != TERN_OK)
        return status;
    p->model_name = path;
    p->is_source = true;
    p->sizes = sizes.plan;
    p->table_bytes = sizes.table_bytes;
    p->bytes_per_token = sizes.bytes_per_token;
    return TERN_OK;
}

/* A named model must exist; an implied one next to the program is optional. */
static tern_status open_model(struct tn_probe *p, struct tn_opened *opened,
                              const struct tn_options *o, struct tern_error *err)
{
    const char *positional = tn_first_argument(o);
    const char *variable = getenv("TERN_MODEL");
    bool named = positional || o->model || (variable && variable[0]);
    const char *path = positional ? positional : o->model;
    if (path && tern_source_is_one(path))
        return look_at_source(p, path, err);
    tern_status status = tn_open(opened, o, positional, 0, err);
    if (status == TERN_OK) {
        struct tern_model_info info;
        tern_model_get_info(opened->model, &info);
        p->model_name = info.name;
        tn_planned_sizes(&p->sizes, o, opened->model);
        p->table_bytes = info.head_bytes;
        return TERN_OK;
    }
    if (named)
        return status;
    if (tn_message_level() > 0)
        tn_note_say("planned without a model: %s", err->detail);
    return tn_ok(err);
}

/* If the model cannot run here, that is the result, together with the plan without a model. */
static tern_status make_plan(struct tn_probe *p, struct tern_error *err)
{
    const struct tern_plan_model *sizes = p->model_name ? &p->sizes : NULL;
    tern_status status = tern_plan_make(&p->plan, &p->machine, sizes, &p->limits, err);
    if (status != TERN_MEMORY)
        return status;
    p->refusal = *err;
    return tern_plan_make(&p->plan, &p->machine, NULL, &p->limits, err);
}

static tern_status probe(struct tn_probe *p, struct tn_opened *opened, const struct tn_options *o,
                         struct tern_error *err)
{
    tern_status status = check_flags(o, err);
    if (status == TERN_OK && o->record)
        status = tern_sysinfo_record(o->record, err);
    if (status == TERN_OK)
        status = read_machine(p, o, err);
    if (status == TERN_OK)
        status = open_model(p, opened, o, err);
    tn_planned_limits(&p->limits, o);
    if (status == TERN_OK)
        status = make_plan(p, err);
    if (status != TERN_OK)
        return status;
    /* Skips speeds if the memory to measure them is not free. */
    if (p->is_source && !o->probe_root)
        (void)tern_stream_rate(&p->stream_gb_s, p->plan.n_threads_decode, NULL);
    if (o->record)
        tn_note_say("this machine is recorded in \"%s\"", o->record);
    if (o->json)
        return tn_probe_print_json(p, err);
    tn_probe_print_text(p);
    return TERN_OK;
}

int tn_cmd_probe(const struct tn_options *o)
{
    struct tern_error err = {0};
    struct tn_opened opened = {0};
    struct tn_probe *p = tn_alloc_zeroed(1, sizeof *p);
    if (!p)
        return tn_error_say(TERN_MEMORY, "no memory for a probe");
    tern_status status = probe(p, &opened, o, &err);
    if (status == TERN_OK && p->refusal.status != TERN_OK) {
        err = p->refusal;
        status = err.status;
    }
    tn_close(&opened);
    tn_free(p);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}
