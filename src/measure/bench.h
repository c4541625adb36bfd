/* SPDX-License-Identifier: MIT
 *
 * The measurements of tern_bench: loading, memory, kernels, drafts, and sequences that decode
 * together.
 *
 * bench.c runs them in turn; each is in a file bench_*.c.
 */
#ifndef TN_BENCH_H
#define TN_BENCH_H

#include "base/compiler.h"
#include "engine/engine.h"
#include "measure/bench_samples.h"
#include "tern/measure.h"

static inline uint32_t tn_bench_largest(const uint32_t *list, uint32_t n)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most = TN_MAX(most, list[i]);
    return most;
}

/* Prompt [n] of a sequence: id i is ((i + 1009 * sequence) * 7919) mod vocab. */
static inline void tn_bench_prompt(uint32_t *ids, uint32_t n, uint32_t sequence, uint32_t vocab)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (uint32_t)((i + UINT64_C(1009) * sequence) * 7919 % vocab);
}

/* TERN_INTERRUPTED when should_stop returns true. */
tern_status tn_bench_check_stop(const struct tern_bench_params *params, struct tern_error *err);

/* Measures load_cold_s and load_warm_s: from opening the file to the logits of the first token.
 * Errors of tern_model_open and tern_session_create. */
tern_status tn_bench_loads(struct tern_bench_result *result, const char *model_path,
                           const struct tern_bench_params *params, struct tern_error *err);

/* Is there enough memory for tn_bench_stream_open? */
tern_status tn_bench_check_memory(const struct tern_model *model, struct tern_error *err);

/* The data that the stream rate is measured on: the model's if it exceeds the caches, else a
 * buffer. */
struct tn_bench_stream {
    const unsigned char *data;
    size_t n_bytes;
    unsigned char *own; /* the buffer; NULL: the model's data */
    uint64_t sink;      /* keeps the reads from being optimised away */
};
tern_status tn_bench_stream_open(struct tn_bench_stream *out, const struct tern_model *model,
                                 struct tern_error *err);
void tn_bench_stream_close(struct tn_bench_stream *stream);
/* Sequential read bandwidth in GB/s, the best of a few passes, with the team's active threads;
 * NULL: with the calling thread only. */
double tn_bench_stream_rate(struct tn_bench_stream *stream, struct tn_team *team);

/* A greedy answer, to be decoded again with drafts taken from it. */
struct tn_bench_answer {
    const uint32_t *ids; /* [n] ids that greedy decoding produced after the prompt */
    uint32_t *room;      /* [n] buffer for the new ids */
    uint32_t n;          /* at least 2 */
    uint32_t n_draft;    /* maximum drafts per step, within the session's memory */
    uint32_t wrong;      /* the draft for position p is wrong if p mod wrong = 0; 0: none is */
};

struct tn_bench_replayed {
    double tok_s; /* without the first token, which comes from the prompt */
    double tokens_per_step;
    uint64_t hash; /* XXH3-64 of the ids */
};

/* Errors of tern_generate; also TERN_INTERRUPTED if it was stopped before the end. */
tern_status tn_bench_replay(struct tn_bench_replayed *out, struct tern_session *session,
                            const uint32_t *prompt, uint32_t n_prompt,
                            const struct tn_bench_answer *answer, struct tern_error *err);

/* n sequences that decode together. */
struct tn_bench_together {
    uint32_t n;
    struct tn_samples decode; /* ids per second of all sequences, while all decode */
    uint64_t hashes[TERN_BENCH_MAX_TOGETHER]; /* [n] XXH3-64 of each sequence's n_new ids */
    bool hashes_differ; /* from those of the same sequence decoded alone */
};

/* Fills out [n_together], zeroed before; the parameters must be checked.  Errors of
 * tern_scheduler_create and of any request. */
tern_status tn_bench_together(struct tn_bench_together *out, struct tern_engine *engine,
                              const struct tern_model *model, const struct tern_bench_params *p,
                              struct tern_error *err);

/* Times every kernel of every level of this CPU with one thread.  Matrices and tables are the
 * model's, caches are random.  Shares refer to the stream rate of one thread, measured again for
 * each level. */
tern_status tn_bench_kernels(struct tern_bench_result *result, const struct tern_model *model,
                             const struct tern_bench_params *params,
                             struct tn_bench_stream *stream, struct tern_error *err);

#endif
