/* SPDX-License-Identifier: MIT
 *
 * tern list: lists the models that have a name, as a table or as JSON, with the origin of those
 * that tern pull fetched.
 */
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/utf8.h"
#include "json_io.h"
#include "known_models.h"
#include "output.h"
#include "pull.h"

/* The facts that the list shows about a file, which is opened only briefly. */
struct row {
    const struct tn_known_model *known;
    char family[32];
    uint64_t n_params, file_bytes;
    uint32_t context;
};

static tern_status describe(struct row *out, const struct tn_known_model *known,
                            struct tern_error *err)
{
    struct tern_model *model;
    struct tern_model_info info;
    const size_t n_name = strlen(known->name);
    if (tn_utf8_find_bad(known->name, n_name, true) < n_name)
        return tn_fail(err, TERN_INPUT, "%s: its name is not one line of UTF-8", known->path);
    tern_status status = tern_model_open(&model, known->path, err);
    if (status != TERN_OK)
        return status;
    tern_model_get_info(model, &info);
    *out = (struct row){
        .known = known,
        .n_params = tern_model_config(model)->n_params,
        .file_bytes = info.file_bytes,
        .context = tern_model_config(model)->context,
    };
    snprintf(out->family, sizeof out->family, "%s", info.architecture);
    tern_model_free(model);
    return TERN_OK;
}

/* ---- text output ---- */

static size_t longest_name(const struct row *rows, size_t n)
{
    size_t longest = sizeof "name" - 1;
    for (size_t i = 0; i < n; i++)
        longest = TN_MAX(longest, strlen(rows[i].known->name));
    return longest;
}

static tern_status print_text(const struct row *rows, size_t n, struct tern_error *err)
{
    struct tn_buf out = {0};
    const int width = (int)longest_name(rows, n);
    if (n)
        tn_buf_printf(&out, "%-*s  %9s  %10s  %7s  %-16s  %s\n", width, "name", "size",
                      "parameters", "context", "family", "file");
    for (size_t i = 0; i < n; i++)
        tn_buf_printf(&out, "%-*s  %9s  %10s  %7u  %-16s  %s\n", width, rows[i].known->name,
                      tn_size_decimal((double)rows[i].file_bytes).text,
                      tn_count_text((double)rows[i].n_params).text, rows[i].context, rows[i].family,
                      rows[i].known->path);
    const bool failed = out.failed;
    if (!failed && n)
        tn_out_wrapped(out.data, out.n_bytes); /* names may contain anything */
    tn_buf_fini(&out);
    return failed ? tn_fail(err, TERN_MEMORY, "no memory for the list") : TERN_OK;
}

static void say_folders(const struct tn_known_models *models)
{
    struct tn_buf text = {0};
    for (uint32_t i = 0; i < models->n_folders; i++)
        tn_buf_printf(&text, "%s%s", i ? ", " : "", models->folders[i]);
    tn_note_say("no models in %s; tern pull fetches one", tn_buf_text(&text));
    tn_buf_fini(&text);
}

/* ---- JSON ---- */

/* Adds null if the model was not pulled. */
static void add_origin(json_t *row, const char *path)
{
    struct tn_origin origin;
    tn_origin_read(&origin, path);
    json_object_set_new(row, "source",
                        origin.repository[0] ? json_string(origin.repository) : json_null());
    json_object_set_new(row, "revision",
                        origin.revision[0] ? json_string(origin.revision) : json_null());
}

static tern_status print_json(const struct row *rows, size_t n, struct tern_error *err)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *row = json_object();
        json_object_set_new(row, "name", json_string(rows[i].known->name));
        json_object_set_new(row, "path", tn_json_io_text(rows[i].known->path));
        json_object_set_new(row, "architecture", json_string(rows[i].family));
        json_object_set_new(row, "n_params", json_integer((json_int_t)rows[i].n_params));
        json_object_set_new(row, "file_bytes", json_integer((json_int_t)rows[i].file_bytes));
        json_object_set_new(row, "context", json_integer(rows[i].context));
        add_origin(row, rows[i].known->path);
        json_array_append_new(list, row);
    }
    return tn_json_io_print(list, err);
}

/* ---- the command ---- */

static tern_status list(const struct tn_known_models *models, bool as_json, struct tern_error *err)
{
    size_t n = 0;
    tern_status status = TERN_OK;
    struct row *rows = tn_alloc_zeroed(models->n + 1, sizeof *rows);
    if (!rows)
        return tn_fail(err, TERN_MEMORY, "no memory for a list of models");
    for (size_t i = 0; i < models->n && status != TERN_MEMORY; i++) {
        status = describe(&rows[n], &models->rows[i], err);
        n += status == TERN_OK;
        if (status != TERN_OK && status != TERN_MEMORY)
            tn_warning_say("left out: %s", err->detail);
    }
    if (status != TERN_MEMORY && models->n == 0)
        say_folders(models);
    if (status != TERN_MEMORY)
        status = as_json ? print_json(rows, n, err) : print_text(rows, n, err);
    tn_free(rows);
    return status;
}

int tn_cmd_list(const struct tn_options *o)
{
    struct tn_known_models models;
    struct tern_error err = {0};
    tern_status status = tn_known_models_read(&models, TN_KNOWN_FOLDERS, &err);
    if (status == TERN_OK)
        status = list(&models, o->json, &err);
    tn_known_models_fini(&models);
    return status == TERN_OK ? 0 : tn_error_print(&err);
}
