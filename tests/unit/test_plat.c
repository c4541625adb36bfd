/* SPDX-License-Identifier: MIT
 *
 * The operating system layer; the same tests run on every system.
 *
 * They cover files, paths, memory, threads and input.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "plat/plat.h"

#define PATH "test_plat.tmp"
#define OTHER "test_plat-\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80.tmp" /* characters of all sizes */
#if defined(_WIN32)
#define NULL_DEVICE "NUL"
#else
#define NULL_DEVICE "/dev/null"
#endif

static struct tern_error err;

static void put_file(const char *path, const void *bytes, size_t n)
{
    struct tn_file *file;
    assert_int_equal(tn_file_create(&file, path, &err), TERN_OK);
    assert_int_equal(tn_file_write_at(file, 0, bytes, n, &err), TERN_OK);
    assert_int_equal(tn_file_sync(file, &err), TERN_OK);
    tn_file_close(file);
}

static void assert_file(const char *path, const char *expected, size_t n_expected)
{
    char *data;
    size_t n;
    assert_int_equal(tn_file_read_all(&data, &n, path, 1 << 20, &err), TERN_OK);
    assert_int_equal(n, n_expected);
    assert_memory_equal(data, expected, n);
    assert_int_equal(data[n], 0);
    tn_free(data);
}

/* ---- files ---- */

static void files_keep_their_content(void **state)
{
    (void)state;
    struct tn_file *file;
    char bytes[16];
    assert_int_equal(tn_file_create(&file, PATH, &err), TERN_OK);
    assert_int_equal(tn_file_size(file), 0);
    assert_int_equal(tn_file_write_at(file, 100000, "end", 3, &err), TERN_OK);
    assert_int_equal(tn_file_write_at(file, 0, "begin", 5, &err), TERN_OK);
    assert_int_equal(tn_file_size(file), 100003);
    assert_int_equal(tn_file_read_at(file, 0, bytes, 6, &err), TERN_OK);
    assert_memory_equal(bytes, "begin\0", 6);
    tn_file_close(file);

    assert_int_equal(tn_file_open_read(&file, PATH, &err), TERN_OK);
    assert_int_equal(tn_file_read_at(file, 99998, bytes, 5, &err), TERN_OK);
    assert_memory_equal(bytes, "\0\0end", 5);
    tn_file_drop_cache(file, 0, 100003);
    assert_int_equal(tn_file_read_at(file, 100000, bytes, 4, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "100003"));
    assert_non_null(strstr(err.detail, PATH));
    assert_int_equal(tn_file_read_at(file, 200000, bytes, 1, &err), TERN_INPUT);
    assert_int_equal(tn_file_read_at(file, 200000, bytes, 0, &err), TERN_OK);
    tn_file_close(file);
    tn_file_close(NULL);
    tn_file_remove(PATH);
}

static void appending_finds_the_end(void **state)
{
    (void)state;
    struct tn_file *one, *two;
    tn_file_remove(PATH);
    assert_int_equal(tn_file_open_append(&one, PATH, &err), TERN_OK);
    assert_int_equal(tn_file_append(one, "a\n", 2, &err), TERN_OK);
    assert_int_equal(tn_file_open_append(&two, PATH, &err), TERN_OK);
    assert_int_equal(tn_file_append(two, "b\n", 2, &err), TERN_OK);
    assert_int_equal(tn_file_append(one, "c\n", 2, &err), TERN_OK);
    tn_file_close(one);
    tn_file_close(two);
    assert_file(PATH, "a\nb\nc\n", 6);
    tn_file_remove(PATH);
    assert_int_equal(tn_file_open_append(&one, "no-such-folder/x", &err), TERN_OUTPUT);
}

