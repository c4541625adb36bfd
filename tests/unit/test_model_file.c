/* SPDX-License-Identifier: MIT
 *
 * Model files: the reader finds what the writer wrote; truncated, damaged and wrong files are
 * refused with the reason.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "failing_alloc.h"
#include "file/model_file.h"
#include "tiny_model.h"

#define PATH "test_model_file.tern"

static const struct tiny_variant full = {TERN_LAYOUT_Q8, true, true, true, true,
                                         0, false, false, 0, false};
static const struct tiny_variant plain = {TERN_LAYOUT_BF16, false, false, false, false, 0, false,
                                          false, 0, false};

/* ---- a file in memory ---- */

static struct tiny_image make_image(const struct tiny_variant *variant)
{
    struct tiny_image image;
    struct tern_error err;
    assert_int_equal(tiny_model_image(&image, PATH, variant, &err), TERN_OK);
    return image;
}

static const struct tern_file_header *header_of(const struct tiny_image *image)
{
    return (const void *)image->bytes;
}

static tern_status check(const struct tiny_image *image, struct tern_error *err)
{
    struct tn_model_file file;
    tern_status status = tn_model_file_check(&file, image->bytes, image->n, "model", err);
    tn_model_file_close(&file);
    return status;
}

/* ---- round trip ---- */

static void assert_text(const struct tn_model_file *file, struct tern_file_ref ref,
                        const char *expected)
{
    size_t n;
    const char *text = tn_model_file_text(file, ref, &n);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(text, expected, n);
}

static void check_round_trip(const struct tiny_variant *variant)
{
    struct tn_model_file file;
    struct tern_error err;
    char name[48];
    assert_int_equal(tiny_model_make(PATH, variant, &err), TERN_OK);
    assert_int_equal(tn_path_kind(PATH ".part"), TN_PATH_ABSENT);
    assert_int_equal(tn_model_file_open(&file, PATH, &err), TERN_OK);

    struct tn_mwriter_meta meta = tiny_model_meta(variant);
    assert_memory_equal(file.spec.config, &meta.config, offsetof(struct tern_file_config, layers));
    assert_memory_equal(file.spec.layers, meta.layers, 2 * sizeof *meta.layers);
    assert_int_equal(file.spec.n_stop_ids, 2);
    assert_int_equal(file.spec.stop_ids[1], 3);
    assert_text(&file, file.spec.config->family, "tiny family");
    assert_text(&file, file.spec.config->name, "tiny");
    assert_text(&file, file.spec.config->template_name, "llama3");
    assert_text(&file, file.spec.config->template_source, meta.template_source);
    assert_text(&file, file.spec.config->converter, "tern test");
    assert_int_equal(file.spec.config->sources.bytes, 2 * sizeof(struct tern_file_source));
    const struct tern_file_source *sources =
        (const void *)((const char *)file.spec.config + file.spec.config->sources.offset);
    assert_text(&file, sources[1].name, "model.safetensors");
    assert_int_equal(sources[1].bytes, 45678);

    assert_int_equal(file.tokenizer_bytes, variant->has_tokenizer ? 300 : 0);
    assert_int_equal(file.tokenizer != NULL, variant->has_tokenizer);
    const struct tern_file_tensor *up = tn_model_file_tensor(&file, TERN_ROLE_UP, 1);
    assert_non_null(up);
    assert_string_equal(tn_tensor_name(name, sizeof name, up), "layers.1.up");
    assert_int_equal(up->layout, variant->is_sparse ? TERN_LAYOUT_R2 : TERN_LAYOUT_T2);
    assert_int_equal(up->n_zero, 7);
    assert_true(up->scale == 0.5f);
    const struct tern_file_tensor *embed =
        tn_model_file_tensor(&file, TERN_ROLE_EMBED, TERN_NO_LAYER);
    assert_string_equal(tn_tensor_name(name, sizeof name, embed), "embed");
    assert_int_equal(tn_model_file_scales(&file, embed) != NULL,
                     variant->embed_layout == TERN_LAYOUT_Q8);
    assert_int_equal(tn_model_file_tensor(&file, TERN_ROLE_HEAD, TERN_NO_LAYER) != NULL,
                     variant->has_head);
    assert_null(tn_model_file_tensor(&file, TERN_ROLE_Q, 2));
    assert_null(tn_model_file_tensor(&file, TERN_ROLE_Q, TERN_NO_LAYER));
    for (uint32_t i = 0; i < file.n_tensors; i++) {
        assert_ptr_equal(tn_model_file_tensor(&file, (enum tern_role)file.tensors[i].role,
                                              file.tensors[i].layer),
                         &file.tensors[i]);
        assert_int_equal((uintptr_t)tn_model_file_data(&file, &file.tensors[i]) % 64, 0);
    }
    for (uint32_t i = 0; i < file.n_chunks; i++)
        assert_int_equal(tn_model_file_verify_chunk(&file, i, &err), TERN_OK);
    tn_model_file_close(&file);
    tn_file_remove(PATH);
}

