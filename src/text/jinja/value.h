/* SPDX-License-Identifier: MIT
 *
 * The values that a chat template computes with: Python's, as far as templates
 * can see them.  Every byte of a string remembers whether it comes from outside
 * (a message, a tool) or from the template, so that no text of a user can ever
 * become a special token.
 *
 * All memory comes from a pool and is never freed singly; values are immutable
 * once made, apart from namespaces.
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
    TN_J_ITERATOR, /* what select, map and the like give: true, no length, walked over once */
    TN_J_DICT,
    TN_J_NAMESPACE,
    TN_J_LOOP, /* the variable `loop` */
    TN_J_MACRO,
    TN_J_FUNCTION, /* a global such as range */
    TN_J_METHOD,   /* a method of a value, not yet called */
};

struct tn_jstring {
    const char *bytes;    /* [n] UTF-8 */
    const uint8_t *marks; /* [n] 1: from outside; NULL: all from the template */
    size_t n;
};

struct tn_jvalue {
    enum tn_jtype type;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const struct tn_jstring *string;
        struct tn_jlist *list; /* also of tuples and iterators */
        struct tn_jdict *dict; /* also of namespaces */
        struct tn_jloop *loop;
        struct tn_jmacro *macro;
        const struct tn_jfunction *function;
        const struct tn_jmethod *method;
        const char *missing; /* of an undefined value: what was not found, or NULL */
    };
};

/* Lists and dictionaries nest at most so deep, since recursion walks over them. */
#define TN_J_MAX_DEPTH 100u

struct tn_jlist {
    struct tn_jvalue *items;
    size_t n;
    size_t capacity;
    uint32_t depth; /* of the deepest item, plus 1 */
};

struct tn_jpair {
    struct tn_jvalue key;
    struct tn_jvalue value;
};

/* In the order of insertion, as Python's. */
struct tn_jdict {
    struct tn_jpair *pairs;
    size_t n;
    size_t capacity;
    uint32_t depth;
};

/* Between two looks: some milliseconds of the slowest steps, and more than usual templates take. */
#define TN_J_STEPS_PER_LOOK ((uint64_t)1 << 15)

/* The work that a rendering may still do, counted in steps. */
struct tn_jwork {
    uint64_t steps_left;
    uint64_t next_look; /* should_stop is asked when steps_left is below it */
    bool (*should_stop)(void *arg); /* NULL: never */
    void *arg;
    bool is_stopped; /* should_stop said so; no step is left */
};

/* Takes n steps. False when there are too few, or should_stop says so: then none is left. */
bool tn_jwork_take(struct tn_jwork *work, uint64_t n);

/* ---- makers; those that allocate return false or an undefined value without memory, or beyond
 * TN_J_MAX_DEPTH, which pool->is_deep then says ---- */

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

/* A string over bytes that outlive the pool's user; marks as in struct tn_jstring. */
struct tn_jvalue tn_j_view(struct tn_pool *pool, const char *bytes, const uint8_t *marks, size_t n);
/* A copy of the bytes, all of them from outside or all from the template. */
struct tn_jvalue tn_j_text(struct tn_pool *pool, const char *bytes, size_t n, bool from_outside);

struct tn_jvalue tn_j_list(struct tn_pool *pool, enum tn_jtype type, size_t capacity);
bool tn_j_list_add(struct tn_pool *pool, struct tn_jlist *list, struct tn_jvalue item);
struct tn_jvalue tn_j_dict(struct tn_pool *pool, enum tn_jtype type);
/* Replaces the value of an equal key. */
bool tn_j_dict_set(struct tn_pool *pool, struct tn_jdict *dict, struct tn_jvalue key,
                   struct tn_jvalue value, struct tn_jwork *work);
/* NULL when there is none. */
const struct tn_jvalue *tn_j_dict_get(const struct tn_jdict *dict, struct tn_jvalue key,
                                      struct tn_jwork *work);
const struct tn_jvalue *tn_j_dict_find(const struct tn_jdict *dict, const char *key, size_t n_key);

/* ---- questions ---- */

bool tn_j_is_true(struct tn_jvalue v);
/* Values may share parts, so that comparing them takes far longer than making them did: each
 * comparison is taken from *work, and where none is left the answer is false. */
bool tn_j_equal(struct tn_jvalue a, struct tn_jvalue b, struct tn_jwork *work);
/* -1, 0, 1, or 2 for NaN; false: the two cannot be ordered. */
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
/* Of a number. */
double tn_j_real(struct tn_jvalue v);
int64_t tn_j_integer(struct tn_jvalue v); /* of an int or bool */

/* Can it be a key of a dictionary? Each value looked at is taken from *work. */
bool tn_j_is_hashable(struct tn_jvalue v, struct tn_jwork *work);

/* Characters of a string. Both look at every byte before the place: tn_jrun_n_characters and
 * tn_jrun_offset charge for it. */
size_t tn_j_n_characters(const struct tn_jstring *s);
/* Byte offset of character i <= n_characters. */
size_t tn_j_offset(const struct tn_jstring *s, size_t i);

#endif
