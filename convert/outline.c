/* SPDX-License-Identifier: MIT
 *
 * Computes the sizes of a converted model before conversion (outline.h): later layers copy the
 * layouts that the survey found for the first one.
 */
#include "convert/outline.h"

#include "base/alloc.h"
#include "base/error.h"
#include "convert/gguf/gguf.h"
#include "file/model_file.h"

/* The row of the first layer with this role, else the first projection of that layer. */
static const struct tn_tensor_plan_row *find_example(const struct tn_tensor_plan *plan,
                                                     const struct tn_tensor_plan_row *row)
{
    const struct tn_tensor_plan_row *example = NULL;
    for (uint32_t i = 0; i < plan->n_tensors && plan->tensors[i].file.layer == 0; i++) {
        const struct tn_tensor_plan_row *t = &plan->tensors[i];
        if (t->file.role == row->file.role)
            return t;
        const struct tn_slot *slot = tn_slot_of(t->file.role);
        if (!example && !tn_slot_is_vector(slot) && slot->kind != TN_SLOT_FLOATS)
            example = t;
    }
    return example;
}

/* Only floats have an undetermined kind. */
static void take_after(struct tn_tensor_plan_row *row, const struct tn_tensor_plan_row *example)
{
    row->scales = (struct tn_scale_facts){.is_one = true, .value = 1, .group = row->file.cols};
    if (row->kind == TN_TENSOR_EXACT && tn_tensor_is_dense(example))
        row->kind = TN_TENSOR_FLOATS;
    if (tn_tensor_is_dense(row))
        row->narrow_layout = example->narrow_layout;
    if (!tn_tensor_is_ternary(row) || !tn_tensor_is_ternary(example))
        return;
    row->scales = example->scales;
    if (example->scales.group == example->file.cols)
        row->scales.group = row->file.cols;
}

static tern_status settle(struct tn_tensor_plan *plan, struct tn_config_import *import,
                          struct tern_error *err)
{
    const struct tern_convert_params params = {.head = TERN_HEAD_AUTO};
    for (uint32_t i = 0; i < plan->n_tensors; i++) {
        struct tn_tensor_plan_row *row = &plan->tensors[i];
        const struct tn_tensor_plan_row *example =
            row->file.layer == 0 ? NULL : find_example(plan, row);
        if (example)
            take_after(row, example);
    }
    return tn_tensor_plan_settle(plan, import, &params, err);
}

/* Makes the records of the file, in its order, without rope factors. */
static bool place_tensors(struct tern_file_tensor *tensors, uint32_t *n, uint64_t *end,
                          const struct tn_tensor_plan *plan)
{
    *n = 0;
    *end = 0;
    for (uint32_t i = 0; i < plan->n_tensors; i++) {
        const struct tn_tensor_plan_row *row = &plan->tensors[i];
        if (row->i_matrix > 0 || row->kind == TN_TENSOR_FACTORS)
            continue;
        tensors[*n] = row->file;
        if (!tn_tensor_put(&tensors[(*n)++], end))
            return false;
    }
    return true;
}

static tern_status measure(struct tern_source_sizes *out, const struct tern_file_tensor *tensors,
                           uint32_t n, uint64_t end, const struct tn_config_import *import,
                           struct tern_error *err)
{
    struct tern_model_info info;
    tern_status status = tern_plan_outline_sizes(&out->plan, &info, &import->config, import->layers,
                                                 tensors, n, end, err);
    if (status != TERN_OK)
        return status;
    out->plan.file_bytes += tn_model_file_data_align(end); /* the size of the head is at least
                                                            * this */
    out->table_bytes = info.head_bytes;
    out->bytes_per_token = info.bytes_per_token;
    return TERN_OK;
}

tern_status tn_outline_settled(struct tern_source_sizes *out, const struct tn_tensor_plan *plan,
                               const struct tn_config_import *import, struct tern_error *err)
{
    uint32_t n;
    uint64_t end;
    struct tern_file_tensor *tensors = tn_alloc_zeroed(plan->n_tensors, sizeof *tensors);
    if (!tensors)
        return tn_fail(err, TERN_MEMORY, "no memory to plan %u tensors", plan->n_tensors);
    tern_status status = place_tensors(tensors, &n, &end, plan)
                             ? measure(out, tensors, n, end, import, err)
                             : tn_fail(err, TERN_LIMIT, "the model is too large for a file");
    tn_free(tensors);
    return status;
}

tern_status tn_outline_sizes(struct tern_source_sizes *out, struct tn_tensor_plan *plan,
                             struct tn_config_import *import, struct tern_error *err)
{
    tern_status status = settle(plan, import, err);
    return status == TERN_OK ? tn_outline_settled(out, plan, import, err) : status;
}
