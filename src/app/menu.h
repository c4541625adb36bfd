/* SPDX-License-Identifier: MIT
 *
 * The menu of `tern` without arguments, on a terminal or in the window of a double click: choose a
 * model, fetch one, or open the page.
 */
#ifndef TN_MENU_H
#define TN_MENU_H

#include <stdbool.h>

#include "options.h"
#include "tern/status.h"

/* Whether nothing was typed after `tern`, there is a user to ask, and no model is implied by
 * $TERN_MODEL or by model.tern next to the program. */
bool tn_menu_is_wanted(const struct tn_options *o);

#define TN_MENU_MAX_WORDS 3

/* A command and its arguments; n 0: leave. */
struct tn_menu_choice {
    const char *words[TN_MENU_MAX_WORDS]; /* [n] */
    int n;
    char *model; /* new memory (tn_free) that words may point to, or NULL */
};

/* Lists the choices on standard error and reads one: a conversation with the demo or with a model
 * of tern list, the best model to fetch, or the page in a browser with the demo or, without it, the
 * first model.  TERN_INPUT: end of input; TERN_INTERRUPTED: Ctrl-C; TERN_MEMORY. */
tern_status tn_menu_ask(struct tn_menu_choice *out, struct tern_error *err);

#endif
