/* SPDX-License-Identifier: MIT
 *
 * Depth check and loading of JSON files.
 */
#include "json_scan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

/* Index of the quote that ends the string which starts at text[i - 1], or n. */
static size_t skip_string(const char *text, size_t n, size_t i)
{
    while (i < n && text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
    return i < n ? i : n;
}

tern_status tn_json_check_depth(const char *text, size_t n, uint32_t max_depth,
                                struct tern_error *err)
{
    uint32_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        switch (text[i]) {
        case '"':
            i = skip_string(text, n, i + 1);
            break;
        case '{':
        case '[':
            if (++depth > max_depth)
                return tn_fail(err, TERN_INPUT,
                               "JSON nests deeper than %u levels (at byte %zu)", max_depth, i);
            break;
        case '}':
        case ']':
            if (depth > 0)
                depth--;
            break;
        default:
            break;
        }
    }
    return TERN_OK;
}

tern_status tn_json_load(json_t **out, const char *name, const char *text, size_t n, size_t flags,
                         struct tern_error *err)
{
    *out = NULL;
    struct tern_error depth_error;
    if (tn_json_check_depth(text, n, TN_JSON_MAX_DEPTH, &depth_error) != TERN_OK)
        return tn_fail(err, TERN_INPUT, "%s: %s", name, depth_error.detail);
    /* jansson takes some failed allocations for errors of syntax, and overlooks others. */
    json_set_alloc_funcs(tn_alloc_noted, tn_free);
    (void)tn_alloc_take_note();
    json_error_t parse_error;
    *out = json_loadb(text, n, flags, &parse_error);
    if (tn_alloc_take_note()) {
        json_decref(*out);
        *out = NULL;
        return tn_fail(err, TERN_MEMORY, "%s: not enough memory to parse %zu bytes", name, n);
    }
    if (*out)
        return TERN_OK;
    return tn_fail(err, TERN_INPUT, "%s: line %d, column %d: %s", name, parse_error.line,
                   parse_error.column, parse_error.text);
}
