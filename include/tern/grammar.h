/* SPDX-License-Identifier: MIT
 *
 * A grammar says which texts an answer may be: JSON, or JSON that fits a schema.
 *
 *   tern_grammar_from_schema(&grammar, schema, strlen(schema), 0, &err);
 *   params.grammar = grammar;                   of tern_generate, or of a request to a scheduler
 *
 * Then only tokens are chosen with which the text can still become such a text, and the answer
 * ends when it is one.  Of a schema these words are understood, and everything else is refused with
 * its place: type (object, array, string, number, integer, boolean, null, or several), properties,
 * required, additionalProperties, patternProperties, propertyNames, items, minItems, maxItems,
 * enum, const, anyOf, oneOf, allOf, $ref within the schema ("#", "#/$defs/..."), $defs,
 * definitions; of strings pattern, format (date-time, date, time, duration, email, hostname, ipv4,
 * ipv6, uuid), minLength and maxLength; of numbers minimum, maximum, exclusiveMinimum,
 * exclusiveMaximum, multipleOf.  Beside enum and const those of strings and numbers leave the
 * values that fit.  Words without a rule are skipped: title, description, default, examples,
 * $comment, $schema, $id, $anchor, deprecated, readOnly, writeOnly, discriminator,
 * contentEncoding, contentMediaType, contentSchema, externalDocs, xml, and those that begin with
 * x-.  Words about another type than a value has say nothing about it.
 *
 * oneOf is read as anyOf: its alternatives should exclude each other.  The parts of allOf become
 * one schema: members of all of them, the narrower of two bounds; parts whose anyOf, enum or
 * pattern differ are refused.  A part with additionalProperties false closes the whole, not itself,
 * as libraries mean it.  Members that properties name come first; where additionalProperties is a
 * schema or true, others follow, whose keys are none of those names, and it may happen that two of
 * them are the same.  propertyNames limits the keys of an object without properties: by pattern,
 * format and lengths, or by an enum.  patternProperties may have one pattern, which fits none of
 * the properties, and additionalProperties must be absent or false then.
 *
 * What comes is UTF-8 without U+0000.  Members stand in the order of the schema, white space only
 * where people put it (a space, or a line end and at most 20 spaces or tabs); values nest at most
 * TERN_GRAMMAR_MAX_DEPTH deep, whole numbers have at most 16 digits, and so do fractions.  A value
 * of enum or const has one text, without white space in it; its real numbers have the fewest digits
 * that are read as the same, as Python writes them (0.1, 100.0, 1e-07).
 *
 * A pattern is a regular expression of ECMA-262 with its flag u, without look-around, back-
 * references, \b, \B and \p; it may begin and end anywhere in the string unless ^ and $ say
 * otherwise.  It speaks of characters, as a length does, each of which such a string spells in one
 * way: as JSON.stringify does, that is as it is but for \" and \\ and what is below U+0020.
 * Formats are patterns too, and take what every validator takes: no leap seconds, years from 1,
 * fractions and counts of at most 9 digits, names of hosts of at most 8 labels and 253 characters
 * (the first of at most 63, others of 26), addresses without zones.  A length is at most 65,536;
 * beside a pattern or a format that it limits further, 10,000.
 *
 * A number with bounds or a multiple has no exponent; bounds and multiples are exact, in decimal
 * digits.  Integers then have as many digits as their bounds, up to 19, other numbers 15 in all,
 * since a bound of doubles is exact for so many.  A multiple has at most 15 digits behind its point
 * and is at most 10,000 without it.
 */
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

#define TERN_GRAMMAR_MAX_DEPTH 64       /* of values in an answer */
#define TERN_GRAMMAR_MAX_SCHEMA 1048576u /* bytes */
/* That expressions and numbers of a schema may take; about 10 ns each. */
#define TERN_GRAMMAR_MAX_STEPS 10000000u

/* As OpenAI's strict mode, whose limits are within these: every object names all its properties in
 * "required" and has "additionalProperties" that are false or a schema, every array has "items".
 * Without it what is not required may be left out, objects about whose members nothing is said and
 * arrays without "items" hold any JSON. */
#define TERN_GRAMMAR_STRICT 1u

/* Compiles a schema, in time and memory that do not depend on what it describes: at most 262,144
 * states, 32,768 subschemas and TERN_GRAMMAR_MAX_STEPS.  A detail of err begins with the place as a
 * JSON pointer ("#/properties/name: ...").
 *   TERN_INPUT        no JSON of an object or an array, or one that is not read: with a name twice
 *                     in an object, more than 64 levels, or a whole number beyond 64 bits
 *   TERN_USAGE        a schema that is no object, a word with a wrong value, or words that no value
 *                     fits ("pattern": "a^", "minimum" above "maximum")
 *   TERN_UNSUPPORTED  a word that is not understood
 *   TERN_LIMIT        too large, or it refers to itself so that no value ends within
 *                     TERN_GRAMMAR_MAX_DEPTH
 *   TERN_MEMORY */
tern_status tern_grammar_from_schema(struct tern_grammar **out, const char *schema, size_t n_bytes,
                                     uint32_t flags, struct tern_error *err);
/* The same between two texts that stand around it as they are. */
tern_status tern_grammar_from_schema_between(struct tern_grammar **out, const char *before,
                                             const char *schema, size_t n_bytes, const char *after,
                                             uint32_t flags, struct tern_error *err);
/* Any JSON object. TERN_MEMORY. */
tern_status tern_grammar_json_object(struct tern_grammar **out, struct tern_error *err);
void tern_grammar_free(struct tern_grammar *grammar);
/* Memory that it holds; 0 of NULL. */
size_t tern_grammar_bytes(const struct tern_grammar *grammar);
/* Memory that an answer of a model bound to a grammar takes at most, beside a session: the grammar,
 * the list of the model's tokens, what follows the text.  0 without a grammar or a tokenizer. */
uint64_t tern_model_grammar_bytes(const struct tern_model *model,
                                  const struct tern_grammar *grammar);

/* How much of a text fits: *n_fit bytes at its beginning are the beginning of a text of the
 * grammar, and *is_whole tells whether all of it is one.  TERN_LIMIT: a schema of so many readings
 * that they cannot be kept apart; TERN_MEMORY. */
tern_status tern_grammar_match(const struct tern_grammar *grammar, const char *text,
                               size_t n_bytes, size_t *n_fit, bool *is_whole,
                               struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
