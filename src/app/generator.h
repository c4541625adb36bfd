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
    double load_s; /* model, plan, engine, session, and the file where it had to be read */
    uint64_t seed; /* given, or drawn */
    struct tn_buf *text; /* also gets the text of the running answer, or NULL */
};

/* Plan, engine, session and sampler as flags and machine allow; shows the banner.  n_prompt: tokens
 * of the prompt, 0 if there will be several. */
tern_status tn_generator_init(struct tn_generator *g, const struct tn_options *o,
                              const struct tn_opened *opened, size_t n_prompt,
                              struct tern_error *err);
void tn_generator_fini(struct tn_generator *g);
/* New tokens that one answer may have. */
uint32_t tn_generator_max_tokens(const struct tn_generator *g);

/* Streams the answer to `ids` to standard output and ends its last line.  *result is filled as far
 * as it went, also when the answer was interrupted (TERN_INTERRUPTED: before its first token). */
tern_status tn_generator_answer(struct tn_generator *g, const struct tern_ids *ids,
                                struct tern_generate_result *result, struct tern_error *err);

/* What --stats asks for, to standard error. */
void tn_generator_print_stats(const struct tn_generator *g,
                              const struct tern_generate_result *result);

#endif