static void failures_are_explained(void **state)
{
    (void)state;
    struct tn_file *file;
    struct tn_map map;
    char *data;
    size_t n;
    assert_int_equal(tn_file_open_read(&file, "no-such-file", &err), TERN_INPUT);
    assert_null(file);
    assert_non_null(strstr(err.detail, "no-such-file: "));
    assert_int_equal(err.status, TERN_INPUT);
    assert_int_equal(tn_file_open_read(&file, ".", &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "directory"));
    assert_int_equal(tn_file_create(&file, "no-such-folder/x", &err), TERN_OUTPUT);
    assert_null(file);
    assert_int_equal(tn_file_read_all(&data, &n, "no-such-file", 10, &err), TERN_INPUT);
    assert_null(data);
    assert_int_equal(tn_file_read_all(&data, &n, ".", 10, &err), TERN_INPUT);
    assert_int_equal(tn_map_open(&map, "no-such-file", &err), TERN_INPUT);
    assert_null(map.data);
    assert_int_equal(tn_map_open(&map, ".", &err), TERN_INPUT);
    put_file(PATH, "", 0);
    assert_int_equal(tn_map_open(&map, PATH, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "empty"));
    assert_int_equal(tn_file_replace("no-such-file", PATH, &err), TERN_OUTPUT);
    tn_map_close(&map);
    tn_file_remove(PATH);
    tn_file_remove(PATH); /* a missing file is fine */
}

static void complete_files_have_a_limit(void **state)
{
    (void)state;
    static char bytes[100000];
    char *data;
    size_t n;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 31 % 256);
    put_file(PATH, bytes, sizeof bytes);
    assert_file(PATH, bytes, sizeof bytes);
    assert_int_equal(tn_file_read_all(&data, &n, PATH, sizeof bytes, &err), TERN_OK);
    tn_free(data);
    assert_int_equal(tn_file_read_all(&data, &n, PATH, sizeof bytes - 1, &err), TERN_INPUT);
    assert_null(data);
    assert_non_null(strstr(err.detail, "99999"));
    put_file(PATH, "", 0);
    assert_file(PATH, "", 0);
    tn_file_remove(PATH);
}

static void replacing_is_complete(void **state)
{
    (void)state;
    put_file(PATH, "new", 3);
    put_file(OTHER, "old contents", 12);
    assert_int_equal(tn_file_replace(PATH, OTHER, &err), TERN_OK);
    assert_file(OTHER, "new", 3);
    assert_int_equal(tn_path_kind(PATH), TN_PATH_ABSENT);
    tn_file_remove(OTHER);
}

/* Windows cannot replace a mapped file; the message must say why. */
static void files_in_use_are_replaced_or_named(void **state)
{
    (void)state;
    struct tn_map map;
    put_file(PATH, "new", 3);
    put_file(OTHER, "old contents", 12);
    assert_int_equal(tn_map_open(&map, OTHER, &err), TERN_OK);
    if (tn_file_replace(PATH, OTHER, &err) == TERN_OUTPUT) {
        assert_non_null(strstr(err.detail, "in use"));
        assert_file(OTHER, "old contents", 12);
        assert_file(PATH, "new", 3);
    }
    assert_memory_equal(map.data, "old contents", 12);
    tn_map_close(&map);
    tn_file_remove(PATH);
    tn_file_remove(OTHER);
}

/* ---- paths ---- */

static void paths(void **state)
{
    (void)state;
    put_file(PATH, "x", 1);
    put_file(OTHER, "y", 1);
    assert_int_equal(tn_path_kind(PATH), TN_PATH_FILE);
    assert_int_equal(tn_path_kind("."), TN_PATH_DIR);
    assert_int_equal(tn_path_kind("no-such-file"), TN_PATH_ABSENT);
    assert_int_equal(tn_path_kind(NULL_DEVICE), TN_PATH_OTHER);
    assert_true(tn_path_same(PATH, "./" PATH));
    assert_false(tn_path_same(PATH, OTHER));
    assert_false(tn_path_same(PATH, "no-such-file"));
    assert_false(tn_path_same("no-such-file", "no-such-file"));

    char *joined = tn_path_join(".", OTHER), *plain = tn_path_join("", "x");
    char *ended = tn_path_join("dir/", "x");
    assert_true(tn_path_same(joined, OTHER));
    assert_string_equal(plain, "x");
    assert_string_equal(ended, "dir/x");
    char *resolved = tn_path_resolve(OTHER);
    assert_non_null(resolved);
    assert_true(strlen(resolved) > strlen(OTHER));
    assert_string_equal(resolved + strlen(resolved) - strlen(OTHER), OTHER);
    assert_true(tn_path_same(resolved, OTHER));
    assert_null(tn_path_resolve("no-such-file"));
    char *dir = tn_path_of_executable_dir();
    assert_non_null(dir);
    assert_int_equal(tn_path_kind(dir), TN_PATH_DIR);
    char *cache = tn_path_of_cache_dir();
    if (cache)
        assert_int_equal(tn_path_kind(cache), TN_PATH_DIR);
    uint64_t n_free = tn_disk_free_bytes(PATH);
    assert_true(n_free > 0 && n_free != UINT64_MAX);
    assert_int_equal(tn_disk_free_bytes("no-such-folder/x"), UINT64_MAX);
    tn_free(joined);
    tn_free(plain);
    tn_free(ended);
    tn_free(resolved);
    tn_free(dir);
    tn_free(cache);
    tn_file_remove(PATH);
    tn_file_remove(OTHER);
}

