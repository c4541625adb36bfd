/* SPDX-License-Identifier: MIT
 *
 * A grammar restricts the answers of a model: to JSON, to JSON that fits a schema, or to texts that
 * match a grammar in GBNF or a regular expression.
 *
 *   tern_grammar_from_schema(&grammar, schema, strlen(schema), 0, &err);
 *   params.grammar = grammar;                   of tern_generate, or of a request to a scheduler
 *
 * Only tokens are chosen after which the text can still become valid, and the answer ends when it
 * is.
 */

/* These keywords of JSON Schema are supported; any other is refused with its location: type
 * (object, array, string, number, integer, boolean, null, or several), properties, required,
 * additionalProperties, patternProperties, propertyNames, items, prefixItems, additionalItems,
 * minItems, maxItems, uniqueItems, enum, const, anyOf, oneOf, allOf, $ref within the schema ("#",
 * "#/$defs/..."), $defs, definitions; for strings pattern, format (date-time, date, time, duration,
 * email, hostname, ipv4, ipv6, uuid, uri; password, binary: any text; next to a pattern the names
 * that zod gives to it, such as ulid), minLength and maxLength; for numbers minimum, maximum,
 * exclusiveMinimum, exclusiveMaximum, multipleOf.
 * Next to enum and const, the keywords for strings and numbers filter the values.  Annotations are
 * skipped: title, description, default, examples, $comment, $schema, $id, $anchor, deprecated,
 * readOnly, writeOnly, discriminator, contentEncoding, contentMediaType, contentSchema,
 * externalDocs, xml, and keywords that begin with x-.  A keyword for another type than the value's
 * has no effect on it.
 *
 * oneOf is read as anyOf: its alternatives should exclude each other.  The members of allOf are
 * merged into one schema: the properties of all of them, the narrower of two bounds, the patterns
 * of all (at most 4 with a format); members whose anyOf, enum or format differ are refused.
 * additionalProperties false in a member closes the merged schema, not only that member, as
 * libraries intend it.  Listed properties come first; if additionalProperties is a schema or true,
 * other keys follow, and two of them may be equal.  propertyNames limits the keys of an object
 * without properties: by pattern, format and lengths, or by an enum.  patternProperties may have
 * one pattern, which matches none of the properties, and then additionalProperties must be absent
 * or false.
 *
 * A tuple has prefixItems, or an array of schemas in items as before JSON Schema 2020-12; then
 * additionalItems takes the place of items.  It has all of these items, unless minItems or maxItems
 * is less, and no others without a schema for them.  uniqueItems needs items that are an enum of at
 * most 10 strings, numbers, booleans and null, or type boolean.
 *
 * Answers are UTF-8 without U+0000.  Properties appear in the order of the schema, white space only
 * where people put it (a space, or a line end and at most 20 spaces or tabs); values nest at most
 * TERN_GRAMMAR_MAX_DEPTH levels, integers have at most 16 digits, and so do fractions.  A value of
 * enum or const has one text, without white space; its real numbers have the fewest digits that
 * read back as the same value, as in Python (0.1, 100.0, 1e-07).
 *
 * A pattern is a regular expression of ECMA-262 with its flag u, without look-around,
 * back-references, \b, \B and \p; it may match anywhere in the string unless it has ^ and $.  It
 * counts characters, as lengths do; each character of such a string has one spelling, that of
 * JSON.stringify: verbatim except \" and \\ and characters below U+0020.  Formats are patterns too,
 * and accept only texts that every validator accepts: no leap seconds, years from 1, fractions of
 * at most 9 and counts of durations of at most 6 digits, host names of at most 8 labels and 253
 * characters (the first of at most 63, others of 26), addresses without zones, and as uri at most
 * 256 characters of http and https with a name of two or three labels in small letters.  A length
 * is at most 65,536, or 10,000 if it further limits a pattern or format.
 *
 * A number with bounds or a multiple has no exponent; bounds and multiples are exact, in decimal
 * digits. Integers then have as many digits as their bounds, up to 19, other numbers 15 in all,
 * because that many are exact in a bound of type double.  A multiple has at most 15 digits after
 * its point and is at most 10,000 without it. */
#ifndef TERN_GRAMMAR_H
#define TERN_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tern_model;
struct tern_grammar; /* read-only: any number of requests and threads may use it */

#define TERN_GRAMMAR_MAX_DEPTH 64       /* levels of values in an answer */
#define TERN_GRAMMAR_MAX_SCHEMA 1048576u /* bytes */
/* Work limit for the regular expressions and numbers of a schema; about 10 ns per step. */
#define TERN_GRAMMAR_MAX_STEPS 10000000u

/* As in OpenAI's strict mode, whose limits are within these: every object lists all its properties
 * in "required" and has "additionalProperties" that are false or a schema, every array has "items".
 * Without it properties that are not required are optional, and objects without keywords about
 * members and arrays without "items" may contain any JSON. */
#define TERN_GRAMMAR_STRICT 1u

