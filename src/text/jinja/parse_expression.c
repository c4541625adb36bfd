/* SPDX-License-Identifier: MIT
 *
 * Parses expressions by Jinja2's grammar, from lowest to highest precedence:
 *
 *   if-else > or > and > not > comparison > + - > ~ > * / // % > ** > unary
 *   > primary > .name [index] (call) > | filter, is test
 */
#include "text/jinja/parse.h"

#include <string.h>

#include "base/compiler.h"

static struct tn_jnode *parse_or(struct tn_jparser *p);

/* ---- primary ---- */

static struct tn_jnode *make_const(struct tn_jparser *p, struct tn_jvalue value)
{
    struct tn_jnode *node = tn_jinja_node(p, TN_N_CONST, NULL, NULL);
    if (node)
        node->value = value;
    return node;
}

static struct tn_jnode *parse_name(struct tn_jparser *p)
{
    static const struct {
        const char *name;
        struct tn_jvalue value;
    } constants[] = {
        {"true", {.type = TN_J_BOOL, .boolean = true}},
        {"True", {.type = TN_J_BOOL, .boolean = true}},
        {"false", {.type = TN_J_BOOL, .boolean = false}},
        {"False", {.type = TN_J_BOOL, .boolean = false}},
        {"none", {.type = TN_J_NONE}},
        {"None", {.type = TN_J_NONE}},
    };
    for (size_t i = 0; i < TN_COUNT_OF(constants); i++)
        if (tn_jinja_skip_name(p, constants[i].name))
            return make_const(p, constants[i].value);
    p->uses |= tn_jinja_is_name(p, "varargs")  ? TN_USES_VARARGS
               : tn_jinja_is_name(p, "kwargs") ? TN_USES_KWARGS
               : tn_jinja_is_name(p, "caller") ? TN_USES_CALLER
                                               : 0;
    struct tn_jnode *node = tn_jinja_node(p, TN_N_NAME, NULL, NULL);
    return node && tn_jinja_take_name(p, &node->name) ? node : NULL;
}

/* Adjacent literals are concatenated. */
static struct tn_jnode *parse_string(struct tn_jparser *p)
{
    size_t n = 0;
    for (const struct tn_jtoken *t = p->token; t->type == TN_T_STRING; t++)
        n += t->n;
    struct tn_jnode *node = tn_jinja_node(p, TN_N_CONST, NULL, NULL);
    char *text = tn_jinja_take(p, n + 1);
    if (!text)
        return NULL;
    for (n = 0; p->token->type == TN_T_STRING; p->token++) {
        memcpy(text + n, p->token->text, p->token->n);
        n += p->token->n;
    }
    return tn_jinja_set_text(p, node, text, n) ? node : NULL;
}

static struct tn_jnode *parse_list(struct tn_jparser *p)
{
    struct tn_jnode *list = tn_jinja_node(p, TN_N_LIST, NULL, NULL);
    while (list && !tn_jinja_is_operator(p, "]")) {
        struct tn_jnode *item = tn_jinja_parse_expression(p, true);
        if (!item || !tn_jinja_push(p, list, &list->list, item))
            return NULL;
        if (!tn_jinja_skip_operator(p, ","))
            break;
    }
    return list && tn_jinja_expect_operator(p, "]") ? list : NULL;
}

static struct tn_jnode *parse_dict(struct tn_jparser *p)
{
    struct tn_jnode *dict = tn_jinja_node(p, TN_N_DICT, NULL, NULL);
    while (dict && !tn_jinja_is_operator(p, "}")) {
        struct tn_jnode *key = tn_jinja_parse_expression(p, true);
        if (!key || !tn_jinja_expect_operator(p, ":"))
            return NULL;
        struct tn_jnode *value = tn_jinja_parse_expression(p, true);
        struct tn_jnode *pair = value ? tn_jinja_node(p, TN_N_PAIR, key, value) : NULL;
        if (!pair || !tn_jinja_push(p, dict, &dict->list, pair))
            return NULL;
        if (!tn_jinja_skip_operator(p, ","))
            break;
    }
    return dict && tn_jinja_expect_operator(p, "}") ? dict : NULL;
}