/* ---- memory ---- */

static void folders_are_made_and_removed(void **state)
{
    (void)state;
    assert_int_equal(tn_dir_make("test_plat.dir/a/b", &err), TERN_OK);
    assert_int_equal(tn_dir_make("test_plat.dir/a/b", &err), TERN_OK);
    assert_int_equal(tn_path_kind("test_plat.dir/a/b"), TN_PATH_DIR);
    assert_false(tn_dir_remove("test_plat.dir/a"));
    put_file("test_plat.dir/file", "x", 1);
    assert_int_equal(tn_dir_make("test_plat.dir/file/c", &err), TERN_OUTPUT);
    assert_non_null(strstr(err.detail, "test_plat.dir/file: "));
    assert_int_equal(tn_dir_make("test_plat.dir/file/c/d", &err), TERN_OUTPUT);
    assert_non_null(strstr(err.detail, "test_plat.dir/file: ")); /* the reason, not a result */
    tn_file_remove("test_plat.dir/file");
    assert_true(tn_dir_remove("test_plat.dir/a/b"));
    assert_true(tn_dir_remove("test_plat.dir/a"));
    assert_true(tn_dir_remove("test_plat.dir"));
    assert_false(tn_dir_remove("test_plat.dir"));
}

static void maps_hold_the_file(void **state)
{
    (void)state;
    static char bytes[200001];
    struct tn_map map;
    memset(bytes, 'm', sizeof bytes);
    bytes[sizeof bytes - 1] = 'z';
    put_file(PATH, bytes, sizeof bytes);
    assert_int_equal(tn_map_open(&map, PATH, &err), TERN_OK);
    assert_int_equal(map.n_bytes, sizeof bytes);
    assert_int_equal((uintptr_t)map.data % tn_page_bytes(), 0);
    /* Hints have no visible effect, whatever range they name. */
    static const size_t ranges[][2] = {{0, SIZE_MAX}, {1, 1}, {200000, 1}, {200001, 5},
                                       {SIZE_MAX, SIZE_MAX}, {5000, 100000}, {0, 0}};
    for (size_t i = 0; i < TN_COUNT_OF(ranges); i++)
        for (int advice = TN_ADVICE_WILLNEED; advice <= TN_ADVICE_DONTNEED; advice++)
            tn_map_advise(&map, ranges[i][0], ranges[i][1], (enum tn_advice)advice);
    assert_memory_equal(map.data, bytes, sizeof bytes);
    tn_map_close(&map);
    assert_null(map.data);
    tn_map_close(&map);
    tn_file_remove(PATH);
}

static void pages_are_zero_when_committed(void **state)
{
    (void)state;
    size_t page = tn_page_bytes(), n = (size_t)1 << 30;
    assert_true(page >= 4096 && (page & (page - 1)) == 0);
    unsigned char *p = tn_pages_reserve(n);
    assert_non_null(p);
    uint64_t n_commits = tn_pages_n_commits();
    unsigned char *end = p + n - 4 * page;
    assert_true(tn_pages_commit(end, 4 * page));
    assert_true(tn_pages_commit(p, page));
    assert_int_equal(tn_pages_n_commits(), n_commits + 2);
    tn_pages_advise_huge(end, 4 * page);
    for (size_t i = 0; i < 4 * page; i++)
        assert_int_equal(end[i], 0);
    memset(end, 1, 4 * page);
    assert_true(tn_pages_commit(end, 4 * page)); /* again: committed pages stay */
    assert_int_equal(end[0], 1);
    tn_pages_release(p, n);
    tn_pages_release(NULL, 0);
    assert_null(tn_pages_reserve(SIZE_MAX / 2));
}