static void round_trip(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3 * 16; i++)
        check_round_trip(&(struct tiny_variant){TERN_LAYOUT_F16 + i / 16, i & 1, i & 2, i & 4,
                                                i & 8, 0, false, i % 2 && i % 16 > 7, 0, false});
}

static void same_input_same_bytes(void **state)
{
    (void)state;
    struct tiny_image a = make_image(&full), b = make_image(&full);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.bytes, b.bytes, a.n);
    tn_free(a.bytes);
    tn_free(b.bytes);
}

/* Several chunks: data larger than the hash granularity, in uneven pieces. */
static void many_chunks(void **state)
{
    (void)state;
    const uint32_t vocab = 70000, hidden = 64;
    struct tern_error err;
    struct tn_mwriter *w;
    struct tn_model_file file;
    struct tiny_variant variant = plain;
    struct tn_mwriter_meta meta = tiny_model_meta(&variant);
    struct tern_file_tensor embed = {.role = TERN_ROLE_EMBED, .layer = TERN_NO_LAYER,
                                     .layout = TERN_LAYOUT_BF16, .rows = vocab, .cols = hidden};
    uint32_t i_tensor;
    unsigned char piece[70001];
    for (size_t i = 0; i < sizeof piece; i++)
        piece[i] = (unsigned char)(i * 7 % 251);
    assert_int_equal(tn_mwriter_create(&w, PATH, &err), TERN_OK);
    assert_int_equal(tn_mwriter_declare(w, &embed, &i_tensor, &err), TERN_OK);
    meta.config.vocab = vocab;
    assert_int_equal(tn_mwriter_begin(w, &meta, NULL, 0, &err), TERN_OK);
    uint64_t n_bytes = (uint64_t)vocab * hidden * 2, done = 0;
    while (done < n_bytes) {
        size_t n = (size_t)TN_MIN(n_bytes - done, (uint64_t)sizeof piece);
        assert_int_equal(tn_mwriter_append(w, i_tensor, piece, n, &err), TERN_OK);
        done += n;
    }
    assert_int_equal(tn_mwriter_append(w, i_tensor, piece, 1, &err), TERN_INTERNAL);
    assert_int_equal(tn_mwriter_seal(w, &err), TERN_OK);
    uint64_t file_bytes = tn_mwriter_file_bytes(w);
    assert_int_equal(tn_mwriter_commit(w, &err), TERN_OK);

    /* The reader reports the missing tensors; the data is as written. */
    char *data;
    size_t n;
    assert_int_equal(tn_file_read_all(&data, &n, PATH, SIZE_MAX, &err), TERN_OK);
    assert_int_equal(n, file_bytes);
    const struct tern_file_header *h = (const void *)data;
    assert_int_equal(h->hashes.bytes, 3 * 8);
    for (uint64_t i = 0; i < n_bytes; i++)
        if ((unsigned char)data[h->data.offset + i] != piece[i % sizeof piece])
            fail_msg("data byte %llu", (unsigned long long)i);
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t begin = i * TERN_FILE_CHUNK;
        assert_int_equal(tn_load_u64(data + h->hashes.offset + 8 * i),
                         XXH3_64bits(data + h->data.offset + begin,
                                     (size_t)TN_MIN(n_bytes - begin, (uint64_t)TERN_FILE_CHUNK)));
    }
    tn_free(data);
    assert_int_equal(tn_model_file_open(&file, PATH, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "\"norm\" is present 0 times, must be 1"));
    tn_file_remove(PATH);
}

/* ---- the writer's rules ---- */

