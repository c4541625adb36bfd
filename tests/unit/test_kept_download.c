/* SPDX-License-Identifier: MIT
 *
 * The end of a pull: a download that the user keeps stays, even if a Ctrl-C comes at that moment
 * or memory runs out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "hub/download_folder.h"
#include "hub/pull_model.h"
#include "plat/plat.h"
#include "plat/terminal.h"

#define DOWNLOADS "test_hub_downloads"
#define KEPT DOWNLOADS "/m"

static void put_file(const char *path, const char *text)
{
    assert_int_equal(tn_file_write_private(path, text, strlen(text), NULL), TERN_OK);
}

static void make_kept(void)
{
    struct tn_download_state state = {"a/b", "", "0123456789012345678901234567890123456789", true};
    assert_int_equal(tn_dir_make(KEPT, NULL), TERN_OK);
    assert_int_equal(tn_download_state_write(&state, KEPT, NULL), TERN_OK);
    put_file(KEPT "/model.gguf", "weights");
}

/* As at the end of a pull. */
static void finish_pull(bool keep)
{
    struct tn_pulled pulled = {.folder = tn_copy_text(KEPT)};
    assert_non_null(pulled.folder);
    tn_pull_finish(&pulled, keep);
}

/* Neither a Ctrl-C at the last moment nor a lack of memory removes what the user kept. */
static void a_kept_download_stays(void **state)
{
    (void)state;
    make_kept();
    tn_terminal_note_interrupt();
    finish_pull(false);
    assert_int_equal(tn_path_kind(KEPT "/model.gguf"), TN_PATH_FILE);
    tn_download_folder_remove_rest(DOWNLOADS, "m");
    assert_int_equal(tn_path_kind(KEPT "/model.gguf"), TN_PATH_FILE);
    tn_interrupt_clear();
    bool has_failed = true;
    for (size_t n = 0; has_failed; n++) {
        struct tn_pulled pulled = {.folder = tn_copy_text(KEPT)};
        fail_alloc_once_after(n);
        tn_pull_finish(&pulled, false);
        has_failed = fail_alloc_stop();
        assert_int_equal(tn_path_kind(KEPT "/model.gguf"), TN_PATH_FILE);
    }
    tn_download_folder_clear(KEPT);
    assert_true(tn_dir_remove(KEPT) && tn_dir_remove(DOWNLOADS));
}

/* A pull that keeps says so in its folder, even after a Ctrl-C. */
static void a_download_is_marked_as_kept(void **state)
{
    (void)state;
    struct tn_download_state s;
    bool was_begun;
    make_kept();
    assert_int_equal(tn_download_state_read(&s, &was_begun, KEPT, NULL), TERN_OK);
    s.is_kept = false;
    assert_int_equal(tn_download_state_write(&s, KEPT, NULL), TERN_OK);
    tn_terminal_note_interrupt();
    finish_pull(true);
    assert_int_equal(tn_download_state_read(&s, &was_begun, KEPT, NULL), TERN_OK);
    assert_true(was_begun && s.is_kept);
    tn_interrupt_clear();
    finish_pull(false);
    assert_int_equal(tn_path_kind(KEPT), TN_PATH_DIR);
    tn_download_folder_clear(KEPT);
    finish_pull(false); /* no state: nothing was kept */
    assert_int_equal(tn_path_kind(KEPT), TN_PATH_ABSENT);
    assert_true(tn_dir_remove(DOWNLOADS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_download_stays),
        cmocka_unit_test(a_download_is_marked_as_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