/* ---- threads ---- */

static _Atomic uint32_t word;

static void set_word(void *arg)
{
    (void)arg;
    tn_cpu_relax();
    tn_thread_yield();
    atomic_store(&word, 1);
    tn_wake_all(&word);
}

static void threads_wait_and_wake(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        atomic_store(&word, 0);
        struct tn_thread *thread = tn_thread_start(set_word, NULL);
        assert_non_null(thread);
        while (atomic_load(&word) == 0)
            tn_wait_on(&word, 0, 0); /* hangs if a wake-up is lost */
        tn_thread_join(thread);
    }
    tn_thread_join(NULL);
    tn_wait_on(&word, 0, 0); /* the value differs: returns at once */
    uint64_t start = tn_now_ns();
    for (int i = 0; i < 1000 && tn_now_ns() - start < 5000000; i++)
        tn_wait_on(&word, 1, 5000000);
    assert_true(tn_now_ns() - start >= 5000000);
}

static void bind_to_first_cpu(void *arg)
{
    *(bool *)arg = tn_thread_bind(0);
    (void)tn_thread_bind(1u << 30); /* no such CPU: refused, not fatal */
}

static void system_facts(void **state)
{
    (void)state;
    bool bound = false;
    struct tn_thread *thread = tn_thread_start(bind_to_first_cpu, &bound);
    tn_thread_join(thread); /* whether binding works depends on the system */
    assert_true(tn_cpu_count() >= 1);
    tn_process_set_eco(true);
    tn_process_set_eco(false);
    assert_true(tn_random_seed() != tn_random_seed());

    struct tn_usage before, after;
    tn_usage_now(&before);
    assert_true(before.rss_bytes > 0 && before.peak_rss_bytes >= before.rss_bytes);
    size_t n = (size_t)64 << 20;
    char *p = tn_alloc(n);
    memset(p, 1, n);
    tn_usage_now(&after);
    assert_true(after.peak_rss_bytes >= before.rss_bytes + n / 2);
    if (before.minor_faults) /* wine does not count them */
        assert_true(after.minor_faults > before.minor_faults);
    if (before.anonymous_bytes)
        assert_true(after.anonymous_bytes >= before.anonymous_bytes + n / 2);
    tn_free(p);
}

/* ---- input ---- */

static void append(void *arg, const char *bytes, size_t n)
{
    assert_true(tn_buf_append(arg, bytes, n));
}

static void assert_line(const char *expected)
{
    struct tn_buf buf = {0};
    bool interrupted = true;
    assert_true(tn_read_line(append, &buf, &interrupted, &err));
    assert_false(interrupted);
    assert_string_equal(tn_buf_text(&buf), expected);
    tn_buf_fini(&buf);
}

static void lines_of_standard_input(void **state)
{
    (void)state;
    struct tn_buf buf = {0};
    bool interrupted;
    /* Puts a \r at the last of the 4096 bytes that are read at once, with and without its \n. */
    tn_buf_append_text(&buf, "one\n\ntwo\r\n\r\r\nin\rside\n");
    while (buf.n_bytes < 4095)
        tn_buf_append_text(&buf, "-");
    tn_buf_append_text(&buf, "\r\n");
    size_t n_first = buf.n_bytes;
    while (buf.n_bytes < 8191)
        tn_buf_append_text(&buf, "+");
    tn_buf_append_text(&buf, "\rx\nno end\r");
    put_file(PATH, buf.data, buf.n_bytes);
    assert_non_null(freopen(PATH, "rb", stdin));
    assert_line("one");
    assert_line("");
    assert_line("two");
    assert_line("\r");
    assert_line("in\rside");
    buf.data[n_first - 2] = '\0';
    assert_line(strchr(buf.data, '-'));
    buf.data[n_first - 2] = '\r';
    *strchr(buf.data + n_first, '\n') = '\0';
    assert_line(buf.data + n_first);
    assert_line("no end\r");
    assert_false(tn_read_line(append, &buf, &interrupted, &err));
    tn_buf_fini(&buf);

    put_file(PATH, "first\nrest\0 of it\n", 18);
    assert_non_null(freopen(PATH, "rb", stdin));
    assert_line("first");
    char *data;
    size_t n;
    assert_int_equal(tn_stdin_read_all(&data, &n, 100, &err), TERN_OK);
    assert_int_equal(n, 12);
    assert_memory_equal(data, "rest\0 of it\n", 12);
    tn_free(data);
    assert_int_equal(tn_stdin_read_all(&data, &n, 100, &err), TERN_OK);
    assert_int_equal(n, 0);
    tn_free(data);
    assert_non_null(freopen(PATH, "rb", stdin));
    assert_int_equal(tn_stdin_read_all(&data, &n, 5, &err), TERN_INPUT);
    assert_null(data);
    tn_file_remove(PATH);
}

