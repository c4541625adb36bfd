/* SPDX-License-Identifier: MIT
 *
 * Compiles a schema for the tests of grammars.  The error begins empty, so that a test sees what a
 * refusal wrote.
 */
#ifndef TEST_COMPILE_SCHEMA_H
#define TEST_COMPILE_SCHEMA_H

#include <string.h>

#include "grammar/grammar.h"

#define OBJECT(members) "{\"type\":\"object\"," members ",\"additionalProperties\":false}"

static inline tern_status compile(struct tern_grammar **g, const char *schema, uint32_t flags,
                           struct tern_error *err)
{
    *err = (struct tern_error){TERN_OK, ""};
    return tern_grammar_from_schema(g, schema, strlen(schema), flags, err);
}

#endif
