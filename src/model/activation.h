/* SPDX-License-Identifier: MIT
 *
 * Activations of the gated feed-forward.
 */
#ifndef TN_ACTIVATION_H
#define TN_ACTIVATION_H

#include <stdint.h>

#include "kern/kern.h"

/* gate [n] = activation(gate) * up; activation: enum tern_activation. */
void tn_activate(const struct tn_kernels *kernels, uint32_t activation, float *gate,
                 const float *up, uint32_t n);

#endif
