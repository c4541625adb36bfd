/* SPDX-License-Identifier: MIT
 *
 * One rendering of a template: what the parts of the interpreter share.
 *
 * The first failure is kept in run->status; values computed after it mean
 * nothing and loops end.  So helpers return values, not status codes, and only
 * those look at run->status that would otherwise go on for long.
 */
#ifndef TN_JINJA_EVAL_H
#define TN_JINJA_EVAL_H

#include "base/buf.h"
#include "base/compiler.h"
#include "text/jinja/ast.h"
#include "text/jinja/jinja.h"

/* Text on its way, with the marks of struct tn_jstring. */
struct tn_jsink {
    struct tn_buf text;
    struct tn_buf marks;
};

struct tn_jvariable {
    struct tn_jname name;
    struct tn_jvalue value;
};

/* Names of one scope: the template, a loop, a macro. */
struct tn_jframe {
    struct tn_jframe *parent;
    struct tn_jvariable *variables;
    size_t n;
    size_t capacity;
};

enum tn_jflow { TN_FLOW_ON, TN_FLOW_BREAK, TN_FLOW_CONTINUE };

struct tn_jrun {
    struct tn_pool *pool;
    const struct tn_jdict *context; /* what the caller gave: messages, tools, ... */
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
    struct tn_jvalue *items;
    size_t n;
    struct tn_jkeyword *keywords;
    size_t n_keywords;
};

/* The variable `loop`. */
struct tn_jloop {
    const struct tn_jlist *items;
    size_t index0;
    struct tn_jvalue changed; /* what loop.changed() was called with last */
    bool was_changed_called;
};

