/* SPDX-License-Identifier: MIT
 *
 * Reads the calls of an answer, each while its text arrives.  A call is an object or has tags:
 *
 *   {"name": "f", "arguments": {"city": "Oslo"}}
 *
 *   <function=f>
 *   <parameter=city>
 *   Oslo
 *   </parameter>
 *   </function>
 */
#ifndef TN_CALL_READER_H
#define TN_CALL_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "chat/call_tools.h"

#define TN_CALL_MAX_HEAD 1024u /* maximum bytes before the arguments of a call read in pieces */

struct tn_call {
    char *name;
    struct tn_buf arguments;
    size_t n_text;
};

enum tn_call_phase {
    TN_CALL_NAME,      /* before the arguments */
    TN_CALL_ARGUMENTS, /* with tags: between two of them */
    TN_CALL_VALUE,     /* with tags: after <parameter=...> */
    TN_CALL_REST       /* after the arguments, or after something unexpected */
};

struct tn_call_reader {
    const struct tern_call_tools *tools; /* NULL: unknown */
    bool is_early; /* a call counts as soon as its arguments begin */
    size_t n_text; /* bytes of text outside calls so far */
    struct tn_call *calls; /* [n_calls], plus the call in progress */
    size_t n_calls, capacity;
    bool is_begun; /* a call whose arguments are arriving */
    enum tn_call_phase phase;
    size_t n_read;   /* bytes of the call already parsed */
    bool is_whole;   /* all arguments were read */
    bool is_last;    /* the text of the call is complete */
    uint32_t depth;  /* an object: nesting of its arguments */
    bool is_string, is_escaped, has_line_feed; /* of the current or last string of an object */
    bool has_arguments; /* tags: one was written */
    size_t n_searched;  /* tags: bytes of the value that contain no start of its closing tag */
    enum tn_call_value value;
};

/* Parses the first n bytes of a call as far as possible; they begin with those of the last time.
 * false: out of memory. */
bool tn_call_read(struct tn_call_reader *r, const char *text, size_t n);
/* The n bytes are the whole call.  TERN_INPUT: it is none; TERN_MEMORY. */
tern_status tn_call_end(struct tn_call_reader *r, const char *text, size_t n);
/* Is a closing tag at `at`, up to which the call was read, inside a string of JSON?  A string ends
 * with a quote; a line feed before it shows that it is none.  *is_known: false if neither is among
 * the n bytes. */
bool tn_call_is_inside_string(const struct tn_call_reader *r, const char *text, size_t n, size_t at,
                              bool *is_known);
/* Releases the calls. */
void tn_call_reader_fini(struct tn_call_reader *r);

/* Matches {"name": "f", "arguments": { from *at on.  false: it differs, or may still arrive, in
 * which case *at is n. */
bool tn_call_match_head(const char *text, size_t n, size_t *at, size_t *name_at, size_t *n_name);

/* ---- for the two forms ---- */

/* Skips white space and then `word`.  false: as above. */
bool tn_call_skip_word(const char *text, size_t n, size_t *at, const char *word);
/* Appends a call without arguments, which does not count yet.  false: out of memory. */
bool tn_call_begin(struct tn_call_reader *r, const char *name, size_t n_name);
/* Counts the call in progress, if any, or discards it. */
void tn_call_finish(struct tn_call_reader *r, bool counts);
/* Does a string of JSON continue through its closing quote?  *is_known: as above. */
bool tn_call_closes_string(const char *text, size_t n, bool *is_known);
/* Does a value that begins as a string, array or object of JSON have a string around `at`? */
bool tn_call_has_string_around(const char *text, size_t n, size_t at, bool *is_known);
/* The arguments of the call in progress. */
static inline struct tn_buf *tn_call_arguments(struct tn_call_reader *r)
{
    return &r->calls[r->n_calls].arguments;
}
/* tn_call_read and tn_call_end of each form, without preparing for the next call.  An object whose
 * members are in an unusual order is added at its end. */
bool tn_call_read_object(struct tn_call_reader *r, const char *text, size_t n);
tern_status tn_call_end_object(struct tn_call_reader *r, const char *text, size_t n);
bool tn_call_read_tags(struct tn_call_reader *r, const char *text, size_t n);
tern_status tn_call_end_tags(struct tn_call_reader *r);

#endif
