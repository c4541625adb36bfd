/* SPDX-License-Identifier: MIT
 *
 * What a person calls a character: grapheme clusters (UAX #29) of a UTF-8 text, and the columns
 * that a terminal gives them.  The line editor moves, deletes and wraps by these.
 *
 * All texts here are well-formed UTF-8 (tn_clean_append makes them so).
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
    uint32_t width;  /* columns, 0 to TN_MAX_CLUSTER_WIDTH; of a tab and a line end 0 */
    bool is_certain; /* terminals agree about the width */
    bool is_bare;    /* marks without a base, to be shown on a blank */
};
/* The cluster at text[0], n > 0. */
struct tn_cluster tn_cluster_first(const char *text, size_t n);

/* The boundary behind the cluster that holds the byte at pos; n at the end. */
size_t tn_grapheme_next(const char *text, size_t n, size_t pos);
/* The last boundary before pos; 0 at the start. */
size_t tn_grapheme_previous(const char *text, size_t n, size_t pos);
/* A boundary at or before pos that can be seen without what precedes it: mostly the one before the
 * character at pos, at worst 0. */
size_t tn_grapheme_certain(const char *text, size_t n, size_t pos);
/* pos when it is a boundary, else the next one. */
size_t tn_grapheme_snap(const char *text, size_t n, size_t pos);

/* Columns of a text of one line without tabs. */
uint32_t tn_text_width(const char *text, size_t n);
/* Is the character at text[0], n > 0, part of a word: a letter, digit, mark or '_'? */
bool tn_is_word(const char *text, size_t n);

/* Appends the bytes as text that is safe to show and edit: CR LF and CR become LF; other control
 * characters but tab are dropped, C1 and DEL too; what is not UTF-8 becomes U+FFFD. False: no
 * memory. */
bool tn_clean_append(struct tn_buf *out, const char *bytes, size_t n);

#endif
