/* SPDX-License-Identifier: MIT
 *
 * The tokens that a grammar allows: masks equal trying every token, allocations may fail, and the
 * memory of a mask is known before it is allocated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "compile_schema.h"
#include "failing_alloc.h"
#include "fuzz/small_tokenizer.h"
#include "grammar/token_mask.h"
#include "text/tokenizer.h"

/* ---- tokens ---- */

struct fixture {
    void *section;
    struct tern_tokenizer *tokenizer;
    struct tn_token_list *list;
    unsigned char is_control[SMALL_VOCAB];
    uint32_t ends[1];
};

static void open_fixture(struct fixture *f)
{
    size_t n;
    memset(f, 0, sizeof *f);
    f->section = small_tokenizer_section(0, &n);
    assert_int_equal(tn_tokenizer_open(&f->tokenizer, f->section, n, SMALL_VOCAB, NULL), TERN_OK);
    const uint32_t n_ids = tern_tokenizer_n_tokens(f->tokenizer);
    for (uint32_t id = 0; id < n_ids; id++) {
        f->is_control[id] = tern_tokenizer_is_special(f->tokenizer, id);
        if (f->is_control[id])
            f->ends[0] = id;
    }
    assert_int_equal(tn_token_list_create(&f->list, f->tokenizer, n_ids, f->is_control, f->ends, 1,
                                          NULL), TERN_OK);
}

static void close_fixture(struct fixture *f)
{
    tn_token_list_free(f->list);
    tn_tokenizer_close(f->tokenizer);
    tn_free_aligned(f->section);
}

/* Tries the bytes of a token after a text, one by one. */
static bool is_possible(const struct fixture *f, const struct tern_grammar *g,
                        const struct tn_buf *text, uint32_t id)
{
    struct tn_buf both = {0};
    size_t n, n_fit;
    bool is_whole;
    const char *bytes = tern_tokenizer_token_bytes(f->tokenizer, id, &n);
    if (id == f->ends[0]) {
        assert_int_equal(tern_grammar_match(g, text->data, text->n_bytes, &n_fit, &is_whole, NULL),
                         TERN_OK);
        return is_whole;
    }
    if (f->is_control[id] || n == 0)
        return false;
    tn_buf_append(&both, text->data, text->n_bytes);
    tn_buf_append(&both, bytes, n);
    assert_int_equal(tern_grammar_match(g, both.data, both.n_bytes, &n_fit, &is_whole, NULL),
                     TERN_OK);
    const bool fits = n_fit == both.n_bytes;
    tn_buf_fini(&both);
    return fits;
}

static void check_mask(const struct fixture *f, const struct tern_grammar *g,
                       const struct tn_buf *text, const struct tn_allowed *allowed)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < f->list->n_ids; id++) {
        const bool is_allowed = allowed->bits[id / 64] >> id % 64 & 1;
        if (is_allowed != is_possible(f, g, text, id))
            fail_msg("id %u after %zu bytes", id, text->n_bytes);
        if (is_allowed && allowed->ids)
            assert_int_equal(allowed->ids[n], id);
        n += is_allowed;
    }
    assert_int_equal(n, allowed->n);
    assert_true(n > 0);
}

/* Follows allowed tokens and compares each mask with one computed token by token. */
static void walk_tokens(const struct fixture *f, const struct tern_grammar *g, uint32_t seed)
{
    struct tn_constraint *c;
    struct tn_buf text = {0};
    bool is_end = false;
    assert_int_equal(tn_constraint_create(&c, g, f->list, f->list->n_ids, NULL), TERN_OK);
    for (int i = 0; i < 9 && !is_end; i++) {
        struct tn_allowed allowed;
        size_t n;
        assert_int_equal(tn_constraint_allowed(c, &allowed, NULL), TERN_OK);
        check_mask(f, g, &text, &allowed);
        seed = seed * 1664525u + 1013904223u;
        const uint32_t id = allowed.ids[(seed >> 8) % allowed.n];
        const char *bytes = tern_tokenizer_token_bytes(f->tokenizer, id, &n);
        assert_int_equal(tn_constraint_push(c, id, &is_end, NULL), TERN_OK);
        if (id != f->ends[0])
            tn_buf_append(&text, bytes, n);
    }
    tn_buf_fini(&text);
    tn_constraint_free(c);
}

