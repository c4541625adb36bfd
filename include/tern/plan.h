/* SPDX-License-Identifier: MIT
 *
 * The plan: threads, context and token cap, from the machine, the model's sizes and the user's
 * limits. Memory decides only lengths: the cache type, which changes answers, is the model's or the
 * user's. Made before anything large is allocated; each value carries the rule that bound it.
 *
 * tern_plan_make is a pure function: it reads only its arguments, so that any machine can be
 * planned for on any other.
 *
 *   struct tern_sysinfo machine;      tern_sysinfo_read(&machine);
 *   struct tern_plan_model sizes;     tern_plan_model_sizes(&sizes, model, 0);
 *   struct tern_plan plan;            tern_plan_make(&plan, &machine, &sizes, &limits, &err);
 */
#ifndef TERN_PLAN_H
#define TERN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"
#include "tern/sysinfo.h"
#include "tern/tern.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TERN_PLAN_MAX_THREADS 256
#define TERN_PLAN_MAX_REASONS 12
#define TERN_PLAN_MAX_NOTICES 8
#define TERN_PLAN_KV_BLOCK 256 /* the cache grows by this many positions */

/* ---- input ---- */

/* Contexts longer than `above` store the last positions of layers with a window in rings.  Arrays
 * are indexed by tern_kv. */
struct tern_plan_rings {
    uint32_t above;               /* 0: no context has rings */
    uint64_t kv_block_bytes[3];   /* instead of those of tern_plan_model */
    uint64_t state_bytes[3];      /* additional bytes per sequence, for any context */
    uint64_t checkpoint_bytes[3]; /* instead of that of tern_plan_model */
};

/* Sizes of a model, as plain numbers. */
struct tern_plan_model {
    uint32_t n_ctx;                    /* positions that the model was trained for */
    uint64_t file_bytes;               /* mapped, read-only */
    uint64_t model_bytes;              /* memory of the open model in addition to the file */
    uint64_t sampler_bytes;            /* of a sampler for its vocabulary */
    uint64_t base_bytes;               /* anonymous memory of a session, without the members
                                        * below */
    uint64_t draft_bytes;              /* additional bytes per id that may be drafted ahead */
    uint64_t draft_head_bytes;         /* of the model's draft head, if any may be */
    uint64_t thread_bytes;             /* additional bytes per thread */
    uint64_t position_bytes;           /* additional bytes per position of the context, without the
                                        * cache */
    uint64_t kv_block_bytes[3];        /* cache, per TERN_PLAN_KV_BLOCK positions, by tern_kv */
    enum tern_kv kv;                   /* the model's cache type */
    uint64_t checkpoint_bytes;         /* a copy of its state (tern_session_params); 0: no state */
    uint64_t unread_bytes;             /* of file_bytes: experts that a token does not choose */
    struct tern_plan_rings rings;
};

/* The sizes of an open model for prefill batches of n_batch tokens (0 = the default). */
void tern_plan_model_sizes(struct tern_plan_model *out, const struct tern_model *model,
                           uint32_t n_batch);

/* Anonymous memory of the positions of one sequence: cache, rings, and the additional bytes of a
 * session per position. */
uint64_t tern_plan_context_bytes(const struct tern_plan_model *model, enum tern_kv kv,
                                 uint32_t n_ctx);

struct tern_file_config; /* tern/model_format.h */
struct tern_file_layer;
struct tern_file_tensor;

/* The same for a model whose file is not written yet, and the values that tern_model_get_info would
 * return for it, except name, architecture and template; for batches of the default size.
 *   layers   [config->n_layer]
 *   tensors  [n_tensors] in the order of the table, with offsets from the start of the data, which
 *            ends at data_bytes; without rope factors
 * TERN_MEMORY; TERN_UNSUPPORTED: no format supports one of the matrices. */
