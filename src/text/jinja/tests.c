/* SPDX-License-Identifier: MIT
 *
 * Tests: value is name(arguments).
 *
 * A table of names with their number of arguments; several rows may share a function.
 */
#include "text/jinja/eval.h"

typedef bool test_fn(struct tn_jrun *run, const struct tn_jargs *args);

#define TYPE(name) (1 << TN_J_##name)
#define NUMBERS (TYPE(BOOL) | TYPE(INT) | TYPE(FLOAT))
#define SEQUENCES (TYPE(STRING) | TYPE(LIST) | TYPE(TUPLE) | TYPE(DICT) | TYPE(UNDEFINED))
#define CALLABLES (TYPE(MACRO) | TYPE(FUNCTION) | TYPE(METHOD) | TYPE(LOOP) | TYPE(UNDEFINED))

/* Is the type one of those in args->how? */
static bool test_type(struct tn_jrun *run, const struct tn_jargs *args)
{
    (void)run;
    return args->how & 1 << args->self.type;
}

/* True or false, as args->how. */
static bool test_boolean(struct tn_jrun *run, const struct tn_jargs *args)
{
    (void)run;
    return args->self.type == TN_J_BOOL && args->self.boolean == args->how;
}

/* ---- with an argument ---- */

static struct tn_jvalue argument(const struct tn_jargs *args)
{
    return args->n ? args->items[0] : args->keywords[0].value;
}

static bool test_compare(struct tn_jrun *run, const struct tn_jargs *args)
{
    return tn_jrun_compare(run, (enum tn_joperator)args->how, args->self, argument(args));
}

static bool test_divisibleby(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue rest = tn_jrun_binary(run, TN_OP_MOD, args->self, argument(args));
    return run->status == TERN_OK && tn_j_is_number(rest) && tn_j_real(rest) == 0;
}

static bool test_even(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jargs two = {
        .self = args->self, .items = (struct tn_jvalue[]){tn_j_int(2)}, .n = 1};
    return test_divisibleby(run, &two);
}

static bool test_odd(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue rest = tn_jrun_binary(run, TN_OP_MOD, args->self, tn_j_int(2));
    return run->status == TERN_OK && tn_j_real(rest) == 1;
}

/* The same object; for numbers, strings and none: an equal value of the same type.  Each undefined
 * value is an object. */
static bool test_sameas(struct tn_jrun *run, const struct tn_jargs *args)
{
    struct tn_jvalue v = args->self, other = argument(args);
    if (v.type != other.type || v.type == TN_J_UNDEFINED)
        return false;
    return v.type == TN_J_LIST || v.type == TN_J_TUPLE ? v.list == other.list
           : v.type == TN_J_DICT                       ? v.dict == other.dict
                                                       : tn_j_equal(v, other, &run->work);
}

static bool has_case(struct tn_jrun *run, struct tn_jvalue v, const char *method)
{
    struct tn_jvalue text = tn_jrun_str(run, v);
    struct tn_jmethod call = {text, {method, __builtin_strlen(method)}};
    struct tn_jargs none = {0};
    return run->status == TERN_OK && tn_j_is_true(tn_jrun_method(run, &call, &none));
}

static bool test_lower(struct tn_jrun *run, const struct tn_jargs *args)
{
    return has_case(run, args->self, "islower");
}

static bool test_upper(struct tn_jrun *run, const struct tn_jargs *args)
{
    return has_case(run, args->self, "isupper");
}

static bool test_filter(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jstring *name = tn_jrun_string(run, args->self, "the name of a filter");
    return tn_jrun_has_filter((struct tn_jname){name->bytes, name->n});
}

static bool has_test(struct tn_jname name);

static bool test_test(struct tn_jrun *run, const struct tn_jargs *args)
{
    const struct tn_jstring *name = tn_jrun_string(run, args->self, "the name of a test");
    return has_test((struct tn_jname){name->bytes, name->n});
}

/* ---- the table ---- */

static const struct test {
    const char *name;
    test_fn *call;
    uint32_t n_arguments;
    int how;
} tests[] = {
    {"defined", test_type, 0, ~TYPE(UNDEFINED)},
    {"undefined", test_type, 0, TYPE(UNDEFINED)},
    {"none", test_type, 0, TYPE(NONE)},
    {"boolean", test_type, 0, TYPE(BOOL)},
    {"true", test_boolean, 0, true},
    {"false", test_boolean, 0, false},
    {"integer", test_type, 0, TYPE(INT)},
    {"float", test_type, 0, TYPE(FLOAT)},
    {"number", test_type, 0, NUMBERS},
    {"string", test_type, 0, TYPE(STRING)},
    {"mapping", test_type, 0, TYPE(DICT)},
    {"sequence", test_type, 0, SEQUENCES},
    {"iterable", test_type, 0, SEQUENCES | TYPE(LOOP) | TYPE(ITERATOR)},
    /* Jinja2 calls an undefined value callable; the call then fails. */
    {"callable", test_type, 0, CALLABLES},
    {"eq", test_compare, 1, TN_OP_EQ},
    {"==", test_compare, 1, TN_OP_EQ},
    {"equalto", test_compare, 1, TN_OP_EQ},
    {"ne", test_compare, 1, TN_OP_NE},
    {"!=", test_compare, 1, TN_OP_NE},
    {"lt", test_compare, 1, TN_OP_LT},
    {"<", test_compare, 1, TN_OP_LT},
    {"lessthan", test_compare, 1, TN_OP_LT},
    {"le", test_compare, 1, TN_OP_LE},
    {"<=", test_compare, 1, TN_OP_LE},
    {"gt", test_compare, 1, TN_OP_GT},
    {">", test_compare, 1, TN_OP_GT},
    {"greaterthan", test_compare, 1, TN_OP_GT},
    {"ge", test_compare, 1, TN_OP_GE},
    {">=", test_compare, 1, TN_OP_GE},
    {"in", test_compare, 1, TN_OP_IN},
    {"divisibleby", test_divisibleby, 1, 0},
    {"even", test_even, 0, 0},
    {"odd", test_odd, 0, 0},
    {"sameas", test_sameas, 1, 0},
    {"lower", test_lower, 0, 0},
    {"upper", test_upper, 0, 0},
    {"filter", test_filter, 0, 0},
    {"test", test_test, 0, 0},
};

static const struct test *find_test(struct tn_jname name)
{
    for (size_t i = 0; i < TN_COUNT_OF(tests); i++)
        if (tn_jname_is(name, tests[i].name))
            return &tests[i];
    return NULL;
}

static bool has_test(struct tn_jname name)
{
    return find_test(name) != NULL;
}

bool tn_jrun_test(struct tn_jrun *run, struct tn_jname name, struct tn_jvalue v,
                  const struct tn_jargs *args)
{
    const struct test *test = find_test(name);
    int n_name = (int)TN_MIN(name.n, (size_t)40);
    if (!test)
        tn_jrun_fail(run, TERN_UNSUPPORTED, "the test \"%.*s\" is not supported", n_name,
                     name.text);
    else if (args->n + args->n_keywords != test->n_arguments)
        tn_jrun_fail(run, TERN_USAGE, "the test \"%.*s\" takes %u arguments, not %zu", n_name,
                     name.text, test->n_arguments, args->n + args->n_keywords);
    if (run->status != TERN_OK)
        return false;
    const struct tn_jargs own = tn_jargs_for(v, test->how, args);
    return test->call(run, &own);
}
