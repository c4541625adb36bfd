/* SPDX-License-Identifier: MIT
 *
 * Turns tokens into the syntax tree: what parse.c (statements), parse_expression.c and
 * parse_tokens.c share.
 *
 * Called by jinja.c through tn_jinja_parse_template.
 */
#ifndef TN_JINJA_PARSE_H
#define TN_JINJA_PARSE_H

#include "base/compiler.h"
#include "text/jinja/ast.h"
#include "text/jinja/lex.h"

/* The first failure is kept in `status`; afterwards every function returns NULL or false, and the
 * callers' checks unwind. */
struct tn_jparser {
    const struct tn_jtoken *token; /* the next one */
    struct tn_pool *pool;
    uint32_t depth;      /* of recursion */
    uint32_t loop_depth; /* enclosing loops: break and continue need one */
    uint32_t uses;       /* enum tn_juses of the current body */
    tern_status status;
    struct tern_error *err;
};

/* Parses a template.  false: p->status is set. */
bool tn_jinja_parse_template(struct tn_jparser *p, struct tn_jnodes *body);

/* ---- expressions ---- */

struct tn_jnode *tn_jinja_parse_expression(struct tn_jparser *p, bool with_if_else);
/* One expression, or a tuple of several separated by commas. */
struct tn_jnode *tn_jinja_parse_tuple(struct tn_jparser *p, bool with_if_else);
/* Parses "| name(arguments) | ..." after `node`; with is_start, the first name has no bar. */
struct tn_jnode *tn_jinja_parse_filters(struct tn_jparser *p, struct tn_jnode *node, bool is_start);

/* ---- parse_tokens.c ---- */

struct tn_jnode *tn_jinja_fail(struct tn_jparser *p, const char *format, ...) TN_PRINTF(2, 3);
/* Enters one nesting level of an expression; leave with p->depth--.  false: too deep. */
bool tn_jinja_enter(struct tn_jparser *p);
/* Allocates from the template's pool; NULL with p->status set on failure. */
void *tn_jinja_take(struct tn_jparser *p, size_t n_bytes);
/* Turns the node into a constant: text of the template. */
bool tn_jinja_set_text(struct tn_jparser *p, struct tn_jnode *node, const char *text, size_t n);
/* A node at the next token's line; children may be NULL.  NULL: out of memory or nested too deeply.
 */
struct tn_jnode *tn_jinja_node(struct tn_jparser *p, enum tn_jnode_type type, struct tn_jnode *a,
                               struct tn_jnode *b);
bool tn_jinja_push(struct tn_jparser *p, struct tn_jnode *parent, struct tn_jnodes *list,
                   struct tn_jnode *child);
bool tn_jinja_is_token(const struct tn_jtoken *token, enum tn_jtoken_type type, const char *text);
bool tn_jinja_is_operator(const struct tn_jparser *p, const char *text);
bool tn_jinja_is_name(const struct tn_jparser *p, const char *text);
/* Consumes the token if it matches. */
bool tn_jinja_skip_operator(struct tn_jparser *p, const char *text);
bool tn_jinja_skip_name(struct tn_jparser *p, const char *text);
bool tn_jinja_expect_operator(struct tn_jparser *p, const char *text);
bool tn_jinja_expect_name(struct tn_jparser *p, const char *text);
/* Fails because `what` was expected instead of the next token.  Returns false. */
bool tn_jinja_expected(struct tn_jparser *p, const char *what);
/* Consumes a token of that type; messages call it `what`. */
bool tn_jinja_expect(struct tn_jparser *p, enum tn_jtoken_type type, const char *what);
/* Consumes any name. */
bool tn_jinja_take_name(struct tn_jparser *p, struct tn_jname *name);

#endif
