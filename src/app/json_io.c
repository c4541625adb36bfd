/* SPDX-License-Identifier: MIT
 *
 * Prints and reads JSON, complete or not at all (json_io.h): wraps jansson's allocation functions
 * to record failures.
 */
#include "json_io.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/json_load.h"
#include "output.h"

/* Whether an allocation has failed since a value was last printed or read.  Any thread may use
 * JSON. */
static _Atomic bool is_short;

static void *alloc_noted(size_t n_bytes)
{
    void *p = tn_alloc(n_bytes);
    if (!p)
        atomic_store(&is_short, true);
    return p;
}

static bool take_note(void)
{
    return atomic_exchange(&is_short, false);
}

void tn_json_io_init(void)
{
    json_set_alloc_funcs(alloc_noted, tn_free);
}

tern_status tn_json_io_print(json_t *value, struct tern_error *err)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(6));
    json_decref(value);
    if (take_note() || !text) {
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
    struct tern_error why;
    char what[100];
    snprintf(what, sizeof what, "%s is not JSON", name);
    tern_status status = tn_json_load(value, what, text, n, flags, &why);
    if (status == TERN_MEMORY) {
        (void)take_note();
        return tn_fail(err, status, "%s: no memory for %zu bytes of JSON", name, n);
    }
    return status == TERN_OK ? TERN_OK : tn_fail(err, TERN_USAGE, "%s", why.detail);
}

json_t *tn_json_io_text(const char *text)
{
    json_t *string = text ? json_string(text) : NULL;
    return string ? string : json_null();
}

json_t *tn_json_io_part(const char *text)
{
    json_t *value;
    if (tn_json_load(&value, "", text, strlen(text), JSON_DECODE_ANY, NULL) == TERN_MEMORY)
        atomic_store(&is_short, true);
    return value;
}