/* After "(": a parenthesised expression or a tuple. */
static struct tn_jnode *parse_brackets(struct tn_jparser *p)
{
    if (tn_jinja_skip_operator(p, ")"))
        return tn_jinja_node(p, TN_N_TUPLE, NULL, NULL);
    struct tn_jnode *inner = tn_jinja_parse_tuple(p, true);
    return inner && tn_jinja_expect_operator(p, ")") ? inner : NULL;
}

static struct tn_jnode *parse_primary(struct tn_jparser *p)
{
    const struct tn_jtoken *token = p->token;
    switch (token->type) {
    case TN_T_NAME:
        return parse_name(p);
    case TN_T_STRING:
        return parse_string(p);
    case TN_T_INT:
        p->token++;
        return make_const(p, tn_j_int(token->integer));
    case TN_T_FLOAT:
        p->token++;
        return make_const(p, tn_j_float(token->real));
    default:
        break;
    }
    if (tn_jinja_skip_operator(p, "("))
        return parse_brackets(p);
    if (tn_jinja_skip_operator(p, "["))
        return parse_list(p);
    if (tn_jinja_skip_operator(p, "{"))
        return parse_dict(p);
    return tn_jinja_fail(p, "an expression is expected before \"%.*s\"", (int)TN_MIN(token->n, 40u),
                         token->n ? token->text : "");
}

/* ---- postfixes ---- */

static struct tn_jnode *parse_argument(struct tn_jparser *p, bool *is_keyword)
{
    const struct tn_jtoken *next = p->token->type == TN_T_END ? p->token : p->token + 1;
    *is_keyword = p->token->type == TN_T_NAME && next->type == TN_T_OPERATOR && next->n == 1 &&
                  next->text[0] == '=';
    if (tn_jinja_is_operator(p, "*") || tn_jinja_is_operator(p, "**"))
        return tn_jinja_fail(p, "* and ** before arguments are not supported");
    if (!*is_keyword)
        return tn_jinja_parse_expression(p, true);
    struct tn_jname name;
    tn_jinja_take_name(p, &name);
    p->token++;
    struct tn_jnode *value = tn_jinja_parse_expression(p, true);
    struct tn_jnode *node = value ? tn_jinja_node(p, TN_N_KEYWORD, value, NULL) : NULL;
    if (node)
        node->name = name;
    return node;
}

/* After "(": parses arguments through ")" into node->list; named ones come last. */
static bool parse_arguments(struct tn_jparser *p, struct tn_jnode *node)
{
    bool seen_keyword = false, is_keyword;
    while (!tn_jinja_is_operator(p, ")")) {
        struct tn_jnode *argument = parse_argument(p, &is_keyword);
        if (!argument || !tn_jinja_push(p, node, &node->list, argument))
            return false;
        if (seen_keyword && !is_keyword)
            return tn_jinja_fail(p, "an argument without a name follows one with a name") != NULL;
        seen_keyword = is_keyword;
        if (!tn_jinja_skip_operator(p, ","))
            break;
    }
    return tn_jinja_expect_operator(p, ")");
}

static struct tn_jnode *parse_call(struct tn_jparser *p, struct tn_jnode *callee)
{
    struct tn_jnode *node = tn_jinja_node(p, TN_N_CALL, callee, NULL);
    return node && parse_arguments(p, node) ? node : NULL;
}

/* Parses one bound of begin:end:step; *bound is NULL if omitted. */
static bool parse_slice_bound(struct tn_jparser *p, struct tn_jnode **bound)
{
    *bound = NULL;
    if (tn_jinja_is_operator(p, ":") || tn_jinja_is_operator(p, "]"))
        return true;
    *bound = tn_jinja_parse_expression(p, true);
    return *bound != NULL;
}

