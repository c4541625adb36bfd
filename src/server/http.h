/* SPDX-License-Identifier: MIT
 *
 * Parses one HTTP/1.1 request from bytes in arbitrary pieces.  RFC 9112 at its strictest: anything
 * that two programs could interpret differently is refused, because request smuggling uses such
 * gaps.
 *
 *   HEAD -> (the caller checks the fields) -> BODY -> DONE      or FAILED at any byte
 *
 * The caller is conn.c; nothing here knows of sockets.  Memory: the head, at most TN_HTTP_MAX_LINE
 * + TN_HTTP_MAX_HEAD bytes, and the body as it arrives, whatever its length claims.  Large bodies
 * are in pages that return to the system; a heap would keep the holes.
 */
#ifndef TN_HTTP_H
#define TN_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/budget.h"

#define TN_HTTP_MAX_LINE 8192u            /* request line */
#define TN_HTTP_MAX_HEAD 16384u           /* all fields together */
#define TN_HTTP_MAX_FIELDS 64u
#define TN_HTTP_MAX_BODY ((size_t)4 << 20) /* decoded */

enum tn_http_state {
    TN_HTTP_HEAD,      /* more of the head is needed */
    TN_HTTP_HEAD_DONE, /* the head is complete: check it, then call tn_http_continue */
    TN_HTTP_BODY,
    TN_HTTP_DONE,
    TN_HTTP_FAILED,
};

enum tn_http_method {
    TN_HTTP_GET,
    TN_HTTP_HEAD_METHOD,
    TN_HTTP_POST,
    TN_HTTP_OPTIONS,
    TN_HTTP_DELETE,
    TN_HTTP_OTHER, /* a valid name that no route accepts */
};

struct tn_http_text {
    const char *data; /* NULL: absent */
    size_t n;
};

struct tn_http_field {
    struct tn_http_text name, value; /* the value without surrounding white space */
};

/* A large body in separate pages, freed by the request or by the caller that takes them. */
struct tn_http_pages {
    char *data; /* TN_HTTP_MAX_BODY reserved bytes, n_committed of them usable; NULL: none */
    size_t n;   /* bytes of the body */
    size_t n_committed;
    struct tn_budget *budget; /* that accounts for them; NULL: none */
};

/* Zero-initialise and set `budget`, which tn_http_fini keeps. */
struct tn_http_request {
    enum tn_http_state state;
    int status;      /* FAILED: status to answer, 400 to 505 */
    const char *why; /* and the reason */

    /* Valid from HEAD_DONE on; texts point into the head. */
    enum tn_http_method method;
    struct tn_http_text method_name;
    struct tn_http_text authority;  /* from a target in absolute form */
    struct tn_buf path;             /* %-decoded; begins with '/', or is "*" */
    struct tn_http_text query;      /* after '?', undecoded */
    bool is_1_0;
    bool keeps_alive;               /* requested by the client */
    bool expects_continue;
    bool has_body;
    struct tn_http_field fields[TN_HTTP_MAX_FIELDS];
    uint32_t n_fields;

    struct tn_http_text body; /* complete when DONE; not NULL */
    struct tn_budget *budget; /* for large bodies; NULL: limited by size only */

    /* private */
    struct tn_buf head;
    struct tn_buf small_body; /* instead of pages, up to 64 KiB */
    struct tn_http_pages pages;
    size_t n_line;      /* length of the request line; 0: incomplete */
    bool is_chunked;
    uint64_t n_left;    /* remaining bytes of the body or chunk */
    int chunk;          /* state within the chunked coding */
    uint32_t n_digits, n_skipped;
};

/* Consumes bytes up to the end of the head or of the request.  Returns how many. */
size_t tn_http_feed(struct tn_http_request *r, const char *bytes, size_t n);
/* After HEAD_DONE: continues with the body. */
void tn_http_continue(struct tn_http_request *r);
/* Moves the pages of a large body to the caller. */
struct tn_http_pages tn_http_take_pages(struct tn_http_request *r);
void tn_http_free_pages(struct tn_http_pages *pages);
/* Frees everything; ready for the next request. */
void tn_http_fini(struct tn_http_request *r);

/* The value of a field by its lower-case name; data is NULL when absent.  *n_times (may be NULL):
 * number of occurrences, of which the first is returned. */
struct tn_http_text tn_http_field(const struct tn_http_request *r, const char *name,
                                  uint32_t *n_times);
/* Both compare without ASCII case; an absent text is and begins with nothing. */
bool tn_http_is(struct tn_http_text text, const char *word);
bool tn_http_begins(struct tn_http_text text, const char *prefix);
/* Removes and returns the next item of a comma-separated list, without white space around it. */
struct tn_http_text tn_http_next_item(struct tn_http_text *list);
/* Appends the decoded value of a query parameter to *out.  false: absent, invalid escape, or out of
 * memory. */
bool tn_http_query(const struct tn_http_request *r, const char *name, struct tn_buf *out);

#endif
