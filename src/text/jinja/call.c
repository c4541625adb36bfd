/* SPDX-License-Identifier: MIT
 *
 * Attribute and item access, argument binding, and calls of functions, methods and macros.
 *
 * Binding follows Jinja2: surplus arguments are an error unless the macro's body uses varargs or
 * kwargs.
 */
#include "text/jinja/eval.h"
#include "text/unicode.h"

/* ---- attributes and items ---- */

static struct tn_jvalue loop_neighbour(const struct tn_jloop *loop, bool is_next)
{
    if (is_next ? loop->index0 + 1 >= loop->items->n : loop->index0 == 0)
        return (struct tn_jvalue){.type = TN_J_UNDEFINED};
    return loop->items->items[is_next ? loop->index0 + 1 : loop->index0 - 1];
}

static struct tn_jvalue loop_attribute(const struct tn_jloop *loop, struct tn_jname name)
{
    int64_t i = (int64_t)loop->index0, n = (int64_t)loop->items->n;
    if (tn_jname_is(name, "index"))
        return tn_j_int(i + 1);
    if (tn_jname_is(name, "index0"))
        return tn_j_int(i);
    if (tn_jname_is(name, "first"))
        return tn_j_bool(i == 0);
    if (tn_jname_is(name, "last"))
        return tn_j_bool(i + 1 == n);
    if (tn_jname_is(name, "length"))
        return tn_j_int(n);
    if (tn_jname_is(name, "revindex"))
        return tn_j_int(n - i);
    if (tn_jname_is(name, "revindex0"))
        return tn_j_int(n - i - 1);
    if (tn_jname_is(name, "depth"))
        return tn_j_int(1); /* recursion depth: recursive loops are not supported */
    if (tn_jname_is(name, "depth0"))
        return tn_j_int(0);
    if (tn_jname_is(name, "previtem") || tn_jname_is(name, "nextitem"))
        return loop_neighbour(loop, name.text[0] == 'n');
    return (struct tn_jvalue){.type = TN_J_UNDEFINED};
}

static struct tn_jvalue make_method(struct tn_jrun *run, struct tn_jvalue self,
                                    struct tn_jname name)
{
    struct tn_jmethod *method = tn_jrun_take(run, sizeof *method);
    if (!method)
        return self;
    *method = (struct tn_jmethod){self, name};
    return (struct tn_jvalue){.type = TN_J_METHOD, .method = method};
}

struct tn_jvalue tn_jrun_attribute(struct tn_jrun *run, struct tn_jvalue object,
                                   struct tn_jname name, bool prefer_item)
{
    const struct tn_jvalue *item = NULL;
    if (run->status != TERN_OK)
        return object;
    if (object.type == TN_J_UNDEFINED)
        return tn_jrun_fail(run, TERN_USAGE, "attribute \"%.*s\" of an undefined value",
                            (int)TN_MIN(name.n, (size_t)60), name.text);
    if (object.type == TN_J_DICT || object.type == TN_J_NAMESPACE)
        item = tn_jrun_find(run, object.dict, name.text, name.n);
    if (item && (prefer_item || object.type == TN_J_NAMESPACE))
        return *item;
    if (tn_jrun_has_method(object, name))
        return make_method(run, object, name);
    if (object.type == TN_J_TUPLE && object.list->n == 2 &&
        (tn_jname_is(name, "grouper") || tn_jname_is(name, "list")))
        return object.list->items[name.text[0] == 'l']; /* a group of groupby */
    if (object.type == TN_J_LOOP)
        return loop_attribute(object.loop, name);
    return item ? *item : (struct tn_jvalue){.type = TN_J_UNDEFINED};
}

