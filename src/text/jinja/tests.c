/* SPDX-License-Identifier: MIT
 *
 * Tests: value is name(arguments).
 *
 * A table of names with their number of arguments; the simple ones are made by TYPE_TEST.
 */
#include "text/jinja/eval.h"

typedef bool test_fn(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args);

#define TYPE_TEST(name, condition)                                                                 \
    static bool test_##name(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)  \
    {                                                                                              \
        (void)run, (void)args;                                                                     \
        return condition;                                                                          \
    }

TYPE_TEST(defined, v.type != TN_J_UNDEFINED)
TYPE_TEST(undefined, v.type == TN_J_UNDEFINED)
TYPE_TEST(none, v.type == TN_J_NONE)
TYPE_TEST(boolean, v.type == TN_J_BOOL)
TYPE_TEST(true, v.type == TN_J_BOOL && v.boolean)
TYPE_TEST(false, v.type == TN_J_BOOL && !v.boolean)
TYPE_TEST(integer, v.type == TN_J_INT)
TYPE_TEST(float, v.type == TN_J_FLOAT)
TYPE_TEST(number, tn_j_is_number(v))
TYPE_TEST(string, v.type == TN_J_STRING)
TYPE_TEST(mapping, v.type == TN_J_DICT)
TYPE_TEST(sequence, v.type == TN_J_STRING || v.type == TN_J_LIST || v.type == TN_J_TUPLE ||
                        v.type == TN_J_DICT || v.type == TN_J_UNDEFINED)
TYPE_TEST(iterable, v.type == TN_J_STRING || v.type == TN_J_LIST || v.type == TN_J_TUPLE ||
                        v.type == TN_J_DICT || v.type == TN_J_UNDEFINED || v.type == TN_J_LOOP ||
                        v.type == TN_J_ITERATOR)
/* Jinja2 calls an undefined value callable; the call then fails. */
TYPE_TEST(callable, v.type == TN_J_MACRO || v.type == TN_J_FUNCTION || v.type == TN_J_METHOD ||
                        v.type == TN_J_LOOP || v.type == TN_J_UNDEFINED)

/* ---- with an argument ---- */

static struct tn_jvalue argument(const struct tn_jargs *args)
{
    return args->n ? args->items[0] : args->keywords[0].value;
}

#define COMPARE_TEST(name, op)                                                                     \
    static bool test_##name(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)  \
    {                                                                                              \
        return tn_jrun_compare(run, op, v, argument(args));                                        \
    }

COMPARE_TEST(eq, TN_OP_EQ)
COMPARE_TEST(ne, TN_OP_NE)
COMPARE_TEST(lt, TN_OP_LT)
COMPARE_TEST(le, TN_OP_LE)
COMPARE_TEST(gt, TN_OP_GT)
COMPARE_TEST(ge, TN_OP_GE)
COMPARE_TEST(in, TN_OP_IN)

static bool test_divisibleby(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)
{
    struct tn_jvalue rest = tn_jrun_binary(run, TN_OP_MOD, v, argument(args));
    return run->status == TERN_OK && tn_j_is_number(rest) && tn_j_real(rest) == 0;
}

static bool test_even(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)
{
    const struct tn_jargs two = {.items = (struct tn_jvalue[]){tn_j_int(2)}, .n = 1};
    (void)args;
    return test_divisibleby(run, v, &two);
}

static bool test_odd(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)
{
    struct tn_jvalue rest = tn_jrun_binary(run, TN_OP_MOD, v, tn_j_int(2));
    (void)args;
    return run->status == TERN_OK && tn_j_real(rest) == 1;
}

/* The same object; for numbers, strings and none: an equal value of the same type.  Each undefined
 * value is an object. */
static bool test_sameas(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)
{
    struct tn_jvalue other = argument(args);
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

static bool test_lower(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)
{
    (void)args;
    return has_case(run, v, "islower");
}

static bool test_upper(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)
{
    (void)args;
    return has_case(run, v, "isupper");
}

static bool test_filter(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)
{
    const struct tn_jstring *name = tn_jrun_string(run, v, "the name of a filter");
    (void)args;
    return tn_jrun_has_filter((struct tn_jname){name->bytes, name->n});
}

static bool has_test(struct tn_jname name);

static bool test_test(struct tn_jrun *run, struct tn_jvalue v, const struct tn_jargs *args)
{
    const struct tn_jstring *name = tn_jrun_string(run, v, "the name of a test");
    (void)args;
    return has_test((struct tn_jname){name->bytes, name->n});
}

/* ---- the table ---- */

static const struct test {
    const char *name;
    test_fn *call;
    uint32_t n_arguments;
} tests[] = {
    {"defined", test_defined, 0},
    {"undefined", test_undefined, 0},
    {"none", test_none, 0},
    {"boolean", test_boolean, 0},
    {"true", test_true, 0},
    {"false", test_false, 0},
    {"integer", test_integer, 0},
    {"float", test_float, 0},
    {"number", test_number, 0},
    {"string", test_string, 0},
    {"mapping", test_mapping, 0},
    {"sequence", test_sequence, 0},
    {"iterable", test_iterable, 0},
    {"callable", test_callable, 0},
    {"eq", test_eq, 1},
    {"==", test_eq, 1},
    {"equalto", test_eq, 1},
    {"ne", test_ne, 1},
    {"!=", test_ne, 1},
    {"lt", test_lt, 1},
    {"<", test_lt, 1},
    {"lessthan", test_lt, 1},
    {"le", test_le, 1},
    {"<=", test_le, 1},
    {"gt", test_gt, 1},
    {">", test_gt, 1},
    {"greaterthan", test_gt, 1},
    {"ge", test_ge, 1},
    {">=", test_ge, 1},
    {"in", test_in, 1},
    {"divisibleby", test_divisibleby, 1},
    {"even", test_even, 0},
    {"odd", test_odd, 0},
    {"sameas", test_sameas, 1},
    {"lower", test_lower, 0},
    {"upper", test_upper, 0},
    {"filter", test_filter, 0},
    {"test", test_test, 0},
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
    return test && run->status == TERN_OK && test->call(run, v, args);
}
