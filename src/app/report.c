/* SPDX-License-Identifier: MIT
 *
 * Reports in JSON.
 */
#include "report.h"

#include "base/alloc.h"
#include "base/log.h"
#include "output.h"

static bool ran_out_of_memory;

static void *allocate(size_t n)
{
    void *p = tn_alloc(n);
    if (!p)
        ran_out_of_memory = true;
    return p;
}

void tn_report_init(void)
{
    json_set_alloc_funcs(allocate, tn_free);
}

tern_status tn_report_print(json_t *report, struct tern_error *err)
{
    char *text = json_dumps(report, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(report);
    if (!text || ran_out_of_memory) {
        tn_free(text);
        ran_out_of_memory = false;
        return tn_fail(err, TERN_MEMORY, "no memory for the report");
    }
    tn_out_text(text);
    tn_out_text("\n");
    tn_free(text);
    return TERN_OK;
}
