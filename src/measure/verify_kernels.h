/* SPDX-License-Identifier: MIT
 *
 * The step of tern_verify that checks this machine rather than the file.
 *
 * Called by verify.c after the data has passed.
 */
#ifndef TN_VERIFY_KERNELS_H
#define TN_VERIFY_KERNELS_H

#include <stdbool.h>

#include "engine/engine.h"
#include "tern/measure.h"

/* Compares every operation of every level that `features` allows; fills levels and n_levels.
 * should_stop may be NULL.  TERN_INTERNAL: names the kernel that differs. */
tern_status tn_verify_kernels(struct tern_verify_result *result, const struct tern_model *model,
                              uint32_t features, bool (*should_stop)(void *arg), void *arg,
                              struct tern_error *err);

#endif
