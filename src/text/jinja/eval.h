/* SPDX-License-Identifier: MIT
 *
 * One rendering of a template: the state that all files of the interpreter share.
 *
 * The first failure is kept in run->status; values computed after it are meaningless and loops end.
 * So helpers return values instead of status codes, and only long loops check run->status.
 */
#ifndef TN_JINJA_EVAL_H
#define TN_JINJA_EVAL_H

#include "base/buf.h"
#include "base/compiler.h"
#include "text/jinja/ast.h"
#include "text/jinja/jinja.h"

/* Output text with the marks of struct tn_jstring. */
struct tn_jsink {
    struct tn_buf text;
    struct tn_buf marks;
};

struct tn_jvariable {
    struct tn_jname name;
    struct tn_jvalue value;
};

/* The names of one scope: the template, a loop, a macro. */
struct tn_jframe {
    struct tn_jframe *parent;
    struct tn_jvariable *variables;
    size_t n;
    size_t capacity;
};

enum tn_jflow { TN_FLOW_ON, TN_FLOW_BREAK, TN_FLOW_CONTINUE };

struct tn_jrun {
    struct tn_pool *pool;
    const struct tn_jdict *context; /* variables of the caller: messages, tools, ... */
    const struct tn_jinja_time *now;
    struct tn_jframe *frame;
    struct tn_jsink *sink;
    enum tn_jflow flow;
    uint32_t line;
    uint32_t depth;
    struct tn_jwork work;
    tern_status status;
    struct tern_error *err;
};

struct tn_jkeyword {
    struct tn_jname name;
    struct tn_jvalue value;
};

struct tn_jargs {
    struct tn_jvalue self; /* to which a method, filter or test is applied */
    int how; /* from the table's row: distinguishes methods, filters or tests of one function */
    struct tn_jvalue *items;
    size_t n;
    struct tn_jkeyword *keywords;
    size_t n_keywords;
};

/* The variable `loop`. */
struct tn_jloop {
    const struct tn_jlist *items;
    size_t index0;
    struct tn_jvalue changed; /* last argument of loop.changed() */
    bool was_changed_called;
};

struct tn_jmacro {
    const struct tn_jnode *node; /* TN_N_MACRO or TN_N_CALL_BLOCK */
    struct tn_jframe *frame;     /* scope of the definition */
};

struct tn_jmethod {
    struct tn_jvalue self;
    struct tn_jname name;
};

typedef struct tn_jvalue tn_jfunction_fn(struct tn_jrun *run, const struct tn_jargs *args);
struct tn_jfunction {
    const char *name;
    tn_jfunction_fn *call;
};

/* ---- failures, memory ---- */

/* Keeps the first failure, prefixed with the line.  Returns an undefined value. */
struct tn_jvalue tn_jrun_fail(struct tn_jrun *run, tern_status status, const char *format, ...)
    TN_PRINTF(3, 4);
struct tn_jvalue tn_jrun_fail_overflow(struct tn_jrun *run);
/* After an allocation failed in the run's pool. */
void tn_jrun_fail_memory(struct tn_jrun *run);
/* Charges n steps.  false: out of steps, stopped by the caller's should_stop, or an earlier
 * failure. */
bool tn_jrun_step(struct tn_jrun *run, uint64_t n);
/* Enters one nesting level and charges a step; leave with run->depth--.  false: too deep. */
bool tn_jrun_enter(struct tn_jrun *run);
/* tn_j_dict_find, charged by the pairs of the dictionary. */
const struct tn_jvalue *tn_jrun_find(struct tn_jrun *run, const struct tn_jdict *dict,
                                     const char *key, size_t n_key);
/* tn_j_n_characters and tn_j_offset, charged by the bytes that they scan. */
size_t tn_jrun_n_characters(struct tn_jrun *run, const struct tn_jstring *s);
size_t tn_jrun_offset(struct tn_jrun *run, const struct tn_jstring *s, size_t i);
/* Allocates from the run's pool; NULL with run->status set on failure. */
void *tn_jrun_take(struct tn_jrun *run, size_t n_bytes);
/* Returns v; sets run->status if v is undefined because its allocation failed (value.h). */
struct tn_jvalue tn_jrun_made(struct tn_jrun *run, struct tn_jvalue v);
bool tn_jrun_add(struct tn_jrun *run, struct tn_jvalue list, struct tn_jvalue item);
bool tn_jrun_set(struct tn_jrun *run, struct tn_jvalue dict, struct tn_jvalue key,
                 struct tn_jvalue value);

/* ---- eval.c ---- */

struct tn_jvalue tn_jrun_eval(struct tn_jrun *run, const struct tn_jnode *node);
/* ---- call.c ---- */
struct tn_jvalue tn_jrun_call(struct tn_jrun *run, struct tn_jvalue callee,
                              const struct tn_jargs *args);
bool tn_jrun_arguments(struct tn_jrun *run, struct tn_jargs *out, const struct tn_jnodes *list);
/* obj.name; with prefer_item, obj['name'] is tried first. */
struct tn_jvalue tn_jrun_attribute(struct tn_jrun *run, struct tn_jvalue object,
                                   struct tn_jname name, bool prefer_item);