static void put_file(const char *path, const void *bytes, size_t n)
{
    struct tn_file *file;
    struct tern_error err;
    assert_int_equal(tn_file_create(&file, path, &err), TERN_OK);
    assert_int_equal(tn_file_write_at(file, 0, bytes, n, &err), TERN_OK);
    tn_file_close(file);
}

static void abort_leaves_everything_as_it_was(void **state)
{
    (void)state;
    struct tn_mwriter *w;
    struct tern_error err;
    char *data;
    size_t n;
    put_file(PATH, "old", 3);
    put_file(PATH ".part", "left by a run that was killed, longer than what follows", 55);
    assert_int_equal(tiny_model_write(&w, PATH, &full, &err), TERN_OK);
    assert_string_equal(tn_mwriter_part_path(w), PATH ".part");
    assert_int_equal(tn_path_kind(PATH ".part"), TN_PATH_FILE);
    tn_mwriter_abort(w);
    assert_int_equal(tn_path_kind(PATH ".part"), TN_PATH_ABSENT);
    assert_int_equal(tn_file_read_all(&data, &n, PATH, 100, &err), TERN_OK);
    assert_string_equal(data, "old");
    tn_free(data);
    tn_mwriter_abort(NULL);

    assert_int_equal(tiny_model_make(PATH, &full, &err), TERN_OK); /* replaces it */
    struct tn_model_file file;
    assert_int_equal(tn_model_file_open(&file, PATH, &err), TERN_OK);
    tn_model_file_close(&file);
    tn_file_remove(PATH);
}

static void fingerprint_is_patched_in(void **state)
{
    (void)state;
    static const uint32_t ids[] = {1, 39, 7};
    struct tn_mwriter *w;
    struct tn_model_file file;
    struct tern_error err;
    assert_int_equal(tiny_model_write(&w, PATH, &full, &err), TERN_OK);
    assert_int_equal(tn_model_file_open(&file, tn_mwriter_part_path(w), &err), TERN_OK);
    assert_int_equal(file.spec.config->n_fingerprint_ids, 0);
    tn_model_file_close(&file);
    assert_int_equal(tn_mwriter_set_fingerprint(w, ids, 9, 5, &err), TERN_INTERNAL);
    assert_int_equal(tn_mwriter_set_fingerprint(w, ids, 3, 0xABCDEF0123u, &err), TERN_OK);
    assert_int_equal(tn_mwriter_commit(w, &err), TERN_OK);
    assert_int_equal(tn_model_file_open(&file, PATH, &err), TERN_OK);
    assert_int_equal(file.spec.config->n_fingerprint_ids, 3);
    assert_memory_equal(file.spec.config->fingerprint_ids, ids, sizeof ids);
    assert_int_equal(file.spec.config->fingerprint_hash, 0xABCDEF0123u);
    tn_model_file_close(&file);
    tn_file_remove(PATH);
}

static void misuse_of_the_writer_is_refused(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_mwriter *w;
    uint32_t i;
    struct tern_file_tensor q = {.role = TERN_ROLE_Q, .layer = 1, .layout = TERN_LAYOUT_T2,
                                 .rows = 64, .cols = 64, .scale_kind = TERN_SCALE_TENSOR};
    struct tern_file_tensor early = q, unknown = q;
    early.layer = 0;
    unknown.layer = 2;
    unknown.layout = 99;
    assert_int_equal(tn_mwriter_create(&w, ".", &err), TERN_OUTPUT);
    assert_null(w);
    assert_int_equal(tn_mwriter_create(&w, "no-such-folder/x.tern", &err), TERN_OUTPUT);
    assert_int_equal(tn_mwriter_create(&w, PATH, &err), TERN_OK);
    assert_int_equal(tn_mwriter_declare(w, &q, &i, &err), TERN_OK);
    assert_int_equal(tn_mwriter_declare(w, &q, &i, &err), TERN_INTERNAL);
    assert_int_equal(tn_mwriter_declare(w, &early, &i, &err), TERN_INTERNAL);
    assert_int_equal(tn_mwriter_declare(w, &unknown, &i, &err), TERN_INTERNAL);
    struct tn_mwriter_meta meta = tiny_model_meta(&plain);
    assert_int_equal(tn_mwriter_begin(w, &meta, NULL, 0, &err), TERN_OK);
    assert_int_equal(tn_mwriter_seal(w, &err), TERN_INTERNAL); /* no data yet */
    assert_int_equal(tn_mwriter_append_scales(w, 0, NULL, 0, &err), TERN_INTERNAL);
    assert_int_equal(tn_mwriter_commit(w, &err), TERN_INTERNAL);
    assert_int_equal(tn_path_kind(PATH), TN_PATH_ABSENT);
    assert_int_equal(tn_path_kind(PATH ".part"), TN_PATH_ABSENT);
}

