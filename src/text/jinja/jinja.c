/* SPDX-License-Identifier: MIT
 *
 * Entry points of the interpreter: parse, compare, render.
 *
 * Bounds the memory of parsing and rendering and turns an exhausted pool into a status.
 */
#include "text/jinja/jinja.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/jinja/eval.h"
#include "text/jinja/lex.h"
#include "text/jinja/parse.h"

/* Tokens and tree of a 1 MiB source: about 100 bytes per source byte in the worst case. */
#define MAX_TREE_BYTES ((size_t)256 << 20)

struct tn_jinja {
    struct tn_pool pool;
    struct tn_jtokens tokens;
    struct tn_jnodes body;
};

static tern_status parse(struct tn_jinja *t, const char *source, size_t n, struct tern_error *err)
{
    tern_status status = tn_jinja_lex(&t->tokens, &t->pool, source, n, err);
    if (status != TERN_OK)
        return status;
    struct tn_jparser p = {.token = t->tokens.items, .pool = &t->pool, .err = err};
    tn_jinja_parse_template(&p, &t->body);
    return p.status;
}

tern_status tn_jinja_parse(struct tn_jinja **out, const char *source, size_t n,
                           struct tern_error *err)
{
    *out = NULL;
    if (n > TN_JINJA_MAX_SOURCE)
        return tn_fail(err, TERN_LIMIT, "the chat template has %zu bytes, more than %zu", n,
                       TN_JINJA_MAX_SOURCE);
    size_t bad = tn_utf8_find_invalid(source, n);
    if (bad < n)
        return tn_fail(err, TERN_INPUT, "the chat template is not UTF-8: byte %zu is 0x%02X", bad,
                       (unsigned char)source[bad]);
    struct tn_jinja *t = tn_alloc_zeroed(1, sizeof *t);
    if (!t)
        return tn_fail(err, TERN_MEMORY, "no memory for a chat template");
    t->pool.max_bytes = MAX_TREE_BYTES;
    tern_status status = parse(t, source, n, err);
    if (status != TERN_OK) {
        tn_jinja_free(t);
        return status;
    }
    *out = t;
    return tn_ok(err);
}

void tn_jinja_free(struct tn_jinja *t)
{
    if (!t)
        return;
    tn_pool_fini(&t->pool);
    tn_free(t);
}

static bool is_same_token(const struct tn_jtoken *a, const struct tn_jtoken *b)
{
    return a->type == b->type && a->integer == b->integer && a->real == b->real && a->n == b->n &&
           (a->n == 0 || memcmp(a->text, b->text, a->n) == 0);
}

bool tn_jinja_is_same(const char *source, size_t n, const char *other)
{
    struct tn_pool pool = {.max_bytes = MAX_TREE_BYTES};
    struct tn_jtokens a = {0}, b = {0};
    bool is_same = n <= TN_JINJA_MAX_SOURCE &&
                   tn_jinja_lex(&a, &pool, source, n, NULL) == TERN_OK &&
                   tn_jinja_lex(&b, &pool, other, strlen(other), NULL) == TERN_OK && a.n == b.n;
    for (size_t i = 0; i < a.n && is_same; i++)
        is_same = is_same_token(&a.items[i], &b.items[i]);
    tn_pool_fini(&pool);
    return is_same;
}

tern_status tn_jinja_render(const struct tn_jinja *t, struct tn_pool *pool,
                            const struct tn_jdict *context, const struct tn_jinja_time *now,
                            const struct tn_jinja_stop *stop, struct tn_buf *text,
                            struct tn_buf *marks, struct tern_error *err)
{
    struct tn_jsink sink = {0};
    struct tn_jrun run = {.pool = pool,
                          .context = context,
                          .now = now,
                          .sink = &sink,
                          .work = {.steps_left = TN_JINJA_MAX_STEPS,
                                   .next_look = TN_JINJA_MAX_STEPS - TN_J_STEPS_PER_LOOK,
                                   .should_stop = stop ? stop->should_stop : NULL,
                                   .arg = stop ? stop->arg : NULL},
                          .err = err};
    run.frame = tn_jrun_push_frame(&run, NULL);
    if (run.frame)
        tn_jrun_body(&run, &t->body);
    if (run.status == TERN_OK && (!tn_buf_append(text, sink.text.data, sink.text.n_bytes) ||
                                  !tn_buf_append(marks, sink.marks.data, sink.marks.n_bytes)))
        tn_jrun_fail(&run, TERN_MEMORY, "no memory for a conversation of %zu bytes",
                     sink.text.n_bytes);
    tn_jsink_fini(&sink);
    return run.status;
}