struct tn_jvalue tn_jrun_item(struct tn_jrun *run, struct tn_jvalue object, struct tn_jvalue key);
/* ---- operators.c ---- */
struct tn_jvalue tn_jrun_binary(struct tn_jrun *run, enum tn_joperator op, struct tn_jvalue a,
                                struct tn_jvalue b);
bool tn_jrun_compare(struct tn_jrun *run, enum tn_joperator op, struct tn_jvalue a,
                     struct tn_jvalue b);
bool tn_jrun_contains(struct tn_jrun *run, struct tn_jvalue container, struct tn_jvalue item);
struct tn_jvalue tn_jrun_slice(struct tn_jrun *run, struct tn_jvalue v,
                               const struct tn_jvalue bounds[3]);

/* ---- statements.c ---- */

void tn_jrun_body(struct tn_jrun *run, const struct tn_jnodes *body);
/* The output of a body, as a string. */
struct tn_jvalue tn_jrun_capture(struct tn_jrun *run, const struct tn_jnodes *body);
struct tn_jframe *tn_jrun_push_frame(struct tn_jrun *run, struct tn_jframe *parent);
void tn_jrun_define(struct tn_jrun *run, struct tn_jframe *frame, struct tn_jname name,
                    struct tn_jvalue value);

/* ---- text.c: output ---- */

void tn_jsink_put(struct tn_jrun *run, struct tn_jsink *sink, const char *bytes,
                  const uint8_t *marks, size_t n);
void tn_jsink_puts(struct tn_jrun *run, struct tn_jsink *sink, const char *text);
void tn_jsink_put_string(struct tn_jrun *run, struct tn_jsink *sink, const struct tn_jstring *s,
                         size_t begin, size_t end);
/* The collected text as a string in the pool; empties the sink. */
struct tn_jvalue tn_jsink_take(struct tn_jrun *run, struct tn_jsink *sink);
void tn_jsink_fini(struct tn_jsink *sink);
/* Python's str(v) and repr(v). */
void tn_jsink_put_str(struct tn_jrun *run, struct tn_jsink *sink, struct tn_jvalue v);
void tn_jsink_put_repr(struct tn_jrun *run, struct tn_jsink *sink, struct tn_jvalue v);
struct tn_jvalue tn_jrun_str(struct tn_jrun *run, struct tn_jvalue v);
/* A substring that shares the bytes of s. */
struct tn_jvalue tn_jrun_part(struct tn_jrun *run, const struct tn_jstring *s, size_t begin,
                              size_t end);
/* A string that counts as text of the template. */
struct tn_jvalue tn_jrun_text(struct tn_jrun *run, const char *text);
/* ---- json.c ---- */
struct tn_jvalue tn_jrun_to_json(struct tn_jrun *run, const struct tn_jargs *args);

/* ---- filters, tests, methods, functions ---- */

struct tn_jvalue tn_jrun_filter(struct tn_jrun *run, struct tn_jname name, struct tn_jvalue v,
                                const struct tn_jargs *args);
bool tn_jrun_test(struct tn_jrun *run, struct tn_jname name, struct tn_jvalue v,
                  const struct tn_jargs *args);
bool tn_jrun_has_filter(struct tn_jname name);
/* Does the value's type have this method? */
bool tn_jrun_has_method(struct tn_jvalue v, struct tn_jname name);
struct tn_jvalue tn_jrun_method(struct tn_jrun *run, const struct tn_jmethod *method,
                                const struct tn_jargs *args);
/* NULL: none. */
const struct tn_jfunction *tn_jinja_find_function(struct tn_jname name);

/* ---- arguments ---- */

/* Positional argument i, or the one with this name; NULL: absent. */
const struct tn_jvalue *tn_jargs_get(const struct tn_jargs *args, size_t i, const char *name);
/* The same with a default. */
struct tn_jvalue tn_jargs_or(const struct tn_jargs *args, size_t i, const char *name,
                             struct tn_jvalue otherwise);
/* The items of a list, the keys of a dictionary, the characters of a string; empty for an undefined
 * value.  Fails for a value that is not iterable. */
struct tn_jvalue tn_jrun_items(struct tn_jrun *run, struct tn_jvalue v);
/* A string argument; fails and returns an empty string for any other type. */
const struct tn_jstring *tn_jrun_string(struct tn_jrun *run, struct tn_jvalue v, const char *what);
int64_t tn_jrun_integer(struct tn_jrun *run, struct tn_jvalue v, const char *what);

/* The arguments of a call, for a value and a row of a table. */
static inline struct tn_jargs tn_jargs_for(struct tn_jvalue self, int how,
                                           const struct tn_jargs *args)
{
    struct tn_jargs own = *args;
    own.self = self;
    own.how = how;
    return own;
}

static inline bool tn_jname_equal(struct tn_jname a, struct tn_jname b)
{
    return a.n == b.n && __builtin_memcmp(a.text, b.text, a.n) == 0;
}

static inline bool tn_jname_is(struct tn_jname name, const char *text)
{
    return __builtin_strlen(text) == name.n && __builtin_memcmp(text, name.text, name.n) == 0;
}

#endif
