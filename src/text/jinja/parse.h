/* SPDX-License-Identifier: MIT
 *
 * Tokens -> tree: what parse.c (statements) and parse_expression.c share.
 */
#ifndef TN_JINJA_PARSE_H
#define TN_JINJA_PARSE_H

#include "base/compiler.h"
#include "text/jinja/ast.h"
#include "text/jinja/lex.h"

/* The first failure is kept in `status`; from then on every function returns NULL or false and the
 * caller's checks of pointers lead out. */
struct tn_jparser {
    const struct tn_jtoken *token; /* the next one */
    struct tn_pool *pool;
    uint32_t depth;      /* of recursion */
    uint32_t loop_depth; /* loops around: break and continue need one */
    uint32_t uses;       /* enum tn_juses of the body at hand */
    tern_status status;
    struct tern_error *err;
};

/* Body of a template; NULL list and status set on failure. */
bool tn_jinja_parse_template(struct tn_jparser *p, struct tn_jnodes *body);

/* ---- expressions ---- */

struct tn_jnode *tn_jinja_parse_expression(struct tn_jparser *p, bool with_if_else);
/* One expression, or several with commas between them: a tuple. */
struct tn_jnode *tn_jinja_parse_tuple(struct tn_jparser *p, bool with_if_else);
/* "| name(arguments) | ..." behind `node`; with is_start the first name without its bar. */
struct tn_jnode *tn_jinja_parse_filters(struct tn_jparser *p, struct tn_jnode *node, bool is_start);

/* ---- parse_tokens.c ---- */

struct tn_jnode *tn_jinja_fail(struct tn_jparser *p, const char *format, ...) TN_PRINTF(2, 3);
/* Memory of the template's pool, NULL and status set without. */
void *tn_jinja_take(struct tn_jparser *p, size_t n_bytes);
/* Makes a constant of the node: text of the template. */
bool tn_jinja_set_text(struct tn_jparser *p, struct tn_jnode *node, const char *text, size_t n);
/* A node at the next token's line, with children that may be NULL; NULL without memory or when it
 * nests too deeply. */
struct tn_jnode *tn_jinja_node(struct tn_jparser *p, enum tn_jnode_type type, struct tn_jnode *a,
                               struct tn_jnode *b);
bool tn_jinja_push(struct tn_jparser *p, struct tn_jnode *parent, struct tn_jnodes *list,
                   struct tn_jnode *child);
bool tn_jinja_is_token(const struct tn_jtoken *token, enum tn_jtoken_type type, const char *text);
bool tn_jinja_is_operator(const struct tn_jparser *p, const char *text);
bool tn_jinja_is_name(const struct tn_jparser *p, const char *text);
/* Consumes the token if it is the one. */
bool tn_jinja_skip_operator(struct tn_jparser *p, const char *text);
bool tn_jinja_skip_name(struct tn_jparser *p, const char *text);
bool tn_jinja_expect_operator(struct tn_jparser *p, const char *text);
bool tn_jinja_expect_name(struct tn_jparser *p, const char *text);
/* Fails: `what` is expected, not the next token.  false. */
bool tn_jinja_expected(struct tn_jparser *p, const char *what);
/* A token of that type, which messages call `what`. */
bool tn_jinja_expect(struct tn_jparser *p, enum tn_jtoken_type type, const char *what);
/* Any name. */
bool tn_jinja_take_name(struct tn_jparser *p, struct tn_jname *name);

#endif
