/* SPDX-License-Identifier: MIT
 *
 * The two functions that a fuzz target defines, for driver.c or libFuzzer.
 *
 * A target must not keep state between inputs.
 */
#ifndef TN_FUZZ_H
#define TN_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The target: processes n untrusted bytes without crashing. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Writes seed number i, at most capacity bytes, and returns its size; 0: there is no such seed. */
size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity);

#endif
