/* SPDX-License-Identifier: MIT
 *
 * Chat templates: an interpreter for the subset of Jinja that published templates use, rendered as
 * Hugging Face's transformers renders it (Jinja2 3.1, sandboxed, trim_blocks, lstrip_blocks, loop
 * controls, tojson without HTML escapes).
 *
 *   source --lex.c--> tokens --parse*.c--> tree --statements.c, eval.c--> text
 *
 * A template is untrusted, so it can reach only the values it is given: no files, no clock, no
 * attributes beyond data.  Steps, memory, depth and output are bounded.
 */
#ifndef TN_JINJA_H
#define TN_JINJA_H

/* Statements: if, for (else, if; break, continue), set (also as a block), macro, call, filter,
 * with, generation, raw, comments.  Not supported: include, import, extends, block, recursive
 * loops, * and ** in calls, autoescape.
 *
 * tests/text/test_jinja_oracle.py and test_jinja_random.py compare with Jinja2.  Known differences:
 * integers have 64 bits; there are no complex numbers; items(), keys(), values() and range() are
 * lists; lazy values fail at creation; only the sharp s expands when its case changes; isdigit()
 * and its relatives know ASCII digits only; macros have no attributes; `safe` has no effect. */

#include <stdint.h>

#include "base/buf.h"
#include "tern/status.h"
#include "text/jinja/value.h"

#define TN_JINJA_MAX_SOURCE ((size_t)1 << 20)
#define TN_JINJA_MAX_OUTPUT ((size_t)64 << 20)
#define TN_JINJA_MAX_MEMORY ((size_t)256 << 20)
/* Charged for nodes evaluated, values compared, and every 16 bytes copied or searched; the limit
 * takes a few seconds. */
#define TN_JINJA_MAX_STEPS ((uint64_t)50 << 20)

struct tn_jinja; /* a parsed template; read-only, so any number of threads may render it */

/* Local date and time for strftime_now. */
struct tn_jinja_time {
    int32_t year;  /* 1 ... 9999 */
    uint8_t month; /* 1 ... 12 */
    uint8_t day;   /* 1 ... 31 */
    uint8_t hour, minute, second;
};

/* should_stop is called every few milliseconds of a rendering; true ends it with TERN_INTERRUPTED.
 */
struct tn_jinja_stop {
    bool (*should_stop)(void *arg); /* NULL: never */
    void *arg;
};

/* TERN_UNSUPPORTED: an unknown construct, with its line; TERN_LIMIT: a source longer than
 * TN_JINJA_MAX_SOURCE bytes; TERN_INPUT: not UTF-8; TERN_MEMORY. */
tern_status tn_jinja_parse(struct tn_jinja **out, const char *source, size_t n,
                           struct tern_error *err);
void tn_jinja_free(struct tn_jinja *template);

/* Whether two sources have the same tokens; white space control, blanks inside tags, comments and
 * the quoting style do not count.  Also false when out of memory. */
bool tn_jinja_is_same(const char *source, size_t n, const char *other);

/* Appends the rendering to `text`, and to `marks` one byte for each of its bytes: 1 if it comes
 * from a string marked as user text, else 0.  `context` holds the variables, made in `pool`, from
 * which the rendering allocates too.  `now` and `stop` may be NULL (no clock, no interruption).
 *
 * TERN_USAGE: the template rejects the conversation (raise_exception, whose text is in err) or uses
 * a value in an unsupported way; TERN_UNSUPPORTED: an unknown filter, test or method; TERN_LIMIT,
 * TERN_MEMORY; TERN_INTERRUPTED.  The message names the line. */
tern_status tn_jinja_render(const struct tn_jinja *template, struct tn_pool *pool,
                            const struct tn_jdict *context, const struct tn_jinja_time *now,
                            const struct tn_jinja_stop *stop, struct tn_buf *text,
                            struct tn_buf *marks, struct tern_error *err);

#endif