static void masks_equal_trying_every_token(void **state)
{
    (void)state;
    static const char *const schemas[] = {
        "{\"enum\":[\"the\",\"then\",\"a\",12,1,null]}",
        "{\"type\":[\"string\",\"number\"]}",
        OBJECT("\"properties\":{\"abc\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},"
               "\"the\":{\"type\":\"string\"}}"),
        "{\"type\":\"string\",\"pattern\":\"th?e|^[^a-z]\"}",
        "{\"type\":\"string\",\"format\":\"date\"}",
        "{\"type\":\"string\",\"minLength\":4,\"maxLength\":60}",
        ("{\"anyOf\":[{\"type\":\"string\",\"maxLength\":30},{\"type\":\"string\",\"maxLength\":25}"
         ",{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":40}}]}"),
        "{\"type\":[\"number\",\"null\"],\"minimum\":-1.25,\"maximum\":12}",
        "{}",
    };
    struct fixture f;
    open_fixture(&f);
    for (uint32_t i = 0; i < TN_COUNT_OF(schemas); i++) {
        struct tern_grammar *g;
        struct tern_error err;
        assert_int_equal(compile(&g, schemas[i], 0, &err), TERN_OK);
        for (uint32_t seed = 0; seed < 3; seed++)
            walk_tokens(&f, g, seed * 77 + i);
        tern_grammar_free(g);
    }
    close_fixture(&f);
}

/* ---- memory ---- */

static void any_allocation_may_fail(void **state)
{
    (void)state;
    static const char schema[] =
        OBJECT("\"properties\":{\"a\":{\"enum\":[1,\"x\",{\"y\":[0.1]}]},"
               "\"b\":{\"$ref\":\"#/$defs/c\"},"
               "\"t\":{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"},{\"const\":5}]},"
               "\"u\":{\"type\":\"array\",\"items\":{\"enum\":[1,2]},\"uniqueItems\":true},"
               "\"v\":{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"uniqueItems\":true}},"
               "\"$defs\":{\"c\":{\"type\":\"array\",\"items\":{\"type\":[\"string\",\"integer\"],"
               "\"pattern\":\"^a{2,3}$\",\"minimum\":5,\"maximum\":31}}}");
    struct fixture f;
    open_fixture(&f);
    bool is_done = false;
    for (unsigned n = 0; !is_done; n++) {
        struct tern_grammar *g;
        struct tn_constraint *c = NULL;
        struct tern_error err;
        fail_alloc_after(n);
        tern_status status = compile(&g, schema, 0, &err);
        if (status == TERN_OK)
            status = tn_constraint_create(&c, g, f.list, 16, &err);
        is_done = status == TERN_OK;
        fail_alloc_stop();
        assert_true(is_done || (status == TERN_MEMORY && !c));
        tn_constraint_free(c);
        tern_grammar_free(g);
        assert_true(n < 1000);
    }
    close_fixture(&f);
}

/* ---- memory ---- */

static uint64_t n_asked;

static int count_asked(void *arg, size_t n_bytes)
{
    (void)arg;
    n_asked += n_bytes;
    return 1;
}

static void memory_is_known_before_it_is_taken(void **state)
{
    (void)state;
    struct fixture f;
    struct tern_grammar *g;
    struct tern_error err;
    struct tn_token_list *list;
    struct tn_constraint *c;
    open_fixture(&f);
    assert_int_equal(compile(&g, "{\"type\":\"string\",\"maxLength\":9}", 0, &err), TERN_OK);
    n_asked = 0;
    tn_alloc_set_hook(count_asked, NULL);
    assert_int_equal(tn_token_list_create(&list, f.tokenizer, f.list->n_ids, f.is_control, f.ends,
                                          1, NULL), TERN_OK);
    assert_int_equal(n_asked, tn_token_list_need(f.tokenizer, f.list->n_ids, f.is_control));
    n_asked = 0;
    assert_int_equal(tn_constraint_create(&c, g, list, 16, NULL), TERN_OK);
    assert_int_equal(n_asked, tn_constraint_bytes(g, list->n_ids, 16));
    tn_alloc_set_hook(NULL, NULL);
    tn_constraint_free(c);
    tn_token_list_free(list);
    tern_grammar_free(g);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_equal_trying_every_token),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(memory_is_known_before_it_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
