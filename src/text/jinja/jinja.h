/* SPDX-License-Identifier: MIT
 *
 * Chat templates: an interpreter for the part of the Jinja language that
 * published templates use, rendered as Hugging Face's transformers renders it
 * (Jinja2 3.1, sandboxed, trim_blocks, lstrip_blocks, loop controls, tojson
 * without escapes for HTML).
 *
 *   source --lex.c--> tokens --parse*.c--> tree --statements.c, eval.c--> text
 *
 * A template comes with a model from anywhere, so it can reach nothing but the
 * values that it is given: no files, no clock, no attributes beyond data; and
 * its work, memory, depth and output are bounded.
 *
 * Statements: if, for (else, if; break, continue), set (also as a block), macro,
 * call, filter, with, generation, raw, comments.  Not supported: include,
 * import, extends, block, recursive loops, * and ** in calls, autoescape.
 *
 * tests/text/test_jinja_oracle.py and test_jinja_random.py compare with Jinja2.
 * What is known to differ: integers have 64 bits; there are no complex numbers;
 * items(), keys(), values() and range() are lists; what Python computes lazily
 * fails at once; of the characters that become several in another case only the
 * sharp s does; `safe` changes nothing.
 */
#ifndef TN_JINJA_H
#define TN_JINJA_H

#include <stdint.h>

#include "base/buf.h"
#include "tern/status.h"
#include "text/jinja/value.h"

#define TN_JINJA_MAX_SOURCE ((size_t)1 << 20)
#define TN_JINJA_MAX_OUTPUT ((size_t)64 << 20)
#define TN_JINJA_MAX_MEMORY ((size_t)256 << 20)
/* Nodes evaluated, values compared, bytes copied or searched / 16: some seconds at most. */
#define TN_JINJA_MAX_STEPS ((uint64_t)50 << 20)

struct tn_jinja; /* a parsed template; read-only, any number of threads may render it */

/* What strftime_now tells: a local date and time. */
struct tn_jinja_time {
    int32_t year;  /* 1 ... 9999 */
    uint8_t month; /* 1 ... 12 */
    uint8_t day;   /* 1 ... 31 */
    uint8_t hour, minute, second;
};

/* Asked every few milliseconds of a rendering; true ends it with TERN_INTERRUPTED. */
struct tn_jinja_stop {
    bool (*should_stop)(void *arg); /* NULL: never */
    void *arg;
};

/* TERN_UNSUPPORTED: a construct that is not known, with its line; TERN_LIMIT: a source of more
 * than TN_JINJA_MAX_SOURCE bytes; TERN_INPUT: not UTF-8; TERN_MEMORY. */
tern_status tn_jinja_parse(struct tn_jinja **out, const char *source, size_t n,
                           struct tern_error *err);
void tn_jinja_free(struct tn_jinja *template);

/* Whether two sources consist of the same tokens: white space control, blanks inside tags, comments
 * and the style of string literals do not count.  False also without memory to compare. */
bool tn_jinja_is_same(const char *source, size_t n, const char *other);

/* Appends the rendering to text and, for every byte of it, 1 to marks if it comes from a string
 * that is marked as from outside, else 0.  `context` holds the variables, made in `pool`, from
 * which the rendering takes its memory too; now may be NULL when no clock is to be seen.
 *
 * TERN_USAGE: the template refuses the conversation (raise_exception, its text in err), or it asks
 * for what these values do not have; TERN_UNSUPPORTED: an unknown filter, test or method;
 * TERN_LIMIT, TERN_MEMORY; TERN_INTERRUPTED.  The message names the line.  stop may be NULL. */
tern_status tn_jinja_render(const struct tn_jinja *template, struct tn_pool *pool,
                            const struct tn_jdict *context, const struct tn_jinja_time *now,
                            const struct tn_jinja_stop *stop, struct tn_buf *text,
                            struct tn_buf *marks, struct tern_error *err);

#endif
