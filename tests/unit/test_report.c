/* SPDX-License-Identifier: MIT
 *
 * What --json prints is complete, or memory was short and it is not printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "src/app/report.h"

static int n_left; /* allocations before the one that fails */

static int allow_all_but_one(void *arg, size_t n_bytes)
{
    (void)arg, (void)n_bytes;
    return n_left-- != 0;
}

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

static void every_allocation_fails_once(void **state)
{
    (void)state;
    struct tern_error err;
    tern_status status = TERN_MEMORY;
    tn_report_init();
    for (int n = 0; status != TERN_OK; n++) {
        n_left = n;
        tn_alloc_set_hook(allow_all_but_one, NULL);
        status = tn_report_print(make(), &err);
        tn_alloc_set_hook(NULL, NULL);
        assert_int_equal(status, n_left < 0 ? TERN_MEMORY : TERN_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
