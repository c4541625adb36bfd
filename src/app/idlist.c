/* SPDX-License-Identifier: MIT
 *
 * Parses lists of token ids (idlist.h), for --ids and `tern detokenize`: decimal numbers with
 * blanks or commas between them.
 */
#include "idlist.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

#define SEPARATORS " \t\r\n,"

static bool append(struct tern_ids *out, uint32_t id)
{
    uint32_t *ids = tn_grow(out->ids, sizeof *ids, out->n, &out->capacity);
    if (!ids)
        return false;
    out->ids = ids;
    out->ids[out->n++] = id;
    return true;
}

static bool parse_id(const char *text, size_t n, uint32_t *id)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
        if (value > UINT32_MAX)
            return false;
    }
    *id = (uint32_t)value;
    return true;
}

tern_status tn_idlist_parse(struct tern_ids *out, const char *text, size_t n, const char *name,
                            struct tern_error *err)
{
    for (size_t i = 0; i < n;) {
        size_t start = i;
        while (i < n && !memchr(SEPARATORS, text[i], sizeof SEPARATORS - 1))
            i++;
        uint32_t id;
        if (i > start && !parse_id(text + start, i - start, &id))
            return tn_fail(err, TERN_USAGE, "%s: \"%.*s\" is not a token id", name,
                           (int)TN_MIN(i - start, (size_t)40), text + start);
        if (i > start && !append(out, id))
            return tn_fail(err, TERN_MEMORY, "no memory for %zu ids", out->n);
        i += i == start;
    }
    return TERN_OK;
}
