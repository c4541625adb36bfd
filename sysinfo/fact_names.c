/* SPDX-License-Identifier: MIT
 *
 * Names of bounds on memory, of groups of facts and of processor features, for messages and for
 * JSON output.
 */
#include "base/compiler.h"
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
    static const struct {
        uint32_t bit;
        const char *text;
    } features[] = {{TN_CPU_SSSE3, "ssse3"},     {TN_CPU_AVX2, "avx2"},
                    {TN_CPU_AVXVNNI, "avxvnni"}, {TN_CPU_AVX512, "avx512"},
                    {TN_CPU_AMX, "amx"},         {TN_CPU_NEON, "neon"},
                    {TN_CPU_DOTPROD, "dotprod"}, {TN_CPU_I8MM, "i8mm"}};
    for (size_t k = 0; k < TN_COUNT_OF(features) && i < 32; k++)
        if (features[k].bit == 1u << i)
            return features[k].text;
    return NULL;
}
