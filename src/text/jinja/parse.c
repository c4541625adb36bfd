/* SPDX-License-Identifier: MIT
 *
 * Parses the statements of a template.
 *
 * Recursive descent; every node knows its height, so nesting is bounded here and not when the tree
 * is evaluated.
 */
#include "text/jinja/parse.h"

#include <string.h>

#include "base/compiler.h"

static bool expect_block_end(struct tn_jparser *p)
{
    return tn_jinja_expect(p, TN_T_BLOCK_END, "%}");
}

/* ---- bodies ---- */

static struct tn_jnode *parse_statement(struct tn_jparser *p);

/* Does "{% word" follow, for one of these space-separated words? */
static bool at_block(const struct tn_jparser *p, const char *words)
{
    if (p->token->type != TN_T_BLOCK_BEGIN || p->token[1].type != TN_T_NAME)
        return false;
    const struct tn_jtoken *name = &p->token[1];
    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");
        if (n == name->n && memcmp(w, name->text, n) == 0)
            return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

static struct tn_jnode *parse_data(struct tn_jparser *p)
{
    struct tn_jnode *node = tn_jinja_node(p, TN_N_DATA, NULL, NULL);
    if (node && !tn_jinja_set_text(p, node, p->token->text, p->token->n))
        return NULL;
    p->token++;
    return node;
}

static struct tn_jnode *parse_print(struct tn_jparser *p)
{
    p->token++;
    struct tn_jnode *a = tn_jinja_parse_tuple(p, true);
    if (!a || !tn_jinja_expect(p, TN_T_PRINT_END, "}}"))
        return NULL;
    return tn_jinja_node(p, TN_N_PRINT, a, NULL);
}

/* Parses text and tags up to "{% word" for one of the words, without consuming it; "" is the end of
 * the source. */
static bool parse_body(struct tn_jparser *p, struct tn_jnode *parent, struct tn_jnodes *list,
                       const char *words)
{
    if (++p->depth > TN_JINJA_MAX_DEPTH)
        return tn_jinja_fail(p, "blocks nest deeper than %u", TN_JINJA_MAX_DEPTH) != NULL;
    while (p->status == TERN_OK && !at_block(p, words)) {
        struct tn_jnode *node;
        if (p->token->type == TN_T_END && words[0])
            return tn_jinja_expected(p, words);
        if (p->token->type == TN_T_END)
            break;
        node = p->token->type == TN_T_DATA          ? parse_data(p)
               : p->token->type == TN_T_PRINT_BEGIN ? parse_print(p)
                                                    : parse_statement(p);
        if (node && !tn_jinja_push(p, parent, list, node))
            return false;
    }
    p->depth--;
    return p->status == TERN_OK;
}

/* Parses "%}", a body and "{% end %}". */
static bool parse_block(struct tn_jparser *p, struct tn_jnode *parent, struct tn_jnodes *list,
                        const char *end)
{
    if (!expect_block_end(p) || !parse_body(p, parent, list, end))
        return false;
    p->token += 2;
    return expect_block_end(p);
}

/* ---- statements; the parser is after the statement's name ---- */

/* The rest of an if; {% else %} and {% elif %} chain the next `if` in `other`. */
static struct tn_jnode *parse_if(struct tn_jparser *p)
{
    struct tn_jnode *condition = tn_jinja_parse_tuple(p, false);
    struct tn_jnode *node = condition ? tn_jinja_node(p, TN_N_IF, condition, NULL) : NULL;
    if (!node || !expect_block_end(p) || !parse_body(p, node, &node->list, "elif else endif"))
        return NULL;
    p->token++;
    if (tn_jinja_skip_name(p, "elif")) {
        if (++p->depth > TN_JINJA_MAX_DEPTH)
            return tn_jinja_fail(p, "more than %u elif", TN_JINJA_MAX_DEPTH);
        struct tn_jnode *next = parse_if(p);
        p->depth--;
        return next && tn_jinja_push(p, node, &node->other, next) ? node : NULL;
    }
    if (tn_jinja_skip_name(p, "else"))
        return parse_block(p, node, &node->other, "endif") ? node : NULL;
    p->token++;
    return expect_block_end(p) ? node : NULL;
}

/* Assignment targets: a, or a, b. */
static struct tn_jnode *parse_target(struct tn_jparser *p)
{
    struct tn_jnode *name = tn_jinja_node(p, TN_N_NAME, NULL, NULL);
    if (!name)
        return NULL;
    if (tn_jinja_skip_operator(p, "(")) {
        if (!tn_jinja_enter(p))
            return NULL;
        struct tn_jnode *inner = parse_target(p);
        p->depth--;
        return inner && tn_jinja_expect_operator(p, ")") ? inner : NULL;
    }
    if (!tn_jinja_take_name(p, &name->name))
        return NULL;
    if (!tn_jinja_is_operator(p, ","))
        return name;
    struct tn_jnode *tuple = tn_jinja_node(p, TN_N_TUPLE, NULL, NULL);
    bool is_good = tuple && tn_jinja_push(p, tuple, &tuple->list, name);
    while (is_good && tn_jinja_skip_operator(p, ",") && p->token->type == TN_T_NAME &&
           !tn_jinja_is_name(p, "in")) {
        name = tn_jinja_node(p, TN_N_NAME, NULL, NULL);
        is_good = name && tn_jinja_take_name(p, &name->name) &&
                  tn_jinja_push(p, tuple, &tuple->list, name);
    }
    return is_good ? tuple : NULL;
}

static struct tn_jnode *parse_for(struct tn_jparser *p)
{
    struct tn_jnode *target = parse_target(p);
    if (!target || !tn_jinja_expect_name(p, "in"))
        return NULL;
    struct tn_jnode *items = tn_jinja_parse_tuple(p, false);
    struct tn_jnode *node = items ? tn_jinja_node(p, TN_N_FOR, items, target) : NULL;
    if (!node)
        return NULL;
    if (tn_jinja_skip_name(p, "if") && !(node->c = tn_jinja_parse_expression(p, true)))
        return NULL;
    if (tn_jinja_is_name(p, "recursive"))
        return tn_jinja_fail(p, "recursive loops are not supported");
    p->loop_depth++;
    bool is_good = expect_block_end(p) && parse_body(p, node, &node->list, "else endfor");
    p->loop_depth--;
    if (!is_good)
        return NULL;
    p->token++;
    if (tn_jinja_skip_name(p, "else"))
        return parse_block(p, node, &node->other, "endfor") ? node : NULL;
    p->token++;
    return expect_block_end(p) ? node : NULL;
}

/* The target of {% set %}: names, or an attribute of a namespace. */
static struct tn_jnode *parse_set_target(struct tn_jparser *p)
{
    const struct tn_jtoken *t = p->token;
    if (t->type != TN_T_NAME || !tn_jinja_is_token(&t[1], TN_T_OPERATOR, "."))
        return parse_target(p);
    struct tn_jnode *space = tn_jinja_node(p, TN_N_NAME, NULL, NULL);
    if (!space || !tn_jinja_take_name(p, &space->name))
        return NULL;
    p->token++;
    struct tn_jnode *node = tn_jinja_node(p, TN_N_ATTRIBUTE, space, NULL);
    return node && tn_jinja_take_name(p, &node->name) ? node : NULL;
}

static struct tn_jnode *parse_set(struct tn_jparser *p)
{
    struct tn_jnode *target = parse_set_target(p);
    if (!target)
        return NULL;
    if (tn_jinja_skip_operator(p, "=")) {
        struct tn_jnode *value = tn_jinja_parse_tuple(p, true);
        return value && expect_block_end(p) ? tn_jinja_node(p, TN_N_SET, value, target) : NULL;
    }
    struct tn_jnode *filter = NULL;
    if (tn_jinja_is_operator(p, "|") && !(filter = tn_jinja_parse_filters(p, NULL, false)))
        return NULL;
    struct tn_jnode *node = tn_jinja_node(p, TN_N_SET_BLOCK, filter, target);
    return node && parse_block(p, node, &node->list, "endset") ? node : NULL;
}

/* Parses the "(a, b=1)" of a macro into node->other. */
static bool parse_signature(struct tn_jparser *p, struct tn_jnode *node)
{
    if (!tn_jinja_expect_operator(p, "("))
        return false;
    while (!tn_jinja_is_operator(p, ")")) {
        struct tn_jnode *argument = tn_jinja_node(p, TN_N_ARGUMENT, NULL, NULL);
        if (!argument || !tn_jinja_take_name(p, &argument->name))
            return false;
        if (tn_jinja_skip_operator(p, "=") && !(argument->a = tn_jinja_parse_expression(p, true)))
            return false;
        argument->depth += argument->a ? argument->a->depth : 0;
        if (!tn_jinja_push(p, node, &node->other, argument))
            return false;
        if (!tn_jinja_skip_operator(p, ","))
            break;
    }
    return tn_jinja_expect_operator(p, ")");
}

/* break and continue cannot leave a macro or call block for a loop around it. */
static bool parse_callable(struct tn_jparser *p, struct tn_jnode *node, const char *end)
{
    uint32_t loop_depth = p->loop_depth, uses = p->uses;
    p->loop_depth = p->uses = 0;
    bool is_good = parse_block(p, node, &node->list, end);
    node->uses = p->uses;
    p->loop_depth = loop_depth;
    p->uses |= uses;
    return is_good;
}

static struct tn_jnode *parse_macro(struct tn_jparser *p)
{
    struct tn_jnode *node = tn_jinja_node(p, TN_N_MACRO, NULL, NULL);
    return node && tn_jinja_take_name(p, &node->name) && parse_signature(p, node) &&
                   parse_callable(p, node, "endmacro")
               ? node
               : NULL;
}

static struct tn_jnode *parse_call_block(struct tn_jparser *p)
{
    struct tn_jnode *node = tn_jinja_node(p, TN_N_CALL_BLOCK, NULL, NULL);
    if (!node || (tn_jinja_is_operator(p, "(") && !parse_signature(p, node)))
        return NULL;
    node->a = tn_jinja_parse_expression(p, true);
    if (node->a && node->a->type != TN_N_CALL)
        return tn_jinja_fail(p, "a call block needs a call");
    return node->a && parse_callable(p, node, "endcall") ? node : NULL;
}

static struct tn_jnode *parse_filter_block(struct tn_jparser *p)
{
    struct tn_jnode *filter = tn_jinja_parse_filters(p, NULL, true);
    struct tn_jnode *node = filter ? tn_jinja_node(p, TN_N_FILTER_BLOCK, filter, NULL) : NULL;
    return node && parse_block(p, node, &node->list, "endfilter") ? node : NULL;
}

static struct tn_jnode *parse_with(struct tn_jparser *p)
{
    struct tn_jnode *node = tn_jinja_node(p, TN_N_WITH, NULL, NULL);
    while (node && p->token->type != TN_T_BLOCK_END) {
        struct tn_jnode *target = tn_jinja_node(p, TN_N_NAME, NULL, NULL);
        if (!target || !tn_jinja_take_name(p, &target->name) || !tn_jinja_expect_operator(p, "="))
            return NULL;
        struct tn_jnode *value = tn_jinja_parse_expression(p, true);
        struct tn_jnode *set = value ? tn_jinja_node(p, TN_N_SET, value, target) : NULL;
        if (!set || !tn_jinja_push(p, node, &node->other, set))
            return NULL;
        if (!tn_jinja_skip_operator(p, ","))
            break;
    }
    return node && parse_block(p, node, &node->list, "endwith") ? node : NULL;
}

static struct tn_jnode *parse_generation(struct tn_jparser *p)
{
    struct tn_jnode *node = tn_jinja_node(p, TN_N_SCOPE, NULL, NULL);
    return node && parse_callable(p, node, "endgeneration") ? node : NULL;
}

static struct tn_jnode *parse_jump(struct tn_jparser *p, enum tn_jnode_type type)
{
    if (p->loop_depth == 0)
        return tn_jinja_fail(p, "break or continue outside of a loop");
    return expect_block_end(p) ? tn_jinja_node(p, type, NULL, NULL) : NULL;
}

static struct tn_jnode *parse_break(struct tn_jparser *p)
{
    return parse_jump(p, TN_N_BREAK);
}

static struct tn_jnode *parse_continue(struct tn_jparser *p)
{
    return parse_jump(p, TN_N_CONTINUE);
}

static struct tn_jnode *parse_statement(struct tn_jparser *p)
{
    static const struct {
        const char *name;
        struct tn_jnode *(*parse)(struct tn_jparser *p);
    } statements[] = {
        {"if", parse_if},
        {"for", parse_for},
        {"set", parse_set},
        {"macro", parse_macro},
        {"break", parse_break},
        {"continue", parse_continue},
        {"filter", parse_filter_block},
        {"call", parse_call_block},
        {"with", parse_with},
        {"generation", parse_generation},
    };
    p->token++;
    for (size_t i = 0; i < TN_COUNT_OF(statements); i++)
        if (tn_jinja_skip_name(p, statements[i].name))
            return statements[i].parse(p);
    return tn_jinja_fail(p, "the tag \"%.*s\" is not supported", (int)TN_MIN(p->token->n, 40u),
                         p->token->n ? p->token->text : "");
}

bool tn_jinja_parse_template(struct tn_jparser *p, struct tn_jnodes *body)
{
    struct tn_jnode root = {0};
    *body = (struct tn_jnodes){0};
    return parse_body(p, &root, body, "");
}
