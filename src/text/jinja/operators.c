/* SPDX-License-Identifier: MIT
 *
 * Arithmetic, comparison, membership and slices, as Python defines them.
 *
 * Integers have 64 bits: an overflow is an error, never a wrong value.
 */
#include <math.h>
#include <string.h>

#include "text/jinja/strings.h"

static struct tn_jvalue fail_operands(struct tn_jrun *run, const char *op, struct tn_jvalue a,
                                      struct tn_jvalue b)
{
    return tn_jrun_fail(run, TERN_USAGE, "%s does not work on a %s and a %s", op, tn_j_type_name(a),
                        tn_j_type_name(b));
}

/* ---- integers ---- */

/* Rounds towards minus infinity.  b != 0. */
static struct tn_jvalue floor_divide(struct tn_jrun *run, int64_t a, int64_t b, bool want_rest)
{
    if (b == -1)
        return want_rest ? tn_j_int(0) : a == INT64_MIN ? tn_jrun_fail_overflow(run) : tn_j_int(-a);
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    return tn_j_int(want_rest ? rest : quotient);
}

/* Like Python, except that complex results fail. */
static struct tn_jvalue float_power(struct tn_jrun *run, double a, double b)
{
    if (a == 0 && b < 0)
        return tn_jrun_fail(run, TERN_USAGE, "0 to a negative power");
    if (a < 0 && isfinite(b) && floor(b) != b)
        return tn_jrun_fail(run, TERN_UNSUPPORTED, "a negative number to a fractional power");
    double power = pow(a, b);
    if (isinf(power) && isfinite(a) && isfinite(b))
        return tn_jrun_fail(run, TERN_USAGE, "a power is too large");
    return tn_j_float(power);
}

static struct tn_jvalue integer_power(struct tn_jrun *run, int64_t a, int64_t b)
{
    int64_t power = 1;
    if (b < 0)
        return float_power(run, (double)a, (double)b);
    for (; b > 0 && tn_jrun_step(run, 1); b--)
        if (__builtin_mul_overflow(power, a, &power))
            return tn_jrun_fail_overflow(run);
    return tn_j_int(power);
}

static struct tn_jvalue integer_binary(struct tn_jrun *run, enum tn_joperator op, int64_t a,
                                       int64_t b)
{
    int64_t result = 0;
    bool overflows = false;
    switch (op) {
    case TN_OP_ADD:
        overflows = __builtin_add_overflow(a, b, &result);
        break;
    case TN_OP_SUB:
        overflows = __builtin_sub_overflow(a, b, &result);
        break;
    case TN_OP_MUL:
        overflows = __builtin_mul_overflow(a, b, &result);
        break;
    case TN_OP_DIV:
        return tn_j_float((double)a / (double)b);
    case TN_OP_POW:
        return integer_power(run, a, b);
    default:
        return floor_divide(run, a, b, op == TN_OP_MOD);
    }
    return overflows ? tn_jrun_fail_overflow(run) : tn_j_int(result);
}

/* From the remainder, as in Python: floor(1 / 0.1) is 10, but 1 // 0.1 is 9. */
static double floor_divide_floats(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient--;
    return quotient == 0 ? copysign(0, a / b) : rint(quotient);
}

static struct tn_jvalue float_binary(struct tn_jrun *run, enum tn_joperator op, double a, double b)
{
    switch (op) {
    case TN_OP_ADD:
        return tn_j_float(a + b);
    case TN_OP_SUB:
        return tn_j_float(a - b);
    case TN_OP_MUL:
        return tn_j_float(a * b);
    case TN_OP_DIV:
        return tn_j_float(a / b);
    case TN_OP_POW:
        return float_power(run, a, b);
    case TN_OP_MOD: {
        double rest = fmod(a, b);
        rest += rest != 0 && (rest < 0) != (b < 0) ? b : 0;
        return tn_j_float(rest == 0 ? copysign(0, b) : rest);
    }
    default:
        return tn_j_float(floor_divide_floats(a, b));
    }
}

/* ---- sequences ---- */

