/* SPDX-License-Identifier: MIT
 *
 * Executes statements.
 *
 * Scopes follow Jinja2: a loop's body and its else, a macro, a call block, a filter block and a
 * with block each have a new scope per pass; `if` has none.  One difference remains: where a name
 * is set after an inner scope that reads it, that scope sees the outer value, and nothing in
 * Jinja2.
 */
#include <string.h>

#include "text/jinja/eval.h"

/* ---- names ---- */

struct tn_jframe *tn_jrun_push_frame(struct tn_jrun *run, struct tn_jframe *parent)
{
    struct tn_jframe *frame = tn_jrun_take(run, sizeof *frame);
    if (frame)
        frame->parent = parent;
    return frame;
}

void tn_jrun_define(struct tn_jrun *run, struct tn_jframe *frame, struct tn_jname name,
                    struct tn_jvalue value)
{
    if (!tn_jrun_step(run, frame->n / 8))
        return;
    for (size_t i = 0; i < frame->n; i++)
        if (tn_jname_equal(frame->variables[i].name, name)) {
            frame->variables[i].value = value;
            return;
        }
    struct tn_jvariable *variables = tn_pool_grow(run->pool, frame->variables, sizeof *variables,
                                                  frame->n, &frame->capacity);
    if (!variables) {
        tn_jrun_fail_memory(run);
        return;
    }
    frame->variables = variables;
    frame->variables[frame->n++] = (struct tn_jvariable){name, value};
}

/* a, b = value */
static void unpack(struct tn_jrun *run, const struct tn_jnode *target, struct tn_jvalue value)
{
    struct tn_jvalue items = tn_jrun_items(run, value);
    if (run->status != TERN_OK)
        return;
    if (items.list->n != target->list.n) {
        tn_jrun_fail(run, TERN_USAGE, "%zu values for %zu names", items.list->n, target->list.n);
        return;
    }
    for (size_t i = 0; i < items.list->n; i++)
        tn_jrun_define(run, run->frame, target->list.items[i]->name, items.list->items[i]);
}

static void assign(struct tn_jrun *run, const struct tn_jnode *target, struct tn_jvalue value)
{
    if (run->status != TERN_OK)
        return;
    if (target->type == TN_N_NAME) {
        tn_jrun_define(run, run->frame, target->name, value);
    } else if (target->type == TN_N_TUPLE) {
        unpack(run, target, value);
    } else {
        struct tn_jvalue space = tn_jrun_eval(run, target->a);
        struct tn_jvalue key =
            tn_jrun_made(run, tn_j_text(run->pool, target->name.text, target->name.n, false));
        if (run->status == TERN_OK && space.type != TN_J_NAMESPACE)
            tn_jrun_fail(run, TERN_USAGE, "\"%.*s\" is not a namespace: its names cannot be set",
                         (int)target->a->name.n, target->a->name.text);
        tn_jrun_set(run, space, key, value);
    }
}

/* ---- loops ---- */

/* Runs one pass of a loop's body, over item i. */
static void run_pass(struct tn_jrun *run, const struct tn_jnode *node, struct tn_jframe *outer,
                     struct tn_jloop *loop, size_t i)
{
    run->frame = tn_jrun_push_frame(run, outer);
    if (!run->frame)
        return;
    loop->index0 = i;
    tn_jrun_define(run, run->frame, (struct tn_jname){"loop", 4},
                   (struct tn_jvalue){.type = TN_J_LOOP, .loop = loop});
    assign(run, node->b, loop->items->items[i]);
    tn_jrun_body(run, &node->list);
}

/* The items that satisfy the loop's condition. */
static struct tn_jvalue select_items(struct tn_jrun *run, const struct tn_jnode *node,
                                     const struct tn_jlist *items)
{
    struct tn_jframe *outer = run->frame;
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, TN_J_LIST, 0));
    for (size_t i = 0; i < items->n && run->status == TERN_OK; i++) {
        run->frame = tn_jrun_push_frame(run, outer);
        if (!run->frame)
            break;
        assign(run, node->b, items->items[i]);
        if (tn_j_is_true(tn_jrun_eval(run, node->c)))
            tn_jrun_add(run, list, items->items[i]);
    }
    run->frame = outer;
    return list;
}

/* Runs a body in a new scope. */
static void run_scope(struct tn_jrun *run, const struct tn_jnodes *body)
{
    struct tn_jframe *outer = run->frame;
    run->frame = tn_jrun_push_frame(run, outer);
    if (run->frame)
        tn_jrun_body(run, body);
    run->frame = outer;
}

/* `else` runs if no pass completed: neither break nor continue completes a pass. */
static void run_for(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jframe *outer = run->frame;
    struct tn_jvalue items = tn_jrun_items(run, tn_jrun_eval(run, node->a));
    if (run->status == TERN_OK && node->c)
        items = select_items(run, node, items.list);
    struct tn_jloop *loop = tn_jrun_take(run, sizeof *loop);
    if (run->status != TERN_OK)
        return;
    *loop = (struct tn_jloop){.items = items.list};
    bool is_done = false;
    for (size_t i = 0; i < items.list->n && run->status == TERN_OK; i++) {
        run_pass(run, node, outer, loop, i);
        bool is_over = run->flow == TN_FLOW_BREAK;
        is_done = is_done || run->flow == TN_FLOW_ON;
        run->flow = TN_FLOW_ON;
        if (is_over)
            break;
    }
    run->frame = outer;
    if (!is_done)
        run_scope(run, &node->other);
}

/* ---- other statements ---- */