/* After "[": an index or a slice, and "]". */
static struct tn_jnode *parse_subscript(struct tn_jparser *p, struct tn_jnode *of)
{
    struct tn_jnode *parts[3] = {0};
    size_t n = 0;
    do {
        if (n == 3)
            return tn_jinja_fail(p, "a slice has at most three bounds");
        if (!parse_slice_bound(p, &parts[n++]))
            return NULL;
    } while (tn_jinja_skip_operator(p, ":"));
    if (!tn_jinja_expect_operator(p, "]"))
        return NULL;
    if (n == 1)
        return parts[0] ? tn_jinja_node(p, TN_N_ITEM, of, parts[0])
                        : tn_jinja_fail(p, "an index is expected between [ and ]");
    struct tn_jnode *node = tn_jinja_node(p, TN_N_SLICE, of, NULL);
    for (size_t i = 0; node && i < 3; i++)
        if (!tn_jinja_push(p, node, &node->list, parts[i]))
            return NULL;
    return node;
}

/* After ".": a name, or an index as in message.0. */
static struct tn_jnode *parse_attribute(struct tn_jparser *p, struct tn_jnode *of)
{
    if (p->token->type == TN_T_INT) {
        struct tn_jnode *index = parse_primary(p);
        return index ? tn_jinja_node(p, TN_N_ITEM, of, index) : NULL;
    }
    struct tn_jnode *node = tn_jinja_node(p, TN_N_ATTRIBUTE, of, NULL);
    return node && tn_jinja_take_name(p, &node->name) ? node : NULL;
}