tern_status tern_plan_outline_sizes(struct tern_plan_model *out, struct tern_model_info *info,
                                    const struct tern_file_config *config,
                                    const struct tern_file_layer *layers,
                                    const struct tern_file_tensor *tensors, uint32_t n_tensors,
                                    uint64_t data_bytes, struct tern_error *err);

/* The source of the cap on new tokens. */
enum tern_caps {
    TERN_CAPS_TIERS = 0, /* the table of the tiers */
    TERN_CAPS_MEMORY,    /* the positions for which the cache has memory */
    TERN_CAPS_OFF,       /* the model's context */
};

/* Requests of the user; all zero: none. */
struct tern_plan_limits {
    uint32_t n_threads;    /* for decode and prefill; 0 = planned */
    uint32_t n_ctx;        /* 0 = planned */
    bool has_kv;           /* false: the model's cache type */
    enum tern_kv kv;       /* with has_kv */
    const char *cpu_level; /* highest kernel level; NULL = the best */
    uint64_t ram_bytes;    /* plan as if only this much were free; 0: no limit */
    bool eco;              /* half of the fast cores */
    enum tern_caps caps;
    uint32_t max_tokens;   /* new tokens; 0 = the tier's default */
    uint32_t n_prompt;     /* tokens of the prompt; 0 = unknown */
    uint32_t n_draft;      /* ids that may be drafted ahead, at most TERN_MAX_DRAFT */
};

/* ---- output ---- */

/* Explains a value. */
struct tern_plan_reason {
    const char *what;     /* name of the value: "threads_decode", "context", ... */
    char value[24];       /* decimal number, or a word such as "f16" */
    bool is_number;
    uint64_t number;      /* value as a number, if it is one */
    /* The deciding rule in one word: a flag ("user", "eco", "default"); the processor ("cores",
     * "affinity", "cpuset", "quota", "cpu"); memory ("memory", "available", "tier", "pressure", or
     * a tern_bound_text); or "model", "context", "cap", "limit", "rule". */
    const char *bound_by;
    char detail[128]; /* the same for users */
};

/* Anonymous memory with the context filled, by purpose. */
struct tern_plan_memory {
    uint64_t process_bytes; /* the program and its libraries, threads' stacks */
    uint64_t model_bytes;   /* in addition to the mapped file */
    uint64_t sampler_bytes;
    uint64_t scratch_bytes; /* a session without its cache */
    uint64_t cache_bytes;      /* keys and values: blocks, and rings of windows */
    uint64_t checkpoint_bytes; /* all copies of the state */
};

struct tern_plan {
    /* threads and kernels */
    uint32_t n_threads_decode;
    uint32_t n_threads_prefill;
    uint32_t n_threads_ceil; /* decode threads if a fractional quota were rounded up; else 0 */
    bool threads_fixed;      /* set by the user: nothing to calibrate */
    bool bind_threads;       /* thread i should run on cores[i] */
    uint32_t n_cores;        /* max(decode, prefill) entries if bind_threads, else 0 */
    uint32_t cores[TERN_PLAN_MAX_THREADS]; /* OS numbers, fast cores first */
    bool eco;
    const char *cpu_level; /* "avx2" */

    /* memory */
    uint64_t available_bytes; /* the memory on which the plan is based */
    enum tern_bound limited_by;
    uint64_t reserve_bytes;   /* left free for others */
    uint32_t tier;            /* 0 (least memory) to 3 */
    uint32_t default_new_tokens;
    uint32_t cap_new_tokens;

    /* with a model only */
    bool has_model;
    uint32_t n_ctx;
    enum tern_kv kv;
    uint32_t max_new_tokens; /* the minimum of request or default, cap, and room after the prompt */
    uint32_t n_checkpoints;  /* for tern_session_params; 0 if the model has no state */
    bool capped;             /* the cap determined max_new_tokens */
    bool context_cuts;       /* the context leaves less than limits.max_tokens; a notice reports
                              * it */
    struct tern_plan_memory memory;
    uint64_t predicted_anonymous_bytes; /* of the process, with n_ctx filled: the sum of memory */
    uint64_t predicted_hot_bytes;       /* including the model file: memory that should stay
                                         * resident */
    bool will_page;          /* the model does not fit in addition: pages are read from disk while
                              * running */
    uint32_t n_ctx_resident; /* tokens up to which model and cache fit; n_ctx unless will_page */
    /* Of predicted_hot_bytes, experts that a token does not choose: a mixture of experts runs with
     * them on disk, and reads the chosen ones that are not in memory. */
    uint64_t unread_bytes;

