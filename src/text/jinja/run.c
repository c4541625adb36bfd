/* SPDX-License-Identifier: MIT
 *
 * Helpers of a rendering: failures, step accounting, memory, arguments.
 *
 * Every other file of the interpreter calls them; none of them evaluates anything.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "text/jinja/eval.h"

/* ---- failures, memory ---- */

struct tn_jvalue tn_jrun_fail(struct tn_jrun *run, tern_status status, const char *format, ...)
{
    char where[48];
    va_list args;
    va_start(args, format);
    if (run->status == TERN_OK) {
        run->status = tn_vfail(run->err, status, format, args);
        snprintf(where, sizeof where, "chat template, line %u", run->line);
        tn_fail_prefix(run->err, where);
    }
    va_end(args);
    return (struct tn_jvalue){0};
}

struct tn_jvalue tn_jrun_fail_overflow(struct tn_jrun *run)
{
    return tn_jrun_fail(run, TERN_LIMIT, "an integer does not fit into 64 bits");
}

bool tn_jrun_step(struct tn_jrun *run, uint64_t n)
{
    if (run->status != TERN_OK)
        return false;
    if (tn_jwork_take(&run->work, n))
        return true;
    if (run->work.is_stopped)
        tn_jrun_fail(run, TERN_INTERRUPTED, "interrupted");
    else
        tn_jrun_fail(run, TERN_LIMIT, "the template takes more than %" PRIu64 " steps",
                     TN_JINJA_MAX_STEPS);
    return false;
}

const struct tn_jvalue *tn_jrun_find(struct tn_jrun *run, const struct tn_jdict *dict,
                                     const char *key, size_t n_key)
{
    return tn_jrun_step(run, dict->n / 8) ? tn_j_dict_find(dict, key, n_key) : NULL;
}

size_t tn_jrun_n_characters(struct tn_jrun *run, const struct tn_jstring *s)
{
    return tn_jrun_step(run, s->n / 16) ? tn_j_n_characters(s) : 0;
}

size_t tn_jrun_offset(struct tn_jrun *run, const struct tn_jstring *s, size_t i)
{
    return tn_jrun_step(run, TN_MIN(i, s->n) / 16) ? tn_j_offset(s, i) : 0;
}

/* Above the depth of any tree, because macros call each other. */
#define MAX_DEPTH 400u

bool tn_jrun_enter(struct tn_jrun *run)
{
    if (!tn_jrun_step(run, 1))
        return false;
    if (run->depth >= MAX_DEPTH) {
        tn_jrun_fail(run, TERN_LIMIT, "blocks, expressions and macros nest deeper than %u",
                     MAX_DEPTH);
        return false;
    }
    run->depth++;
    return true;
}

void tn_jrun_fail_memory(struct tn_jrun *run)
{
    if (run->pool->is_deep)
        tn_jrun_fail(run, TERN_LIMIT, "lists and dictionaries nest deeper than %u", TN_J_MAX_DEPTH);
    else if (run->pool->is_full)
        tn_jrun_fail(run, TERN_LIMIT, "the conversation needs more than %zu bytes to render",
                     run->pool->max_bytes);
    else
        tn_jrun_fail(run, TERN_MEMORY, "no memory to render the conversation");
}

void *tn_jrun_take(struct tn_jrun *run, size_t n_bytes)
{
    void *p = tn_jrun_step(run, 1) ? tn_pool_take(run->pool, n_bytes) : NULL;
    if (!p)
        tn_jrun_fail_memory(run);
    return p;
}

struct tn_jvalue tn_jrun_made(struct tn_jrun *run, struct tn_jvalue v)
{
    if (v.type == TN_J_UNDEFINED)
        tn_jrun_fail_memory(run);
    return v;
}

bool tn_jrun_add(struct tn_jrun *run, struct tn_jvalue list, struct tn_jvalue item)
{
    if (tn_jrun_step(run, 1) && !tn_j_list_add(run->pool, list.list, item))
        tn_jrun_fail_memory(run);
    return run->status == TERN_OK;
}

bool tn_jrun_set(struct tn_jrun *run, struct tn_jvalue dict, struct tn_jvalue key,
                 struct tn_jvalue value)
{
    if (tn_jrun_step(run, 1) && !tn_j_dict_set(run->pool, dict.dict, key, value, &run->work))
        tn_jrun_fail_memory(run);
    return run->status == TERN_OK;
}

/* ---- arguments ---- */

const struct tn_jvalue *tn_jargs_get(const struct tn_jargs *args, size_t i, const char *name)
{
    if (i < args->n)
        return &args->items[i];
    for (size_t k = 0; name && k < args->n_keywords; k++)
        if (tn_jname_is(args->keywords[k].name, name))
            return &args->keywords[k].value;
    return NULL;
}

struct tn_jvalue tn_jargs_or(const struct tn_jargs *args, size_t i, const char *name,
                             struct tn_jvalue otherwise)
{
    const struct tn_jvalue *v = tn_jargs_get(args, i, name);
    return v ? *v : otherwise;
}

const struct tn_jstring *tn_jrun_string(struct tn_jrun *run, struct tn_jvalue v, const char *what)
{
    static const struct tn_jstring empty = {"", NULL, 0};
    if (v.type == TN_J_STRING)
        return v.string;
    tn_jrun_fail(run, TERN_USAGE, "%s must be a string, not a %s", what, tn_j_type_name(v));
    return &empty;
}

int64_t tn_jrun_integer(struct tn_jrun *run, struct tn_jvalue v, const char *what)
{
    if (v.type == TN_J_INT || v.type == TN_J_BOOL)
        return tn_j_integer(v);
    tn_jrun_fail(run, TERN_USAGE, "%s must be an integer, not a %s", what, tn_j_type_name(v));
    return 0;
}
