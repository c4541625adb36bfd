/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: a JSON schema and a text.
 *
 *   u8 flags | schema | NUL | text
 *
 * A schema that compiles reads the text.  A text that it accepts is JSON, and wherever the text
 * stops to match, some other byte can follow or the text is complete.  Flag 2: the schema is two
 * parts of the grammar, one between tags, after a preamble.  Flag 64: a text is an object as tags.
 * Flag 16: in place of the schema there is a grammar in GBNF, flag 32: a regular expression.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/compiler.h"
#include "grammar/reader.h"

static bool can_go_on(struct tn_reader *m)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        const uint32_t next = tn_reader_next(m, m->set, (uint8_t)byte);
        if (next == TN_SET_FULL || next >= TN_FIRST_SET)
            return true;
    }
    return false;
}

/* bits of the first byte */
#define WITH_GBNF 0x10u
#define WITH_REGEX 0x20u
#define WITH_TAGS 0x40u

/* The end of the preamble, which precedes the text. */
static const char preamble_close[] = "</t>";

static void read_text(const struct tern_grammar *g, const char *text, size_t n, bool has_parts,
                      bool is_json)
{
    struct tn_reader *m;
    size_t n_fit = 0;
    if (tn_reader_create(&m, g, NULL) != TERN_OK)
        return;
    if (has_parts && (tn_reader_push(m, preamble_close, 4, &n_fit, NULL) != TERN_OK || n_fit < 4))
        abort();
    tern_status status = tn_reader_push(m, text, n, &n_fit, NULL);
    if (n_fit > n || (status != TERN_OK && status != TERN_LIMIT))
        abort();
    if (!tn_reader_is_whole(m) && !can_go_on(m))
        abort();
    if (status == TERN_OK && n_fit == n && tn_reader_is_whole(m) && is_json) {
        json_t *value = json_loadb(text, n, JSON_DECODE_ANY, NULL);
        if (!value)
            abort();
        json_decref(value);
    }
    tn_reader_free(m);
}

static tern_status compile_parts(struct tern_grammar **g, const char *schema, size_t n,
                                 uint32_t flags, struct tern_error *err)
{
    const struct tern_grammar_part parts[] = {
        {.before = "", .after = "", .schema = schema, .n_bytes = n, .flags = flags},
        {.before = "<a>", .after = "</a>", .schema = schema, .n_bytes = n, .separator = ","}};
    const struct tern_grammar_preamble preamble = {.open = "", .close = preamble_close};
    size_t i_failed = SIZE_MAX;
    tern_status status = tern_grammar_from_parts(g, parts, 2, &preamble, &i_failed, err);
    if (status != TERN_OK && i_failed > 1)
        abort();
    return status;
}

