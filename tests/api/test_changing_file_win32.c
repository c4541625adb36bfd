/* SPDX-License-Identifier: MIT
 *
 * Windows: a model file cannot be written to while it is open, and the changes that the system does
 * allow (of its times) are detected.  test_changing_file.c tests other systems.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <windows.h>

#include <cmocka.h>

#include "tern/convert.h"
#include "tern/tern.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_changing_file.tern"

static HANDLE open_file(DWORD access)
{
    return CreateFileA(MODEL_PATH, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                       NULL, OPEN_EXISTING, 0, NULL);
}

static struct tern_model *open_model(void)
{
    struct tern_model *model;
    assert_int_equal(tern_model_open(&model, MODEL_PATH, NULL), TERN_OK);
    assert_int_equal(tern_model_check_unchanged(model, NULL), TERN_OK);
    return model;
}

static void an_open_model_cannot_be_written(void **state)
{
    (void)state;
    struct tern_model *model = open_model();
    assert_ptr_equal(open_file(GENERIC_WRITE), INVALID_HANDLE_VALUE);
    assert_int_equal(GetLastError(), ERROR_SHARING_VIOLATION);
    HANDLE reader = open_file(GENERIC_READ);
    assert_ptr_not_equal(reader, INVALID_HANDLE_VALUE);
    CloseHandle(reader);
    tern_model_free(model);
    HANDLE writer = open_file(GENERIC_WRITE);
    assert_ptr_not_equal(writer, INVALID_HANDLE_VALUE);
    CloseHandle(writer);
}

static void a_new_modification_time_is_detected(void **state)
{
    (void)state;
    const FILETIME then = {.dwLowDateTime = 0, .dwHighDateTime = 30000000};
    struct tern_error err;
    struct tern_model *model = open_model();
    HANDLE file = open_file(FILE_WRITE_ATTRIBUTES);
    assert_ptr_not_equal(file, INVALID_HANDLE_VALUE);
    assert_true(SetFileTime(file, NULL, NULL, &then));
    CloseHandle(file);
    assert_int_equal(tern_model_check_unchanged(model, &err), TERN_MAPPED_IO);
    tern_model_free(model);
}

static int convert_demo(void **state)
{
    (void)state;
    const struct tern_convert_params params = {.source = TERN_SOURCE_DIR "/dist/demo",
                                               .output = MODEL_PATH};
    struct tern_convert_result result;
    return tern_convert(&params, &result, NULL) == TERN_OK ? 0 : -1;
}

static int remove_demo(void **state)
{
    (void)state;
    return DeleteFileA(MODEL_PATH) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_model_cannot_be_written),
        cmocka_unit_test(a_new_modification_time_is_detected),
    };
    return cmocka_run_group_tests(tests, convert_demo, remove_demo);
}
