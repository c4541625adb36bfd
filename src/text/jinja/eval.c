/* SPDX-License-Identifier: MIT
 *
 * Evaluates expressions.
 *
 * Recurses over the syntax tree; depth and steps are charged to the run.  Values follow Python's
 * semantics, where Jinja2 inherits them.
 */
#include "text/jinja/eval.h"

/* ---- names ---- */

static const struct tn_jvalue *find_variable(struct tn_jrun *run, struct tn_jname name)
{
    for (const struct tn_jframe *frame = run->frame; frame; frame = frame->parent) {
        tn_jrun_step(run, frame->n / 8);
        for (size_t i = frame->n; i-- > 0;)
            if (tn_jname_equal(frame->variables[i].name, name))
                return &frame->variables[i].value;
    }
    return tn_jrun_find(run, run->context, name.text, name.n);
}

static struct tn_jvalue eval_name(struct tn_jrun *run, const struct tn_jnode *node)
{
    const struct tn_jvalue *found = find_variable(run, node->name);
    if (found)
        return *found;
    const struct tn_jfunction *function = tn_jinja_find_function(node->name);
    if (function)
        return (struct tn_jvalue){.type = TN_J_FUNCTION, .function = function};
    return (struct tn_jvalue){.type = TN_J_UNDEFINED};
}

/* ---- containers ---- */

static struct tn_jvalue eval_list(struct tn_jrun *run, const struct tn_jnode *node)
{
    enum tn_jtype type = node->type == TN_N_LIST ? TN_J_LIST : TN_J_TUPLE;
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, type, node->list.n));
    for (size_t i = 0; i < node->list.n && run->status == TERN_OK; i++)
        tn_jrun_add(run, list, tn_jrun_eval(run, node->list.items[i]));
    return list;
}

static struct tn_jvalue eval_dict(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jvalue dict = tn_jrun_made(run, tn_j_dict(run->pool, TN_J_DICT));
    for (size_t i = 0; i < node->list.n && run->status == TERN_OK; i++) {
        struct tn_jvalue key = tn_jrun_eval(run, node->list.items[i]->a);
        struct tn_jvalue value = tn_jrun_eval(run, node->list.items[i]->b);
        if (!tn_j_is_hashable(key, &run->work))
            return tn_jrun_fail(run, TERN_USAGE, "a %s cannot be a key", tn_j_type_name(key));
        tn_jrun_set(run, dict, key, value);
    }
    return dict;
}

static struct tn_jvalue eval_slice(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jvalue bounds[3];
    struct tn_jvalue of = tn_jrun_eval(run, node->a);
    for (size_t i = 0; i < 3; i++)
        bounds[i] = node->list.items[i] ? tn_jrun_eval(run, node->list.items[i]) : tn_j_none();
    return run->status == TERN_OK ? tn_jrun_slice(run, of, bounds) : of;
}

static struct tn_jvalue eval_item(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jvalue object = tn_jrun_eval(run, node->a);
    struct tn_jvalue key = tn_jrun_eval(run, node->b);
    return run->status == TERN_OK ? tn_jrun_item(run, object, key) : object;
}

/* ---- operators ---- */

static struct tn_jvalue eval_concat(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jsink sink = {0};
    for (size_t i = 0; i < node->list.n && run->status == TERN_OK; i++)
        tn_jsink_put_str(run, &sink, tn_jrun_eval(run, node->list.items[i]));
    return tn_jsink_take(run, &sink);
}

/* a < b < c holds if every adjacent pair does. */
static struct tn_jvalue eval_compare(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jvalue left = tn_jrun_eval(run, node->a);
    for (size_t i = 0; i < node->list.n && run->status == TERN_OK; i++) {
        const struct tn_jnode *operand = node->list.items[i];
        struct tn_jvalue right = tn_jrun_eval(run, operand->a);
        if (run->status == TERN_OK && !tn_jrun_compare(run, operand->op, left, right))
            return tn_j_bool(false);
        left = right;
    }
    return tn_j_bool(true);
}

static struct tn_jvalue eval_sign(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jvalue v = tn_jrun_eval(run, node->a);
    if (run->status != TERN_OK)
        return v;
    if (!tn_j_is_number(v))
        return tn_jrun_fail(run, TERN_USAGE, "a %s has no sign", tn_j_type_name(v));
    if (v.type == TN_J_FLOAT)
        return tn_j_float(node->type == TN_N_PLUS ? v.real : -v.real); /* keeps the sign of -0.0 */
    return node->type == TN_N_PLUS ? tn_jrun_binary(run, TN_OP_ADD, tn_j_int(0), v)
                                   : tn_jrun_binary(run, TN_OP_SUB, tn_j_int(0), v);
}

