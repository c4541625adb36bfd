/* SPDX-License-Identifier: MIT
 *
 * Features of an x86-64 processor by CPUID.  A vector extension counts only when XGETBV says that
 * the operating system saves its registers.
 */
#include "sysinfo_private.h"

#include "base/compiler.h"

#if TN_ARCH_X86_64

#include <cpuid.h>
#include <string.h>
#if TN_HAS_AMX
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/cpu_bits.h"

struct regs {
    uint32_t a, b, c, d;
};

static struct regs cpuid(uint32_t leaf, uint32_t subleaf)
{
    struct regs r = {0, 0, 0, 0};
    /* Checks the highest leaf of the range first: a leaf beyond it returns garbage. */
    __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
    return r;
}

static uint64_t xgetbv0(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static bool has(uint32_t reg, unsigned bit)
{
    return (reg >> bit & 1) != 0;
}

/* Whether this process may use the tile registers of AMX, for which Linux must be asked.  A sandbox
 * may refuse the question later, so the permission is remembered. */
static bool may_use_tiles(uint64_t xcr0)
{
#if TN_HAS_AMX && defined(SYS_arch_prctl)
    enum { TILE_STATE = 0x60000, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    static atomic_bool is_granted;
    if ((xcr0 & TILE_STATE) == TILE_STATE && !atomic_load(&is_granted) &&
        syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0)
        atomic_store(&is_granted, true);
    return atomic_load(&is_granted);
#else
    (void)xcr0;
    return false;
#endif
}

static uint32_t read_features(void)
{
    enum { YMM_STATE = 0x06, ZMM_STATE = 0xE6 }; /* XCR0: SSE, AVX; opmask and both ZMM parts */
    struct regs l1 = cpuid(1, 0);
    struct regs l7 = cpuid(7, 0);
    struct regs l71 = l7.a >= 1 ? cpuid(7, 1) : (struct regs){0, 0, 0, 0};
    uint64_t xcr0 = has(l1.c, 27) ? xgetbv0() : 0; /* OSXSAVE */

    uint32_t features = has(l1.c, 9) ? TN_CPU_SSSE3 : 0;
    bool avx2 = (xcr0 & YMM_STATE) == YMM_STATE && has(l1.c, 28) && has(l1.c, 29) && has(l7.b, 5);
    if (!features || !avx2)
        return features;
    features |= TN_CPU_AVX2;
    if (has(l71.a, 4) && has(l1.c, 12)) /* with fused multiply-add */
        features |= TN_CPU_AVXVNNI;
    bool f_dq_bw_vl = has(l7.b, 16) && has(l7.b, 17) && has(l7.b, 30) && has(l7.b, 31);
    bool vbmi_vnni = has(l7.c, 1) && has(l7.c, 11);
    if ((xcr0 & ZMM_STATE) == ZMM_STATE && f_dq_bw_vl && vbmi_vnni)
        features |= TN_CPU_AVX512;
    bool tile_int8 = has(l7.d, 24) && has(l7.d, 25);
    if ((features & TN_CPU_AVX512) && tile_int8 && may_use_tiles(xcr0))
        features |= TN_CPU_AMX;
    return features;
}

static void read_name(char name[64])
{
    char brand[49] = "";
    for (uint32_t i = 0; i < 3; i++) {
        struct regs r = cpuid(0x80000002u + i, 0);
        memcpy(brand + 16 * i, &r, sizeof r);
    }
    const char *start = brand + strspn(brand, " ");
    size_t n = strlen(start);
    while (n > 0 && start[n - 1] == ' ')
        n--;
    memcpy(name, start, n);
    name[n] = '\0';
}

void tn_cpu_read_live(struct tern_sysinfo *out)
{
    out->cpu_features = read_features();
    read_name(out->cpu_name);
}

#else
typedef int tn_cpu_x86_is_empty; /* C requires at least one declaration */
#endif