    uint32_t n_reasons;
    struct tern_plan_reason reasons[TERN_PLAN_MAX_REASONS];
    /* Lines that a user should see: caps, shortages. */
    uint32_t n_notices;
    char notices[TERN_PLAN_MAX_NOTICES][200];
};

/* model NULL: only the values that depend on no model.  limits NULL: none. TERN_MEMORY: the model
 * cannot run in the available memory (need, have, what would work); TERN_LIMIT: the prompt is
 * longer than the context; TERN_USAGE: contradictory limits, too many threads, an unknown level or
 * cache type; TERN_UNSUPPORTED: a level that this CPU lacks. *out is zeroed on failure. */
tern_status tern_plan_make(struct tern_plan *out, const struct tern_sysinfo *machine,
                           const struct tern_plan_model *model,
                           const struct tern_plan_limits *limits, struct tern_error *err);

/* ---- while running ---- */

struct tern_watch;

enum tern_watch_event {
    TERN_WATCH_NONE = 0,
    TERN_WATCH_SLOWER,  /* the CPU quota throttles us: use one thread fewer */
    TERN_WATCH_SHORT,   /* memory is short: release caches, allow no growth */
};

/* Watches the machine of the plan.  root as in tern_monitor_open.  Opens the files that it will
 * read. Nothing is ever raised again during a run. */
tern_status tern_watch_create(struct tern_watch **out, const struct tern_plan *plan,
                              const char *root, struct tern_error *err);
void tern_watch_free(struct tern_watch *watch);
/* Call once per token: reads the machine's state every two seconds, otherwise costs a
 * comparison. */
enum tern_watch_event tern_watch_poll(struct tern_watch *watch, uint64_t now_ns);
/* Whether the session may take `bytes` more.  Reads the machine's state now.  For
 * tern_session_params.may_grow: arg is the watch. */
bool tern_watch_may_grow(void *arg, uint64_t bytes);
/* Simulates a sample of the machine: for tests, and for systems that send events. */
enum tern_watch_event tern_watch_inject(struct tern_watch *watch,
                                        const struct tern_monitor_sample *sample);

/* ---- steering: how a run reacts ---- */

/* Finds the decode thread count that is fastest on this machine, with the first tokens of a run as
 * the measurement, and watches the machine.  If the plan's count is the fastest, that result is
 * stored in the user's cache directory, so that the next run need not measure; TERN_CACHE=off
 * disables that. Speeds change, results do not. */
struct tern_steering;

/* The engine was created with the plan's thread counts; `machine` is the plan's.  All three and the
 * model must outlive the steering. */
tern_status tern_steering_create(struct tern_steering **out, struct tern_engine *engine,
                                 const struct tern_model *model,
                                 const struct tern_sysinfo *machine,
                                 const struct tern_plan *plan, struct tern_error *err);
/* Stores the measurements for the next run. */
void tern_steering_free(struct tern_steering *steering);
/* Whether tern_steering_free may write the measured thread count to a file. */
bool tern_steering_may_save(const struct tern_steering *steering);
/* Whether the session may take n_bytes more.  For tern_session_params.may_grow. */
bool tern_steering_may_grow(struct tern_steering *steering, uint64_t n_bytes);
/* Call before each decoded token: sets the engine's threads. */
void tern_steering_before_token(struct tern_steering *steering);
/* Call after each decoded token. */
void tern_steering_after_token(struct tern_steering *steering);

#ifdef __cplusplus
}
#endif
#endif
