/* SPDX-License-Identifier: MIT
 *
 * Activations of feed-forwards, by number (enum tern_activation).  Feed-forwards call these for the
 * rows that they have computed.
 */
#ifndef TN_ACTIVATION_H
#define TN_ACTIVATION_H

#include <stdint.h>

#include "kern/kern.h"

/* gate [n] = activation(gate) * up; activation: enum tern_activation. */
void tn_activate(const struct tn_kernels *kernels, uint32_t activation, float *gate,
                 const float *up, uint32_t n);
/* x [n] = activation(x), with the bits of tn_activate for up = 1. */
void tn_activate_plain(const struct tn_kernels *kernels, uint32_t activation, float *x,
                       uint32_t n);

#endif