#if !defined(_WIN32) /* Windows cannot truncate a mapped file, and Ctrl-C is not a signal there */

static void interrupts_are_counted(void **state)
{
    (void)state;
    struct tn_buf buf = {0};
    bool interrupted = false;
    tn_interrupt_install();
    assert_int_equal(tn_interrupt_count(), 0);
    for (uint32_t i = 1; i <= 3; i++) { /* each is seen before the next: the process survives */
        raise(SIGINT);
        assert_int_equal(tn_interrupt_count(), i);
    }
    assert_true(tn_read_line(append, &buf, &interrupted, &err));
    assert_true(interrupted);
    assert_int_equal(buf.n_bytes, 0);
    tn_interrupt_clear();
    assert_int_equal(tn_interrupt_count(), 0);
    assert_int_equal(tn_terminate_requested(), 0);
    raise(SIGTERM);
    assert_int_equal(tn_terminate_requested(), SIGTERM);
}

static _Atomic uint32_t n_faults;

static void on_fault(void)
{
    atomic_fetch_add(&n_faults, 1);
    tn_wake_all(&n_faults);
    for (;;)
        tn_wait_on(&word, atomic_load(&word), 0);
}

static void read_byte(void *arg)
{
    (void)*(const volatile unsigned char *)arg;
}

/* Runs on a worker thread: the faulting thread stops for good, the others continue. */
static void a_file_that_shrinks_calls_the_handler(void **state)
{
    (void)state;
    static char bytes[100000];
    struct tn_map map;
    put_file(PATH, bytes, sizeof bytes);
    assert_int_equal(tn_map_open(&map, PATH, &err), TERN_OK);
    tn_map_set_fault_handler(on_fault);
    put_file(PATH, "short", 5);
    struct tn_thread *thread = tn_thread_start(read_byte, (void *)(uintptr_t)(map.data + 50000));
    assert_non_null(thread);
    uint64_t start = tn_now_ns();
    while (atomic_load(&n_faults) == 0 && tn_now_ns() - start < 60000000000u)
        tn_wait_on(&n_faults, 0, 100000000);
    assert_int_equal(n_faults, 1);
    tn_map_set_fault_handler(NULL);
    tn_map_close(&map);
    tn_file_remove(PATH);
}

#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_keep_their_content),
        cmocka_unit_test(appending_finds_the_end),
        cmocka_unit_test(failures_are_explained),
        cmocka_unit_test(complete_files_have_a_limit),
        cmocka_unit_test(replacing_is_complete),
        cmocka_unit_test(files_in_use_are_replaced_or_named),
        cmocka_unit_test(paths),
        cmocka_unit_test(folders_are_made_and_removed),
        cmocka_unit_test(maps_hold_the_file),
        cmocka_unit_test(pages_are_zero_when_committed),
        cmocka_unit_test(threads_wait_and_wake),
        cmocka_unit_test(system_facts),
        cmocka_unit_test(lines_of_standard_input),
#if !defined(_WIN32)
        cmocka_unit_test(interrupts_are_counted),
        cmocka_unit_test(a_file_that_shrinks_calls_the_handler),
#endif
    };
    tn_process_init(&argc, &argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
