/* SPDX-License-Identifier: MIT
 *
 * Measures a model: perplexity of a text, verification of file and kernels, and speed, as `tern
 * perplexity`, `tern verify` and `tern bench` do.
 */
#ifndef TERN_MEASURE_H
#define TERN_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"
#include "tern/sysinfo.h"
#include "tern/tern.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tern_perplexity_params {
    uint32_t n_ctx;    /* ids per window, BOS included; 0 = the model's context */
    uint32_t n_stride; /* 0 = half of n_ctx */
    enum tern_kv kv;
    /* Called after each layer of the model, with the number of ids scored; return false to stop
     * (TERN_INTERRUPTED).  May be NULL. */
    bool (*on_progress)(void *arg, size_t n_done, size_t n_total);
    void *arg;
};

/* Windows of the whole context with a stride of half of it, an f32 cache. */
void tern_perplexity_params_default(struct tern_perplexity_params *out);

struct tern_perplexity_result {
    uint64_t n_scored;
    double nats_per_token;
    double perplexity; /* e^nats_per_token: infinite above 709 nats */
};

/* The text is encoded once, without special tokens.  Windows of n_ctx ids advance by n_stride; each
 * begins with BOS if the tokenizer adds one, which counts; an id is scored in the first window that
 * contains it; the first id is scored only after a BOS.  TERN_USAGE: windows of less than 2 ids or
 * beyond the model's context, a stride that would skip ids; TERN_INPUT: a model without a
 * tokenizer, a text of less than 2 ids, BOS included; TERN_INTERNAL: logits that are not finite;
 * TERN_MEMORY; TERN_INTERRUPTED. */
tern_status tern_perplexity(struct tern_engine *engine, const struct tern_model *model,
                            const char *text, size_t n_bytes,
                            const struct tern_perplexity_params *params,
                            struct tern_perplexity_result *result, struct tern_error *err);

/* A kernel level all of whose operations return the bits of the reference. */
struct tern_verify_level {
    const char *name;
    uint32_t n_operations; /* operations compared: all */
    uint32_t n_own;        /* of these, those with a kernel of exactly this level */
};

#define TERN_VERIFY_MAX_LEVELS 8

struct tern_verify_result {
    uint64_t data_bytes;
    double seconds;        /* spent on the checksums */
    struct tern_verify_level levels[TERN_VERIFY_MAX_LEVELS]; /* of this CPU, lowest first */
    uint32_t n_levels;
    bool fingerprint_checked; /* false: the file has no fingerprint */
};

/* Verifies every checksum, every operation of every kernel level of this CPU against the reference
 * on the file's first rows, and the fingerprint at the best level.  `machine` describes this
 * machine. on_progress (bytes) is also called after the last byte; it returns false to stop and may
 * be NULL. TERN_INPUT names the error in the file, TERN_INTERNAL a kernel that differs from the
 * reference, TERN_MAPPED_IO a file that was written to meanwhile; TERN_INTERRUPTED. */
tern_status tern_verify(const struct tern_model *model, const struct tern_sysinfo *machine,
                        bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total),
                        void *arg, struct tern_verify_result *result, struct tern_error *err);

/* The speed at which n_threads (1 to TERN_PLAN_MAX_THREADS of tern/plan.h) read memory: GB/s of
 * plain reading, the best of a few passes over 256 MiB that are allocated for it.  Takes some
 * tenths of a second.  TERN_MEMORY: twice as much is not available. */
tern_status tern_stream_rate(double *gb_s, uint32_t n_threads, struct tern_error *err);

/* ---- bench ---- */

/* Tokens per second over the repeats. */
struct tern_bench_rate {
    double median; /* 0: not measured */
    double best;
    double spread; /* (best - worst) / median */
};

#define TERN_BENCH_MAX_TOGETHER 16

/* One combination of level, threads and depth. */
struct tern_bench_run {
    const char *kernel; /* level */
    uint32_t n_threads;
    uint32_t depth;     /* positions in the cache before the first decoded token */
    bool is_filled;     /* with random rows; else by evaluating a prompt */
    /* Maximum drafts, and which are wrong, as in the parameters; 0: decoded without drafts. */
    uint32_t n_draft, draft_wrong;
    double tokens_per_step; /* of a run with drafts */
    uint32_t n_together; /* sequences decoded together; `decode` is their sum; 0: one */
    uint64_t hashes[TERN_BENCH_MAX_TOGETHER]; /* [n_together] of each sequence; output_hash is the
                                               * first */
    struct tern_bench_rate prefill; /* of `depth` tokens; not measured after a filled cache */
    struct tern_bench_rate decode;  /* not measured after the second and further prompts */
    uint64_t decode_bytes_per_token; /* weights and cache that a token reads; 0 with drafts or
                                      * several sequences, like the rates derived from it */
    double decode_gb_s;
    double stream_gb_s;  /* plain reading with these threads, the median over the repeats */
    double decode_share; /* as a share of plain reading in the same repeat, the median over the
                          * repeats */
    double region_share[TERN_N_REGIONS]; /* the same for the bytes that each region of a token reads
                                          * in its own time (tern_counter_region) */
    uint64_t output_hash; /* XXH3-64 of the generated ids, little-endian u32 */
};

/* One kernel on one thread: on the model's matrices and tables from memory, on a cache from memory,
 * on activations that are in the processor's caches. */
