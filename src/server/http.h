/* SPDX-License-Identifier: MIT
 *
 * One HTTP/1.1 request, from bytes that arrive in any pieces.  RFC 9112 at its strictest: whatever
 * two programs could read in two ways is refused, since requests are smuggled through such gaps.
 *
 *   HEAD -> (the caller looks at the fields) -> BODY -> DONE      or FAILED at any byte
 *
 * The caller is conn.c; nothing here knows of sockets.  Memory: the head, at most
 * TN_HTTP_MAX_LINE + TN_HTTP_MAX_HEAD bytes, and the body as it arrives, whatever a length claims.
 * Large bodies lie in pages of their own, which the system gets back: a heap keeps holes.
 */
#ifndef TN_HTTP_H
#define TN_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/ration.h"

#define TN_HTTP_MAX_LINE 8192u            /* request line */
#define TN_HTTP_MAX_HEAD 16384u           /* all fields together */
#define TN_HTTP_MAX_FIELDS 64u
#define TN_HTTP_MAX_BODY ((size_t)4 << 20) /* decoded */
#define TN_HTTP_SMALL_BODY ((size_t)64 << 10)

enum tn_http_state {
    TN_HTTP_HEAD,      /* more of the head is needed */
    TN_HTTP_HEAD_DONE, /* the head is there: look at it, then tn_http_go_on */
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
    TN_HTTP_OTHER, /* a valid name that no route takes */
};

struct tn_http_text {
    const char *data; /* NULL: absent */
    size_t n;
};

struct tn_http_field {
    struct tn_http_text name, value; /* the value without white space around it */
};

/* A large body, in pages of its own that its request or whoever took them gives back. */
struct tn_http_pages {
    char *data; /* TN_HTTP_MAX_BODY reserved bytes, n_committed of them usable; NULL: none */
    size_t n;   /* of the body */
    size_t n_committed;
    struct tn_ration *ration; /* that they are part of; NULL: none */
};

/* Zero-initialise, but for `ration`, which stays; tn_http_fini frees. */
struct tn_http_request {
    enum tn_http_state state;
    int status;      /* FAILED: what to answer, 400 ... 505 */
    const char *why; /* and a sentence about it */

    /* From HEAD_DONE on; texts point into the head. */
    enum tn_http_method method;
    struct tn_http_text method_name;
    struct tn_http_text authority;  /* of a target in absolute form */
    struct tn_buf path;             /* %-decoded; begins with '/', or is "*" */
    struct tn_http_text query;      /* behind '?', as it came */
    bool is_1_0;
    bool keeps_alive;               /* as the client wants it */
    bool expects_continue;
    bool has_body;
    struct tn_http_field fields[TN_HTTP_MAX_FIELDS];
    uint32_t n_fields;

    struct tn_http_text body; /* complete when DONE; not NULL */
    struct tn_ration *ration; /* that large bodies take from; NULL: no limit but their size */

    /* private */
    struct tn_buf head;
    struct tn_buf small_body; /* up to TN_HTTP_SMALL_BODY bytes */
    struct tn_http_pages pages;
    size_t n_line;      /* bytes of the request line; 0: not yet complete */
    bool is_chunked;
    uint64_t n_left;    /* of the body, or of the chunk */
    int chunk;          /* where in the chunked coding */
    uint32_t n_digits, n_skipped;
};

/* Takes bytes up to the end of the head or of the request and returns how many it took. */
size_t tn_http_feed(struct tn_http_request *r, const char *bytes, size_t n);
/* Behind HEAD_DONE: the body may come. */
void tn_http_go_on(struct tn_http_request *r);
/* The pages of a large body; the request has none any more. */
struct tn_http_pages tn_http_take_pages(struct tn_http_request *r);
void tn_http_free_pages(struct tn_http_pages *pages);
/* Frees all and is ready for the next request. */
void tn_http_fini(struct tn_http_request *r);

/* The value of a field, its name in small letters; data is NULL when it is absent.  *n_times (may
 * be NULL) says how often it is there; the first counts. */
struct tn_http_text tn_http_field(const struct tn_http_request *r, const char *name,
                                  uint32_t *n_times);
/* Without regard to the case of ASCII letters. */
bool tn_http_is(struct tn_http_text text, const char *word);
/* Appends the decoded value of a name in the query to *out; false: it is not there, or has a wrong
 * escape, or there is no memory. */
bool tn_http_query(const struct tn_http_request *r, const char *name, struct tn_buf *out);

#endif
