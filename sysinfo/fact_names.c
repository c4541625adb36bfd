/* SPDX-License-Identifier: MIT
 *
 * Names of bounds on memory, of groups of facts and of processor features, for messages and for
 * JSON output.
 */
#include "base/cpu_bits.h"
#include "sysinfo_private.h"

const char *tern_bound_text(enum tern_bound bound)
{
    static const char *const texts[TERN_BOUND_COUNT] = {
        "unknown", "meminfo", "cgroup", "rlimit_as", "rlimit_data", "job", "commit", "user"};
    return (unsigned)bound < TERN_BOUND_COUNT ? texts[bound] : texts[0];
}

const char *tern_fact_text(uint32_t i)
{
    static const char *const texts[TERN_N_FACTS] = {
        "CPU topology", "CPU affinity",   "CPU quota",       "/proc/meminfo",
        "cgroup memory limit", "process limits", "memory pressure", "process.json"};
    return i < TERN_N_FACTS ? texts[i] : NULL;
}

const char *tern_cpu_feature_text(uint32_t i)
{
    switch (i < 32 ? 1u << i : 0) {
    case TN_CPU_SSSE3:
        return "ssse3";
    case TN_CPU_AVX2:
        return "avx2";
    case TN_CPU_AVXVNNI:
        return "avxvnni";
    case TN_CPU_AVX512:
        return "avx512";
    case TN_CPU_AMX:
        return "amx";
    case TN_CPU_NEON:
        return "neon";
    case TN_CPU_DOTPROD:
        return "dotprod";
    case TN_CPU_I8MM:
        return "i8mm";
    default:
        return NULL;
    }
}
