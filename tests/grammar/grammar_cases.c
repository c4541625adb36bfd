/* SPDX-License-Identifier: MIT
 *
 * grammar_cases: compiles schemas and matches texts for test_grammar_oracle.py.
 *
 * A line of stdin is {"schema": ..., "strict": bool, "texts": [...], "walks": n, "seed": s}; in place
 * of the schema there may be "gbnf", a grammar, or "regex", an expression.  A line
 * of stdout is {"status": exit code, "detail": ..., "results": [[n_fit, is_whole], ...], "walks":
 * [text, ...]}; a walk is a random sequence of bytes that the grammar allows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/rng.h"
#include "grammar/reader.h"

#define MAX_LINE (16u << 20)
#define MAX_WALK 60000u
/* From this length on a walk prefers closing bytes. */
#define LONG_WALK 300u

static void check(bool is_good)
{
    if (!is_good)
        abort();
}

static json_t *match(const struct tern_grammar *g, const json_t *text)
{
    size_t n_fit;
    bool is_whole;
    struct tern_error err;
    tern_status status = tern_grammar_match(g, json_string_value(text), json_string_length(text),
                                            &n_fit, &is_whole, &err);
    return json_pack("[i, b, i]", (int)n_fit, is_whole, tern_status_exit_code(status));
}

static uint32_t next_of(struct tn_reader *m, uint8_t byte)
{
    uint32_t next = tn_reader_next(m, m->set, byte);
    if (next != TN_SET_FULL)
        return next;
    m->set = tn_reader_evict(m, m->set);
    return tn_reader_next(m, m->set, byte);
}

static uint8_t choose(struct tn_reader *m, struct tn_rng *rng, size_t n)
{
    static const char closers[] = "\"]}e0";
    uint8_t bytes[512];
    uint32_t n_bytes = 0;
    for (size_t i = 0; n > LONG_WALK && closers[i]; i++)
        if (next_of(m, (uint8_t)closers[i]) >= TN_FIRST_SET)
            return (uint8_t)closers[i];
    for (uint32_t byte = 0; byte < 256; byte++) {
        if (next_of(m, (uint8_t)byte) < TN_FIRST_SET)
            continue;
        /* Most bytes inside a string are equivalent, so structural bytes are chosen more often. */
        const bool is_marked = strchr("\"\\{}[],:u", (int)byte) && byte;
        for (uint32_t k = is_marked ? 12 : 1; k > 0 && n_bytes < sizeof bytes; k--)
            bytes[n_bytes++] = (uint8_t)byte;
    }
    check(n_bytes > 0); /* every configuration can be completed */
    return bytes[tn_rng_next(rng) % n_bytes];
}

static json_t *walk(const struct tern_grammar *g, struct tn_rng *rng)
{
    static char text[MAX_WALK];
    struct tn_reader *m;
    size_t n = 0, n_fit;
    check(tn_reader_create(&m, g, NULL) == TERN_OK);
    while (n < MAX_WALK && tn_reader_can_go_on(m) &&
           !(tn_reader_is_whole(m) && tn_rng_next(rng) % 4 == 0)) {
        text[n] = (char)choose(m, rng, n);
        check(tn_reader_push(m, text + n, 1, &n_fit, NULL) == TERN_OK && n_fit == 1);
        n++;
    }
    json_t *result = tn_reader_is_whole(m) ? json_stringn(text, n) : json_null();
    check(result != NULL); /* UTF-8 */
    tn_reader_free(m);
    return result;
}

static tern_status compile(struct tern_grammar **g, const json_t *line, struct tern_error *err)
{
    const json_t *gbnf = json_object_get(line, "gbnf"), *regex = json_object_get(line, "regex");
    if (gbnf)
        return tern_grammar_from_gbnf(g, json_string_value(gbnf), json_string_length(gbnf), NULL,
                                      err);
    if (regex)
        return tern_grammar_from_regex(g, json_string_value(regex), NULL, err);
    char *schema = json_dumps(json_object_get(line, "schema"), JSON_ENCODE_ANY);
    const tern_status status = tern_grammar_from_schema(
        g, schema, strlen(schema), json_is_true(json_object_get(line, "strict")), err);
    free(schema);
    return status;
}

static void answer(const json_t *line)
{
    struct tern_grammar *g;
    struct tern_error err;
    struct tn_rng rng;
    json_t *out = json_object(), *results = json_array(), *walks = json_array();
    const tern_status status = compile(&g, line, &err);
    tn_rng_seed(&rng, (uint64_t)json_integer_value(json_object_get(line, "seed")));
    const json_t *texts = json_object_get(line, "texts");
    for (size_t i = 0; g && i < json_array_size(texts); i++)
        json_array_append_new(results, match(g, json_array_get(texts, i)));
    for (int i = 0; g && i < json_integer_value(json_object_get(line, "walks")); i++)
        json_array_append_new(walks, walk(g, &rng));
    json_object_set_new(out, "status", json_integer(tern_status_exit_code(status)));
    json_object_set_new(out, "detail", json_string(err.detail));
    json_object_set_new(out, "results", results);
    json_object_set_new(out, "walks", walks);
    char *text = json_dumps(out, JSON_COMPACT | JSON_ENSURE_ASCII);
    puts(text);
    free(text);
    json_decref(out);
    tern_grammar_free(g);
}

int main(void)
{
    char *text = malloc(MAX_LINE);
    check(text != NULL);
    while (fgets(text, MAX_LINE, stdin)) {
        json_t *line = json_loads(text, JSON_DECODE_ANY, NULL);
        check(line != NULL);
        answer(line);
        json_decref(line);
    }
    free(text);
    return 0;
}
