/* SPDX-License-Identifier: MIT
 *
 * Compiler and architecture facts: attributes, alignment, the TN_ARCH_* macros.  Every file may
 * include this; it includes nothing of the project.
 */
#ifndef TN_COMPILER_H
#define TN_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) || defined(_M_X64)
#define TN_ARCH_X86_64 1
#else
#define TN_ARCH_X86_64 0
#endif

/* The tile registers of AMX: a process must ask the system for them; tern does so on Linux only. */
#if TN_ARCH_X86_64 && defined(__linux__) && !defined(__ANDROID__)
#define TN_HAS_AMX 1
#else
#define TN_HAS_AMX 0
#endif

#if defined(__aarch64__) || defined(_M_ARM64)
#define TN_ARCH_AARCH64 1
#else
#define TN_ARCH_AARCH64 0
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tern files are little-endian and mapped unchanged: big-endian machines are not supported"
#endif

#if defined(__GNUC__)
#if defined(__MINGW32__)
#define TN_PRINTF(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#else
#define TN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#endif
#define TN_NOINLINE __attribute__((noinline))
#define TN_ALWAYS_INLINE inline __attribute__((always_inline))
#define TN_PREFETCH(p) __builtin_prefetch((p), 0, 3)
#else
#error "gcc or clang is needed"
#endif

#define TN_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define TN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TN_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