/* A nearly full disk is not available here, but a model can be too large for any disk. */
static void free_space_is_checked_first(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_mwriter *w;
    uint32_t i;
    assert_int_equal(tn_mwriter_create(&w, PATH, &err), TERN_OK);
    for (uint32_t layer = 0; layer < 64; layer++) {
        struct tern_file_tensor t = {.role = TERN_ROLE_Q, .layer = layer, .layout = TERN_LAYOUT_F32,
                                     .rows = 1u << 25, .cols = 1u << 25};
        assert_int_equal(tn_mwriter_declare(w, &t, &i, &err), TERN_OK);
    }
    struct tn_mwriter_meta meta = tiny_model_meta(&plain);
    assert_int_equal(tn_mwriter_begin(w, &meta, NULL, 0, &err), TERN_OUTPUT);
    assert_non_null(strstr(err.detail, "are needed"));
    tn_mwriter_abort(w);
}

static void every_allocation_of_the_writer_may_fail(void **state)
{
    (void)state;
    struct tern_error err;
    for (size_t n = 0;; n++) {
        fail_alloc_once_after(n);
        tern_status status = tiny_model_make(PATH, &full, &err);
        const bool has_failed = fail_alloc_stop();
        if (status == TERN_OK) { /* the allocation was optional, such as for the free space */
            tn_file_remove(PATH);
            if (!has_failed)
                break;
            continue;
        }
        assert_int_equal(status, TERN_MEMORY);
        assert_int_equal(err.status, TERN_MEMORY);
        assert_int_equal(tn_path_kind(PATH), TN_PATH_ABSENT);
        assert_int_equal(tn_path_kind(PATH ".part"), TN_PATH_ABSENT);
    }
}

/* ---- damage ---- */

static void truncation_is_detected(void **state)
{
    (void)state;
    struct tern_error err;
    struct tiny_image image = make_image(&full);
    size_t n = image.n, head = (size_t)header_of(&image)->data.offset;
    struct tn_rng rng;
    tn_rng_seed(&rng, 1);
    for (size_t i = 0; i < head + 1000; i++) {
        size_t length = i < head ? i : head + (size_t)(tn_rng_next(&rng) % (n - head));
        /* A copy of exactly that length, so that a sanitizer detects reads past its end. */
        struct tiny_image cut = {tn_alloc(length), length};
        memcpy(cut.bytes, image.bytes, length);
        assert_int_equal(check(&cut, &err), TERN_INPUT);
        if (length >= sizeof(struct tern_file_header) && !strstr(err.detail, "truncated"))
            fail_msg("%u bytes: %s", (unsigned)length, err.detail);
        tn_free(cut.bytes);
    }
    image.n++; /* includes a byte of the NUL that tn_file_read_all adds */
    assert_int_equal(check(&image, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "1 more than"));
    tn_free(image.bytes);
}

