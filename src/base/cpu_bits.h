/* SPDX-License-Identifier: MIT
 *
 * Instruction-set features as a bit mask.  sysinfo/ detects them, kern/ selects kernels by them,
 * and `--cpu LEVEL` masks some of them.
 */
#ifndef TN_CPU_BITS_H
#define TN_CPU_BITS_H

/* x86-64.  AVX2 includes F16C, AVXVNNI also FMA (with OS support for ymm state).  AVX512 is F, BW,
 * VL, DQ, VBMI and VNNI together (with OS support for zmm state).  AMX is TILE and INT8, in a
 * process that may use the tile registers. */
#define TN_CPU_SSSE3 (1u << 0)
#define TN_CPU_AVX2 (1u << 1)
#define TN_CPU_AVXVNNI (1u << 2)
#define TN_CPU_AVX512 (1u << 3)
#define TN_CPU_AMX (1u << 4)

/* aarch64 */
#define TN_CPU_NEON (1u << 8)
#define TN_CPU_DOTPROD (1u << 9)
#define TN_CPU_I8MM (1u << 10)

#endif
