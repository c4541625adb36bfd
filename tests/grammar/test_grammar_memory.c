/* SPDX-License-Identifier: MIT
 *
 * Schemas that compile, with each allocation failing once, those of the JSON library too: the
 * error is TERN_MEMORY, never a fault of the schema.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/compiler.h"
#include "compile_schema.h"
#include "failing_alloc.h"

static const char *const schemas[] = {
    "{}",
    "{\"enum\":[1,\"a\",null,{\"b\":[true]}]}",
    "{\"const\":{\"a\":[1,2.5,\"\\u00e9\"]}}",
    "{\"type\":[\"string\",\"integer\"],\"minLength\":1,\"maxLength\":3,\"minimum\":-5,"
    "\"exclusiveMaximum\":70}",
    "{\"type\":\"string\",\"pattern\":\"^a(b|c){2,3}$\"}",
    "{\"type\":\"string\",\"format\":\"date\"}",
    "{\"type\":\"number\",\"multipleOf\":0.25,\"minimum\":1}",
    "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"}],\"items\":{\"type\":\"boolean\"},"
    "\"minItems\":1,\"maxItems\":4}",
    "{\"type\":\"array\",\"items\":{\"enum\":[1,2,3]},\"uniqueItems\":true}",
    "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"uniqueItems\":true}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"const\":1}},"
    "\"required\":[\"b\",\"c\"],\"additionalProperties\":{\"type\":\"integer\"}}",
    "{\"type\":\"object\",\"patternProperties\":{\"^x\":{\"type\":\"null\"}},"
    "\"properties\":{\"a\":{}},\"additionalProperties\":false}",
    "{\"type\":\"object\",\"propertyNames\":{\"enum\":[\"a\",\"b\"]},"
    "\"additionalProperties\":{\"type\":\"null\"}}",
    "{\"$ref\":\"#/$defs/list\",\"$defs\":{\"list\":{\"anyOf\":[{\"type\":\"null\"},"
    "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/list\"}}]}}}",
    "{\"allOf\":[{\"type\":\"integer\"},{\"type\":\"number\",\"minimum\":2},{\"minimum\":3}]}",
    "{\"allOf\":[{\"type\":[\"integer\",\"null\"]},{\"type\":\"number\"}]}",
    "{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]},"
    "{\"properties\":{\"a\":{\"minimum\":3},\"b\":{}},\"required\":[\"b\"]},"
    "{\"type\":\"object\",\"additionalProperties\":false}]}",
    "{\"allOf\":[{\"type\":\"string\",\"pattern\":\"a\"},{\"pattern\":\"b\"},{\"minLength\":2}]}",
    "{\"oneOf\":[{\"allOf\":[{\"items\":{\"type\":\"null\"}},{\"items\":{},\"type\":\"array\"}]},"
    "{\"type\":\"string\"}]}",
};

/* Those of values between tags. */
static const char *const tagged[] = {
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"$ref\":\"#/$defs/b\"},"
    "\"c\":{\"type\":\"boolean\"},\"d\":{\"enum\":[\"x\",null]}},\"required\":[\"b\"],"
    "\"additionalProperties\":{\"type\":[\"string\",\"null\"],\"maxLength\":3},"
    "\"$defs\":{\"b\":{\"allOf\":[{\"type\":\"string\"},{\"pattern\":\"^a\"}]}}}",
};

static void check(const char *schema, uint32_t flags)
{
    bool has_failed = true;
    for (size_t n = 0; has_failed; n++) {
        struct tern_grammar *g;
        struct tern_error err;
        fail_alloc_once_after(n);
        const tern_status status = compile(&g, schema, flags, &err);
        has_failed = fail_alloc_stop();
        if (status != (has_failed ? TERN_MEMORY : TERN_OK))
            fail_msg("%s, allocation %zu: status %d, %s", schema, n, (int)status, err.detail);
        tern_grammar_free(g);
    }
}

static void a_schema_is_never_blamed_for_a_lack_of_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(schemas); i++)
        check(schemas[i], 0);
    for (size_t i = 0; i < TN_COUNT_OF(tagged); i++)
        check(tagged[i], TERN_GRAMMAR_TAGS);
}

int main(void)
{
    json_set_alloc_funcs(tn_alloc, tn_free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schema_is_never_blamed_for_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
