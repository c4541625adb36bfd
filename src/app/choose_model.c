/* SPDX-License-Identifier: MIT
 *
 * Lists the known models and asks the user for one (choose_model.h), by number or by name, until
 * the answer matches.
 */
#include "choose_model.h"

#include "ask.h"
#include "base/buf.h"
#include "base/error.h"
#include "known_models.h"
#include "output.h"

static void list(const struct tn_known_models *models)
{
    struct tn_buf text = {0};
    tn_buf_append_text(&text, "No model was named. These are here:\n");
    for (size_t i = 0; i < models->n; i++)
        tn_buf_printf(&text, "%4zu  %s  (%s)\n", i + 1, models->rows[i].name, models->rows[i].path);
    tn_message_text(tn_buf_bytes(&text), text.n_bytes);
    tn_buf_fini(&text);
}

/* row stays NULL if the answer matches nothing. */
static tern_status ask_model(struct tn_known_model **row, const struct tn_known_models *models,
                             struct tern_error *err)
{
    static const char unknown[] = "No model has this number or name.\n";
    struct tn_buf answer = {0};
    tern_status status = tn_ask_line(&answer, "Which one (number or name)? ", err);
    if (status == TERN_OK) {
        const size_t i = tn_known_models_pick(models, tn_buf_text(&answer));
        if (i < models->n)
            *row = &models->rows[i];
        else
            tn_message_text(unknown, sizeof unknown - 1);
    }
    tn_buf_fini(&answer);
    return status;
}

static tern_status choose(struct tn_known_model **row, const struct tn_known_models *models,
                          struct tern_error *err)
{
    tern_status status = TERN_OK;
    *row = models->n == 1 ? &models->rows[0] : NULL;
    if (models->n > 1)
        list(models);
    while (!*row && status == TERN_OK)
        status = models->n > 0 ? ask_model(row, models, err) : TERN_INPUT;
    return status;
}

tern_status tn_model_choose(char **path, struct tern_error *err)
{
    struct tn_known_models models;
    struct tn_known_model *row;
    *path = NULL;
    tern_status status = tn_known_models_read(&models, TN_KNOWN_FOLDERS_AND_CURRENT, err);
    if (status != TERN_OK)
        return status;
    tn_ok(err);
    status = choose(&row, &models, err);
    if (status == TERN_OK) {
        *path = row->path;
        row->path = NULL;
    }
    tn_known_models_fini(&models);
    return status;
}