struct tern_bench_kernel {
    const char *op;
    const char *isa;
    double gb_s;  /* bytes of weights or cache, of activations read and written, per second */
    double share; /* of one thread's stream rate, measured immediately before its level; above 1
                   * if data comes from the caches */
};

#define TERN_BENCH_MAX_THREADS 16
#define TERN_BENCH_MAX_RUNS 256
#define TERN_BENCH_MAX_KERNELS 256

/* Lists begin at index 0; runs, levels x threads x (prompts + depths + together, and 1 with
 * drafts), are at most TERN_BENCH_MAX_RUNS. */
struct tern_bench_params {
    const struct tern_sysinfo *machine; /* this machine */
    uint32_t prompts[8]; /* lengths to prefill, 1 or more; ids are i * 7919 mod vocab */
    uint32_t n_prompts;  /* 1 to 8 */
    uint32_t n_new; /* 1 or more; decoded greedily after the first prompt, stop ids ignored */
    enum tern_kv kv;
    enum tern_inputs_as inputs; /* as in struct tern_engine_params */
    uint32_t n_repeats; /* 1 to 32 */
    uint32_t threads[TERN_BENCH_MAX_THREADS]; /* each 1 to TERN_PLAN_MAX_THREADS (tern/plan.h) */
    uint32_t n_threads; /* 1 to TERN_BENCH_MAX_THREADS */
    const char *levels[8]; /* kernel levels */
    uint32_t n_levels; /* 0 = the best level */
    uint32_t depths[8]; /* of a cache filled with random rows; these and prompts + n_new within the
                         * context */
    uint32_t n_depths;
    /* The answer to the first prompt is also decoded with drafts taken from itself, at most n_draft
     * <= TERN_MAX_DRAFT at a time; 0: not.  The draft of position p is wrong if p mod draft_wrong =
     * 0; 0: none is.  n_new is then at least 2.  A draft head runs for as many ids, and its time
     * counts. */
    uint32_t n_draft, draft_wrong;
    /* Numbers of sequences that also decode together, each 1 to TERN_BENCH_MAX_TOGETHER: id i of
     * the prompt of sequence s is ((i + 1009 s) * 7919) mod vocab, as long as the first of prompts.
     * n_new is then at least 2. */
    uint32_t together[8];
    uint32_t n_together;
    /* A line for users about the current measurement; return false to stop.  May be NULL. */
    bool (*on_progress)(void *arg, const char *what);
    /* Called every few milliseconds; true ends with TERN_INTERRUPTED.  May be NULL. */
    bool (*should_stop)(void *arg);
    void *arg;
};

/* `machine` and the model's cache type; 128 ids to prefill, 32 to decode, 3 repeats, one thread,
 * the best level. */
void tern_bench_params_default(struct tern_bench_params *out, const struct tern_sysinfo *machine,
                               const struct tern_model *model);

struct tern_bench_result {
    const char *inputs; /* tern_engine_inputs */
    /* For each of params.threads: plain reading, measured once per repeat; the median. */
    double stream_gb_s[TERN_BENCH_MAX_THREADS];
    struct tern_bench_run runs[TERN_BENCH_MAX_RUNS];
    uint32_t n_runs;
    struct tern_bench_kernel kernels[TERN_BENCH_MAX_KERNELS];
    uint32_t n_kernels;
    double load_cold_s; /* open to first token, after dropping the file from the page cache */
    double load_warm_s;
    uint64_t peak_rss_bytes; /* without the memory for measuring the stream rate */
    uint64_t major_faults;
    bool hashes_agree; /* of all runs of the same depth, of sequences together and alone */
    double other_load; /* share of all processors used by other processes meanwhile; below 0:
                        * unknown */
    bool disturbed;    /* other_load is so large that the speeds are not representative */
};

/* Measures; takes seconds to minutes.  Errors before it begins: TERN_USAGE: counts out of range, an
 * unknown level; TERN_UNSUPPORTED: a level that this CPU lacks; TERN_LIMIT: beyond the context.
 * Later: TERN_MEMORY, for instance if 256 MiB for the stream rate are not available for a small
 * model; TERN_INTERRUPTED; TERN_MAPPED_IO: the file was written to meanwhile; errors of
 * tern_model_open. */
tern_status tern_bench(const char *model_path, const struct tern_bench_params *params,
                       struct tern_bench_result *result, struct tern_error *err);

/* The rates that decide between the layouts of ternary weights (enum tern_pack), for all threads of
 * an engine together. */
struct tern_pack_rates {
    double fast_gw_s;  /* products of one input, 10^9 weights per second from memory: in 2 bits, */
    double small_gw_s; /* and in 1.625, which are unpacked */
};

/* Measures for 0.1 to 0.5 seconds, with 137 MiB of memory; int8_inputs: whether the model rounds
 * its inputs.  TERN_MEMORY. */
tern_status tern_measure_packs(struct tern_pack_rates *out, struct tern_engine *engine,
                               bool int8_inputs, struct tern_error *err);

/* Evaluates n ids and hashes (XXH3-64) the output of the last one: its logits, or its state after
 * the final norm if the model has no head.  Equal on every machine for a new session with an f32
 * cache.  TERN_INPUT: a value is not finite; errors as for tern_session_eval. */
tern_status tern_fingerprint(uint64_t *hash, struct tern_session *session, const uint32_t *ids,
                             uint32_t n, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
