/* SPDX-License-Identifier: MIT
 *
 * Shared by tok_tables.c and tok_merges.c: tables inside the section that is being written, their
 * hash slots, and messages.
 */
#ifndef TN_TOK_SECTION_H
#define TN_TOK_SECTION_H

#include "base/compiler.h"
#include "convert/tokens/tok_tables.h"

/* Appends a zeroed table of n bytes at a multiple of 8; NULL on memory shortage.  The pointer is
 * valid until the next table. */
void *tn_tok_add_table(struct tn_tok_build *b, struct tern_file_ref *ref, uint64_t n_bytes);
/* A table that was added before; the pointer is valid until the next table. */
void *tn_tok_table_at(const struct tn_tok_build *b, struct tern_file_ref ref);
/* Shortens the last table to its final size. */
void tn_tok_shorten_table(struct tn_tok_build *b, struct tern_file_ref *ref, uint32_t n_bytes);

/* Slots of a hash table for n entries: the smallest power of two with at most two thirds in use, at
 * least 2. */
uint32_t tn_tok_n_slots(uint32_t n);

/* TERN_MEMORY. */
tern_status tn_tok_no_memory(const struct tn_tok_build *b);
/* TERN_UNSUPPORTED: only a vocabulary made for the purpose fills a table so unevenly.  `what` and
 * its number name the entry: "token" 7. */
tern_status tn_tok_too_many_probes(const struct tn_tok_build *b, const char *what, uint32_t i);

/* Whether merging may produce this token.  Not a special token: a user's text must never become
 * one. */
static inline bool tn_tok_is_merged(const struct tn_tok_token *token)
{
    return token->flags & TN_TOK_IN_VOCAB && !(token->flags & TERN_ADDED_SPECIAL);
}

/* The length of a text of n bytes in a message. */
static inline int tn_tok_shown(size_t n)
{
    return (int)TN_MIN(n, (size_t)80);
}

#endif
