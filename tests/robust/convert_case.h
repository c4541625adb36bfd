/* SPDX-License-Identifier: MIT
 *
 * Helpers of the converter's tests.  The includer first defines DIR, a folder that no other test
 * uses (made by CMake), and includes cmocka.
 */
#ifndef CONVERT_CASE_H
#define CONVERT_CASE_H

#include <stdio.h>
#include <string.h>

#include "plat/plat.h"
#include "robust/model_dir.h"
#include "tern/convert.h"

#define OUT DIR "/out.tern"
#define PART OUT ".part"

static struct model_dir model;

static tern_status convert(enum tern_head_type head, struct tern_error *err)
{
    const struct tern_convert_params params = {
        .source = DIR, .output = OUT, .head = head, .no_tokenizer = true};
    struct tern_convert_result result;
    return tern_convert(&params, &result, err);
}

static void assert_nothing_left(void)
{
    assert_int_equal(tn_path_kind(OUT), TN_PATH_ABSENT);
    assert_int_equal(tn_path_kind(PART), TN_PATH_ABSENT);
}

static void expect_failure(const char *what, tern_status expected, const char *text)
{
    struct tern_error err;
    const tern_status status = convert(TERN_HEAD_Q8, &err);
    if (status != expected || err.status != expected || !strstr(err.detail, text) ||
        strchr(err.detail, '\n'))
        fail_msg("%s: status %d \"%s\", expected %d \"...%s...\"", what, status, err.detail,
                 expected, text);
    assert_nothing_left();
}

/* Removes leftovers of an earlier test or run. */
static int clean(void **state)
{
    (void)state;
    tn_file_remove(OUT);
    tn_file_remove(PART);
    return 0;
}

#endif
