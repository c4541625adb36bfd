/* SPDX-License-Identifier: MIT
 *
 * The functions that an answer may call, and which of their arguments are text.  Their schemas are
 * not enforced: an answer may call other functions or have other arguments.
 */
#ifndef TN_CALL_TOOLS_H
#define TN_CALL_TOOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "tern/calls.h"

/* What a value between tags can be. */
enum tn_call_value {
    TN_CALL_TEXT,         /* always a string */
    TN_CALL_TEXT_OR_NULL, /* a string, unless it is null */
    TN_CALL_JSON          /* JSON if it can be read as such, otherwise a string */
};

/* Is there a function of this name?  false without tools. */
bool tn_call_tools_have(const struct tern_call_tools *tools, const char *name, size_t n);
/* What the schema of the function says about an argument.  TN_CALL_JSON if it says nothing. */
enum tn_call_value tn_call_tools_value(const struct tern_call_tools *tools, const char *function,
                                       const char *argument);

#endif