static struct tn_jvalue join_strings(struct tn_jrun *run, const struct tn_jstring *a,
                                     const struct tn_jstring *b)
{
    struct tn_jsink sink = {0};
    tn_jsink_put_string(run, &sink, a, 0, a->n);
    tn_jsink_put_string(run, &sink, b, 0, b->n);
    return tn_jsink_take(run, &sink);
}

static struct tn_jvalue join_lists(struct tn_jrun *run, struct tn_jvalue a, struct tn_jvalue b)
{
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, a.type, a.list->n + b.list->n));
    for (size_t i = 0; i < a.list->n && run->status == TERN_OK; i++)
        tn_jrun_add(run, list, a.list->items[i]);
    for (size_t i = 0; i < b.list->n && run->status == TERN_OK; i++)
        tn_jrun_add(run, list, b.list->items[i]);
    return list;
}

static struct tn_jvalue repeat(struct tn_jrun *run, struct tn_jvalue v, int64_t times)
{
    struct tn_jsink sink = {0};
    if (v.type == TN_J_STRING) {
        for (; times > 0 && run->status == TERN_OK && v.string->n > 0; times--)
            tn_jsink_put_string(run, &sink, v.string, 0, v.string->n);
        return tn_jsink_take(run, &sink);
    }
    struct tn_jvalue list = tn_jrun_made(run, tn_j_list(run->pool, v.type, 0));
    for (; times > 0 && run->status == TERN_OK && v.list->n > 0; times--)
        for (size_t i = 0; i < v.list->n && run->status == TERN_OK; i++)
            tn_jrun_add(run, list, v.list->items[i]);
    return list;
}

static bool is_sequence(struct tn_jvalue v)
{
    return v.type == TN_J_STRING || v.type == TN_J_LIST || v.type == TN_J_TUPLE;
}

struct tn_jvalue tn_jrun_binary(struct tn_jrun *run, enum tn_joperator op, struct tn_jvalue a,
                                struct tn_jvalue b)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    if (tn_j_is_number(a) && tn_j_is_number(b)) {
        bool divides = op == TN_OP_DIV || op == TN_OP_FLOOR_DIV || op == TN_OP_MOD;
        if (divides && tn_j_real(b) == 0)
            return tn_jrun_fail(run, TERN_USAGE, "a division by zero");
        return a.type == TN_J_FLOAT || b.type == TN_J_FLOAT
                   ? float_binary(run, op, tn_j_real(a), tn_j_real(b))
                   : integer_binary(run, op, tn_j_integer(a), tn_j_integer(b));
    }
    if (op == TN_OP_ADD && a.type == TN_J_STRING && b.type == TN_J_STRING)
        return join_strings(run, a.string, b.string);
    if (op == TN_OP_ADD && a.type == b.type && (a.type == TN_J_LIST || a.type == TN_J_TUPLE))
        return join_lists(run, a, b);
    if (op == TN_OP_MUL && is_sequence(a) && (b.type == TN_J_INT || b.type == TN_J_BOOL))
        return repeat(run, a, tn_j_integer(b));
    if (op == TN_OP_MUL && is_sequence(b) && (a.type == TN_J_INT || a.type == TN_J_BOOL))
        return repeat(run, b, tn_j_integer(a));
    if (op == TN_OP_MOD && a.type == TN_J_STRING)
        return tn_jrun_percent(run, a.string, b);
    return fail_operands(run, names[op], a, b);
}

/* ---- comparison ---- */

bool tn_jrun_contains(struct tn_jrun *run, struct tn_jvalue container, struct tn_jvalue item)
{
    if (container.type == TN_J_UNDEFINED)
        return false;
    if (container.type == TN_J_DICT && !tn_j_is_hashable(item, &run->work)) {
        tn_jrun_fail(run, TERN_USAGE, "a %s cannot be a key", tn_j_type_name(item));
        return false;
    }
    if (container.type == TN_J_DICT)
        return tn_j_dict_get(container.dict, item, &run->work) != NULL;
    if (container.type == TN_J_STRING && item.type == TN_J_STRING)
        return tn_jstring_find(run, container.string, item.string, 0) <= container.string->n;
    if (container.type == TN_J_ITERATOR)
        container = tn_jrun_items(run, container);
    if (container.type != TN_J_LIST && container.type != TN_J_TUPLE) {
        fail_operands(run, "in", item, container);
        return false;
    }
    for (size_t i = 0; i < container.list->n && tn_jrun_step(run, 1); i++)
        if (tn_j_equal(container.list->items[i], item, &run->work))
            return true;
    return false;
}

