/* SPDX-License-Identifier: MIT
 *
 * Compiles a schema for the tests of grammars, and matches texts.  The error begins empty, so that
 * a test sees what a refusal wrote.  cmocka.h must be included before.
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

/* How much of a text matches, as tern_grammar_match, which must not fail. */
static inline size_t match(const struct tern_grammar *g, const char *text, bool *is_whole)
{
    size_t n_fit = 0;
    assert_int_equal(tern_grammar_match(g, text, strlen(text), &n_fit, is_whole, NULL), TERN_OK);
    return n_fit;
}

#endif
