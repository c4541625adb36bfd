/* SPDX-License-Identifier: MIT
 *
 * The values that a chat template computes with; they behave like Python's as far as templates can
 * tell.
 *
 * Every byte of a string is marked as user text (a message, a tool) or template text, so that text
 * of a user can never become a special token.
 *
 * Memory comes from a pool and is freed with it.  Values are immutable, except namespaces.
 */
#ifndef TN_JINJA_VALUE_H
#define TN_JINJA_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/jinja/pool.h"

enum tn_jtype {
    TN_J_UNDEFINED,
    TN_J_NONE,
    TN_J_BOOL,
    TN_J_INT,
    TN_J_FLOAT,
    TN_J_STRING,
    TN_J_LIST,
    TN_J_TUPLE,
    /* result of select, map and the like: truthy, without length, iterated over once */
    TN_J_ITERATOR,
    TN_J_DICT,
    TN_J_NAMESPACE,
    TN_J_LOOP, /* the variable `loop` */
    TN_J_MACRO,
    TN_J_FUNCTION, /* a global such as range */
    TN_J_METHOD,   /* bound method of a value */
};

struct tn_jstring {
    const char *bytes;    /* [n] UTF-8 */
    const uint8_t *marks; /* [n] 1: user text; NULL: template text throughout */
    size_t n;
};

struct tn_jvalue {
    enum tn_jtype type;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const struct tn_jstring *string;
        struct tn_jlist *list; /* also for tuples and iterators */
        struct tn_jdict *dict; /* also for namespaces */
        struct tn_jloop *loop;
        struct tn_jmacro *macro;
        const struct tn_jfunction *function;
        const struct tn_jmethod *method;
    };
};

/* Nesting limit of lists and dictionaries: functions recurse over them. */
#define TN_J_MAX_DEPTH 100u

struct tn_jlist {
    struct tn_jvalue *items;
    size_t n;
    size_t capacity;
    uint32_t depth; /* height: 1 + maximum over the items */
};

struct tn_jpair {
    struct tn_jvalue key;
    struct tn_jvalue value;
};

/* In insertion order, like Python's. */
struct tn_jdict {
    struct tn_jpair *pairs;
    size_t n;
    size_t capacity;
    uint32_t depth;
};

/* Steps between two calls of should_stop: a few milliseconds of the slowest steps, and more than
 * usual templates take in total. */
#define TN_J_STEPS_PER_LOOK ((uint64_t)1 << 15)

/* The remaining budget of a rendering, in steps. */
struct tn_jwork {
    uint64_t steps_left;
    uint64_t next_look; /* call should_stop when steps_left is below this */
    bool (*should_stop)(void *arg); /* NULL: never */
    void *arg;
    bool is_stopped; /* should_stop returned true; no steps are left */
};

/* Charges n steps.  false: too few, or should_stop returned true; then none are left. */
bool tn_jwork_take(struct tn_jwork *work, uint64_t n);

/* ---- constructors; on failure (memory, TN_J_MAX_DEPTH: pool->is_deep) false or undefined ---- */

static inline struct tn_jvalue tn_j_none(void)
{
    return (struct tn_jvalue){.type = TN_J_NONE};
}

static inline struct tn_jvalue tn_j_bool(bool b)
{
    return (struct tn_jvalue){.type = TN_J_BOOL, .boolean = b};
}

static inline struct tn_jvalue tn_j_int(int64_t i)
{
    return (struct tn_jvalue){.type = TN_J_INT, .integer = i};
}

static inline struct tn_jvalue tn_j_float(double f)
{
    return (struct tn_jvalue){.type = TN_J_FLOAT, .real = f};
}

/* A string view of bytes that outlive the pool; marks as in struct tn_jstring. */
struct tn_jvalue tn_j_view(struct tn_pool *pool, const char *bytes, const uint8_t *marks, size_t n);
/* A copy of bytes that are user text as a whole, or template text. */
struct tn_jvalue tn_j_text(struct tn_pool *pool, const char *bytes, size_t n, bool from_outside);

struct tn_jvalue tn_j_list(struct tn_pool *pool, enum tn_jtype type, size_t capacity);
bool tn_j_list_add(struct tn_pool *pool, struct tn_jlist *list, struct tn_jvalue item);
struct tn_jvalue tn_j_dict(struct tn_pool *pool, enum tn_jtype type);
/* Appends a pair whose key the dictionary does not have, in constant time. */
bool tn_j_dict_add(struct tn_pool *pool, struct tn_jdict *dict, struct tn_jvalue key,
                   struct tn_jvalue value);
/* Replaces the value if an equal key exists. */
bool tn_j_dict_set(struct tn_pool *pool, struct tn_jdict *dict, struct tn_jvalue key,
                   struct tn_jvalue value, struct tn_jwork *work);
/* NULL: not found. */
const struct tn_jvalue *tn_j_dict_get(const struct tn_jdict *dict, struct tn_jvalue key,
                                      struct tn_jwork *work);
const struct tn_jvalue *tn_j_dict_find(const struct tn_jdict *dict, const char *key, size_t n_key);

/* ---- predicates, comparison ---- */

bool tn_j_is_true(struct tn_jvalue v);
/* Values may share parts, so comparing them can take far longer than building them: each comparison
 * is charged to *work, and the result is false when it is exhausted. */
bool tn_j_equal(struct tn_jvalue a, struct tn_jvalue b, struct tn_jwork *work);
/* *order: -1, 0, 1, or 2 for NaN.  false: the two have no order. */
bool tn_j_compare(struct tn_jvalue a, struct tn_jvalue b, int *order, struct tn_jwork *work);
/* Python's name of the type: "str", "dict", ... */
const char *tn_j_type_name(struct tn_jvalue v);
static inline bool tn_j_is_text(struct tn_jvalue v, const char *text, size_t n)
{
    return v.type == TN_J_STRING && v.string->n == n &&
           (n == 0 || __builtin_memcmp(v.string->bytes, text, n) == 0);
}
static inline bool tn_j_is_number(struct tn_jvalue v)
{
    return v.type == TN_J_INT || v.type == TN_J_FLOAT || v.type == TN_J_BOOL;
}
/* The value of a number. */
double tn_j_real(struct tn_jvalue v);
int64_t tn_j_integer(struct tn_jvalue v); /* of an int or a bool */

/* Can it be a key of a dictionary?  Each value visited is charged to *work. */
bool tn_j_is_hashable(struct tn_jvalue v, struct tn_jwork *work);

/* Number of characters.  This and tn_j_offset scan the bytes; tn_jrun_n_characters and
 * tn_jrun_offset charge for that. */
size_t tn_j_n_characters(const struct tn_jstring *s);
/* Byte offset of character i <= n_characters. */
size_t tn_j_offset(const struct tn_jstring *s, size_t i);

#endif
