/* SPDX-License-Identifier: MIT
 *
 * The commands, and what several of them share: finding and opening a model, the banner.
 */
#ifndef TN_APP_H
#define TN_APP_H

#include "options.h"
#include "tern/sysinfo.h"
#include "tern/tern.h"

/* Each does one command and returns the exit code; what went wrong has been said. */
int tn_cmd_run(const struct tn_options *o);
int tn_cmd_chat(const struct tn_options *o);
int tn_cmd_convert(const struct tn_options *o);
int tn_cmd_info(const struct tn_options *o);
int tn_cmd_probe(const struct tn_options *o);
int tn_cmd_verify(const struct tn_options *o);
int tn_cmd_bench(const struct tn_options *o);
int tn_cmd_tokenize(const struct tn_options *o);
int tn_cmd_detokenize(const struct tn_options *o);
int tn_cmd_perplexity(const struct tn_options *o);
int tn_cmd_logits(const struct tn_options *o);
int tn_cmd_version(const struct tn_options *o);
int tn_cmd_help(const struct tn_options *o);

/* ---- an opened model, and an engine for commands that compute ---- */

struct tn_opened {
    struct tern_engine *engine; /* NULL without TN_OPEN_ENGINE */
    struct tern_model *model;
    struct tern_sysinfo *machine; /* NULL without TN_OPEN_MACHINE */
    double load_s;
};

#define TN_OPEN_ENGINE 1u
#define TN_OPEN_TOKENIZER 2u /* a model without one is an error */
#define TN_OPEN_MACHINE 4u   /* read the machine before the file is mapped: a plan needs that */

/* `positional`: the model as an argument without a flag, or NULL.  Also arranges that a file which
 * is truncated while mapped ends the program with exit code 74 and its name. */
tern_status tn_open(struct tn_opened *out, const struct tn_options *o, const char *positional,
                    uint32_t flags, struct tern_error *err);
void tn_close(struct tn_opened *opened);

/* True when Ctrl-C was pressed or the system asks the program to end. */
bool tn_stop_requested(void);
/* Without the argument: for on_progress callbacks, which return false to stop. */
bool tn_progress_callback(void *arg, uint64_t n_done, uint64_t n_total);

/* The template that the flags and the model ask for; *out is NULL in raw mode. */
tern_status tn_choose_template(const struct tern_chat_template **out, const struct tn_options *o,
                               const struct tern_model *model, struct tern_error *err);
/* --template and --cpu name something that exists here. For `run` and `chat`, before they open
 * anything. */
tern_status tn_check_names(const struct tn_options *o, struct tern_error *err);

#endif
