/* SPDX-License-Identifier: MIT
 *
 * JSON, whole or not at all.
 */
#include "json_io.h"

#include "base/alloc.h"
#include "base/log.h"
#include "output.h"

void tn_json_io_init(void)
{
    json_set_alloc_funcs(tn_alloc_noted, tn_free);
}

tern_status tn_json_io_print(json_t *value, struct tern_error *err)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(value);
    bool is_short = tn_alloc_take_note();
    if (!text || is_short) {
        tn_free(text);
        return tn_fail(err, TERN_MEMORY, "no memory for the report");
    }
    tn_out_text(text);
    tn_out_text("\n");
    tn_free(text);
    return TERN_OK;
}

tern_status tn_json_io_read(json_t **value, const char *name, const char *text, size_t n,
                            size_t flags, struct tern_error *err)
{
    json_error_t e;
    *value = json_loadb(text, n, flags, &e);
    if (tn_alloc_take_note()) {
        json_decref(*value);
        *value = NULL;
        return tn_fail(err, TERN_MEMORY, "%s: no memory for %zu bytes of JSON", name, n);
    }
    if (!*value)
        return tn_fail(err, TERN_USAGE, "%s is not JSON: line %d, column %d: %s", name, e.line,
                       e.column, e.text);
    return TERN_OK;
}
