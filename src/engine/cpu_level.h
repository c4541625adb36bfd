/* SPDX-License-Identifier: MIT
 *
 * Kernel levels: names for sets of CPU features, as --cpu accepts them.
 *
 * engine.c chooses one; verify and bench iterate over all.
 */
#ifndef TN_CPU_LEVEL_H
#define TN_CPU_LEVEL_H

#include <stdint.h>

#include "tern/status.h"

/* A level: its name and all features it requires. */
struct tn_cpu_level {
    const char *name;
    uint32_t features;
};
/* Levels of this architecture, lowest first. */
extern const struct tn_cpu_level tn_cpu_levels[];
extern const uint32_t tn_n_cpu_levels;
/* The level of that name, or the best for NULL.  TERN_USAGE: unknown name; TERN_UNSUPPORTED: the
 * CPU lacks its features; both messages list the choices. */
tern_status tn_cpu_level_choose(const struct tn_cpu_level **out, const char *name,
                                uint32_t features, struct tern_error *err);

#endif