static void every_bit_of_the_head_counts(void **state)
{
    (void)state;
    struct tern_error err;
    struct tiny_image image = make_image(&full);
    size_t head = (size_t)header_of(&image)->data.offset;
    for (size_t bit = 0; bit < 8 * head; bit++) {
        image.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (check(&image, &err) == TERN_OK)
            fail_msg("bit %u of byte %u", (unsigned)(bit % 8), (unsigned)(bit / 8));
        image.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_int_equal(check(&image, &err), TERN_OK);
    tn_free(image.bytes);
}

static void every_bit_of_the_data_is_verified(void **state)
{
    (void)state;
    struct tern_error err;
    struct tiny_image image = make_image(&plain); /* no row scales, which opening checks */
    size_t head = (size_t)header_of(&image)->data.offset;
    struct tn_rng rng;
    tn_rng_seed(&rng, 2);
    for (int i = 0; i < 2000; i++) {
        size_t bit = 8 * head + (size_t)(tn_rng_next(&rng) % (8 * (image.n - head)));
        struct tn_model_file file;
        image.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(tn_model_file_check(&file, image.bytes, image.n, "model", &err), TERN_OK);
        assert_int_equal(tn_model_file_verify_chunk(&file, 0, &err), TERN_INPUT);
        assert_non_null(strstr(err.detail, "data chunk 0 of 1"));
        assert_non_null(strstr(err.detail, "\"layers.0.attn_norm\""));
        image.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        tn_model_file_close(&file);
    }
    tn_free(image.bytes);
}

/* ---- other kinds of files ---- */

static void mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *expected;
    } list[] = {
#define ROW(text, expected) {text, sizeof text - 1, expected}
        ROW("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs"),
        ROW("GGUF\3\0\0\0\1\2\3\4\5\6\7\10", "a GGUF file; make a .tern file from it"),
        ROW("\x0b\0\0\0\0\0\0\0{\"a\":[1,2]}", "safetensors"),
        ROW("PK\3\4abcdefghijk", "PyTorch"),
        ROW("TERN\n\x1A\n12345678901234567890", "line endings"),
        ROW("TERN", "truncated"),
        ROW("TERN\r\n\x1A\n", "truncated: 8 bytes"),
        ROW("\0\0\0\0\0\0\0\0\0\0\0\0", "zeros"),
        ROW("{\"architectures\": [\"BitNetForCausalLM\"]}", "a JSON file"),
        ROW("\r\n[1, 2]", "a JSON file"),
        ROW("{\1\2\3", "not a .tern file"),
        ROW("<!DOCTYPE html>\n<html lang=\"en\">", "an HTML page: a download saved"),
        ROW("\xEF\xBB\xBF\r\n <HTML><head>", "an HTML page"),
        ROW("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>", "an XML page"),
        ROW("Entry not found", "the error page of a server"),
        ROW("Access to model x/y is restricted. You must be", "no access to this model"),
        ROW("\x1F\x8B\b\0\0", "a gzip archive; unpack it"),
        ROW("7z\xBC\xAF'\x1C", "a 7z archive"),
        ROW("\xEF\xBB\xBF", "not a .tern file"),
        ROW("<", "not a .tern file; tern convert makes one from a Hugging Face directory or a GGUF"),
#undef ROW
    };
    struct tern_error err;
    struct tn_model_file file;
    for (size_t i = 0; i < TN_COUNT_OF(list); i++) {
        put_file(PATH, list[i].bytes, list[i].n);
        assert_int_equal(tn_model_file_open(&file, PATH, &err), TERN_INPUT);
        if (!strstr(err.detail, list[i].expected) || !strstr(err.detail, PATH))
            fail_msg("%s: %s", list[i].expected, err.detail);
        assert_null(file.map.data);
    }
    put_file(PATH, "", 0);
    assert_int_equal(tn_model_file_open(&file, PATH, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "empty"));
    tn_file_remove(PATH);
    assert_int_equal(tn_model_file_open(&file, PATH, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, PATH));
    assert_int_equal(tn_model_file_open(&file, ".", &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "tern convert"));
    tn_model_file_close(&file); /* a file that was never open */
}

static void long_names_leave_room_for_the_reason(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_model_file file;
    char name[3000];
    static const _Alignas(8) char gguf[] = "GGUFxxxxxxxx";
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name + sizeof name - 201, "\xe2\x82\xac", 3); /* the cut is inside this character */
    assert_int_equal(tn_model_file_check(&file, gguf, 12, name, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "GGUF"));
}

/* ---- layouts ---- */

