/* SPDX-License-Identifier: MIT
 *
 * The menu of `tern` without arguments (menu.h): when to show it, what it offers, and reading the
 * choice.
 */
#include "menu.h"

#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/alloc.h"
#include "base/error.h"
#include "known_models.h"
#include "output.h"
#include "plat/plat.h"
#include "pull.h"
#include "tern/version.h"

static const char demo[] = "demo";

/* ---- when to show it ---- */

static bool is_beside_program(const char *name)
{
    char *folder = tn_path_of_executable_dir();
    char *path = folder ? tn_path_join(folder, name) : NULL;
    const bool is_there = path && tn_path_kind(path) == TN_PATH_FILE;
    tn_free(path);
    tn_free(folder);
    return is_there;
}

bool tn_menu_is_wanted(const struct tn_options *o)
{
    const char *variable = getenv("TERN_MODEL");
    return o->command == TN_CMD_CHAT && !o->is_command_given && !(variable && variable[0]) &&
           tn_can_ask() && tn_is_terminal(TN_STDOUT) && !is_beside_program("model.tern");
}

/* ---- choices ---- */

struct menu {
    struct tn_known_models known;
    size_t i_demo;       /* index in the known models; known.n: none */
    const char *fetched; /* name of the model to fetch; NULL: none fits */
};

/* Offers the best model that fits, unless it is here already. */
static tern_status choose_fetched(struct menu *m, struct tern_error *err)
{
    struct tn_pull_machine *machine = tn_alloc(sizeof *machine);
    struct tn_pull_estimate *estimates =
        tn_alloc_zeroed(tn_n_catalogue_models, sizeof *estimates);
    tern_status status = machine && estimates
                             ? TERN_OK
                             : tn_fail(err, TERN_MEMORY, "no memory for a list of models");
    if (status == TERN_OK) {
        tn_pull_machine_read(machine);
        for (uint32_t i = 0; i < tn_n_catalogue_models; i++)
            tn_pull_estimate(&estimates[i], machine, &tn_catalogue_models[i]);
        const uint32_t best = tn_pull_best(estimates);
        m->fetched = best == UINT32_MAX ? NULL : tn_catalogue_models[best].name;
    }
    if (m->fetched &&
        tn_known_models_find(&m->known, m->fetched, strlen(m->fetched)) < m->known.n)
        m->fetched = NULL;
    tn_free(machine);
    tn_free(estimates);
    return status;
}

static tern_status open_menu(struct menu *m, struct tern_error *err)
{
    *m = (struct menu){0};
    tern_status status = tn_known_models_read(&m->known, TN_KNOWN_FOLDERS_AND_CURRENT, err);
    m->i_demo = tn_known_models_find(&m->known, demo, sizeof demo - 1);
    return status == TERN_OK ? choose_fetched(m, err) : status;
}

/* The demo, or else the first of the known models. */
static size_t first_choice(const struct menu *m)
{
    return m->i_demo < m->known.n ? m->i_demo : 0;
}

/* ---- on the screen ---- */

static void show(const struct menu *m)
{
    struct tn_buf text = {0};
    tn_buf_append_text(&text, "tern " TERN_VERSION_STRING ": no model was named.\n\n");
    for (size_t i = 0; i < m->known.n; i++)
        tn_buf_printf(&text, "%4zu  talk to %s%s\n", i + 1, m->known.rows[i].name,
                      i == m->i_demo ? ", a small model that knows fairy tales only" : "");
    if (m->fetched) {
        const struct tn_catalogue_model *model = tn_catalogue_find(m->fetched);
        tn_buf_printf(&text, "   f  fetch %s, the best that fits here (%s), and talk to it\n",
                      m->fetched,
                      tn_size_decimal((double)tn_catalogue_download_bytes(model)).text);
    }
    if (m->known.n > 0)
        tn_buf_printf(&text, "   p  open the page in a browser, with %s\n",
                      m->known.rows[first_choice(m)].name);
    tn_buf_append_text(&text, "   q  leave\n\n");
    tn_message_wrapped(tn_buf_bytes(&text), text.n_bytes);
    tn_buf_fini(&text);
}

static void write_question(struct tn_buf *out, const struct menu *m)
{
    tn_buf_append_text(out, "Which one");
    if (m->known.n > 0)
        tn_buf_printf(out, " (Enter: %s)", m->known.rows[first_choice(m)].name);
    tn_buf_append_text(out, "? ");
}

static void take_model(struct tn_menu_choice *out, struct menu *m, size_t i, const char *command,
                       const char *flag)
{
    struct tn_known_model *row = &m->known.rows[i];
    *out = (struct tn_menu_choice){
        .words = {command, row->path, flag}, .n = flag ? 3 : 2, .model = row->path};
    row->path = NULL;
}

/* Finds a model by number or name; Enter is the first choice. */
static size_t find_model(const struct menu *m, const char *answer)
{
    return answer[0] ? tn_known_models_pick(&m->known, answer) : first_choice(m);
}

/* False: the answer matches nothing. */
static bool take_choice(struct tn_menu_choice *out, struct menu *m, const char *answer)
{
    if (strcmp(answer, "q") == 0)
        *out = (struct tn_menu_choice){.n = 0};
    else if (strcmp(answer, "p") == 0 && m->known.n > 0)
        take_model(out, m, first_choice(m), "serve", "--open");
    else if (strcmp(answer, "f") == 0 && m->fetched)
        *out = (struct tn_menu_choice){.words = {"pull", m->fetched}, .n = 2};
    else if (find_model(m, answer) < m->known.n)
        take_model(out, m, find_model(m, answer), "chat", NULL);
    else
        return false;
    return true;
}

tern_status tn_menu_ask(struct tn_menu_choice *out, struct tern_error *err)
{
    static const char unknown[] = "That is none of them.\n";
    struct menu m;
    struct tn_buf answer = {0}, question = {0};
    bool is_taken = false;
    *out = (struct tn_menu_choice){0};
    tern_status status = open_menu(&m, err);
    if (status == TERN_OK)
        show(&m);
    if (status == TERN_OK)
        write_question(&question, &m);
    while (status == TERN_OK && !is_taken) {
        status = tn_ask_line(&answer, tn_buf_text(&question), err);
        is_taken = status == TERN_OK && take_choice(out, &m, tn_buf_text(&answer));
        if (status == TERN_OK && !is_taken)
            tn_message_text(unknown, sizeof unknown - 1);
    }
    tn_buf_fini(&answer);
    tn_buf_fini(&question);
    tn_known_models_fini(&m.known);
    return status;
}