/* The schema's object is written as tags, in the order of its properties, instead of JSON:
 *
 *   <parameter=city>
 *   Oslo
 *   </parameter>
 *
 * A value is text where its schema allows strings or has no keywords, or null where it allows that
 * too; other values are JSON.  Text is verbatim and contains neither </parameter> nor </tool_call>,
 * nor "</" if a pattern, a format or a length limits it.  The object's schema has "type": "object",
 * and otherwise only properties, required and additionalProperties. */
#define TERN_GRAMMAR_TAGS 2u

/* Compiles a schema, in time and memory bounded independently of its contents: at most 262,144
 * states, 32,768 subschemas and TERN_GRAMMAR_MAX_STEPS.  A detail of err begins with the location
 * as a JSON pointer ("#/properties/name: ...").
 *
 *   TERN_INPUT        not a JSON object or array, or one with a duplicate name in an object, more
 *                     than 64 levels, or an integer beyond 64 bits
 *   TERN_USAGE        a schema that is not an object, a keyword with a wrong value, or keywords
 *                     that no value satisfies ("pattern": "a^", "minimum" above "maximum")
 *   TERN_UNSUPPORTED  an unsupported keyword
 *   TERN_LIMIT        too large, or it refers to itself so that no value ends within
 *                     TERN_GRAMMAR_MAX_DEPTH
 *   TERN_MEMORY */
tern_status tern_grammar_from_schema(struct tern_grammar **out, const char *schema, size_t n_bytes,
                                     uint32_t flags, struct tern_error *err);

/* An alternative of an answer: JSON that fits a schema, between two texts that surround it
 * verbatim.  A schema's references and limits are its own, apart from the limits of
 * tern_grammar_from_schema, which apply to all parts together. */
struct tern_grammar_part {
    const char *before, *after; /* "": none */
    const char *schema;         /* [n_bytes] */
    size_t n_bytes;
    uint32_t flags;
    const char *separator; /* if not NULL, another part that has one may follow after this */
};

/* Text in front of an answer, such as its reasoning: `open`, any text without `close` in it,
 * `close`, and at most two line feeds. */
struct tern_grammar_preamble {
    const char *open; /* "": none */
    const char *close;
};

/* A grammar of the texts that fit one of n >= 1 parts, after a preamble unless that is NULL.
 * Errors as of tern_grammar_from_schema; then *i_failed, unless i_failed is NULL, is the part that
 * caused them. */
tern_status tern_grammar_from_parts(struct tern_grammar **out,
                                    const struct tern_grammar_part *parts, size_t n,
                                    const struct tern_grammar_preamble *preamble,
                                    size_t *i_failed, struct tern_error *err);
/* A grammar of the texts that the rule "root" matches, in GBNF, the notation of llama.cpp:
 *
 *   root ::= item ("," " "? item){0,9}    # a comment
 *   item ::= "yes" | "no" | [^,\n]+
 *
 * A rule ends with its line, but inside parentheses and before or after | more lines may follow.
 * Rules in rules nest at most TERN_GRAMMAR_MAX_DEPTH deep, those in last place apart.  Tokens
 * (<name>, <[id]>) are unsupported.  A text has at most TERN_GRAMMAR_MAX_SCHEMA bytes.  A detail of
 * err begins with "line L, column C".
 *
 *   TERN_USAGE        a mistake in the notation, a rule that is missing or defined twice
 *   TERN_UNSUPPORTED  a token
 *   TERN_LIMIT        too large, more than 10,000 repetitions, or a rule that refers to itself in
 *                     first place or so that no text ends
 *   TERN_MEMORY */
tern_status tern_grammar_from_gbnf(struct tern_grammar **out, const char *text, size_t n_bytes,
                                   const struct tern_grammar_preamble *preamble,
                                   struct tern_error *err);
/* A grammar of the texts that match a regular expression as a whole: as "pattern" in a schema, but
 * not in a string of JSON.  TERN_USAGE, TERN_UNSUPPORTED, TERN_LIMIT, TERN_MEMORY. */
tern_status tern_grammar_from_regex(struct tern_grammar **out, const char *expression,
                                    const struct tern_grammar_preamble *preamble,
                                    struct tern_error *err);
/* A grammar of any JSON object.  TERN_MEMORY. */
tern_status tern_grammar_json_object(struct tern_grammar **out, struct tern_error *err);
void tern_grammar_free(struct tern_grammar *grammar);
/* Memory of the grammar; 0 for NULL. */
size_t tern_grammar_bytes(const struct tern_grammar *grammar);
/* The maximum memory that an answer bound to a grammar takes in addition to a session: the grammar,
 * the list of the model's tokens, the sets of next tokens.  0 without a grammar or a tokenizer. */
uint64_t tern_model_grammar_bytes(const struct tern_model *model,
                                  const struct tern_grammar *grammar);

/* How much of a text matches: its first *n_fit bytes are a prefix of a text of the grammar, and
 * *is_whole is true if the text is complete.  TERN_LIMIT: a schema with too many simultaneous
 * readings; TERN_MEMORY. */
tern_status tern_grammar_match(const struct tern_grammar *grammar, const char *text,
                               size_t n_bytes, size_t *n_fit, bool *is_whole,
                               struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
