/* SPDX-License-Identifier: MIT
 *
 * Recorded and constructed machines: tests/sysinfo/roots/NAME has proc/ and sys/ of a machine and
 * expected.json with the expected facts and plan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tern/plan.h"
#include "tern/sysinfo.h"

static const char *const names[] = {
#include "roots.inc"
};

static void unreadable_names(uint32_t bits, json_t *out)
{
    for (uint32_t i = 0; tern_fact_text(i); i++)
        if (bits >> i & 1)
            json_array_append_new(out, json_string(tern_fact_text(i)));
}

static json_t *size_or_null(uint64_t bytes)
{
    return bytes == TERN_UNKNOWN ? json_null() : json_integer((json_int_t)bytes);
}

/* Facts and plan under the names of expected.json. */
static json_t *describe(const struct tern_sysinfo *m, const struct tern_plan *plan)
{
    static const char *const huge[] = {"unknown", "never", "madvise", "always"};
    static const char *const power[] = {"unknown", "mains", "battery"};
    json_t *bad = json_array();
    unreadable_names(m->unreadable, bad);
    json_t *quota = m->quota_millicpus == TERN_UNKNOWN
                        ? json_null()
                        : json_real((double)m->quota_millicpus / 1000.0);
    return json_pack(
        "{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:s, s:o, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, "
        "s:s, s:s, s:s, s:o, s:s, s:i, s:i, s:i, s:o, s:o}",
        "allowed", (int)m->n_allowed, "physical", (int)m->n_physical, "logical", (int)m->n_logical,
        "quota", quota, "total", size_or_null(m->total_bytes), "available",
        size_or_null(m->available_bytes), "limit", size_or_null(m->limit_bytes), "limited_by",
        tern_bound_text(m->limited_by), "unreadable", bad, "decode", (int)plan->n_threads_decode,
        "prefill", (int)plan->n_threads_prefill, "ceil", (int)plan->n_threads_ceil, "default",
        (int)plan->default_new_tokens, "cap", (int)plan->cap_new_tokens, "swap",
        size_or_null(m->swap_total_bytes), "pressure", size_or_null(m->pressure_centi), "page",
        size_or_null(m->page_bytes), "governor", m->governor, "power", power[m->power],
        "huge_pages", huge[m->huge_pages], "throttles", size_or_null(m->n_thermal_throttles), "cpu",
        m->cpu_name, "kinds", (int)m->n_kinds, "packages", (int)m->n_packages, "nodes",
        (int)m->n_numa, "l1", size_or_null(m->cache_bytes[0]), "l3",
        size_or_null(m->cache_bytes[2]));
}

static void check_root(void **state)
{
    const char *name = *state;
    char path[1024];
    struct tern_error err;
    static struct tern_sysinfo machine;
    static struct tern_plan plan;

    snprintf(path, sizeof path, "%s/tests/sysinfo/roots/%s/expected.json", TERN_SOURCE_DIR, name);
    json_t *expected = json_load_file(path, 0, NULL);
    assert_true(json_is_object(expected));
    assert_true(json_object_size(expected) >= 9);

    *strrchr(path, '/') = '\0';
    assert_int_equal(tern_sysinfo_read_root(&machine, path, &err), TERN_OK);
    assert_int_equal(tern_plan_make(&plan, &machine, NULL, NULL, &err), TERN_OK);
    json_t *found = describe(&machine, &plan);
    assert_non_null(found);

    int n_wrong = 0;
    const char *key;
    json_t *want;
    json_object_foreach(expected, key, want) {
        json_t *got = json_object_get(found, key);
        if (got && json_equal(got, want))
            continue;
        char *want_text = json_dumps(want, JSON_ENCODE_ANY);
        char *got_text = got ? json_dumps(got, JSON_ENCODE_ANY) : NULL;
        print_message("%s: %s is %s, expected %s\n", name, key,
                      got_text ? got_text : "(no such fact)", want_text);
        n_wrong++;
    }
    json_decref(found);
    json_decref(expected);
    assert_int_equal(n_wrong, 0);
    /* Whatever a file contains, there is a thread and a core for it. */
    assert_true(plan.n_threads_decode >= 1 && plan.n_threads_prefill >= 1);
    assert_true(machine.n_cores >= 1 && machine.n_kinds >= 1 && machine.limit_bytes > 0);
}

static void not_a_directory(void **state)
{
    (void)state;
    struct tern_error err;
    static struct tern_sysinfo machine;
    assert_int_equal(tern_sysinfo_read_root(&machine, TERN_SOURCE_DIR "/no/such/root", &err),
                     TERN_INPUT);
    assert_non_null(strstr(err.detail, "no/such/root"));
}

int main(void)
{
    enum { N = sizeof names / sizeof names[0] };
    static struct CMUnitTest tests[N + 1];
    assert_true(N >= 40);
    for (int i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){names[i], check_root, NULL, NULL, (void *)names[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(not_a_directory);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
