/* SPDX-License-Identifier: MIT
 *
 * The table of formats: finds the constant row for a layout and scale kind of a file, from the list
 * in formats/formats.h.
 */
#include "model/format.h"

#include "base/compiler.h"
#include "model/acts.h"
#include "model/formats/formats.h"

static const struct tn_format *const formats[] = {
#define FORMAT_ROW(name) &tn_format_##name,
    TN_FORMAT_LIST(FORMAT_ROW)
#undef FORMAT_ROW
};

const struct tn_format *tn_format_find(uint32_t layout, uint32_t scale_kind)
{
    for (size_t i = 0; i < TN_COUNT_OF(formats); i++)
        if (formats[i]->layout == layout && formats[i]->scale_kinds >> scale_kind & 1)
            return formats[i];
    return NULL;
}

void tn_format_mul(const struct tn_format *format, const struct tn_mul *m)
{
    const uint32_t n = m->x->n;
    tn_mul_fn *mul = n == 1                ? format->mul_one
                     : n <= format->n_few ? format->mul_few
                                          : format->mul_panel;
    mul(m);
}
