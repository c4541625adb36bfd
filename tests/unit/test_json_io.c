/* SPDX-License-Identifier: MIT
 *
 * Printing and reading JSON while every possible allocation fails in turn: the result is complete
 * or an error, never partial.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "failing_alloc.h"
#include "src/app/json_io.h"

static json_t *make(void)
{
    json_t *root = json_object(), *list = json_array();
    for (int i = 0; i < 20; i++)
        json_array_append_new(list, json_integer(i));
    json_object_set_new(root, "list", list);
    json_object_set_new(root, "name", json_string("a name"));
    json_object_set_new(root, "number", json_real(0.5));
    return root;
}

static void printed_values_are_complete(void **state)
{
    (void)state;
    struct tern_error err;
    tern_status status = TERN_MEMORY;
    tn_json_io_init();
    for (size_t n = 0; status != TERN_OK; n++) {
        fail_alloc_once_after(n);
        status = tn_json_io_print(make(), &err);
        assert_int_equal(status, fail_alloc_stop() ? TERN_MEMORY : TERN_OK);
    }
}

static void parsed_values_are_complete(void **state)
{
    (void)state;
    static const char text[] = "[{\"role\":\"user\",\"content\":\"hello\"},[1,2.5,null,\"\\u00e9\"]]";
    struct tern_error err;
    tern_status status = TERN_MEMORY;
    tn_json_io_init();
    for (size_t n = 0; status != TERN_OK; n++) {
        json_t *value;
        fail_alloc_once_after(n);
        status = tn_json_io_read(&value, "text", text, strlen(text), 0, &err);
        assert_int_equal(status, fail_alloc_stop() ? TERN_MEMORY : TERN_OK);
        assert_int_equal(value != NULL, status == TERN_OK);
        json_decref(value);
    }
    json_t *value;
    assert_int_equal(tn_json_io_read(&value, "text", "[1,", 3, 0, &err), TERN_USAGE);
    assert_null(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printed_values_are_complete),
        cmocka_unit_test(parsed_values_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
