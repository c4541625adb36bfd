/* SPDX-License-Identifier: MIT
 *
 * From ids to text on standard output: session, sampler, streaming, statistics.  Serves `run` and
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
    const struct tern_grammar *grammar; /* borrowed; NULL: anything */
    double load_s; /* model, plan, engine, session, and the file where it had to be read */
    uint64_t seed; /* given, or drawn */
    /* Also stops an answer, as Ctrl-C does; NULL: nothing else does. */
    bool (*is_cancelled)(void *arg);
    void *is_cancelled_arg;
};

/* Plan, engine, session and sampler as flags and machine allow; shows the banner.  n_prompt: tokens
 * of the prompt, 0 if there will be several.  grammar: what answers must be, borrowed, or NULL. */
tern_status tn_generator_init(struct tn_generator *g, const struct tn_options *o,
                              const struct tn_opened *opened, size_t n_prompt,
                              const struct tern_grammar *grammar, struct tern_error *err);
void tn_generator_fini(struct tn_generator *g);
/* A sampler anew, after the flags that make one have changed; without success the old one stays. */
tern_status tn_generator_renew_sampler(struct tn_generator *g, struct tern_error *err);
/* Ctrl-C, the end of the program, or is_cancelled. */
bool tn_generator_should_stop(const struct tn_generator *g);
/* New tokens that one answer may have. */
uint32_t tn_generator_max_tokens(const struct tn_generator *g);

/* Streams the answer to `ids` (shown when verbose) to standard output and ends its last line.
 * *result is filled as far as it went, also when the answer was interrupted (TERN_INTERRUPTED:
 * before its first token). */
tern_status tn_generator_answer(struct tn_generator *g, const struct tern_ids *ids,
                                struct tern_generate_result *result, struct tern_error *err);

/* The same in parts, for a conversation: what the flags say of an answer, with g as its `arg`;
 * around the answer itself the calls that show progress and why it ended. */
void tn_generator_params(struct tn_generator *g, struct tern_generate_params *out);
void tn_generator_begin(struct tn_generator *g);
void tn_generator_end(struct tn_generator *g, tern_status status,
                      const struct tern_generate_result *result);
/* "cap" where a tier of memory, not the user, ended the text; else tern_stop_text. */
const char *tn_generator_stop_text(const struct tn_generator *g,
                                   const struct tern_generate_result *result);
/* "ids: 1 2 3" when verbose. */
void tn_generator_show_ids(const struct tn_generator *g, const uint32_t *ids, size_t n);

/* Keys and values in a file (--session-cache, --prefix-cache). Loading says why a file that is
 * there cannot be used; the prompt is computed then. Saving forgets what lies behind the first
 * n_keep positions. */
void tn_generator_load_cache(struct tn_generator *g, const char *path);
tern_status tn_generator_save_cache(struct tn_generator *g, const char *path, uint32_t n_keep,
                                    struct tern_error *err);

/* What --stats asks for, to standard error; nothing when the output failed, which ends with an
 * error. */
void tn_generator_print_stats(const struct tn_generator *g,
                              const struct tern_generate_result *result);

#endif
