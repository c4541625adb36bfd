/* SPDX-License-Identifier: MIT
 *
 * The kernel levels of each architecture, and the selection of one by name or by CPU features.
 *
 * Refusals list the levels that this CPU can run.
 */
#include "engine/cpu_level.h"

#include <string.h>

#include "base/buf.h"
#include "base/cpu_bits.h"
#include "base/error.h"

const struct tn_cpu_level tn_cpu_levels[] = {
    {"ref", 0},
#if TN_ARCH_X86_64
    {"ssse3", TN_CPU_SSSE3},
    {"avx2", TN_CPU_SSSE3 | TN_CPU_AVX2},
    {"avxvnni", TN_CPU_SSSE3 | TN_CPU_AVX2 | TN_CPU_AVXVNNI},
    {"avx512", TN_CPU_SSSE3 | TN_CPU_AVX2 | TN_CPU_AVX512},
#if TN_HAS_AMX
    {"amx", TN_CPU_SSSE3 | TN_CPU_AVX2 | TN_CPU_AVX512 | TN_CPU_AMX},
#endif
#elif TN_ARCH_AARCH64
    {"neon", TN_CPU_NEON},
    {"dotprod", TN_CPU_NEON | TN_CPU_DOTPROD},
    {"i8mm", TN_CPU_NEON | TN_CPU_DOTPROD | TN_CPU_I8MM},
#endif
};
const uint32_t tn_n_cpu_levels = TN_COUNT_OF(tn_cpu_levels);

/* The highest level whose features the CPU has. */
static const struct tn_cpu_level *best_level(uint32_t features)
{
    const struct tn_cpu_level *best = &tn_cpu_levels[0];
    for (uint32_t i = 1; i < tn_n_cpu_levels; i++)
        if ((tn_cpu_levels[i].features & ~features) == 0)
            best = &tn_cpu_levels[i];
    return best;
}

/* Lists the levels that `features` allow: "ref, ssse3, avx2". */
static const char *list_levels(struct tn_buf *buf, uint32_t features)
{
    for (uint32_t i = 0; i < tn_n_cpu_levels; i++)
        if ((tn_cpu_levels[i].features & ~features) == 0)
            tn_buf_printf(buf, "%s%s", buf->n_bytes ? ", " : "", tn_cpu_levels[i].name);
    return tn_buf_text(buf);
}

tern_status tn_cpu_level_choose(const struct tn_cpu_level **out, const char *name,
                                uint32_t features, struct tern_error *err)
{
    *out = best_level(features);
    if (!name)
        return tn_ok(err);
    for (uint32_t i = 0; i < tn_n_cpu_levels; i++)
        if (strcmp(name, tn_cpu_levels[i].name) == 0)
            *out = &tn_cpu_levels[i];
    bool known = strcmp((*out)->name, name) == 0;
    if (known && ((*out)->features & ~features) == 0)
        return tn_ok(err);
    struct tn_buf buf = {0};
    const char *levels = list_levels(&buf, features);
    tern_status status =
        known ? tn_fail(err, TERN_UNSUPPORTED, "this CPU lacks level \"%s\"; it has: %s", name,
                        levels)
              : tn_fail(err, TERN_USAGE, "unknown CPU level \"%s\"; this CPU has: %s", name,
                        levels);
    tn_buf_fini(&buf);
    return status;
}
