/* SPDX-License-Identifier: MIT
 *
 * The chat template that flags and model select, and the date that it may print.  `run`, `chat` and
 * `tokenize --chat` use it.
 */
#ifndef TN_TEMPLATE_H
#define TN_TEMPLATE_H

#include "options.h"
#include "tern/tern.h"

/* Zero-initialise; tn_template_fini frees. */
struct tn_template {
    const struct tern_chat_template *t; /* NULL: raw mode */
    struct tern_chat_template *own;     /* of --template FILE */
    struct tern_chat_params params;
};

/* Chooses the template of --template, else the model's; none with --raw, or in `run` if the model
 * has none.  Sets the texts of the model's tokens and the date.  The model also stops where
 * --template ends a turn.  TERN_USAGE: flags that need a template without one, or one with --raw;
 * TERN_INPUT, TERN_UNSUPPORTED: a file that cannot be read or parsed. */
tern_status tn_template_choose(struct tn_template *out, const struct tn_options *o,
                               struct tern_model *model, struct tern_error *err);
void tn_template_fini(struct tn_template *t);

/* Checks that --template, --date and --cpu name something that exists.  For `run` and `chat`,
 * before they open anything. */
tern_status tn_check_names(const struct tn_options *o, struct tern_error *err);

#endif
