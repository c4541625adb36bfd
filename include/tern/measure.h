/* SPDX-License-Identifier: MIT
 *
 * Perplexity, verification and speed of a model.
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
    /* Called after each layer of the model, with the ids that are scored; return false to stop
     * (TERN_INTERRUPTED). May be NULL. */
    bool (*on_progress)(void *arg, size_t n_done, size_t n_total);
    void *arg;
};

/* Whole windows that step by half of their length, an f32 cache. */
void tern_perplexity_params_default(struct tern_perplexity_params *out);

struct tern_perplexity_result {
    uint64_t n_scored;
    double nats_per_token;
    double perplexity; /* e^nats_per_token: infinite beyond 709 nats */
};

/* The text is encoded once, without special tokens. Windows of n_ctx ids step by n_stride; each is
 * preceded by BOS if the tokenizer adds one, counted in the window; an id is scored in the first
 * window that holds it; the first id is scored only after a BOS. TERN_USAGE: windows of less than
 * 2 ids or beyond the model's context, a stride that would leave ids out; TERN_INPUT: a model
 * without a tokenizer, a text of less than 2 ids, BOS included; TERN_INTERNAL: logits that are not
 * finite; TERN_MEMORY; TERN_INTERRUPTED. */
tern_status tern_perplexity(struct tern_engine *engine, const struct tern_model *model,
                            const char *text, size_t n_bytes,
                            const struct tern_perplexity_params *params,
                            struct tern_perplexity_result *result, struct tern_error *err);

/* A kernel level whose operations all equal the reference, bit for bit. */
struct tern_verify_level {
    const char *name;
    uint32_t n_operations; /* compared: all that there are */
    uint32_t n_own;        /* of these, with a kernel of just this level */
};

#define TERN_VERIFY_MAX_LEVELS 8

struct tern_verify_result {
    uint64_t data_bytes;
    double seconds;        /* of the checksums */
    struct tern_verify_level levels[TERN_VERIFY_MAX_LEVELS]; /* of this CPU, lowest first */
    uint32_t n_levels;
    bool fingerprint_checked; /* false: the file has none */
};

/* Every checksum, every operation of every kernel level that this CPU has against the reference on
 * the file's own first rows, and the fingerprint at the best level. `machine` is this one.
 * on_progress (bytes) is also asked behind the last byte; it returns false to stop and may be NULL.
 * TERN_INPUT names what is wrong with the file, TERN_INTERNAL a kernel that differs from the
 * reference, TERN_MAPPED_IO a file that was written to meanwhile; TERN_INTERRUPTED. */
tern_status tern_verify(const struct tern_model *model, const struct tern_sysinfo *machine,
                        bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total),
                        void *arg, struct tern_verify_result *result, struct tern_error *err);

/* How fast n_threads (1 to TERN_PLAN_MAX_THREADS of tern/plan.h) read memory: GB/s of plain
 * reading, the best of a few passes over 256 MiB that are taken for it.  Takes some tenths of a
 * second.  TERN_MEMORY: twice as much is not available. */
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
    bool is_filled;     /* with random rows; else by a prompt */
    /* Drafts at most, and which are wrong, as in the parameters; 0: decoded without. */
    uint32_t n_draft, draft_wrong;
    double tokens_per_step; /* of a run with drafts */
    uint32_t n_together; /* sequences that decoded together, `decode` being their sum; 0: one */
    uint64_t hashes[TERN_BENCH_MAX_TOGETHER]; /* [n_together] of each; output_hash is the first */
    struct tern_bench_rate prefill; /* of `depth` tokens; not measured behind a filled cache */
    struct tern_bench_rate decode;  /* not measured behind the second and further prompts */
    uint64_t decode_bytes_per_token; /* weights and cache that a token needed; 0: with drafts or
                                        several sequences, as the rates made of it */
    double decode_gb_s;
    double stream_gb_s;  /* plain reading with these threads, the median over the repeats */
    double decode_share; /* of what plain reading took in the same repeat, the median over them */
    double region_share[TERN_N_REGIONS]; /* the same of the bytes that each part of a token reads
                                            in its own time (tern_counter_region) */
    uint64_t output_hash; /* XXH3-64 of the generated ids, little-endian u32 */
};

/* One kernel, one thread: on the model's own matrices and tables from memory, on a cache from
 * memory, on activations that lie in the processor's caches. */
struct tern_bench_kernel {
    const char *op;
    const char *isa;
    double gb_s;  /* bytes of weights or cache, of activations read and written, per second */
    double share; /* of the stream rate of one thread, read just before its level; above 1 where
                     nothing comes from memory */
};

#define TERN_BENCH_MAX_THREADS 16
#define TERN_BENCH_MAX_RUNS 256
#define TERN_BENCH_MAX_KERNELS 256