static void layout_sizes(void **state)
{
    (void)state;
    static const struct {
        uint32_t layout, rows, cols;
        uint64_t bytes;
    } list[] = {
        {TERN_LAYOUT_F32, 1, 5, 20}, {TERN_LAYOUT_F16, 3, 5, 30}, {TERN_LAYOUT_BF16, 3, 5, 30},
        {TERN_LAYOUT_Q8, 3, 5, 15}, {TERN_LAYOUT_T2, 64, 128, 2048}, {TERN_LAYOUT_T2, 65, 1, 4096},
        {TERN_LAYOUT_T2, 1, 129, 4096}, {TERN_LAYOUT_T5, 65, 129, 4 * 1664},
        {TERN_LAYOUT_R2, 3, 257, 3 * 128},
        {TERN_LAYOUT_C2, 257, 3, 3 * 128}, {TERN_LAYOUT_C2, 256, 1, 64},
        {TERN_LAYOUT_Q8_0, 17, 32, 2 * 576}, {TERN_LAYOUT_Q8_0, 16, 64, 1088},
        {TERN_LAYOUT_Q8, 1u << 31, 1u << 29, (uint64_t)1 << 60},
    };
    uint64_t n;
    for (size_t i = 0; i < TN_COUNT_OF(list); i++) {
        assert_int_equal(tn_layout_bytes(list[i].layout, list[i].rows, list[i].cols, &n), 1);
        assert_int_equal(n, list[i].bytes);
    }
    assert_int_equal(tn_layout_bytes(TERN_LAYOUT_F32, UINT32_MAX, UINT32_MAX, &n), 0);
    assert_int_equal(tn_layout_bytes(TERN_LAYOUT_T2, UINT32_MAX, UINT32_MAX, &n), 0);
    assert_int_equal(tn_layout_bytes(TERN_LAYOUT_Q8_0, 16, 33, &n), 0); /* not a whole block */
    assert_int_equal(tn_layout_bytes(TERN_LAYOUT_T3, 64, 64, &n), 0);
    assert_int_equal(tn_layout_bytes(0, 64, 64, &n), 0);
    assert_null(tn_role_name(0));
    assert_null(tn_layout_name(99));
    assert_string_equal(tn_layout_name(TERN_LAYOUT_T2), "t2");
}

/* The matrices of a stack start at multiples of 64 bytes, and so do their scales. */
static void stacks_have_slices(void **state)
{
    (void)state;
    const struct tern_file_tensor one = {.layout = TERN_LAYOUT_Q8, .scale_kind = TERN_SCALE_ROW,
                                         .rows = 5, .cols = 33, .offset = 4096,
                                         .scale_offset = 8192};
    struct tern_file_tensor stack = one;
    stack.n_stacked = 3;
    assert_true(tn_tensor_bytes(&stack, &stack.bytes));
    assert_int_equal(stack.bytes, 3 * 192); /* 165 bytes each */
    stack.scale_bytes = tn_tensor_scale_bytes(&stack);
    assert_int_equal(stack.scale_bytes, 3 * 64); /* 20 bytes each */
    assert_int_equal(tn_tensor_weights(&stack), 3 * 165);
    for (uint32_t i = 0; i < 3; i++) {
        const struct tern_file_tensor slice = tn_tensor_slice(&stack, i);
        assert_int_equal(slice.n_stacked, 0);
        assert_int_equal(slice.offset, 4096 + 192 * i);
        assert_int_equal(slice.bytes, 165);
        assert_int_equal(slice.scale_offset, 8192 + 64 * i);
        assert_int_equal(slice.scale_bytes, 20);
    }
    const struct tern_file_tensor same = tn_tensor_slice(&one, 0);
    assert_memory_equal(&same, &one, sizeof one);
    stack.rows = 300;
    stack.cols = 301; /* 90300 bytes: from 64 KiB on page-aligned */
    assert_true(tn_tensor_bytes(&stack, &stack.bytes));
    assert_int_equal(stack.bytes, 3 * 94208);
    assert_int_equal(tn_tensor_slice(&stack, 2).offset, 4096 + 2 * 94208);
    stack.rows = stack.cols = TERN_MAX_DIM;
    stack.n_stacked = UINT32_MAX;
    assert_false(tn_tensor_bytes(&stack, &stack.bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_have_slices),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(same_input_same_bytes),
        cmocka_unit_test(many_chunks),
        cmocka_unit_test(abort_leaves_everything_as_it_was),
        cmocka_unit_test(fingerprint_is_patched_in),
        cmocka_unit_test(misuse_of_the_writer_is_refused),
        cmocka_unit_test(free_space_is_checked_first),
        cmocka_unit_test(every_allocation_of_the_writer_may_fail),
        cmocka_unit_test(truncation_is_detected),
        cmocka_unit_test(every_bit_of_the_head_counts),
        cmocka_unit_test(every_bit_of_the_data_is_verified),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(long_names_leave_room_for_the_reason),
        cmocka_unit_test(layout_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