bool tn_jrun_compare(struct tn_jrun *run, enum tn_joperator op, struct tn_jvalue a,
                     struct tn_jvalue b)
{
    int order = 0;
    if (op == TN_OP_EQ || op == TN_OP_NE)
        return tn_j_equal(a, b, &run->work) == (op == TN_OP_EQ);
    if (op == TN_OP_IN || op == TN_OP_NOT_IN)
        return tn_jrun_contains(run, b, a) == (op == TN_OP_IN);
    if (!tn_j_compare(a, b, &order, &run->work)) {
        fail_operands(run, "an order", a, b);
        return false;
    }
    switch (op) {
    case TN_OP_LT:
        return order == -1;
    case TN_OP_LE:
        return order == -1 || order == 0;
    case TN_OP_GT:
        return order == 1;
    default:
        return order == 1 || order == 0;
    }
}

/* ---- slices ---- */

/* Clamps a slice bound over n items by Python's rules: negative bounds count from the end, others
 * are moved into [low, high]. */
static int64_t clamp_bound(struct tn_jrun *run, struct tn_jvalue v, int64_t otherwise, int64_t n,
                           int64_t low, int64_t high)
{
    if (v.type == TN_J_NONE)
        return otherwise;
    int64_t i = tn_jrun_integer(run, v, "a bound of a slice");
    if (i < 0)
        i = i < -n ? low : i + n;
    return TN_MIN(TN_MAX(i, low), high);
}

static void add_slice(struct tn_jrun *run, struct tn_jvalue list, const struct tn_jlist *from,
                      int64_t begin, int64_t end, int64_t step)
{
    for (int64_t i = begin; run->status == TERN_OK && (step > 0 ? i < end : i > end); i += step)
        tn_jrun_add(run, list, from->items[i]);
}

struct tn_jvalue tn_jrun_slice(struct tn_jrun *run, struct tn_jvalue v,
                               const struct tn_jvalue bounds[3])
{
    if (!is_sequence(v))
        return tn_jrun_fail(run, TERN_USAGE, "a %s has no slices", tn_j_type_name(v));
    int64_t step = bounds[2].type == TN_J_NONE ? 1 : tn_jrun_integer(run, bounds[2], "a step");
    if (step == 0 || step < -INT32_MAX || step > INT32_MAX)
        return tn_jrun_fail(run, TERN_USAGE, "a slice has the step 0, or a huge one");
    bool is_text = v.type == TN_J_STRING;
    int64_t n = (int64_t)(is_text ? tn_jrun_n_characters(run, v.string) : v.list->n);
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    int64_t begin = clamp_bound(run, bounds[0], step > 0 ? 0 : n - 1, n, low, high);
    int64_t end = clamp_bound(run, bounds[1], step > 0 ? n : -1, n, low, high);
    if (run->status != TERN_OK)
        return v;
    if (is_text && step == 1) {
        size_t from = tn_jrun_offset(run, v.string, (size_t)begin);
        size_t to = begin < end ? tn_jrun_offset(run, v.string, (size_t)end) : from;
        return run->status == TERN_OK ? tn_jrun_part(run, v.string, from, to) : v;
    }
    struct tn_jvalue items = tn_jrun_items(run, v);
    struct tn_jvalue list =
        tn_jrun_made(run, tn_j_list(run->pool, is_text ? TN_J_LIST : v.type, 0));
    if (run->status == TERN_OK)
        add_slice(run, list, items.list, begin, end, step);
    return is_text && run->status == TERN_OK ? tn_jrun_join(run, NULL, list.list) : list;
}