static struct tn_jnode *parse_postfix(struct tn_jparser *p, struct tn_jnode *node)
{
    while (node) {
        if (tn_jinja_skip_operator(p, "."))
            node = parse_attribute(p, node);
        else if (tn_jinja_skip_operator(p, "["))
            node = parse_subscript(p, node);
        else if (tn_jinja_skip_operator(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* ---- filters and tests ---- */

static struct tn_jnode *parse_filter(struct tn_jparser *p, struct tn_jnode *of)
{
    struct tn_jnode *node = tn_jinja_node(p, TN_N_FILTER, of, NULL);
    if (!node || !tn_jinja_take_name(p, &node->name))
        return NULL;
    if (tn_jinja_skip_operator(p, "(") && !parse_arguments(p, node))
        return NULL;
    return node;
}

/* Does an argument without parentheses follow the name of a test?  "is divisibleby 3"; Jinja2 takes
 * even `if` for such an argument. */
static bool begins_argument(const struct tn_jparser *p)
{
    const struct tn_jtoken *t = p->token;
    if (t->type == TN_T_STRING || t->type == TN_T_INT || t->type == TN_T_FLOAT)
        return true;
    if (t->type == TN_T_NAME)
        return !tn_jinja_is_name(p, "else") && !tn_jinja_is_name(p, "or") &&
               !tn_jinja_is_name(p, "and");
    return tn_jinja_is_operator(p, "[") || tn_jinja_is_operator(p, "{");
}

/* After "is". */
static struct tn_jnode *parse_test(struct tn_jparser *p, struct tn_jnode *of)
{
    bool is_negated = tn_jinja_skip_name(p, "not");
    struct tn_jnode *node = tn_jinja_node(p, TN_N_TEST, of, NULL);
    if (!node || !tn_jinja_take_name(p, &node->name))
        return NULL;
    if (tn_jinja_skip_operator(p, "(")) {
        if (!parse_arguments(p, node))
            return NULL;
    } else if (begins_argument(p)) {
        if (tn_jinja_is_name(p, "is"))
            return tn_jinja_fail(p, "tests cannot be chained with \"is\"");
        struct tn_jnode *argument = parse_postfix(p, parse_primary(p));
        if (!argument || !tn_jinja_push(p, node, &node->list, argument))
            return NULL;
    }
    return is_negated ? tn_jinja_node(p, TN_N_NOT, node, NULL) : node;
}

struct tn_jnode *tn_jinja_parse_filters(struct tn_jparser *p, struct tn_jnode *node, bool is_start)
{
    if (is_start)
        node = parse_filter(p, node);
    while (p->status == TERN_OK) {
        if (tn_jinja_skip_operator(p, "|"))
            node = parse_filter(p, node);
        else if (node && tn_jinja_skip_name(p, "is"))
            node = parse_test(p, node);
        else if (node && tn_jinja_skip_operator(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return p->status == TERN_OK ? node : NULL;
}

/* ---- operators ---- */

static struct tn_jnode *parse_unary(struct tn_jparser *p, bool with_filters)
{
    struct tn_jnode *node;
    if (!tn_jinja_enter(p))
        return NULL;
    bool is_minus = tn_jinja_skip_operator(p, "-");
    if (is_minus || tn_jinja_skip_operator(p, "+")) {
        node = parse_unary(p, false);
        node = node ? tn_jinja_node(p, is_minus ? TN_N_NEGATE : TN_N_PLUS, node, NULL) : NULL;
    } else {
        node = parse_primary(p);
    }
    node = parse_postfix(p, node);
    p->depth--;
    return with_filters && node ? tn_jinja_parse_filters(p, node, false) : node;
}

struct binary {
    const char *text;
    enum tn_joperator op;
};

/* Consumes the next token if it is an operator of the list (terminated by a NULL text); NULL: it is
 * not. */
static const struct binary *skip_binary(struct tn_jparser *p, const struct binary *operators)
{
    for (; operators->text; operators++)
        if (tn_jinja_skip_operator(p, operators->text))
            return operators;
    return NULL;
}

static struct tn_jnode *make_binary(struct tn_jparser *p, enum tn_joperator op, struct tn_jnode *a,
                                    struct tn_jnode *b)
{
    struct tn_jnode *node = b ? tn_jinja_node(p, TN_N_BINARY, a, b) : NULL;
    if (node)
        node->op = op;
    return node;
}

static struct tn_jnode *parse_pow(struct tn_jparser *p)
{
    struct tn_jnode *node = parse_unary(p, true);
    while (node && tn_jinja_skip_operator(p, "**"))
        node = make_binary(p, TN_OP_POW, node, parse_unary(p, true));
    return node;
}

static struct tn_jnode *parse_product(struct tn_jparser *p)
{
    static const struct binary operators[] = {{"*", TN_OP_MUL},
                                              {"/", TN_OP_DIV},
                                              {"//", TN_OP_FLOOR_DIV},
                                              {"%", TN_OP_MOD},
                                              {NULL, TN_OP_MUL}};
    const struct binary *op;
    struct tn_jnode *node = parse_pow(p);
    while (node && (op = skip_binary(p, operators)) != NULL)
        node = make_binary(p, op->op, node, parse_pow(p));
    return node;
}

static struct tn_jnode *parse_concat(struct tn_jparser *p)
{
    struct tn_jnode *node = parse_product(p);
    if (!node || !tn_jinja_is_operator(p, "~"))
        return node;
    struct tn_jnode *concat = tn_jinja_node(p, TN_N_CONCAT, NULL, NULL);
    bool is_good = concat && tn_jinja_push(p, concat, &concat->list, node);
    while (is_good && tn_jinja_skip_operator(p, "~")) {
        node = parse_product(p);
        is_good = node && tn_jinja_push(p, concat, &concat->list, node);
    }
    return is_good ? concat : NULL;
}

static struct tn_jnode *parse_sum(struct tn_jparser *p)
{
    static const struct binary operators[] = {
        {"+", TN_OP_ADD}, {"-", TN_OP_SUB}, {NULL, TN_OP_ADD}};
    const struct binary *op;
    struct tn_jnode *node = parse_concat(p);
    while (node && (op = skip_binary(p, operators)) != NULL)
        node = make_binary(p, op->op, node, parse_concat(p));
    return node;
}

static bool skip_comparison(struct tn_jparser *p, enum tn_joperator *op)
{
    static const struct binary operators[] = {{"==", TN_OP_EQ}, {"!=", TN_OP_NE}, {"<=", TN_OP_LE},
                                              {">=", TN_OP_GE}, {"<", TN_OP_LT},  {">", TN_OP_GT},
                                              {NULL, TN_OP_EQ}};
    const struct binary *found = skip_binary(p, operators);
    const struct tn_jtoken *t = p->token;
    if (found) {
        *op = found->op;
        return true;
    }
    if (tn_jinja_skip_name(p, "in")) {
        *op = TN_OP_IN;
        return true;
    }
    if (!tn_jinja_is_name(p, "not") || t[1].type != TN_T_NAME || t[1].n != 2 ||
        memcmp(t[1].text, "in", 2) != 0)
        return false;
    p->token += 2;
    *op = TN_OP_NOT_IN;
    return true;
}

static struct tn_jnode *parse_comparison(struct tn_jparser *p)
{
    enum tn_joperator op;
    struct tn_jnode *node = parse_sum(p), *compare = NULL;
    while (node && skip_comparison(p, &op)) {
        struct tn_jnode *value = parse_sum(p);
        struct tn_jnode *operand = value ? tn_jinja_node(p, TN_N_OPERAND, value, NULL) : NULL;
        if (!compare)
            compare = tn_jinja_node(p, TN_N_COMPARE, node, NULL);
        if (!operand || !compare || !tn_jinja_push(p, compare, &compare->list, operand))
            return NULL;
        operand->op = op;
    }
    return compare ? compare : node;
}

static struct tn_jnode *parse_not(struct tn_jparser *p)
{
    if (!tn_jinja_skip_name(p, "not"))
        return parse_comparison(p);
    if (!tn_jinja_enter(p))
        return NULL;
    struct tn_jnode *node = parse_not(p);
    p->depth--;
    return node ? tn_jinja_node(p, TN_N_NOT, node, NULL) : NULL;
}

static struct tn_jnode *parse_and(struct tn_jparser *p)
{
    struct tn_jnode *node = parse_not(p);
    while (node && tn_jinja_skip_name(p, "and")) {
        struct tn_jnode *right = parse_not(p);
        node = right ? tn_jinja_node(p, TN_N_AND, node, right) : NULL;
    }
    return node;
}

static struct tn_jnode *parse_or(struct tn_jparser *p)
{
    struct tn_jnode *node = parse_and(p);
    while (node && tn_jinja_skip_name(p, "or")) {
        struct tn_jnode *right = parse_and(p);
        node = right ? tn_jinja_node(p, TN_N_OR, node, right) : NULL;
    }
    return node;
}

/* After "if" of "a if b else c". */
static struct tn_jnode *parse_if_else(struct tn_jparser *p, struct tn_jnode *a)
{
    struct tn_jnode *condition = parse_or(p);
    struct tn_jnode *node = condition ? tn_jinja_node(p, TN_N_IF_ELSE, a, condition) : NULL;
    if (!node || !tn_jinja_skip_name(p, "else"))
        return node;
    node->c = tn_jinja_parse_expression(p, true);
    if (!node->c)
        return NULL;
    node->depth = TN_MAX(node->depth, node->c->depth + 1);
    return node;
}

struct tn_jnode *tn_jinja_parse_expression(struct tn_jparser *p, bool with_if_else)
{
    if (!tn_jinja_enter(p))
        return NULL;
    struct tn_jnode *node = parse_or(p);
    while (node && with_if_else && tn_jinja_skip_name(p, "if"))
        node = parse_if_else(p, node);
    p->depth--;
    return node;
}

/* Is the next token unable to start an expression?  A tuple may end with a comma. */
static bool ends_tuple(const struct tn_jparser *p)
{
    return p->token->type == TN_T_BLOCK_END || p->token->type == TN_T_PRINT_END ||
           tn_jinja_is_operator(p, ")") || tn_jinja_is_name(p, "in");
}

struct tn_jnode *tn_jinja_parse_tuple(struct tn_jparser *p, bool with_if_else)
{
    struct tn_jnode *first = tn_jinja_parse_expression(p, with_if_else);
    if (!first || !tn_jinja_is_operator(p, ","))
        return first;
    struct tn_jnode *tuple = tn_jinja_node(p, TN_N_TUPLE, NULL, NULL);
    bool is_good = tuple && tn_jinja_push(p, tuple, &tuple->list, first);
    while (is_good && tn_jinja_skip_operator(p, ",") && !ends_tuple(p)) {
        struct tn_jnode *item = tn_jinja_parse_expression(p, with_if_else);
        is_good = item && tn_jinja_push(p, tuple, &tuple->list, item);
    }
    return is_good ? tuple : NULL;
}
