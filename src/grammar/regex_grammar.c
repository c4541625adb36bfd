/* SPDX-License-Identifier: MIT
 *
 * A grammar of the texts that match a regular expression: one rule, whose automaton string_rule.c
 * makes.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "grammar/preamble_rule.h"
#include "grammar/string_rule.h"

static tern_status compile(struct tern_grammar *g, const char *expression,
                           const struct tern_grammar_preamble *preamble, struct tern_error *err)
{
    uint64_t steps = TERN_GRAMMAR_MAX_STEPS;
    tn_grammar_state(g); /* state 0 means "none" */
    tn_grammar_begin(g, preamble);
    const uint32_t start = tn_grammar_state(g);
    tn_grammar_empty(g, g->parts, start);
    const tern_status status = tn_string_rule_of_text(g, start, expression, &steps, err);
    if (status != TERN_OK)
        return status;
    uint32_t state;
    return g->failed ? tn_grammar_fail(g, err) : tn_grammar_finish(g, &state, err);
}

tern_status tern_grammar_from_regex(struct tern_grammar **out, const char *expression,
                                    const struct tern_grammar_preamble *preamble,
                                    struct tern_error *err)
{
    struct tern_grammar *g = tn_alloc_zeroed(1, sizeof *g);
    const tern_status status = g ? compile(g, expression, preamble, err)
                                 : tn_fail(err, TERN_MEMORY, "no memory for a grammar");
    *out = status == TERN_OK ? g : NULL;
    if (status != TERN_OK)
        tern_grammar_free(g);
    return status;
}
