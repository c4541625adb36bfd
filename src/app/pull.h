/* SPDX-License-Identifier: MIT
 *
 * tern pull, shared between its files: estimates of known models for this machine, and the origin
 * of a pulled model.
 */
#ifndef TN_APP_PULL_H
#define TN_APP_PULL_H

#include <stdbool.h>
#include <stdint.h>

#include "hub/catalogue.h"
#include "options.h"
#include "tern/status.h"
#include "tern/sysinfo.h"

/* ---- estimates for this machine ---- */

/* The facts about the machine, read and measured once for all models. */
struct tn_pull_machine {
    struct tern_sysinfo info;
    uint32_t n_threads;    /* number that would decode */
    const char *cpu_level; /* "avx2"; "": unknown */
    double stream_gb_s;    /* their rate of reading memory; 0: not measured */
};

/* Reads the machine and measures its memory rate; takes half a second. */
void tn_pull_machine_read(struct tn_pull_machine *out);

struct tn_pull_estimate {
    uint64_t memory_bytes; /* file and cache, at a context of 4096 or the model's */
    bool fits;             /* in the memory available now, without reading from disk while it
                            * runs */
    double tok_s;          /* 0: unknown */
};

void tn_pull_estimate(struct tn_pull_estimate *out, const struct tn_pull_machine *machine,
                      const struct tn_catalogue_model *model);

/* Index of the best model for a conversation that fits: the first by rank that writes at least as
 * fast as people read, else the fastest.  UINT32_MAX: none fits. */
uint32_t tn_pull_best(const struct tn_pull_estimate *estimates);

/* tern pull without an argument; returns the exit code. */
int tn_pull_list(const struct tn_options *o);

/* ---- the origin of a model ---- */

/* The contents of NAME.json next to NAME.tern. */
struct tn_origin {
    char repository[200]; /* "OWNER/REPO"; "": unknown */
    char revision[41];
    char file[201]; /* of the repository, if it was named */
};

/* Reads the origin of the .tern file at `path`; all "" if unknown. */
void tn_origin_read(struct tn_origin *out, const char *path);
tern_status tn_origin_write(const struct tn_origin *origin, const char *path,
                            struct tern_error *err);
/* Removes what tn_origin_write wrote. */
void tn_origin_remove(const char *path);

#endif
