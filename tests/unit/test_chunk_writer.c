/* SPDX-License-Identifier: MIT
 *
 * Chunks written by a second thread: their bytes, hashes and errors, and the same without memory
 * for a second buffer.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "failing_alloc.h"
#include "file/chunk_writer.h"
#include "plat/plat.h"
#include "tern/model_format.h"

#define PATH "test_chunk_writer.bin"

enum { N_CHUNKS = 5, LAST_BYTES = 1000, BEGIN = 64 };

static size_t chunk_bytes(uint32_t i)
{
    return i + 1 < N_CHUNKS ? TERN_FILE_CHUNK : LAST_BYTES;
}

static void fill(unsigned char *dst, uint32_t i_chunk)
{
    for (size_t k = 0; k < chunk_bytes(i_chunk); k++)
        dst[k] = (unsigned char)(k * 7 + k / 251 + i_chunk * 13);
}

static tern_status put(struct tn_chunk_writer *w, struct tn_file *file, uint32_t i, uint64_t *hash,
                       struct tern_error *err)
{
    fill(tn_chunk_writer_buffer(w), i);
    const struct tn_chunk chunk = {.file = file,
                                   .offset = BEGIN + (uint64_t)i * TERN_FILE_CHUNK,
                                   .n_bytes = chunk_bytes(i),
                                   .hash = hash};
    return tn_chunk_writer_put(w, chunk, err);
}

static void check_file(const uint64_t *hashes)
{
    struct tern_error err;
    struct tn_file *file;
    unsigned char *expected = tn_alloc(TERN_FILE_CHUNK), *found = tn_alloc(TERN_FILE_CHUNK);
    assert_int_equal(tn_file_open_read(&file, PATH, &err), TERN_OK);
    assert_int_equal(tn_file_size(file), BEGIN + (N_CHUNKS - 1ull) * TERN_FILE_CHUNK + LAST_BYTES);
    for (uint32_t i = 0; i < N_CHUNKS; i++) {
        const size_t n = chunk_bytes(i);
        fill(expected, i);
        assert_int_equal(tn_file_read_at(file, BEGIN + (uint64_t)i * TERN_FILE_CHUNK, found, n,
                                         &err), TERN_OK);
        assert_memory_equal(found, expected, n);
        assert_true(hashes[i] == XXH3_64bits(expected, n));
    }
    tn_file_close(file);
    tn_free(expected);
    tn_free(found);
}

static void write_all(bool has_second_buffer)
{
    struct tern_error err;
    struct tn_chunk_writer w = {0};
    struct tn_file *file;
    uint64_t hashes[N_CHUNKS] = {0};
    assert_int_equal(tn_file_create(&file, PATH, &err), TERN_OK);
    assert_true(tn_chunk_writer_init(&w));
    if (!has_second_buffer)
        fail_alloc_after(0);
    for (uint32_t i = 0; i < N_CHUNKS; i++)
        assert_int_equal(put(&w, file, i, &hashes[i], &err), TERN_OK);
    if (!has_second_buffer)
        assert_true(fail_alloc_stop());
    assert_int_equal(w.thread != NULL, has_second_buffer);
    assert_int_equal(tn_chunk_writer_wait(&w, &err), TERN_OK);
    tn_chunk_writer_fini(&w);
    tn_file_close(file);
    check_file(hashes);
    tn_file_remove(PATH);
}

static void chunks_are_written_in_order(void **state)
{
    (void)state;
    write_all(true);
}

static void one_buffer_is_enough(void **state)
{
    (void)state;
    write_all(false);
}

/* A file opened for reading: the thread fails, the next call reports it, once. */
static void an_error_of_the_thread_is_reported(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_chunk_writer w = {0};
    struct tn_file *file, *read_only;
    uint64_t hash;
    assert_int_equal(tn_file_create(&file, PATH, &err), TERN_OK);
    assert_int_equal(tn_file_open_read(&read_only, PATH, &err), TERN_OK);
    assert_true(tn_chunk_writer_init(&w));
    assert_int_equal(put(&w, read_only, 0, &hash, &err), TERN_OK);
    assert_int_equal(put(&w, file, 1, &hash, &err), TERN_OUTPUT);
    assert_int_equal(err.status, TERN_OUTPUT);
    assert_true(strlen(err.detail) > 0);
    assert_int_equal(tn_chunk_writer_wait(&w, &err), TERN_OK);
    assert_int_equal(put(&w, read_only, 2, &hash, &err), TERN_OK);
    assert_int_equal(tn_chunk_writer_wait(&w, &err), TERN_OUTPUT);
    assert_int_equal(put(&w, read_only, 3, &hash, &err), TERN_OK);
    tn_chunk_writer_fini(&w); /* with a chunk in progress */
    assert_null(w.thread);
    tn_file_close(read_only);
    tn_file_close(file);
    tn_file_remove(PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_written_in_order),
        cmocka_unit_test(one_buffer_is_enough),
        cmocka_unit_test(an_error_of_the_thread_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
