/* SPDX-License-Identifier: MIT
 *
 * Helpers of the parser: errors with their line, node allocation, and access to the next token.
 *
 * Called by parse.c and parse_expression.c.
 */
#include "text/jinja/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"

/* Prefixes a failure with the line of the next token. */
static void prefix_line(struct tn_jparser *p)
{
    char where[48];
    snprintf(where, sizeof where, "chat template, line %u", p->token->line);
    tn_fail_prefix(p->err, where);
}

struct tn_jnode *tn_jinja_fail(struct tn_jparser *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (p->status == TERN_OK) {
        p->status = tn_vfail(p->err, TERN_UNSUPPORTED, format, args);
        prefix_line(p);
    }
    va_end(args);
    return NULL;
}

static void fail_memory(struct tn_jparser *p)
{
    if (p->status != TERN_OK)
        return;
    p->status = tn_fail(p->err, p->pool->is_full ? TERN_LIMIT : TERN_MEMORY,
                        "no room for the template within %zu bytes", p->pool->max_bytes);
    prefix_line(p);
}

void *tn_jinja_take(struct tn_jparser *p, size_t n_bytes)
{
    void *bytes = p->status == TERN_OK ? tn_pool_take(p->pool, n_bytes) : NULL;
    if (!bytes)
        fail_memory(p);
    return bytes;
}

bool tn_jinja_enter(struct tn_jparser *p)
{
    if (++p->depth > TN_JINJA_MAX_DEPTH)
        tn_jinja_fail(p, "expressions nest deeper than %u", TN_JINJA_MAX_DEPTH);
    return p->depth <= TN_JINJA_MAX_DEPTH;
}

static uint32_t depth_of(const struct tn_jnode *node)
{
    return node ? node->depth : 0;
}

struct tn_jnode *tn_jinja_node(struct tn_jparser *p, enum tn_jnode_type type, struct tn_jnode *a,
                               struct tn_jnode *b)
{
    struct tn_jnode *node = tn_jinja_take(p, sizeof *node);
    if (!node)
        return NULL;
    *node = (struct tn_jnode){.type = type, .line = p->token->line, .a = a, .b = b};
    node->depth = TN_MAX(depth_of(a), depth_of(b)) + 1;
    if (node->depth > TN_JINJA_MAX_DEPTH)
        return tn_jinja_fail(p, "expressions nest deeper than %u", TN_JINJA_MAX_DEPTH);
    return node;
}

bool tn_jinja_push(struct tn_jparser *p, struct tn_jnode *parent, struct tn_jnodes *list,
                   struct tn_jnode *child)
{
    struct tn_jnode **items =
        tn_pool_grow(p->pool, list->items, sizeof *items, list->n, &list->capacity);
    if (!items) {
        fail_memory(p);
        return false;
    }
    list->items = items;
    list->items[list->n++] = child;
    parent->depth = TN_MAX(parent->depth, depth_of(child) + 1);
    if (parent->depth > TN_JINJA_MAX_DEPTH)
        tn_jinja_fail(p, "the template nests deeper than %u", TN_JINJA_MAX_DEPTH);
    return p->status == TERN_OK;
}

bool tn_jinja_set_text(struct tn_jparser *p, struct tn_jnode *node, const char *text, size_t n)
{
    struct tn_jstring *string = tn_jinja_take(p, sizeof *string);
    if (!string)
        return false;
    *string = (struct tn_jstring){.bytes = text, .n = n};
    node->value = (struct tn_jvalue){.type = TN_J_STRING, .string = string};
    return true;
}

bool tn_jinja_is_token(const struct tn_jtoken *t, enum tn_jtoken_type type, const char *text)
{
    return t->type == type && t->n == strlen(text) && memcmp(t->text, text, t->n) == 0;
}

bool tn_jinja_is_operator(const struct tn_jparser *p, const char *text)
{
    return tn_jinja_is_token(p->token, TN_T_OPERATOR, text);
}

bool tn_jinja_is_name(const struct tn_jparser *p, const char *text)
{
    return tn_jinja_is_token(p->token, TN_T_NAME, text);
}

bool tn_jinja_skip_operator(struct tn_jparser *p, const char *text)
{
    if (!tn_jinja_is_operator(p, text))
        return false;
    p->token++;
    return true;
}

bool tn_jinja_skip_name(struct tn_jparser *p, const char *text)
{
    if (!tn_jinja_is_name(p, text))
        return false;
    p->token++;
    return true;
}

bool tn_jinja_expected(struct tn_jparser *p, const char *what)
{
    static const char *const ends[] = {[TN_T_END] = "the end of the template",
                                       [TN_T_DATA] = "text",
                                       [TN_T_BLOCK_BEGIN] = "{%",
                                       [TN_T_BLOCK_END] = "%}",
                                       [TN_T_PRINT_BEGIN] = "{{",
                                       [TN_T_PRINT_END] = "}}"};
    const struct tn_jtoken *t = p->token;
    if (t->type <= TN_T_PRINT_END)
        tn_jinja_fail(p, "%s is expected, not %s", what, ends[t->type]);
    else
        tn_jinja_fail(p, "%s is expected, not \"%.*s\"", what, (int)TN_MIN(t->n, 40u), t->text);
    return false;
}

bool tn_jinja_expect_operator(struct tn_jparser *p, const char *text)
{
    return tn_jinja_skip_operator(p, text) || tn_jinja_expected(p, text);
}

bool tn_jinja_expect_name(struct tn_jparser *p, const char *text)
{
    return tn_jinja_skip_name(p, text) || tn_jinja_expected(p, text);
}

bool tn_jinja_take_name(struct tn_jparser *p, struct tn_jname *name)
{
    if (p->token->type != TN_T_NAME)
        return tn_jinja_expected(p, "a name");
    *name = (struct tn_jname){p->token->text, p->token->n};
    p->token++;
    return true;
}

bool tn_jinja_expect(struct tn_jparser *p, enum tn_jtoken_type type, const char *what)
{
    if (p->token->type != type)
        return tn_jinja_expected(p, what);
    p->token++;
    return true;
}