/* `and` and `or` return one of their operands, as in Python. */
static struct tn_jvalue eval_logic(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jvalue a = tn_jrun_eval(run, node->a);
    return tn_j_is_true(a) == (node->type == TN_N_AND) ? tn_jrun_eval(run, node->b) : a;
}

static struct tn_jvalue eval_if_else(struct tn_jrun *run, const struct tn_jnode *node)
{
    if (tn_j_is_true(tn_jrun_eval(run, node->b)))
        return tn_jrun_eval(run, node->a);
    return node->c ? tn_jrun_eval(run, node->c) : (struct tn_jvalue){0};
}

static struct tn_jvalue eval_binary(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jvalue a = tn_jrun_eval(run, node->a);
    struct tn_jvalue b = tn_jrun_eval(run, node->b);
    return run->status == TERN_OK ? tn_jrun_binary(run, node->op, a, b) : a;
}

/* ---- calls, filters, tests ---- */

static struct tn_jvalue eval_call(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jargs args;
    struct tn_jvalue callee = tn_jrun_eval(run, node->a);
    const struct tn_jname *name = &node->a->name;
    if (callee.type == TN_J_UNDEFINED && run->status == TERN_OK && name->n)
        return tn_jrun_fail(run, TERN_UNSUPPORTED, "the function or method \"%.*s\" is not known",
                            (int)TN_MIN(name->n, (size_t)40), name->text);
    return tn_jrun_arguments(run, &args, &node->list) ? tn_jrun_call(run, callee, &args)
                                                      : (struct tn_jvalue){0};
}

static struct tn_jvalue eval_filter(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jargs args;
    struct tn_jvalue v = tn_jrun_eval(run, node->a);
    return tn_jrun_arguments(run, &args, &node->list) ? tn_jrun_filter(run, node->name, v, &args)
                                                      : v;
}

static struct tn_jvalue eval_test(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jargs args;
    struct tn_jvalue v = tn_jrun_eval(run, node->a);
    return tn_j_bool(tn_jrun_arguments(run, &args, &node->list) &&
                     tn_jrun_test(run, node->name, v, &args));
}

static struct tn_jvalue eval_node(struct tn_jrun *run, const struct tn_jnode *node)
{
    switch (node->type) {
    case TN_N_CONST:
        return node->value;
    case TN_N_NAME:
        return eval_name(run, node);
    case TN_N_LIST:
    case TN_N_TUPLE:
        return eval_list(run, node);
    case TN_N_DICT:
        return eval_dict(run, node);
    case TN_N_ATTRIBUTE:
        return tn_jrun_attribute(run, tn_jrun_eval(run, node->a), node->name, false);
    case TN_N_ITEM:
        return eval_item(run, node);
    case TN_N_SLICE:
        return eval_slice(run, node);
    case TN_N_CALL:
        return eval_call(run, node);
    case TN_N_FILTER:
        return eval_filter(run, node);
    case TN_N_TEST:
        return eval_test(run, node);
    case TN_N_NOT:
        return tn_j_bool(!tn_j_is_true(tn_jrun_eval(run, node->a)));
    case TN_N_AND:
    case TN_N_OR:
        return eval_logic(run, node);
    case TN_N_IF_ELSE:
        return eval_if_else(run, node);
    case TN_N_NEGATE:
    case TN_N_PLUS:
        return eval_sign(run, node);
    case TN_N_BINARY:
        return eval_binary(run, node);
    case TN_N_CONCAT:
        return eval_concat(run, node);
    case TN_N_COMPARE:
        return eval_compare(run, node);
    default:
        return tn_jrun_fail(run, TERN_INTERNAL, "found a statement instead of an expression");
    }
}

struct tn_jvalue tn_jrun_eval(struct tn_jrun *run, const struct tn_jnode *node)
{
    if (run->status == TERN_OK)
        run->line = node->line;
    if (!tn_jrun_enter(run))
        return (struct tn_jvalue){0};
    struct tn_jvalue v = eval_node(run, node);
    run->depth--;
    return v;
}
