/* SPDX-License-Identifier: MIT
 *
 * Splits a template's source into tokens, as Jinja2 does with trim_blocks and lstrip_blocks.
 *
 * White space around tags is removed, comments and raw blocks are resolved, string literals
 * decoded.
 */
#ifndef TN_JINJA_LEX_H
#define TN_JINJA_LEX_H

#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"
#include "text/jinja/pool.h"

enum tn_jtoken_type {
    TN_T_END,         /* end of the source */
    TN_T_DATA,        /* text between tags */
    TN_T_BLOCK_BEGIN, /* {% */
    TN_T_BLOCK_END,
    TN_T_PRINT_BEGIN, /* {{ */
    TN_T_PRINT_END,
    TN_T_NAME,
    TN_T_STRING, /* text: the decoded literal */
    TN_T_INT,
    TN_T_FLOAT,
    TN_T_OPERATOR, /* text: one of + - / // * % ** ~ [ ] ( ) { } == != > >= < <= = . : | , ; */
};

struct tn_jtoken {
    enum tn_jtoken_type type;
    uint32_t line; /* from 1 */
    const char *text;
    size_t n;
    int64_t integer;
    double real;
};

struct tn_jtokens {
    struct tn_jtoken *items; /* terminated by TN_T_END */
    size_t n;
    size_t capacity;
};

/* Tokens and their texts are allocated in the pool.  TERN_UNSUPPORTED: invalid syntax, with its
 * line; TERN_MEMORY. */
tern_status tn_jinja_lex(struct tn_jtokens *out, struct tn_pool *pool, const char *source, size_t n,
                         struct tern_error *err);

#endif
