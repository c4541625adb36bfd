/* SPDX-License-Identifier: MIT
 *
 * tern pull, between its files: what known models mean for this machine, and where a pulled model
 * came from.
 */
#ifndef TN_APP_PULL_H
#define TN_APP_PULL_H

#include <stdbool.h>
#include <stdint.h>

#include "hub/catalogue.h"
#include "options.h"
#include "tern/status.h"
#include "tern/sysinfo.h"

/* ---- what a model would do here ---- */

/* What decides about all models: read and measured once. */
struct tn_pull_machine {
    struct tern_sysinfo info;
    uint32_t n_threads;    /* that would decode */
    const char *cpu_level; /* "avx2"; "": unknown */
    double stream_gb_s;    /* they read; 0: not measured */
};

/* Reads the machine and measures its memory; half a second. */
void tn_pull_machine_read(struct tn_pull_machine *out);

struct tn_pull_estimate {
    uint64_t memory_bytes; /* file and cache, at a context of 4096 or the model's */
    bool fits;             /* in what is available now, without reading from disk while it runs */
    double tok_s;          /* 0: unknown */
};

void tn_pull_estimate(struct tn_pull_estimate *out, const struct tn_pull_machine *machine,
                      const struct tn_catalogue_model *model);

/* Index of the best model for a conversation that fits: the first by rank that writes at least as
 * fast as people read, else the fastest.  UINT32_MAX: none fits. */
uint32_t tn_pull_best(const struct tn_pull_estimate *estimates);

/* tern pull without an argument; returns the exit code. */
int tn_pull_list(const struct tn_options *o);

/* ---- where a model came from ---- */

/* NAME.json beside NAME.tern. */
struct tn_origin {
    char repository[200]; /* "OWNER/REPO"; "": unknown */
    char revision[41];
};

/* Of the .tern file at `path`; all "" where nothing is known. */
void tn_origin_read(struct tn_origin *out, const char *path);
tern_status tn_origin_write(const struct tn_origin *origin, const char *path,
                            struct tern_error *err);
/* Removes what tn_origin_write wrote. */
void tn_origin_remove(const char *path);

#endif
