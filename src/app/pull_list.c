/* SPDX-License-Identifier: MIT
 *
 * tern pull without an argument: lists the known models with the memory and speed to expect on this
 * machine.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "hub/fetch.h"
#include "json_io.h"
#include "output.h"
#include "pull.h"

/* Formats "16", "4.2", or "" if unknown. */
static void format_speed(char *text, size_t n_text, const struct tn_pull_estimate *e)
{
    text[0] = '\0';
    if (e->tok_s > 0)
        snprintf(text, n_text, e->tok_s < 10 ? "%.1f" : "%.0f", e->tok_s);
}

static void append_row(struct tn_buf *out, const struct tn_catalogue_model *model,
                       const struct tn_pull_estimate *e, bool is_best)
{
    char speed[16];
    format_speed(speed, sizeof speed, e);
    tn_buf_printf(out, "%c %-21s  %8s  %7s  %-4s  %5s  %s\n", is_best ? '*' : ' ', model->name,
                  tn_size_decimal((double)tn_catalogue_download_bytes(model)).text,
                  tn_size_decimal((double)e->memory_bytes).text, e->fits ? "yes" : "no", speed,
                  model->good_for);
}

static void append_licences(struct tn_buf *out)
{
    tn_buf_printf(out, "\nLicences, on pages of %s; unverified: tern has no hash of the file\n",
                  tn_hub_address());
    for (uint32_t i = 0; i < tn_n_catalogue_models; i++) {
        const struct tn_catalogue_model *model = &tn_catalogue_models[i];
        tn_buf_printf(out, "  %-21s  %-18s  %-10s  %s\n", model->name,
                      model->licence[0] ? model->licence : "not known",
                      model->sha256[0] ? "" : "unverified", tn_catalogue_licence_page(model));
    }
}

/* The rate is not measured where memory is short. */
static void say_machine(const struct tn_pull_machine *machine)
{
    const uint64_t available = machine->info.available_bytes;
    const struct tn_size_text size = tn_size_binary((double)available);
    char rate[64] = "";
    if (machine->stream_gb_s > 0)
        snprintf(rate, sizeof rate, ", %.0f GB/s with %u thread%s", machine->stream_gb_s,
                 machine->n_threads, machine->n_threads == 1 ? "" : "s");
    tn_info_say("This machine: %s of memory available%s. Memory holds a conversation of 4096 "
                "tokens.",
                available == TERN_UNKNOWN ? "an unknown amount" : size.text, rate);
}

static tern_status print_text(const struct tn_pull_machine *machine,
                              const struct tn_pull_estimate *estimates, struct tern_error *err)
{
    struct tn_buf out = {0};
    const uint32_t best = tn_pull_best(estimates);
    tn_buf_append_text(&out, "  name                   download   memory  fits  tok/s  good for\n");
    for (uint32_t i = 0; i < tn_n_catalogue_models; i++)
        append_row(&out, &tn_catalogue_models[i], &estimates[i], i == best);
    append_licences(&out);
    const bool failed = out.failed;
    if (!failed)
        tn_out_wrapped(out.data, out.n_bytes);
    tn_buf_fini(&out);
    if (failed)
        return tn_fail(err, TERN_MEMORY, "no memory for the list");
    say_machine(machine);
    if (best != UINT32_MAX)
        tn_info_say("* is the best that fits. To fetch it: tern pull %s",
                    tn_catalogue_models[best].name);
    return TERN_OK;
}

static json_t *number_or_null(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static tern_status print_json(const struct tn_pull_estimate *estimates, struct tern_error *err)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < tn_n_catalogue_models; i++) {
        const struct tn_catalogue_model *model = &tn_catalogue_models[i];
        json_t *row = json_object();
        json_object_set_new(row, "name", json_string(model->name));
        json_object_set_new(row, "repository", json_string(model->repository));
        json_object_set_new(row, "file_bytes",
                            json_integer((json_int_t)tn_catalogue_download_bytes(model)));
        json_object_set_new(row, "memory_bytes",
                            json_integer((json_int_t)estimates[i].memory_bytes));
        json_object_set_new(row, "fits", json_boolean(estimates[i].fits));
        json_object_set_new(row, "tok_s", number_or_null(estimates[i].tok_s));
        json_object_set_new(row, "licence", text_or_null(model->licence));
        json_object_set_new(row, "verified", json_boolean(model->sha256[0] != '\0'));
        json_object_set_new(row, "context",
                            model->context ? json_integer(model->context) : json_null());
        json_object_set_new(row, "pooling", text_or_null(model->pooling));
        json_object_set_new(row, "best", json_boolean(tn_pull_best(estimates) == i));
        json_array_append_new(list, row);
    }
    return tn_json_io_print(list, err);
}

int tn_pull_list(const struct tn_options *o)
{
    struct tern_error err = {0};
    tern_status status = TERN_OK;
    struct tn_pull_machine *machine = tn_alloc(sizeof *machine);
    struct tn_pull_estimate *estimates =
        tn_alloc_zeroed(tn_n_catalogue_models, sizeof *estimates);
    if (machine && estimates) {
        tn_pull_machine_read(machine);
        for (uint32_t i = 0; i < tn_n_catalogue_models; i++)
            tn_pull_estimate(&estimates[i], machine, &tn_catalogue_models[i]);
        status = o->json ? print_json(estimates, &err) : print_text(machine, estimates, &err);
    } else {
        status = tn_fail(&err, TERN_MEMORY, "no memory for the list");
    }
    tn_free(machine);
    tn_free(estimates);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}
