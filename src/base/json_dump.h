/* SPDX-License-Identifier: MIT
 *
 * Writing JSON where people and models read the numbers.
 */
#ifndef TN_JSON_DUMP_H
#define TN_JSON_DUMP_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"

/* Appends any value without white space, members in their order.  A real number has the fewest
 * digits that are read as the same, where jansson writes 0.1 as 0.10000000000000001.  Recurses: for
 * what tn_json_load made.  false: memory is short, out->failed, and a part may be there. */
bool tn_json_dump(struct tn_buf *out, const json_t *value);

#endif
