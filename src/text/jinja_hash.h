/* SPDX-License-Identifier: MIT
 *
 * Which Jinja source is this: a hash that does not see differences of writing.
 */
#ifndef TN_JINJA_HASH_H
#define TN_JINJA_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Hash of the canonical form: comments dropped; white space control ("{%-", trim_blocks,
 * lstrip_blocks, the last newline) applied to the text between tags; blanks between the words of a
 * tag dropped; string literals with their escapes resolved.  Sources with equal canonical forms
 * render alike.  O(n), no memory, any bytes. */
uint64_t tn_jinja_hash(const char *source, size_t n);

#endif
