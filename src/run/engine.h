/* SPDX-License-Identifier: MIT
 *
 * The insides of an engine and of a model, for the other files of this layer.
 */
#ifndef TN_ENGINE_H
#define TN_ENGINE_H

#include "kern/kern.h"
#include "model/weights.h"
#include "par/team.h"
#include "tern/tern.h"

struct tern_engine {
    struct tn_kernels kernels;
    struct tn_team *team;
    const char *level;
    uint32_t n_decode;  /* threads */
    uint32_t n_prefill;
};

struct tern_model {
    struct tn_mfile file;
    struct tern_file_config config; /* file.config points here: sizes that were checked must hold
                                       even if somebody writes to the file */
    struct tn_weights weights;
    struct tern_tokenizer *tokenizer;              /* NULL without */
    const struct tern_chat_template *chat_template; /* NULL: none or unknown */
    unsigned char *is_control; /* [vocab] 1 for ids that are never penalised or printed */
    uint32_t n_allowed;        /* ids that may be sampled: below this */
    char *name;
    char *path;
};

/* A kernel level of --cpu: its name and all features up to it. */
struct tn_cpu_level {
    const char *name;
    uint32_t features;
};
/* Levels of this architecture, lowest first. */
extern const struct tn_cpu_level tn_cpu_levels[];
extern const uint32_t tn_n_cpu_levels;
/* The highest level whose features the CPU has. */
const struct tn_cpu_level *tn_cpu_level_best(uint32_t features);
/* The level of that name, or the best for NULL. TERN_USAGE: no such name; TERN_UNSUPPORTED: the CPU
 * lacks it; both list what there is. */
tern_status tn_cpu_level_choose(const struct tn_cpu_level **out, const char *name,
                                uint32_t features, struct tern_error *err);

#endif
