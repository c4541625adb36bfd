/* SPDX-License-Identifier: MIT
 *
 * The parts of tern_bench: loading, memory, kernels, drafts, and sequences that decode together.
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

/* TERN_INTERRUPTED when should_stop says so. */
tern_status tn_bench_go_on(const struct tern_bench_params *params, struct tern_error *err);

/* Fills load_cold_s and load_warm_s: from opening the file to the logits of the first token.
 * Errors as tern_model_open and tern_session_create. */
tern_status tn_bench_loads(struct tern_bench_result *result, const char *model_path,
                           const struct tern_bench_params *params, struct tern_error *err);

/* Whether the memory that tn_bench_stream_open takes is there. */
tern_status tn_bench_check_memory(const struct tern_model *model, struct tern_error *err);

/* What the stream rate is read from: the model's own data where it is larger than the caches, else
 * memory taken for it. */
struct tn_bench_stream {
    const unsigned char *data;
    size_t n_bytes;
    unsigned char *own; /* NULL: the model's */
    uint64_t sink;      /* so that reading is not optimised away */
};
tern_status tn_bench_stream_open(struct tn_bench_stream *out, const struct tern_model *model,
                                 struct tern_error *err);
void tn_bench_stream_close(struct tn_bench_stream *stream);
/* GB/s of plain reading now, the best of a few passes, with the active threads of the team; NULL:
 * with the calling thread alone. */
double tn_bench_stream_rate(struct tn_bench_stream *stream, struct tn_team *team);

/* An answer that is decoded again with drafts from it. */
struct tn_bench_answer {
    const uint32_t *ids; /* [n] what greedy decoding behind the prompt gave */
    uint32_t *room;      /* [n] for those that come now */
    uint32_t n;          /* at least 2 */
    uint32_t n_draft;    /* at most, as the session has memory for */
    uint32_t wrong;      /* the draft of position p is wrong when p mod wrong = 0; 0: none is */
};

struct tn_bench_replayed {
    double tok_s; /* of all but the first, which comes from the prompt */
    double tokens_per_step;
    uint64_t hash; /* XXH3-64 of the ids */
};

/* Errors as tern_generate; TERN_INTERRUPTED also when it was stopped on its way. */
tern_status tn_bench_replay(struct tn_bench_replayed *out, struct tern_session *session,
                            const uint32_t *prompt, uint32_t n_prompt,
                            const struct tn_bench_answer *answer, struct tern_error *err);

/* So many sequences that decode together. */
struct tn_bench_together {
    uint32_t n;
    struct tn_samples decode; /* ids of all in a second, while all decode */
    uint64_t hashes[TERN_BENCH_MAX_TOGETHER]; /* [n] XXH3-64 of each one's n_new ids */
    bool hashes_differ; /* from those of the same sequence alone */
};

/* Fills out [n_together], zeroed before; the parameters are checked. Errors as
 * tern_scheduler_create, and of any request. */
tern_status tn_bench_together(struct tn_bench_together *out, struct tern_engine *engine,
                              const struct tern_model *model, const struct tern_bench_params *p,
                              struct tern_error *err);

/* Every kernel of every level of this CPU, one thread: matrices and tables are the model's, caches
 * are filled at random.  Shares refer to the stream rate of one thread, read anew for each
 * level. */
tern_status tn_bench_kernels(struct tern_bench_result *result, const struct tern_model *model,
                             const struct tern_bench_params *params,
                             struct tn_bench_stream *stream, struct tern_error *err);

#endif
