/* SPDX-License-Identifier: MIT
 *
 * Grapheme clusters (UAX #29) of UTF-8 text, and the columns that a terminal gives them.
 *
 * The line editor moves, deletes and wraps by clusters.  All texts are well-formed UTF-8
 * (tn_clean_append makes them so).
 */
#ifndef TN_GRAPHEME_H
#define TN_GRAPHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define TN_MAX_CLUSTER_WIDTH 4

struct tn_cluster {
    size_t n_bytes;
    uint32_t width;  /* columns, 0 to TN_MAX_CLUSTER_WIDTH; 0 for tabs and line endings */
    bool is_certain; /* all terminals agree on the width */
    bool is_bare;    /* marks without a base, drawn on a blank */
};
/* The cluster at text[0], n > 0. */
struct tn_cluster tn_cluster_first(const char *text, size_t n);

/* The end of the cluster that contains the byte at pos; n at the end. */
size_t tn_grapheme_next(const char *text, size_t n, size_t pos);
/* The last boundary before pos; 0 at the start. */
size_t tn_grapheme_previous(const char *text, size_t n, size_t pos);
/* A boundary at or before pos that needs no earlier context: usually before the character at pos,
 * in the worst case 0. */
size_t tn_grapheme_certain(const char *text, size_t n, size_t pos);
/* pos if it is a boundary, else the next one. */
size_t tn_grapheme_snap(const char *text, size_t n, size_t pos);

/* Columns of a single line without tabs. */
uint32_t tn_text_width(const char *text, size_t n);
/* Is the character at text[0] (n > 0) a letter, digit, mark or '_'? */
bool tn_is_word(const char *text, size_t n);

/* Appends the bytes as text that is safe to show and edit: CR LF and CR become LF; all other
 * control characters except tab are dropped, also C1 and DEL; invalid UTF-8 becomes U+FFFD.  false:
 * out of memory. */
bool tn_clean_append(struct tn_buf *out, const char *bytes, size_t n);

#endif
