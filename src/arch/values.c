/* SPDX-License-Identifier: MIT
 *
 * Reads one value through the functions of a source (values.h), by the name that this kind of
 * source uses for it.
 */
#include "arch/values.h"

#include "base/error.h"

tern_status tn_values_number(const struct tn_values *v, double *out, const struct tn_value *value,
                             bool is_required)
{
    const char *name = v->is_gguf ? value->gguf : value->hf;
    return name ? v->number(v, out, name, value->min, value->max, is_required) : TERN_OK;
}

tern_status tn_values_integer(const struct tn_values *v, uint32_t *out,
                              const struct tn_value *value, bool is_required)
{
    const char *name = v->is_gguf ? value->gguf : value->hf;
    return name ? v->integer(v, out, name, (uint32_t)value->min, (uint32_t)value->max, is_required)
                : TERN_OK;
}

tern_status tn_values_refuse(const struct tn_values *v, const char *what)
{
    return tn_fail(v->err, TERN_UNSUPPORTED, "%s: %s is not supported",
                   v->is_gguf ? "the file's keys" : "config.json", what);
}

tern_status tn_values_truth(const struct tn_values *v, bool *out, const char *hf, const char *gguf)
{
    const char *name = v->is_gguf ? gguf : hf;
    return name ? v->truth(v, out, name) : TERN_OK;
}

bool tn_values_has_folder_key(const struct tn_values *v, const char *name)
{
    return !v->is_gguf && v->has_key(v, name);
}

bool tn_values_has_tensor(const struct tn_values *v, const char *hf, const char *gguf)
{
    const char *name = v->is_gguf ? gguf : hf;
    return name && v->has_tensor(v, name);
}