static struct tn_jvalue sequence_item(struct tn_jrun *run, struct tn_jvalue object, int64_t i)
{
    bool is_text = object.type == TN_J_STRING;
    int64_t n = (int64_t)(is_text ? tn_jrun_n_characters(run, object.string) : object.list->n);
    i += i < 0 ? n : 0;
    if (i < 0 || i >= n)
        return (struct tn_jvalue){.type = TN_J_UNDEFINED};
    if (!is_text)
        return object.list->items[i];
    const size_t at = tn_jrun_offset(run, object.string, (size_t)i);
    uint32_t c;
    if (run->status != TERN_OK)
        return object;
    return tn_jrun_part(run, object.string, at,
                        at + tn_utf8_next(object.string->bytes + at, object.string->n - at, &c));
}

struct tn_jvalue tn_jrun_item(struct tn_jrun *run, struct tn_jvalue object, struct tn_jvalue key)
{
    bool is_sequence =
        object.type == TN_J_STRING || object.type == TN_J_LIST || object.type == TN_J_TUPLE;
    if (is_sequence && (key.type == TN_J_INT || key.type == TN_J_BOOL))
        return sequence_item(run, object, tn_j_integer(key));
    if (key.type == TN_J_STRING)
        return tn_jrun_attribute(run, object, (struct tn_jname){key.string->bytes, key.string->n},
                                 true);
    if (object.type == TN_J_UNDEFINED)
        return tn_jrun_fail(run, TERN_USAGE, "an item of an undefined value");
    const struct tn_jvalue *item =
        object.type == TN_J_DICT ? tn_j_dict_get(object.dict, key, &run->work) : NULL;
    return item ? *item : (struct tn_jvalue){.type = TN_J_UNDEFINED};
}

/* ---- arguments ---- */

bool tn_jrun_arguments(struct tn_jrun *run, struct tn_jargs *out, const struct tn_jnodes *list)
{
    *out = (struct tn_jargs){0};
    if (run->status != TERN_OK || list->n == 0)
        return run->status == TERN_OK;
    out->items = tn_jrun_take(run, list->n * sizeof *out->items);
    out->keywords = tn_jrun_take(run, list->n * sizeof *out->keywords);
    for (size_t i = 0; i < list->n && run->status == TERN_OK; i++) {
        const struct tn_jnode *node = list->items[i];
        if (node->type == TN_N_KEYWORD)
            out->keywords[out->n_keywords++] =
                (struct tn_jkeyword){node->name, tn_jrun_eval(run, node->a)};
        else
            out->items[out->n++] = tn_jrun_eval(run, node);
    }
    return run->status == TERN_OK;
}

/* ---- calls ---- */

static struct tn_jvalue list_of_rest(struct tn_jrun *run, const struct tn_jargs *args, size_t from)
{
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, TN_J_TUPLE, 0));
    for (size_t i = from; i < args->n && run->status == TERN_OK; i++)
        tn_jrun_add(run, list, args->items[i]);
    return list;
}

/* Does this named argument bind a parameter that no positional argument binds? */
static bool gives_parameter(struct tn_jrun *run, const struct tn_jnode *node, size_t n_unnamed,
                            struct tn_jname name)
{
    tn_jrun_step(run, node->other.n / 8);
    for (size_t i = n_unnamed; i < node->other.n; i++)
        if (tn_jname_equal(node->other.items[i]->name, name))
            return true;
    return false;
}

/* The named arguments that bind no parameter, except `caller` where the body calls it. */
static struct tn_jvalue dict_of_rest(struct tn_jrun *run, const struct tn_jnode *node,
                                     const struct tn_jargs *args)
{
    struct tn_jvalue dict = tn_jrun_made(run, tn_j_dict(run->pool, TN_J_DICT));
    for (size_t i = 0; i < args->n_keywords && run->status == TERN_OK; i++) {
        const struct tn_jkeyword *k = &args->keywords[i];
        if (gives_parameter(run, node, args->n, k->name))
            continue;
        if ((node->uses & TN_USES_CALLER) && tn_jname_is(k->name, "caller"))
            tn_jrun_define(run, run->frame, k->name, k->value);
        else
            tn_jrun_set(run, dict,
                        tn_jrun_made(run, tn_j_text(run->pool, k->name.text, k->name.n, false)),
                        k->value);
    }
    return dict;
}

