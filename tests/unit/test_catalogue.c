/* SPDX-License-Identifier: MIT
 *
 * The rows of the known models: well-formed, consistent, and found by the names that users type.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "hub/catalogue.h"

static void assert_hex_or_empty(const char *text, size_t n)
{
    const size_t n_text = strlen(text);
    assert_true(n_text == 0 || n_text == n);
    assert_int_equal(strspn(text, "0123456789abcdef"), n_text);
}

static void rows_are_well_formed(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < tn_n_catalogue_models; i++) {
        const struct tn_catalogue_model *m = &tn_catalogue_models[i];
        assert_int_equal(strspn(m->name, "abcdefghijklmnopqrstuvwxyz0123456789.-"),
                         strlen(m->name));
        assert_non_null(strchr(m->repository, '/'));
        assert_hex_or_empty(m->revision, 40);
        assert_hex_or_empty(m->sha256, 64);
        assert_true(m->file[0] == '\0' || strcmp(m->file + strlen(m->file) - 5, ".gguf") == 0);
        assert_true((m->file_bytes == 0) != (m->about_bytes == 0));
        assert_true(m->good_for[0]);
        assert_true(m->tern_bytes > 0 && m->token_bytes > 0 && m->token_bytes < m->tern_bytes);
        /* The converted file is never much larger than its source. */
        assert_true(m->tern_bytes < tn_catalogue_download_bytes(m) / 100 * 115);
        assert_ptr_equal(tn_catalogue_find(m->name), m);
        assert_ptr_equal(tn_catalogue_find(m->repository), m);
    }
}

static void ranks_differ_and_rise(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < tn_n_catalogue_models; i++) {
        const struct tn_catalogue_model *m = &tn_catalogue_models[i];
        if ((m[-1].pooling[0] != '\0') == (m->pooling[0] != '\0'))
            assert_true(m->rank > m[-1].rank);
        else
            assert_int_equal(m->rank, 1);
    }
}

static void models_are_found_by_typed_names(void **state)
{
    (void)state;
    const struct tn_catalogue_model *m = tn_catalogue_find("BitNet-2B");
    assert_non_null(m);
    assert_string_equal(m->repository, "microsoft/bitnet-b1.58-2B-4T-gguf");
    assert_ptr_equal(tn_catalogue_find("MICROSOFT/bitnet-b1.58-2b-4t-GGUF"), m);
    assert_null(tn_catalogue_find("bitnet"));
    assert_null(tn_catalogue_find("bitnet-2b "));
    assert_null(tn_catalogue_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_well_formed),
        cmocka_unit_test(ranks_differ_and_rise),
        cmocka_unit_test(models_are_found_by_typed_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
