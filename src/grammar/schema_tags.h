/* SPDX-License-Identifier: MIT
 *
 * Values of members that are written as tags, as Qwen3-Coder and Qwen3.5 write the arguments of
 * tool calls:
 *
 *   <parameter=city>
 *   Oslo
 *   </parameter>
 *
 * Their text has no type, so the schema decides: where it allows strings the value is one,
 * verbatim, or null where it allows that too; otherwise it is JSON.  chat/call_tags.c reads them.
 */
#ifndef TN_SCHEMA_TAGS_H
#define TN_SCHEMA_TAGS_H

#include "grammar/schema_compiler.h"

#define TN_TAG_OPEN "<parameter="
#define TN_TAG_CLOSE "</parameter>"

/* Does the schema allow values of this type, as far as it says which it allows?  References are
 * resolved in `root`.  Subtracts the cost from *steps (about 10 ns each); false when they end. */
bool tn_schema_allows(const json_t *s, const json_t *root, const char *type, uint64_t *steps);

/* Compiles the value of a member, from the line after its opening tag, and its closing tag into the
 * rule that begins at `start`.  false: refused. */
bool tn_schema_tag_value(struct tn_schema_compiler *c, const json_t *s, uint32_t start);

#endif
