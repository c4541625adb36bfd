/* SPDX-License-Identifier: MIT
 *
 * A recording requests every file that reading the live machine requests; a missing file would be
 * unknown in the replay.  The tn_fact_ functions here record the requests and find nothing.
 */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "sysinfo/sysinfo_private.h"

#define MAX_PATHS 256u

static struct asked {
    char paths[MAX_PATHS][128];
    size_t n;
} by_reading, by_recording, *asked;

bool tn_fact_open(struct tn_fact_file *file, const char *root, const char *path)
{
    file->handle = -1;
    if (*root == '\0') {
        assert_true(asked->n < MAX_PATHS);
        snprintf(asked->paths[asked->n++], sizeof asked->paths[0], "%s", path);
    }
    return false;
}

long tn_fact_reread(const struct tn_fact_file *file, char *text, size_t capacity)
{
    (void)file, (void)capacity;
    text[0] = '\0';
    return -1;
}

void tn_fact_close(struct tn_fact_file *file)
{
    (void)file;
}

long tn_fact_read(const char *root, const char *path, char *text, size_t capacity)
{
    struct tn_fact_file file;
    tn_fact_open(&file, root, path);
    return tn_fact_reread(&file, text, capacity);
}

static const char dir[] = TERN_BUILD_DIR "/test_record_complete.root";

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static bool has(const struct asked *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->paths[i], path) == 0)
            return true;
    return false;
}

static void all_that_is_read_is_recorded(void **state)
{
    (void)state;
    static struct tern_sysinfo machine;
    struct tern_error err;
    asked = &by_reading;
    tern_sysinfo_read(&machine);
    nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    asked = &by_recording;
    assert_int_equal(tern_sysinfo_record(dir, &err), TERN_OK);
    nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    assert_true(has(&by_reading, "/proc/meminfo"));
    for (size_t i = 0; i < by_reading.n; i++)
        if (!has(&by_recording, by_reading.paths[i]))
            fail_msg("%s is read, but not recorded", by_reading.paths[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_is_read_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