static const struct tn_jvalue *find_argument(struct tn_jrun *run, const struct tn_jargs *args,
                                             size_t i, struct tn_jname name)
{
    if (i < args->n)
        return &args->items[i];
    tn_jrun_step(run, args->n_keywords / 8);
    for (size_t k = 0; k < args->n_keywords; k++)
        if (tn_jname_equal(args->keywords[k].name, name))
            return &args->keywords[k].value;
    return NULL;
}

/* Binds varargs, kwargs and caller where the body names them; elsewhere surplus arguments fail. */
static void bind_rest(struct tn_jrun *run, const struct tn_jnode *node, const struct tn_jargs *args)
{
    if (node->uses & TN_USES_CALLER)
        tn_jrun_define(run, run->frame, (struct tn_jname){"caller", 6}, (struct tn_jvalue){0});
    struct tn_jvalue rest = list_of_rest(run, args, node->other.n);
    struct tn_jvalue named = dict_of_rest(run, node, args);
    if (run->status != TERN_OK)
        return;
    if (rest.list->n > 0 && !(node->uses & TN_USES_VARARGS))
        tn_jrun_fail(run, TERN_USAGE, "a macro of %zu parameters gets %zu arguments", node->other.n,
                     args->n);
    if (named.dict->n > 0 && !(node->uses & TN_USES_KWARGS))
        tn_jrun_fail(run, TERN_USAGE, "a macro has no parameter \"%.*s\", or receives it twice",
                     (int)TN_MIN(named.dict->pairs[0].key.string->n, (size_t)40),
                     named.dict->pairs[0].key.string->bytes);
    tn_jrun_define(run, run->frame, (struct tn_jname){"varargs", 7}, rest);
    tn_jrun_define(run, run->frame, (struct tn_jname){"kwargs", 6}, named);
}

/* Binds a macro's parameters in the current frame. */
static void bind_arguments(struct tn_jrun *run, const struct tn_jnode *node,
                           const struct tn_jargs *args)
{
    for (size_t i = 0; i < node->other.n && run->status == TERN_OK; i++) {
        const struct tn_jnode *parameter = node->other.items[i];
        const struct tn_jvalue *given = find_argument(run, args, i, parameter->name);
        struct tn_jvalue value = given          ? *given
                                 : parameter->a ? tn_jrun_eval(run, parameter->a)
                                                : (struct tn_jvalue){0};
        tn_jrun_define(run, run->frame, parameter->name, value);
    }
    bind_rest(run, node, args);
}

static struct tn_jvalue call_macro(struct tn_jrun *run, const struct tn_jmacro *macro,
                                   const struct tn_jargs *args)
{
    struct tn_jframe *outer = run->frame;
    struct tn_jvalue text = {0};
    run->frame = tn_jrun_push_frame(run, macro->frame);
    if (run->frame) {
        bind_arguments(run, macro->node, args);
        text = tn_jrun_capture(run, &macro->node->list);
    }
    run->frame = outer;
    return text;
}

struct tn_jvalue tn_jrun_call(struct tn_jrun *run, struct tn_jvalue callee,
                              const struct tn_jargs *args)
{
    switch (callee.type) {
    case TN_J_MACRO:
        return call_macro(run, callee.macro, args);
    case TN_J_FUNCTION:
        return callee.function->call(run, args);
    case TN_J_METHOD:
        return tn_jrun_method(run, callee.method, args);
    case TN_J_UNDEFINED:
        return tn_jrun_fail(run, TERN_USAGE, "the called value is undefined");
    default:
        return tn_jrun_fail(run, TERN_USAGE, "a %s cannot be called", tn_j_type_name(callee));
    }
}