struct tn_jvalue tn_jrun_capture(struct tn_jrun *run, const struct tn_jnodes *body)
{
    struct tn_jsink sink = {0}, *outer = run->sink;
    run->sink = &sink;
    tn_jrun_body(run, body);
    run->sink = outer;
    return tn_jsink_take(run, &sink);
}

/* Pipes a text through a chain of filters; the chain's innermost value is NULL. */
static struct tn_jvalue apply_filters(struct tn_jrun *run, const struct tn_jnode *filter,
                                      struct tn_jvalue v)
{
    struct tn_jargs args;
    if (!tn_jrun_enter(run))
        return v;
    if (filter->a)
        v = apply_filters(run, filter->a, v);
    if (tn_jrun_arguments(run, &args, &filter->list))
        v = tn_jrun_filter(run, filter->name, v, &args);
    run->depth--;
    return v;
}

static void run_set_block(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jframe *outer = run->frame;
    run->frame = tn_jrun_push_frame(run, outer);
    struct tn_jvalue text = tn_jrun_capture(run, &node->list);
    run->frame = outer;
    if (node->a && run->status == TERN_OK)
        text = apply_filters(run, node->a, text);
    assign(run, node->b, text);
}

static void define_macro(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jmacro *macro = tn_jrun_take(run, sizeof *macro);
    if (!macro)
        return;
    *macro = (struct tn_jmacro){node, run->frame};
    tn_jrun_define(run, run->frame, node->name,
                   (struct tn_jvalue){.type = TN_J_MACRO, .macro = macro});
}

/* {% call(x) f(a) %}: f sees the body as caller(x). */
static void run_call_block(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jargs args, with_caller;
    struct tn_jmacro *caller = tn_jrun_take(run, sizeof *caller);
    struct tn_jvalue callee = tn_jrun_eval(run, node->a->a);
    if (!caller || !tn_jrun_arguments(run, &args, &node->a->list))
        return;
    *caller = (struct tn_jmacro){node, run->frame};
    with_caller = args;
    with_caller.keywords = tn_jrun_take(run, (args.n_keywords + 1) * sizeof *with_caller.keywords);
    if (!with_caller.keywords)
        return;
    if (args.n_keywords)
        memcpy(with_caller.keywords, args.keywords, args.n_keywords * sizeof *args.keywords);
    with_caller.keywords[with_caller.n_keywords++] =
        (struct tn_jkeyword){{"caller", 6}, {.type = TN_J_MACRO, .macro = caller}};
    tn_jsink_put_str(run, run->sink, tn_jrun_call(run, callee, &with_caller));
}

static void run_filter_block(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jframe *outer = run->frame;
    run->frame = tn_jrun_push_frame(run, outer);
    struct tn_jvalue text = tn_jrun_capture(run, &node->list);
    run->frame = outer;
    if (run->status == TERN_OK)
        text = apply_filters(run, node->a, text);
    if (run->status == TERN_OK && text.type != TN_J_STRING)
        tn_jrun_fail(run, TERN_USAGE, "the filter returns a %s, not text", tn_j_type_name(text));
    tn_jsink_put_str(run, run->sink, text);
}

/* {% with %} evaluates all values in the outer scope, then names them in the new one. */
static void run_with(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jframe *outer = run->frame;
    struct tn_jframe *inner = tn_jrun_push_frame(run, outer);
    for (size_t i = 0; inner && i < node->other.n && run->status == TERN_OK; i++) {
        const struct tn_jnode *set = node->other.items[i];
        tn_jrun_define(run, inner, set->b->name, tn_jrun_eval(run, set->a));
    }
    if (!inner)
        return;
    run->frame = inner;
    tn_jrun_body(run, &node->list);
    run->frame = outer;
}

static void run_print(struct tn_jrun *run, const struct tn_jnode *node)
{
    struct tn_jvalue v = tn_jrun_eval(run, node->a);
    if (run->status == TERN_OK)
        tn_jsink_put_str(run, run->sink, v);
}

static void run_if(struct tn_jrun *run, const struct tn_jnode *node)
{
    bool holds = tn_j_is_true(tn_jrun_eval(run, node->a));
    tn_jrun_body(run, holds ? &node->list : &node->other);
}

static void run_statement(struct tn_jrun *run, const struct tn_jnode *node)
{
    run->line = node->line;
    switch (node->type) {
    case TN_N_DATA:
        tn_jsink_put_str(run, run->sink, node->value);
        break;
    case TN_N_PRINT:
        run_print(run, node);
        break;
    case TN_N_IF:
        run_if(run, node);
        break;
    case TN_N_FOR:
        run_for(run, node);
        break;
    case TN_N_SET:
        assign(run, node->b, tn_jrun_eval(run, node->a));
        break;
    case TN_N_SET_BLOCK:
        run_set_block(run, node);
        break;
    case TN_N_MACRO:
        define_macro(run, node);
        break;
    case TN_N_CALL_BLOCK:
        run_call_block(run, node);
        break;
    case TN_N_FILTER_BLOCK:
        run_filter_block(run, node);
        break;
    case TN_N_WITH:
    case TN_N_SCOPE:
        run_with(run, node);
        break;
    case TN_N_BREAK:
        run->flow = TN_FLOW_BREAK;
        break;
    case TN_N_CONTINUE:
        run->flow = TN_FLOW_CONTINUE;
        break;
    default:
        tn_jrun_fail(run, TERN_INTERNAL, "found an expression instead of a statement");
    }
}

void tn_jrun_body(struct tn_jrun *run, const struct tn_jnodes *body)
{
    if (!tn_jrun_enter(run))
        return;
    for (size_t i = 0; i < body->n && run->flow == TN_FLOW_ON && tn_jrun_step(run, 1); i++)
        run_statement(run, body->items[i]);
    run->depth--;
}
