/* SPDX-License-Identifier: MIT
 *
 * The speed of reading memory and doing nothing else: the reference for the "share of the stream"
 * of kernels and whole runs.  tern bench and bench_kern call it.
 */
#ifndef TN_STREAM_H
#define TN_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* Reads n_bytes (a multiple of 64) at p; returns a value that depends on all of them, so that the
 * compiler keeps the loads.  Vectors of 16 bytes, which every supported CPU has, in four
 * independent chains: nothing in the loop is slower than memory. */
static inline uint64_t tn_read_stream(const unsigned char *p, size_t n_bytes)
{
    typedef uint64_t vec __attribute__((vector_size(16)));
    vec a = {0}, b = {0}, c = {0}, d = {0}, v[4];
    for (size_t i = 0; i < n_bytes; i += 64) {
        TN_PREFETCH(p + i + 4096);
        memcpy(v, p + i, sizeof v);
        a ^= v[0];
        b ^= v[1];
        c ^= v[2];
        d ^= v[3];
    }
    a ^= b ^ c ^ d;
    return a[0] ^ a[1];
}

#endif
