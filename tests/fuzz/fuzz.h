/* SPDX-License-Identifier: MIT
 *
 * What a fuzz target defines, for driver.c or libFuzzer.
 */
#ifndef TN_FUZZ_H
#define TN_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The target: looks at n bytes from outside, never crashes. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Writes seed number i, at most capacity bytes, and returns its size;
 * 0 behind the last. */
size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity);

#endif
