/* SPDX-License-Identifier: MIT
 *
 * Guarded buffers, and the CPU features of this machine, for the kernel tests and bench_kern.
 *
 * A read or write past a buffer faults or changes a canary.
 */
#include "kern/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "base/cpu_bits.h"
#include "plat/plat.h"

#if TN_ARCH_X86_64
#include <cpuid.h>
#if TN_HAS_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif TN_ARCH_AARCH64 && defined(__linux__)
#include <sys/auxv.h>
#endif

static void out_of_memory(void)
{
    fputs("guarded buffer: out of memory\n", stderr);
    abort();
}

/* TERN_TEST_READ_AHEAD=N leaves N bytes between a buffer and its guard page, for emulators that
 * read the masked-out lanes of a load (qemu 7.2).  Canaries still detect writes there. */
static size_t read_ahead(void)
{
    const char *text = getenv("TERN_TEST_READ_AHEAD");
    return text ? strtoul(text, NULL, 10) : 0;
}

void *tn_guard_new(struct tn_guard *g, size_t n_bytes, size_t align, enum tn_guard_side side)
{
    const size_t page = tn_page_bytes(), slack = read_ahead();
    g->n_bytes = n_bytes;
    g->page_bytes = tn_align_up(n_bytes + slack + 1, page);
    g->reserved_bytes = g->page_bytes + 2 * page;
    g->reserved = tn_pages_reserve(g->reserved_bytes);
    if (!g->reserved)
        out_of_memory();
    g->pages = (unsigned char *)g->reserved + page;
    if (!tn_pages_commit(g->pages, g->page_bytes))
        out_of_memory();
    memset(g->pages, TN_GUARD_BYTE, g->page_bytes);
    size_t at_end = (g->page_bytes - n_bytes - slack) & ~(align - 1);
    g->data = g->pages + (side == TN_GUARD_AT_START ? 0 : at_end);
    return g->data;
}

bool tn_guard_is_intact(const struct tn_guard *g)
{
    for (const unsigned char *p = g->pages; p < g->data; p++)
        if (*p != TN_GUARD_BYTE)
            return false;
    for (const unsigned char *p = g->data + g->n_bytes; p < g->pages + g->page_bytes; p++)
        if (*p != TN_GUARD_BYTE)
            return false;
    return true;
}

void tn_guard_free(struct tn_guard *g)
{
    tn_pages_release(g->reserved, g->reserved_bytes);
    memset(g, 0, sizeof *g);
}

#if TN_ARCH_X86_64
static bool has_avxvnni(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}

/* AMX-TILE and AMX-INT8, and Linux lets this process use the tile registers. */
static bool has_amx(void)
{
#if TN_HAS_AMX
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & 1u << 24) && (d & 1u << 25) &&
           syscall(SYS_arch_prctl, 0x1023, 18) == 0; /* ARCH_REQ_XCOMP_PERM, XTILEDATA */
#else
    return false;
#endif
}

uint32_t tn_test_cpu_features(void)
{
    __builtin_cpu_init();
    uint32_t features = 0;
    if (__builtin_cpu_supports("ssse3"))
        features |= TN_CPU_SSSE3;
    /* Every CPU with AVX2 has F16C, but some compilers do not know its name. */
    if (__builtin_cpu_supports("avx2"))
        features |= TN_CPU_AVX2 | (has_avxvnni() ? TN_CPU_AVXVNNI : 0);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni"))
        features |= TN_CPU_AVX512 | (has_amx() ? TN_CPU_AMX : 0);
    return features;
}
#elif TN_ARCH_AARCH64
uint32_t tn_test_cpu_features(void)
{
    uint32_t features = TN_CPU_NEON;
#if defined(__linux__)
    if (getauxval(AT_HWCAP) & 1ul << 20) /* HWCAP_ASIMDDP */
        features |= TN_CPU_DOTPROD;
    if (getauxval(AT_HWCAP2) & 1ul << 13) /* HWCAP2_I8MM */
        features |= TN_CPU_I8MM;
#endif
    return features;
}
#else
uint32_t tn_test_cpu_features(void)
{
    return 0;
}
#endif
