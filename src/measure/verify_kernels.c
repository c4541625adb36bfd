/* SPDX-License-Identifier: MIT
 *
 * Compares every kernel level of this CPU with the reference, operation by operation, on the file's
 * own first rows.
 *
 * Levels inherit operations from lower ones; an inherited one is compared again at no great cost.
 */
#include "measure/verify_kernels.h"

#include <string.h>

#include "base/error.h"
#include "engine/cpu_level.h"
#include "measure/kernel_cases.h"

/* Number of operations that this level implements itself. */
static uint32_t count_own(const char *level)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        n += strcmp(tn_kernel_rows[i].isa, level) == 0;
    return n;
}

static uint64_t hash_of(const struct tn_kernel_case *c, struct tn_case_work *w,
                        const struct tn_kernels *kernels)
{
    w->hash = 0;
    (void)c->run(w, kernels);
    return w->hash;
}

static tern_status verify_level(struct tn_case_work *w, const struct tn_cpu_level *level,
                                struct tern_error *err)
{
    struct tn_kernels ref, kernels;
    tn_kernels_select(&ref, 0);
    tn_kernels_select(&kernels, level->features);
    for (uint32_t i = 0; i < tn_n_kernel_cases; i++) {
        const struct tn_kernel_case *c = &tn_kernel_cases[i];
        const bool is_equal = hash_of(c, w, &ref) == hash_of(c, w, &kernels);
        if (w->should_stop && w->should_stop(w->arg))
            return tn_fail(err, TERN_INTERRUPTED, "interrupted while the kernels were compared");
        if (!is_equal)
            return tn_fail(err, TERN_INTERNAL,
                           "the %s kernel %s differs from the reference on this model; please "
                           "report this CPU",
                           level->name, c->op);
    }
    return TERN_OK;
}

tern_status tn_verify_kernels(struct tern_verify_result *result, const struct tern_model *model,
                              uint32_t features, bool (*should_stop)(void *arg), void *arg,
                              struct tern_error *err)
{
    static const struct tn_case_size size = {.n_rows = TN_GEMM_ROWS,
                                             .n_layers = 1,
                                             .n_gemm = 1,
                                             .n_tokens = 17, /* a tile of AMX, and one more */
                                             .n_pos = TN_KV_BLOCK - 3,
                                             .with_stand_ins = true};
    struct tn_case_work w;
    tern_status status = tn_case_work_init(&w, model, &size, err);
    if (status != TERN_OK)
        return status;
    w.hashes = true;
    w.should_stop = should_stop;
    w.arg = arg;
    for (uint32_t i = 0; i < tn_n_cpu_levels && status == TERN_OK; i++) {
        if (tn_cpu_levels[i].features & ~features)
            continue;
        status = verify_level(&w, &tn_cpu_levels[i], err);
        if (status == TERN_OK)
            result->levels[result->n_levels++] =
                (struct tern_verify_level){.name = tn_cpu_levels[i].name,
                                           .n_operations = tn_n_kernel_cases,
                                           .n_own = count_own(tn_cpu_levels[i].name)};
    }
    tn_case_work_fini(&w);
    return status;
}
