/* SPDX-License-Identifier: MIT
 *
 * Kernel selection: one pass over kern_list.h, in which the last row whose needs the CPU meets
 * wins. Called once per engine; also lists every implementation for tests and benchmarks.
 */
#include "kern/kern.h"

#include "base/cpu_bits.h"

void tn_kernels_select(struct tn_kernels *out, uint32_t features)
{
#define TN_KERN(op, isa, needs)                                                                    \
    if (((needs) & ~features) == 0)                                                                \
        out->op = tn_##op##_##isa;
#include "kern/kern_list.h"
#undef TN_KERN
}

const struct tn_kernel_row tn_kernel_rows[] = {
#define TN_KERN(op, isa, needs) {#op, #isa, (needs), (void (*)(void))tn_##op##_##isa},
#include "kern/kern_list.h"
#undef TN_KERN
};
const uint32_t tn_n_kernel_rows = TN_COUNT_OF(tn_kernel_rows);
