/* SPDX-License-Identifier: MIT
 *
 * From ids to text on standard output: session, sampler, streaming, statistics.  Used by `run` and
 * `chat`.
 */
#ifndef TN_GENERATOR_H
#define TN_GENERATOR_H

#include "app.h"
#include "planned.h"
#include "base/buf.h"

struct tn_generator {
    const struct tn_options *o;
    const struct tn_opened *opened;
    struct tn_planned *planned;
    struct tern_engine *engine;
    struct tern_steering *steering;
    struct tern_session *session;
    struct tern_sampler *sampler;
    const struct tern_grammar *grammar; /* borrowed; NULL: no restriction */
    double load_s; /* time for model, plan, engine and session, and for reading the file from
                    * disk */
    uint64_t seed; /* given, or drawn */
    /* Also stops an answer, like Ctrl-C; NULL: none. */
    bool (*is_cancelled)(void *arg);
    void *is_cancelled_arg;
};

/* Creates plan, engine, session and sampler according to flags and machine; shows the banner.
 * n_prompt: tokens of the prompt, 0 if there will be several.  grammar: restricts answers,
 * borrowed, or NULL. */
tern_status tn_generator_init(struct tn_generator *g, const struct tn_options *o,
                              const struct tn_opened *opened, size_t n_prompt,
                              const struct tern_grammar *grammar, struct tern_error *err);
void tn_generator_fini(struct tn_generator *g);
/* Creates a new sampler after its flags have changed; on an error the old one stays. */
tern_status tn_generator_renew_sampler(struct tn_generator *g, struct tern_error *err);
/* A penalty, by its slot in the options: --greedy means the model's raw choice, and JSON repeats
 * itself, so there a penalty is neutral unless the user sets it. */
double tn_penalty_in_force(const struct tn_options *o, size_t slot);
/* Whether to stop: Ctrl-C, the end of the program, or is_cancelled. */
bool tn_generator_should_stop(const struct tn_generator *g);
/* New tokens that one answer may have. */
uint32_t tn_generator_max_tokens(const struct tn_generator *g);

/* Streams the answer to `ids` (printed if verbose) to standard output and ends its last line.
 * *result is filled even if the answer was interrupted (TERN_INTERRUPTED: before its first
 * token). */
tern_status tn_generator_answer(struct tn_generator *g, const struct tern_ids *ids,
                                struct tern_generate_result *result, struct tern_error *err);

/* The same in steps, for a conversation: the parameters of an answer from the flags, with g as
 * `arg`; and the calls around the answer, which show progress and why it ended. */
void tn_generator_params(struct tn_generator *g, struct tern_generate_params *out);
void tn_generator_begin(struct tn_generator *g);
void tn_generator_end(struct tn_generator *g, tern_status status,
                      const struct tern_generate_result *result);
/* "cap" if a tier of memory, not the user, limited the text; else tern_stop_text. */
const char *tn_generator_stop_text(const struct tn_generator *g,
                                   const struct tern_generate_result *result);
/* Prints "ids: 1 2 3" if verbose. */
void tn_generator_show_ids(const struct tn_generator *g, const uint32_t *ids, size_t n);

/* Keys and values in a file (--session-cache, --prefix-cache).  Loading reports why an existing
 * file cannot be used; the prompt is then computed.  Saving drops the positions after the first
 * n_keep. */
void tn_generator_load_cache(struct tn_generator *g, const char *path);
tern_status tn_generator_save_cache(struct tn_generator *g, const char *path, uint32_t n_keep,
                                    struct tern_error *err);

/* Prints the statistics of --stats to standard error; nothing if the output failed, which is
 * reported as an error. */
void tn_generator_print_stats(const struct tn_generator *g,
                              const struct tern_generate_result *result);

#endif
