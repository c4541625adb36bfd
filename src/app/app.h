/* SPDX-License-Identifier: MIT
 *
 * The commands, and the code that several of them share: finding and opening a model, the request
 * to stop.
 */
#ifndef TN_APP_H
#define TN_APP_H

#include "options.h"
#include "tern/sysinfo.h"
#include "tern/tern.h"

/* Each runs one command and returns its exit code; errors have been reported. */
int tn_cmd_run(const struct tn_options *o);
int tn_cmd_chat(const struct tn_options *o);
int tn_cmd_convert(const struct tn_options *o);
int tn_cmd_info(const struct tn_options *o);
int tn_info_source(const char *path, const struct tn_options *o);
int tn_cmd_embed(const struct tn_options *o);
int tn_cmd_pull(const struct tn_options *o);
int tn_cmd_list(const struct tn_options *o);
int tn_cmd_remove(const struct tn_options *o);
int tn_cmd_serve(const struct tn_options *o);
int tn_cmd_probe(const struct tn_options *o);
int tn_cmd_verify(const struct tn_options *o);
int tn_cmd_bench(const struct tn_options *o);
int tn_cmd_tokenize(const struct tn_options *o);
int tn_cmd_detokenize(const struct tn_options *o);
int tn_cmd_perplexity(const struct tn_options *o);
int tn_cmd_logits(const struct tn_options *o);
int tn_cmd_version(const struct tn_options *o);
int tn_cmd_help(const struct tn_options *o);

/* ---- an opened model, with an engine for commands that compute ---- */

struct tn_opened {
    struct tern_engine *engine; /* NULL without TN_OPEN_ENGINE */
    struct tern_model *model;
    struct tern_sysinfo *machine; /* NULL without TN_OPEN_MACHINE or TN_OPEN_ENGINE */
    double load_s;
};

#define TN_OPEN_ENGINE 1u
#define TN_OPEN_TOKENIZER 2u /* a model without one is an error */
#define TN_OPEN_ASK 8u       /* if no model is named and none is found, ask on the terminal */
#define TN_OPEN_CONVERT 16u  /* a GGUF file or a folder is converted once (converting.h) */
#define TN_OPEN_MACHINE 4u   /* read the machine before the file is mapped, for a plan */

/* `positional`: the model as an argument without a flag, or NULL.  Also installs a handler that
 * reports a file that is truncated while mapped, and ends the program with exit code 74. */
tern_status tn_open(struct tn_opened *out, const struct tn_options *o, const char *positional,
                    uint32_t flags, struct tern_error *err);
/* Whether an argument that may be a model or a text file names a model: the file begins like a
 * model or like a file that can become one, the name ends in .tern, or no such file exists but a
 * model of this name. */
bool tn_argument_is_model(const char *argument);
void tn_close(struct tn_opened *opened);

/* tn_stop_requested for should_stop callbacks of any thread. */
bool tn_stop_callback(void *arg);
/* The same for the main thread, called every few milliseconds: also shows progress that is due
 * (progress.h). */
bool tn_should_stop(void *arg);
/* The same for on_progress callbacks, which return false to stop; ignores its arguments. */
bool tn_progress_callback(void *arg, uint64_t n_done, uint64_t n_total);

#endif
