/* SPDX-License-Identifier: MIT
 *
 * Names that Qwen3.5, its models with experts and Qwen3-Next share for their tensors, single and
 * fused.
 */
#ifndef TN_QWEN35_H
#define TN_QWEN35_H

#include "arch/family.h"

extern const struct tn_family_name tn_qwen35_names[];
extern const struct tn_fused tn_qwen35_fused[];

#endif
