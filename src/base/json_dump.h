/* SPDX-License-Identifier: MIT
 *
 * Writes JSON whose numbers people and models read: real numbers have the fewest digits that read
 * back as the same value.
 */
#ifndef TN_JSON_DUMP_H
#define TN_JSON_DUMP_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

/* Appends any value without white space, members in order.  A real number has the fewest digits
 * that read back as the same value; jansson would write 0.1 as 0.10000000000000001.  Recursive:
 * only for values made by tn_json_load, whose depth is limited.  false: out of memory; out->failed
 * is set and some output may have been appended. */
bool tn_json_dump(struct tn_buf *out, const json_t *value);

#endif