/* Lists begin at index 0; runs, levels x threads x (prompts + depths + together, and 1 with
 * drafts), are at most TERN_BENCH_MAX_RUNS. */
struct tern_bench_params {
    const struct tern_sysinfo *machine; /* this one */
    uint32_t prompts[8]; /* lengths to prefill, 1 or more; ids are i * 7919 mod vocab */
    uint32_t n_prompts;  /* 1 to 8 */
    uint32_t n_new; /* 1 or more; decoded greedily behind the first prompt, stop ids ignored */
    enum tern_kv kv;
    enum tern_inputs_as inputs; /* as struct tern_engine_params */
    uint32_t n_repeats; /* 1 to 32 */
    uint32_t threads[TERN_BENCH_MAX_THREADS]; /* each 1 to TERN_PLAN_MAX_THREADS (tern/plan.h) */
    uint32_t n_threads; /* 1 to TERN_BENCH_MAX_THREADS */
    const char *levels[8]; /* kernel levels */
    uint32_t n_levels; /* 0 = the best level */
    uint32_t depths[8]; /* of a cache filled with random rows; these and prompts + n_new within the
                           context */
    uint32_t n_depths;
    /* The answer behind the first prompt is also decoded with drafts from itself, at most n_draft
     * <= TERN_MAX_DRAFT at a time; 0: not. The draft of position p is wrong when
     * p mod draft_wrong = 0; 0: none is. n_new is at least 2 then. */
    uint32_t n_draft, draft_wrong;
    /* So many sequences also decode together, each 1 to TERN_BENCH_MAX_TOGETHER: id i of the prompt
     * of sequence s is ((i + 1009 s) * 7919) mod vocab, as long as the first of prompts. n_new is
     * at least 2 then. */
    uint32_t together[8];
    uint32_t n_together;
    /* A line for people about what is being measured; return false to stop. May be NULL. */
    bool (*on_progress)(void *arg, const char *what);
    /* Asked every few milliseconds; true ends with TERN_INTERRUPTED. May be NULL. */
    bool (*should_stop)(void *arg);
    void *arg;
};

/* `machine` and the model's cache type; 128 ids to prefill, 32 to decode, 3 repeats, one thread,
 * the best level. */
void tern_bench_params_default(struct tern_bench_params *out, const struct tern_sysinfo *machine,
                               const struct tern_model *model);

struct tern_bench_result {
    const char *inputs; /* tern_engine_inputs */
    /* For each of params.threads: plain reading. Read once in every repeat; the median. */
    double stream_gb_s[TERN_BENCH_MAX_THREADS];
    struct tern_bench_run runs[TERN_BENCH_MAX_RUNS];
    uint32_t n_runs;
    struct tern_bench_kernel kernels[TERN_BENCH_MAX_KERNELS];
    uint32_t n_kernels;
    double load_cold_s; /* open to first token, the file dropped from the page cache before */
    double load_warm_s;
    uint64_t peak_rss_bytes; /* without the memory that the stream rate took */
    uint64_t major_faults;
    bool hashes_agree; /* of all runs of the same depth, of sequences together and alone */
    double other_load; /* share of all processors that others used meanwhile; below 0: unknown */
    bool disturbed;    /* so much that the speeds are not this machine's */
};

/* Measures; takes seconds to minutes. Before it begins, TERN_USAGE: counts out of range, an unknown
 * level; TERN_UNSUPPORTED: a level that this CPU lacks; TERN_LIMIT: beyond the context. Then
 * TERN_MEMORY: among others where the 256 MiB are not there that the stream rate takes for a model
 * of less data; TERN_INTERRUPTED; TERN_MAPPED_IO: the file was written to meanwhile; as
 * tern_model_open. */
tern_status tern_bench(const char *model_path, const struct tern_bench_params *params,
                       struct tern_bench_result *result, struct tern_error *err);

/* What decides between the layouts of ternary weights (enum tern_pack): rates of all threads of an
 * engine together. */
struct tern_pack_rates {
    double stream_gb_s; /* plain reading of memory */
    double fast_gw_s;   /* products of one input, 10^9 weights per second from the caches: in 2
                           bits, */
    double small_gw_s;  /* and in 1.625, which are unpacked */
};

/* Measures for 0.1 to 0.3 seconds, with 128 MiB of memory; int8_inputs: as the model takes them.
 * TERN_MEMORY. */
tern_status tern_measure_packs(struct tern_pack_rates *out, struct tern_engine *engine,
                               bool int8_inputs, struct tern_error *err);

/* Evaluates n ids and hashes (XXH3-64) what the last of them gives: its logits, or its state behind
 * the final norm where the model has no head.  Equal on every machine for a new session with an f32
 * cache.  TERN_INPUT: a value is not finite; errors as for tern_session_eval. */
tern_status tern_fingerprint(uint64_t *hash, struct tern_session *session, const uint32_t *ids,
                             uint32_t n, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