static tern_status compile(struct tern_grammar **g, const char *text, size_t n, uint8_t flags,
                           struct tern_error *err)
{
    char expression[512];
    if (flags & WITH_GBNF)
        return tern_grammar_from_gbnf(g, text, n, NULL, err);
    if (flags & WITH_REGEX) {
        snprintf(expression, sizeof expression, "%.*s", (int)TN_MIN(n, sizeof expression), text);
        return tern_grammar_from_regex(g, expression, NULL, err);
    }
    const uint32_t of_schema = (flags & TERN_GRAMMAR_STRICT) |
                               (flags & WITH_TAGS ? TERN_GRAMMAR_TAGS : 0);
    return (flags & 2 ? compile_parts : tern_grammar_from_schema)(g, text, n, of_schema, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2)
        return 0;
    const char *schema = (const char *)data + 1, *end = memchr(schema, 0, n - 1);
    const size_t n_schema = end ? (size_t)(end - schema) : n - 1;
    struct tern_grammar *g;
    struct tern_error err = {TERN_OK, ""};
    const bool is_schema = !(data[0] & (WITH_GBNF | WITH_REGEX));
    const bool has_parts = is_schema && data[0] & 2;
    const tern_status status = compile(&g, schema, n_schema, data[0], &err);
    if ((status == TERN_OK) != (g != NULL) || err.status != status)
        abort();
    if (g && end)
        read_text(g, end + 1, n - 2 - n_schema, has_parts,
                  is_schema && !(data[0] & (2 | WITH_TAGS)));
    tern_grammar_free(g);
    return 0;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const struct {
        const char *schema, *text;
    } seeds[] = {
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"enum\":"
         "[\"x\",\"y\",null]}},\"required\":[\"a\",\"b\"],\"additionalProperties\":false}",
         "{\"a\": 12, \"b\":\"x\"}"},
        {"{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"anyOf\":[{\"type\":\"array\",\"items\":"
         "{\"$ref\":\"#/$defs/n\"},\"minItems\":1,\"maxItems\":3},{\"type\":\"null\"}]}}}",
         "[[null,[null]],\n  null]"},
        {"{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"},{\"type\":\"array\",\"items\":"
         "{\"enum\":[1,1.0,\"a\"]},\"uniqueItems\":true}],\"items\":{\"type\":\"boolean\"}}",
         "[null,[\"a\",1],true]"},
        {"{\"type\":[\"string\",\"number\",\"boolean\"]}", "\"\xC3\xA9\\uD83D\\uDE00\""},
        {"{}", "{\"a\":[1.5e-3,{\"b\":\"c\"}],\"d\":false}"},
        {"{\"anyOf\":[{\"const\":{\"k\":[1]}},{\"$ref\":\"#\"}]}", "{\"k\":[1]}"},
        {"{\"type\":\"array\",\"minItems\":1,\"items\":{\"$ref\":\"#\"}}", "[[["},
        {"{\"type\":\"string\",\"pattern\":\"^(a|[^\\\\d\\\\u00e9-z]{2,3})*?b+$\"}", "\"aAAb\""},
        {"{\"type\":\"string\",\"pattern\":\"(?:x.){2}|\\\\s$|^(?<n>\\\\x41)\"}", "\"\\\\xAxB\""},
        {"{\"type\":\"string\",\"format\":\"date-time\",\"pattern\":\"Z$\"}",
         "\"2024-02-29T00:00:00Z\""},
        {"{\"type\":[\"string\",\"null\"],\"format\":\"email\"}", "\"a@b.c\""},
        {"{\"type\":\"integer\",\"minimum\":-17,\"exclusiveMaximum\":1e3,\"multipleOf\":5}",
         "-15"},
        {"{\"type\":\"number\",\"maximum\":0.125,\"multipleOf\":0.25}", "-0.75"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"enum\":[1,\"x\"]},"
         "\"c\":{\"type\":[\"boolean\",\"null\"]}},\"required\":[\"a\"],\"additionalProperties\":"
         "{\"type\":\"string\",\"minLength\":2}}",
         "<parameter=a>\n</p\n</parameter>\n<parameter=d>\nx<y\n</parameter>\n"},
        {"root ::= (\"a\" | [^b-d\\]])* item{1,3}? # x\n | item\nitem ::= .+ \"\\u00e9\" root?\n",
         "aaax\xC3\xA9"},
        {"(?:a|[^b-d\\]])*?(\\d+|x{2,3})$", "zaaxx"},
    };
    if (i >= TN_COUNT_OF(seeds))
        return 0;
    const size_t n_schema = strlen(seeds[i].schema) + 1, n_text = strlen(seeds[i].text);
    if (1 + n_schema + n_text > capacity)
        abort();
    const uint8_t kind = seeds[i].text[0] == '<'     ? WITH_TAGS
                         : seeds[i].schema[0] == 'r' ? WITH_GBNF
                         : seeds[i].schema[0] == '(' ? WITH_REGEX
                                                     : 0;
    dst[0] = (uint8_t)((i & 0xF) | kind);
    memcpy(dst + 1, seeds[i].schema, n_schema);
    memcpy(dst + 1 + n_schema, seeds[i].text, n_text);
    return 1 + n_schema + n_text;
}
