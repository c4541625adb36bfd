/* SPDX-License-Identifier: MIT
 *
 * The rotary position table: cosines and sines of position * theta^(-2j / head_dim).
 *
 * Computed in double with + - * / and integer operations only, so that every C library, compiler
 * and machine returns the same bits.  Pure: no memory, no failure.
 */
#ifndef TN_TRIG_H
#define TN_TRIG_H

#include <stdint.h>

/* inv_freq[j] = theta^(-2j / head_dim), j < head_dim / 2, within 2 ulp of double.
 *   head_dim  even, 2 ... 2^20;  theta  1 ... 2^1000 */
void tn_rope_inv_freq(double *inv_freq, uint32_t head_dim, double theta);

/* cos[j], sin[j] of the angle position * inv_freq[j] (rounded once, to double), within 1 ulp of
 * float.  half = head_dim / 2.
 *   position  at most 2^24;  inv_freq  at most 1 */
void tn_rope_fill(float *cos, float *sin, const double *inv_freq, uint32_t half, uint32_t position);

#endif