struct tn_jmacro {
    const struct tn_jnode *node; /* TN_N_MACRO or TN_N_CALL_BLOCK */
    struct tn_jframe *frame;     /* where it was defined */
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

/* ---- failing, memory ---- */

/* Keeps the first failure, with the line; returns an undefined value. */
struct tn_jvalue tn_jrun_fail(struct tn_jrun *run, tern_status status, const char *format, ...)
    TN_PRINTF(3, 4);
/* Counts n steps of work; false when there were too many, when the caller's should_stop says so, or
 * after a failure. */
bool tn_jrun_step(struct tn_jrun *run, uint64_t n);
/* One level deeper: counts a step; run->depth-- leaves it.  False when it is too deep. */
bool tn_jrun_enter(struct tn_jrun *run);
/* tn_j_n_characters and tn_j_offset, charged by the bytes that they look at. */
size_t tn_jrun_n_characters(struct tn_jrun *run, const struct tn_jstring *s);
size_t tn_jrun_offset(struct tn_jrun *run, const struct tn_jstring *s, size_t i);
/* Memory of the run, NULL and status set without. */
void *tn_jrun_take(struct tn_jrun *run, size_t n_bytes);
/* v itself; status set when it is undefined because memory was short (value.h). */
struct tn_jvalue tn_jrun_made(struct tn_jrun *run, struct tn_jvalue v);
bool tn_jrun_add(struct tn_jrun *run, struct tn_jvalue list, struct tn_jvalue item);
bool tn_jrun_set(struct tn_jrun *run, struct tn_jvalue dict, struct tn_jvalue key,
                 struct tn_jvalue value);

/* ---- eval.c ---- */

struct tn_jvalue tn_jrun_eval(struct tn_jrun *run, const struct tn_jnode *node);
/* call.c */
struct tn_jvalue tn_jrun_call(struct tn_jrun *run, struct tn_jvalue callee,
                              const struct tn_jargs *args);
bool tn_jrun_arguments(struct tn_jrun *run, struct tn_jargs *out, const struct tn_jnodes *list);
/* obj.name; with prefer_item as obj['name'] looks. */
struct tn_jvalue tn_jrun_attribute(struct tn_jrun *run, struct tn_jvalue object,
                                   struct tn_jname name, bool prefer_item);
struct tn_jvalue tn_jrun_item(struct tn_jrun *run, struct tn_jvalue object, struct tn_jvalue key);
/* operators.c */
struct tn_jvalue tn_jrun_binary(struct tn_jrun *run, enum tn_joperator op, struct tn_jvalue a,
                                struct tn_jvalue b);
bool tn_jrun_compare(struct tn_jrun *run, enum tn_joperator op, struct tn_jvalue a,
                     struct tn_jvalue b);
bool tn_jrun_contains(struct tn_jrun *run, struct tn_jvalue container, struct tn_jvalue item);
struct tn_jvalue tn_jrun_slice(struct tn_jrun *run, struct tn_jvalue v,
                               const struct tn_jvalue bounds[3]);

/* ---- statements.c ---- */

void tn_jrun_body(struct tn_jrun *run, const struct tn_jnodes *body);
/* What the body writes, as a string. */
struct tn_jvalue tn_jrun_capture(struct tn_jrun *run, const struct tn_jnodes *body);
struct tn_jframe *tn_jrun_push_frame(struct tn_jrun *run, struct tn_jframe *parent);
void tn_jrun_define(struct tn_jrun *run, struct tn_jframe *frame, struct tn_jname name,
                    struct tn_jvalue value);

/* ---- text.c: writing ---- */

void tn_jsink_put(struct tn_jrun *run, struct tn_jsink *sink, const char *bytes,
                  const uint8_t *marks, size_t n);
void tn_jsink_puts(struct tn_jrun *run, struct tn_jsink *sink, const char *text);
void tn_jsink_put_string(struct tn_jrun *run, struct tn_jsink *sink, const struct tn_jstring *s,
                         size_t begin, size_t end);
/* The collected text as a string of the pool; empties the sink. */
struct tn_jvalue tn_jsink_take(struct tn_jrun *run, struct tn_jsink *sink);
void tn_jsink_fini(struct tn_jsink *sink);
/* Python's str(v) and repr(v). */
void tn_jsink_put_str(struct tn_jrun *run, struct tn_jsink *sink, struct tn_jvalue v);
void tn_jsink_put_repr(struct tn_jrun *run, struct tn_jsink *sink, struct tn_jvalue v);
struct tn_jvalue tn_jrun_str(struct tn_jrun *run, struct tn_jvalue v);
/* A part of a string; shares its bytes. */
struct tn_jvalue tn_jrun_part(struct tn_jrun *run, const struct tn_jstring *s, size_t begin,
                              size_t end);
/* A string of the template's. */
struct tn_jvalue tn_jrun_text(struct tn_jrun *run, const char *text);
/* json.c */
struct tn_jvalue tn_jrun_to_json(struct tn_jrun *run, struct tn_jvalue v,
                                 const struct tn_jargs *args);

/* ---- filters, tests, methods, functions ---- */

struct tn_jvalue tn_jrun_filter(struct tn_jrun *run, struct tn_jname name, struct tn_jvalue v,
                                const struct tn_jargs *args);
bool tn_jrun_test(struct tn_jrun *run, struct tn_jname name, struct tn_jvalue v,
                  const struct tn_jargs *args);
bool tn_jrun_has_filter(struct tn_jname name);
/* Is there such a method of the value's type? */
bool tn_jrun_has_method(struct tn_jvalue v, struct tn_jname name);
struct tn_jvalue tn_jrun_method(struct tn_jrun *run, const struct tn_jmethod *method,
                                const struct tn_jargs *args);
/* NULL when there is none. */
const struct tn_jfunction *tn_jinja_find_function(struct tn_jname name);

/* ---- arguments ---- */

/* Argument i, or the one with this name; NULL when it is absent. */
const struct tn_jvalue *tn_jargs_get(const struct tn_jargs *args, size_t i, const char *name);
/* The same with a value that stands for an absent one. */
struct tn_jvalue tn_jargs_or(const struct tn_jargs *args, size_t i, const char *name,
                             struct tn_jvalue otherwise);
/* The items of a list, the keys of a dictionary, the characters of a string; none of an undefined
 * value. Fails for what cannot be walked over. */
struct tn_jvalue tn_jrun_items(struct tn_jrun *run, struct tn_jvalue v);
/* A string argument; fails (and returns an empty one) for anything else. */
const struct tn_jstring *tn_jrun_string(struct tn_jrun *run, struct tn_jvalue v, const char *what);
int64_t tn_jrun_integer(struct tn_jrun *run, struct tn_jvalue v, const char *what);

static inline bool tn_jname_is(struct tn_jname name, const char *text)
{
    return __builtin_strlen(text) == name.n && __builtin_memcmp(text, name.text, name.n) == 0;
}

#endif
