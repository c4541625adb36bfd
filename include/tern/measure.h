/* SPDX-License-Identifier: MIT
 *
 * Perplexity and verification of a model.
 */
#ifndef TERN_MEASURE_H
#define TERN_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"
#include "tern/tern.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tern_perplexity_params {
    uint32_t n_ctx;    /* ids per window, BOS included; 0 = the model's context */
    uint32_t n_stride; /* 0 = half of n_ctx */
    enum tern_kv kv;
    /* Return false to stop (TERN_INTERRUPTED). May be NULL. */
    bool (*on_progress)(void *arg, size_t n_done, size_t n_total);
    void *arg;
};

struct tern_perplexity_result {
    uint64_t n_scored;
    double nats_per_token;
    double perplexity;
};

/* The text is encoded once, without special tokens. Windows of n_ctx ids step by n_stride; each is
 * preceded by BOS if the tokenizer adds one, counted in the window; an id is scored in the first
 * window that holds it; the first id is scored only after a BOS. */
tern_status tern_perplexity(struct tern_engine *engine, const struct tern_model *model,
                            const char *text, size_t n_bytes,
                            const struct tern_perplexity_params *params,
                            struct tern_perplexity_result *result, struct tern_error *err);

struct tern_verify_result {
    uint64_t data_bytes;
    double seconds;        /* of the checksums */
    uint32_t n_levels;     /* kernel levels compared with the reference */
    bool fingerprint_checked; /* false: the file has none */
};

/* Every checksum, every kernel level that this CPU has against the reference on the file's own
 * first rows, and the fingerprint at the best level. TERN_INPUT names what is wrong with the file,
 * TERN_INTERNAL a kernel that differs from the reference. */
tern_status tern_verify(const struct tern_model *model,
                        bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total),
                        void *arg, struct tern_verify_result *result, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
