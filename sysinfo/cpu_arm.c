/* SPDX-License-Identifier: MIT
 *
 * Features of a 64-bit Arm processor, as reported by the operating system, because programs may not
 * read the registers that describe them.
 */
#include "sysinfo_private.h"

#include "base/compiler.h"

#if TN_ARCH_AARCH64

#include <string.h>

#include "base/cpu_bits.h"

#if defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_WIN32)
#include <windows.h>
#else
#include <sys/auxv.h>
#endif

#if defined(__APPLE__)

static bool has_feature(const char *name)
{
    int value = 0;
    size_t n = sizeof value;
    return sysctlbyname(name, &value, &n, NULL, 0) == 0 && value != 0;
}

void tn_cpu_read_live(struct tern_sysinfo *out)
{
    out->cpu_features = TN_CPU_NEON;
    if (has_feature("hw.optional.arm.FEAT_DotProd"))
        out->cpu_features |= TN_CPU_DOTPROD;
    if (has_feature("hw.optional.arm.FEAT_I8MM"))
        out->cpu_features |= TN_CPU_I8MM;
    size_t n = sizeof out->cpu_name;
    if (sysctlbyname("machdep.cpu.brand_string", out->cpu_name, &n, NULL, 0) != 0)
        out->cpu_name[0] = '\0';
    out->cpu_name[sizeof out->cpu_name - 1] = '\0';
}

#elif defined(_WIN32)

void tn_cpu_read_live(struct tern_sysinfo *out)
{
    /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE: by number,
     * older headers lack the names. */
    enum { DOTPROD = 43, I8MM = 66 };
    out->cpu_features = TN_CPU_NEON;
    if (IsProcessorFeaturePresent(DOTPROD))
        out->cpu_features |= TN_CPU_DOTPROD;
    if (IsProcessorFeaturePresent(I8MM))
        out->cpu_features |= TN_CPU_I8MM;
    DWORD n = sizeof out->cpu_name;
    if (RegGetValueA(HKEY_LOCAL_MACHINE, "HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                     "ProcessorNameString", RRF_RT_REG_SZ, NULL, out->cpu_name, &n) != 0)
        out->cpu_name[0] = '\0';
}

#else

void tn_cpu_read_live(struct tern_sysinfo *out)
{
    /* Bits of the kernel's interface: HWCAP_ASIMD, HWCAP_ASIMDDP, HWCAP2_I8MM. */
    enum { ASIMD = 1, ASIMDDP = 20, I8MM = 13 };
    unsigned long hwcap = getauxval(AT_HWCAP), hwcap2 = getauxval(AT_HWCAP2);
    if (!(hwcap >> ASIMD & 1))
        return;
    out->cpu_features = TN_CPU_NEON;
    if (hwcap >> ASIMDDP & 1) {
        out->cpu_features |= TN_CPU_DOTPROD;
        if (hwcap2 >> I8MM & 1)
            out->cpu_features |= TN_CPU_I8MM;
    }
    tn_cpu_name_from_proc(out, "");
}

#endif

#else
typedef int tn_cpu_arm_is_empty; /* C requires at least one declaration */
#endif
