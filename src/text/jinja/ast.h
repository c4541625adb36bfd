/* SPDX-License-Identifier: MIT
 *
 * The syntax tree of a chat template.
 *
 * Nodes are allocated in the template's pool and are immutable after parsing, so any number of
 * threads may render one tree.
 */
#ifndef TN_JINJA_AST_H
#define TN_JINJA_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/jinja/value.h"

enum tn_jnode_type {
    /* expressions; the comments say what a, b, c and list contain */
    TN_N_CONST,      /* value */
    TN_N_NAME,       /* name */
    TN_N_LIST,       /* list: items */
    TN_N_TUPLE,      /* list: items */
    TN_N_DICT,       /* list: pairs, each a = key, b = value */
    TN_N_PAIR,
    TN_N_ATTRIBUTE,  /* a . name */
    TN_N_ITEM,       /* a [ b ] */
    TN_N_SLICE,      /* a [ list[0] : list[1] : list[2] ], each may be NULL */
    TN_N_CALL,       /* a ( arguments in list ) */
    TN_N_KEYWORD,    /* an argument name = a */
    TN_N_FILTER,     /* a | name ( arguments in list ); a is NULL in a filter block */
    TN_N_TEST,       /* a is name ( arguments in list ) */
    TN_N_NOT,        /* not a */
    TN_N_AND,
    TN_N_OR,
    TN_N_IF_ELSE,    /* a if b else c; c may be NULL */
    TN_N_NEGATE,
    TN_N_PLUS,       /* + a */
    TN_N_BINARY,     /* a op b */
    TN_N_CONCAT,     /* list ~ */
    TN_N_COMPARE,    /* a, then list of TN_N_OPERAND: a < b < c */
    TN_N_OPERAND,    /* op a */
    /* statements */
    TN_N_DATA,       /* value: text of the template */
    TN_N_PRINT,      /* {{ a }} */
    TN_N_IF,         /* if a: list, else: other */
    TN_N_FOR,        /* for b in a (if c): list, else: other */
    TN_N_SET,        /* b = a */
    TN_N_SET_BLOCK,  /* b = list, through the filter a if it is not NULL */
    TN_N_MACRO,      /* name, arguments in other, body in list */
    TN_N_ARGUMENT,   /* name, default a or NULL */
    TN_N_CALL_BLOCK, /* {% call(other) a %} list */
    TN_N_FILTER_BLOCK, /* through the filter a: list */
    TN_N_WITH,       /* other: TN_N_SET; body in list */
    TN_N_SCOPE,      /* list in its own scope: {% generation %} */
    TN_N_BREAK,
    TN_N_CONTINUE,
};

enum tn_joperator {
    TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_DIV, TN_OP_FLOOR_DIV, TN_OP_MOD, TN_OP_POW,
    TN_OP_EQ, TN_OP_NE, TN_OP_LT, TN_OP_LE, TN_OP_GT, TN_OP_GE, TN_OP_IN, TN_OP_NOT_IN,
};

struct tn_jnodes {
    struct tn_jnode **items;
    size_t n;
    size_t capacity;
};

struct tn_jname {
    const char *text;
    size_t n;
};

/* Implicit variables that the body of a macro or call block names, directly or in a nested macro.
 * Only then does it accept arguments beyond its parameters. */
enum tn_juses { TN_USES_VARARGS = 1, TN_USES_KWARGS = 2, TN_USES_CALLER = 4 };

struct tn_jnode {
    enum tn_jnode_type type;
    enum tn_joperator op;
    uint32_t uses; /* enum tn_juses */
    uint32_t line;
    uint32_t depth; /* height of the subtree */
    struct tn_jname name;
    struct tn_jvalue value;
    struct tn_jnode *a, *b, *c;
    struct tn_jnodes list, other;
};

/* Nesting limit: evaluation recurses. */
#define TN_JINJA_MAX_DEPTH 200u

#endif
