/* SPDX-License-Identifier: MIT
 *
 * Damaged and hostile GGUF files: each row of the tables changes one number of a valid file and
 * names the status and a part of the message, which says which value is wrong.
 */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "convert/gguf/gguf.h"
#include "gguf_file.h"

static unsigned char bytes[GGUF_FILE_BYTES];
static struct gguf_file file;

/* ---- a valid file with a key of every type ---- */

static void add_keys(void)
{
    static const uint8_t u8[] = {1, 2, 3};
    static const uint8_t bools[] = {0, 1};
    static const float f32[] = {1, 2};
    static const char *const texts[] = {"a", "", "bc"};
    gguf_key_text(&file, "general.architecture", "llama");
    gguf_key(&file, "general.alignment", TN_GGUF_U32, 64);
    gguf_key(&file, "t.u8", TN_GGUF_U8, 255);
    gguf_key(&file, "t.i8", TN_GGUF_I8, 0x80);
    gguf_key(&file, "t.u16", TN_GGUF_U16, 65535);
    gguf_key(&file, "t.i16", TN_GGUF_I16, 0x8000);
    gguf_key(&file, "t.i32", TN_GGUF_I32, 0x80000000u);
    gguf_key_f32(&file, "t.f32", 1.5f);
    gguf_key(&file, "t.bool", TN_GGUF_BOOL, 1);
    gguf_key(&file, "t.u64", TN_GGUF_U64, UINT64_MAX);
    gguf_key(&file, "t.i64", TN_GGUF_I64, UINT64_MAX);
    gguf_key(&file, "t.f64", TN_GGUF_F64, 0x3FF8000000000000u);
    gguf_key_numbers(&file, "a.u8", TN_GGUF_U8, u8, 3);
    gguf_key_numbers(&file, "a.bool", TN_GGUF_BOOL, bools, 2);
    gguf_key_numbers(&file, "a.f32", TN_GGUF_F32, f32, 2);
    gguf_key_texts(&file, "a.text", texts, 3);
    gguf_key_texts(&file, "a.none", NULL, 0);
}

static void make(void)
{
    gguf_begin(&file, bytes, 3, 8, 17);
    add_keys();
    gguf_tensor(&file, "norm", TN_GGML_F32, 256, 0, 0);
    gguf_tensor(&file, "half", TN_GGML_F16, 10, 3, 0);
    gguf_tensor(&file, "i2s", TN_GGML_I2_S, 128, 4, 0);
    gguf_tensor(&file, "tq2", TN_GGML_TQ2_0, 512, 2, 0);
    gguf_tensor(&file, "q2", TN_GGML_Q2_0, 256, 16, 64);
    gguf_tensor(&file, "iq1", TN_GGML_IQ1_BN, 128, 3, 0);
    gguf_tensor(&file, "iq2", TN_GGML_IQ2_BN, 64, 2, 0);
    gguf_tensor(&file, "last", TN_GGML_Q6_K, 256, 1, 0);
    gguf_data(&file, 0);
}

static tern_status read_memory(void *arg, uint64_t offset, void *dst, size_t n,
                               struct tern_error *err)
{
    (void)arg;
    (void)err;
    assert_true(offset <= file.n && n <= file.n - offset);
    if (n)
        memcpy(dst, bytes + offset, n);
    return TERN_OK;
}

static tern_status parse(struct tn_gguf_part *part, struct tern_error *err)
{
    memset(part, 0, sizeof *part);
    part->input = (struct tn_gguf_input){read_memory, NULL, file.n, "x.gguf"};
    return tn_gguf_parse(part, 0, err);
}

/* Failed cases; all are listed before the test fails. */
static int n_wrong;

static void expect(const char *what, tern_status expected, const char *text)
{
    struct tn_gguf_part part;
    struct tern_error err = {0};
    const tern_status status = parse(&part, &err);
    tn_gguf_part_fini(&part);
    if (status == expected && (!text || strstr(err.detail, text)) && !strchr(err.detail, '\n'))
        return;
    n_wrong++;
    print_error("%s: status %d \"%s\", expected %d \"...%s...\"\n", what, status, err.detail,
                expected, text ? text : "");
}

/* ---- numbers ---- */

struct number_case {
    const char *field;
    uint64_t value;
    tern_status status;
    const char *text;
};

#define BAD TERN_INPUT
#define M1 UINT64_MAX /* -1 */

static const struct number_case number_cases[] = {
    /* start */
    {"magic", 0x46554746, BAD, "does not begin with \"GGUF\""},
    {"magic", 0, BAD, "not a GGUF file"},
    {"version", 0, TERN_UNSUPPORTED, "GGUF version 0"},
    {"version", 1, TERN_UNSUPPORTED, "GGUF version 1"},
    {"version", 4, TERN_UNSUPPORTED, "GGUF version 4"},
    {"version", 0x03000000, TERN_UNSUPPORTED, "big-endian"},
    {"version", 0x02000000, TERN_UNSUPPORTED, "big-endian"},
    {"version", 0xFFFFFFFF, TERN_UNSUPPORTED, "GGUF version 4294967295"},
    /* counts */
    {"n_tensors", M1, BAD, "the number of tensors is -1, allowed are 0 to 262144"},
    {"n_tensors", 262145, BAD, "the number of tensors is 262145"},
    {"n_tensors", INT64_MAX, BAD, "the number of tensors is 9223372036854775807"},
    {"n_tensors", 9, BAD, "tensor 8"},
    {"n_tensors", 7, BAD, "tensor \"iq2\": IQ2_BN [2, 64] takes 40 bytes, but"},
    {"n_tensors", 0, TERN_OK, NULL},
    {"n_keys", M1, BAD, "the number of keys is -1"},
    {"n_keys", 65537, BAD, "the number of keys is 65537, allowed are 0 to 65536"},
    {"n_keys", INT64_MAX, BAD, "the number of keys"},
    {"n_keys", 18, BAD, "tensor 0: the name of the tensor is not a line"},
    {"n_keys", 16, BAD, "tensor \"a.none\": 9 dimensions"},
    {"n_keys", 0, BAD, "tensor \"general.architecture\": 8 dimensions"},
    /* lengths of texts */
    {"key/general.architecture/length", 0, BAD, "the name of the key is empty"},
    {"key/general.architecture/length", 1025, BAD, "1025 bytes, at most 1024"},
    {"key/general.architecture/length", M1, BAD, "18446744073709551615 bytes at offset 32"},
    {"key/general.architecture/length", 1u << 30, BAD, "reach beyond the end"},
    {"key/general.architecture/length", 19, BAD, "key \"general.architectur\": value type"},
    {"key/general.architecture/value", 1u << 24, BAD, "general.architecture"},
    {"key/general.architecture/value", M1, BAD, "key \"general.architecture\": 184467440737"},
    {"key/general.architecture/value", 4, BAD, "key 1: 4449 bytes at offset 76"},
    {"key/general.architecture/value", 6, BAD, "key 1: "},
    {"key/t.u8/length", 3, BAD, "key \"t.u\": value type 56 is unknown"},
    {"key/t.u8/length", 5, BAD, "not a line of UTF-8"},
    {"key/a.none/length", INT64_MAX, BAD, "key 16: 9223372036854775807 bytes"},
    /* names */
    {"key/t.u8/name", 0x3875002e74, BAD, "not a line of UTF-8"},
    {"key/t.u8/name", 0x38750a2e, BAD, "not a line of UTF-8"},
    {"key/t.u8/name", 0x3875ff74, BAD, "not a line of UTF-8"},
    {"key/t.u8/name", 0x38691b74, BAD, "not a line of UTF-8"},
    {"key/t.u8/name", 0x38692e74, BAD, "key \"t.i8\" occurs twice"},
    {"key/t.i8/name", 0x38752e74, BAD, "key \"t.u8\" occurs twice"},
    {"key/a.u8/name", 0x38752e74, BAD, "key \"t.u8\" occurs twice"},
    /* types of values */
    {"key/general.architecture/type", 13, BAD, "value type 13 is unknown, 0 to 12 are defined"},
    {"key/general.architecture/type", 0xFFFFFFFF, BAD, "value type -1 is unknown"},
    {"key/general.architecture/type", TN_GGUF_ARRAY, BAD, "key \"general.architecture\""},
    {"key/general.architecture/type", TN_GGUF_U32, BAD, "key 1"},
    {"key/t.u8/type", TN_GGUF_STRING, BAD, "key 3: the name of the key is empty"},
    {"key/t.u8/type", TN_GGUF_U64, BAD, "key 3"},
    {"key/t.u8/type", TN_GGUF_BOOL, BAD, "key \"t.u8\": a truth value is 255"},
    {"key/t.u8/type", 1000, BAD, "value type 1000"},
    {"key/t.u16/type", TN_GGUF_U8, BAD, "key 5"},
    {"key/t.u64/type", TN_GGUF_STRING, BAD, "key \"t.u64\": 18446744073709551615 bytes"},
    {"key/t.u64/type", TN_GGUF_ARRAY, BAD, "element type -1 is unknown"},
    {"key/t.i64/type", TN_GGUF_U32, BAD, "key 11"},
    {"key/t.f64/type", TN_GGUF_F32, BAD, "key 12"},
    {"key/t.bool/value", 2, BAD, "key \"t.bool\": a truth value is 2, 0 and 1 are allowed"},
    {"key/t.bool/value", 255, BAD, "a truth value is 255"},
    {"key/t.bool/type", TN_GGUF_U8, TERN_OK, NULL},
    {"key/t.f32/type", TN_GGUF_U32, TERN_OK, NULL},
    /* alignment */
    {"key/general.alignment/value", 0, BAD, "\"general.alignment\" is 0, allowed are the powers"},
    {"key/general.alignment/value", 3, BAD, "\"general.alignment\" is 3"},
    {"key/general.alignment/value", 48, BAD, "\"general.alignment\" is 48"},
    {"key/general.alignment/value", 0x80000000, BAD, "\"general.alignment\" is 2147483648"},
    {"key/general.alignment/value", 0xFFFFFFFF, BAD, "\"general.alignment\" is 4294967295"},
    {"key/general.alignment/value", 1u << 21, BAD, "from 1 to 1048576"},
    {"key/general.alignment/value", 1u << 20, BAD, "the data begins at byte 1048576"},
    {"key/general.alignment/value", 32, BAD, "tensor \"tq2\": offset 1280, expected 1248"},
    {"key/general.alignment/value", 128, BAD, "is not a multiple of the alignment 128"},
    {"key/general.alignment/type", TN_GGUF_I32, BAD, "is of type I32, U32 is right"},
    {"key/general.alignment/type", TN_GGUF_F32, BAD, "is of type F32, U32 is right"},
    /* arrays */
    {"key/a.u8/element", TN_GGUF_ARRAY, BAD, "key \"a.u8\": an array of arrays"},
    {"key/a.text/element", TN_GGUF_ARRAY, BAD, "key \"a.text\": an array of arrays"},
    {"key/a.u8/element", 13, BAD, "key \"a.u8\": element type 13 is unknown"},
    {"key/a.u8/element", 0xFFFFFFFF, BAD, "element type -1"},
    {"key/a.u8/element", TN_GGUF_BOOL, BAD, "key \"a.u8\": a truth value is 2"},
    {"key/a.u8/element", TN_GGUF_STRING, BAD, "key \"a.u8\": "},
    {"key/a.u8/element", TN_GGUF_U64, BAD, "key 13"},
    {"key/a.bool/value", 0x200, BAD, "key \"a.bool\": a truth value is 2"},
    {"key/a.bool/value", 0xFF, BAD, "key \"a.bool\": a truth value is 255"},
    {"key/a.u8/count", M1, BAD, "an array of 18446744073709551615 elements does not fit"},
    {"key/a.u8/count", 1u << 20, BAD, "an array of 1048576 elements does not fit"},
    {"key/a.u8/count", 4, BAD, "key 13"},
    {"key/a.u8/count", 2, BAD, "key 13"},
    {"key/a.u8/count", 0, BAD, "key 13"},
    {"key/a.f32/count", 0x4000000000000001, BAD, "does not fit"},
    {"key/a.f32/count", 0x4000000000000000, BAD, "does not fit"},
    {"key/a.f32/count", 3, BAD, "key 15"},
    {"key/a.f32/count", 1, BAD, "key 15"},
    {"key/a.f32/element", TN_GGUF_F64, BAD, "key 15"},
    {"key/a.f32/element", TN_GGUF_I16, BAD, "key 15"},
    {"key/a.text/count", 0x2000000000000000, BAD, "does not fit"},
    {"key/a.text/count", 0x2000000000000001, BAD, "does not fit"},
    {"key/a.text/count", 100000, BAD, "does not fit"},
    {"key/a.text/count", 4, BAD, "key 16"},
    {"key/a.text/count", 2, BAD, "tensor 0: a name of 2644799780695649 bytes"},
    {"key/a.text/value", M1, BAD, "key \"a.text\": 18446744073709551615 bytes"},
    {"key/a.text/value", 1u << 28, BAD, "key \"a.text\": 268435456 bytes"},
    {"key/a.text/value", 2, BAD, "key \"a.text\": "},
    {"key/a.text/value", INT64_MAX, BAD, "key \"a.text\": 9223372036854775807 bytes"},
    {"key/a.none/count", 1, BAD, "tensor 0"},
    {"key/a.none/count", M1, BAD, "key \"a.none\": an array of 18446744073709551615"},
    {"key/a.none/element", TN_GGUF_ARRAY, BAD, "key \"a.none\": an array of arrays"},
    {"key/a.none/element", 77, BAD, "key \"a.none\": element type 77"},
    /* names of tensors */
    {"tensor/norm/length", 0, BAD, "the name of the tensor is empty"},
    {"tensor/norm/length", 64, BAD, "tensor 0: a name of 64 bytes, at most 63"},
    {"tensor/norm/length", M1, BAD, "a name of 18446744073709551615 bytes"},
    {"tensor/norm/length", 3, BAD, "tensor \"nor\": 365 dimensions"},
    {"tensor/norm/length", 5, BAD, "not a line of UTF-8"},
    {"tensor/norm/name", 0x6d72006e, BAD, "not a line of UTF-8"},
    {"tensor/norm/name", 0x6d72c36e, BAD, "not a line of UTF-8"},
    {"tensor/norm/name", 0x666c6168, BAD, "tensor \"half\" occurs twice"},
    {"tensor/last/name", 0x6d726f6e, BAD, "tensor \"norm\" occurs twice"},
    {"tensor/iq2/name", 0x317169, BAD, "tensor \"iq1\" occurs twice"},
    /* shapes */
    {"tensor/norm/rank", 5, BAD, "tensor \"norm\": 5 dimensions, at most 4"},
    {"tensor/norm/rank", 0xFFFFFFFF, BAD, "4294967295 dimensions"},
    {"tensor/norm/rank", 0, BAD, "tensor "},
    {"tensor/norm/rank", 2, BAD, "tensor "},
    {"tensor/half/rank", 1, BAD, "tensor "},
    {"tensor/norm/ne0", M1, BAD, "tensor \"norm\": dimension 0 is -1, below 0"},
    {"tensor/norm/ne0", (uint64_t)1 << 63, BAD, "dimension 0 is -9223372036854775808"},
    {"tensor/norm/ne0", INT64_MAX, BAD, "does not fit the blocks of type F32"},
    {"tensor/norm/ne0", 257, BAD, "tensor \"half\": offset 1024, expected 1088"},
    {"tensor/norm/ne0", 240, BAD, "tensor \"half\": offset 1024, expected 960"},
    {"tensor/norm/ne0", 0, BAD, "tensor \"half\": offset 1024, expected 0"},
    {"tensor/half/ne0", (uint64_t)1 << 62, BAD, "tensor \"half\": more than 2^63 elements"},
    {"tensor/half/ne1", (uint64_t)1 << 62, BAD, "tensor \"half\": more than 2^63 elements"},
    {"tensor/half/ne1", M1, BAD, "tensor \"half\": dimension 1 is -1"},
    {"tensor/half/ne1", 4, BAD, "tensor \"i2s\": offset 1088, expected 1152"},
    {"tensor/half/ne1", 300, BAD, "tensor \"i2s\": offset 1088, expected"},
    {"tensor/i2s/ne0", 127, TERN_OK, NULL},
    {"tensor/i2s/ne0", 260, BAD, "tensor \"tq2\": offset 1280, expected"},
    {"tensor/i2s/ne1", 3, BAD, "tensor \"tq2\": offset 1280, expected 1216"},
    {"tensor/i2s/ne0", 300, BAD, "tensor \"tq2\": offset 1280, expected"},
    {"tensor/tq2/ne0", 511, BAD, "[2, 511] does not fit the blocks of type TQ2_0"},
    {"tensor/tq2/ne0", 256, BAD, "tensor \"q2\": offset "},
    {"tensor/tq2/ne0", 768, BAD, "tensor \"q2\": offset "},
    {"tensor/q2/ne0", 128, BAD, "tensor \"q2\": type Q2_0, [16, 128]: its bytes fit neither"},
    {"tensor/q2/ne0", 192, BAD, "its bytes fit neither blocks of 64 nor of 128"},
    {"tensor/q2/ne0", 250, BAD, "its bytes fit neither"},
    {"tensor/q2/ne1", 18, BAD, "its bytes fit neither"},
    {"tensor/iq1/ne0", 120, BAD, "does not fit the blocks of type IQ1_BN"},
    {"tensor/iq1/ne0", 256, BAD, "tensor \"iq2\": offset "},
    {"tensor/iq2/ne0", 63, BAD, "does not fit the blocks of type IQ2_BN"},
    {"tensor/iq2/ne1", 4, BAD, "tensor \"last\": offset "},
    {"tensor/last/ne0", 512, BAD, "\"last\": Q6_K [1, 512] takes 420 bytes, but 256 are left"},
    {"tensor/last/ne1", 0, BAD, "has data after its tensors"},
    {"tensor/last/ne1", 2, BAD, "Q6_K [2, 256] takes 420 bytes, but 256 are left; the file is tr"},
    {"tensor/last/ne0", 257, BAD, "does not fit the blocks of type Q6_K"},
    /* types of tensors */
    {"tensor/norm/type", TN_GGML_F16, BAD, "tensor \"half\": offset 1024, expected 512"},
    {"tensor/norm/type", 28, BAD, "tensor \"half\": offset 1024, expected 2048"},
    {"tensor/half/type", TN_GGML_Q8_0, BAD, "[3, 10] does not fit the blocks of type Q8_0"},
    {"tensor/half/type", TN_GGML_F32, BAD, "tensor \"i2s\": offset 1088, expected 1152"},
    {"tensor/i2s/type", TN_GGML_TQ1_0, BAD, "does not fit the blocks of type TQ1_0"},
    {"tensor/i2s/type", TN_GGML_Q4_0, BAD, "tensor \"tq2\": offset 1280, expected"},
    {"tensor/tq2/type", TN_GGML_TQ1_0, BAD, "tensor \"q2\": offset "},
    {"tensor/tq2/type", TN_GGML_Q8_0, BAD, "tensor \"q2\": offset "},
    {"tensor/last/type", TN_GGML_F32, BAD, "F32 [1, 256] takes 1024 bytes, but 256 are left"},
    {"tensor/last/type", TN_GGML_Q4_K, BAD, "has data after its tensors"},
    {"tensor/last/type", 4242, TERN_OK, NULL},
    {"tensor/last/type", TN_GGML_TL1, TERN_OK, NULL},
    {"tensor/norm/type", TN_GGML_IQ2_BN_R4, TERN_OK, NULL},
    /* offsets */
    {"tensor/norm/offset", 64, BAD, "tensor \"norm\": offset 64, but the first is at 0"},
    {"tensor/norm/offset", 1, BAD, "offset 1 is not a multiple of the alignment 64"},
    {"tensor/norm/offset", M1, BAD, "tensor \"norm\": offset 18446744073709551615"},
    {"tensor/half/offset", 0, BAD, "tensor \"half\": offset 0, expected 1024, where \"norm\""},
    {"tensor/half/offset", 1025, BAD, "offset 1025 is not a multiple"},
    {"tensor/half/offset", 1088, BAD, "tensor \"half\": offset 1088, expected 1024"},
    {"tensor/half/offset", 960, BAD, "tensor \"half\": offset 960, expected 1024"},
    {"tensor/half/offset", 1u << 30, BAD, "offset 1073741824, but there are only"},
    {"tensor/half/offset", (uint64_t)1 << 63, BAD, "offset 9223372036854775808, but there are on"},
    {"tensor/half/offset", M1 - 63, BAD, "but there are only"},
    {"tensor/i2s/offset", 1024, BAD, "tensor \"i2s\": offset 1024, expected 1088"},
    {"tensor/q2/offset", 64, BAD, "its bytes fit neither"},
    {"tensor/last/offset", 64, BAD, "tensor \"last\": offset 64, expected"},
    {"tensor/last/offset", 0, BAD, "tensor \"last\": offset 0, expected"},
};

static_assert(TN_COUNT_OF(number_cases) >= 150, "hostile files");

static void numbers_out_of_place_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(number_cases); i++) {
        const struct number_case *c = &number_cases[i];
        char what[160];
        make();
        gguf_set(&file, c->field, c->value);
        snprintf(what, sizeof what, "%s = %llu", c->field, (unsigned long long)c->value);
        expect(what, c->status, c->text);
    }
}

/* ---- complete files ---- */

static void the_good_file_is_read(void **state)
{
    (void)state;
    struct tn_gguf_part part;
    struct tern_error err = {0};
    make();
    assert_int_equal(parse(&part, &err), TERN_OK);
    assert_int_equal(part.alignment, 64);
    assert_int_equal(part.q2_block, 64);
    assert_int_equal(tn_gguf_part_key(&part, "t.u8")->value.u, 255);
    assert_int_equal(tn_gguf_part_key(&part, "t.i8")->value.i, -128);
    assert_int_equal(tn_gguf_part_key(&part, "t.i16")->value.i, -32768);
    assert_int_equal(tn_gguf_part_key(&part, "t.i32")->value.i, INT32_MIN);
    assert_int_equal(tn_gguf_part_key(&part, "t.i64")->value.i, -1);
    assert_true(tn_gguf_part_key(&part, "t.u64")->value.u == UINT64_MAX);
    assert_true(tn_gguf_part_key(&part, "t.f32")->value.f == 1.5);
    assert_true(tn_gguf_part_key(&part, "t.f64")->value.f == 1.5);
    assert_string_equal(tn_gguf_part_key(&part, "general.architecture")->text, "llama");
    assert_int_equal(tn_gguf_part_key(&part, "a.text")->count, 3);
    assert_null(tn_gguf_part_key(&part, "a"));
    assert_int_equal(part.n_tensors, 8);
    assert_int_equal(part.tensors[0].offset, part.data_offset);
    assert_int_equal(part.tensors[0].bytes, 1024);
    assert_int_equal(part.tensors[7].bytes, 210);
    tn_gguf_part_fini(&part);
}

/* A file truncated at any byte is refused, and nothing beyond its end is read. */
static void every_truncation_is_refused(void **state)
{
    (void)state;
    make();
    const size_t n = file.n;
    const size_t n_last = 256 - 210; /* the padding after the last tensor may be missing */
    for (size_t cut = 1; cut <= n; cut++) {
        char what[32];
        make();
        file.n = n - cut;
        snprintf(what, sizeof what, "cut by %zu", cut);
        expect(what, cut == n_last ? TERN_OK : TERN_INPUT, NULL);
    }
}

static void bytes_behind_the_last_tensor_are_refused(void **state)
{
    (void)state;
    make();
    bytes[file.n] = 0;
    file.n++;
    expect("one byte more", TERN_INPUT, "has data after its tensors");
    make();
    memset(bytes + file.n, 0, 64);
    file.n += 64;
    expect("one block more", TERN_INPUT, "has data after its tensors");
}

static void both_blocks_of_q2_are_told_apart(void **state)
{
    (void)state;
    static const uint32_t blocks[] = {64, 128};
    for (size_t i = 0; i < 2; i++) {
        struct tn_gguf_part part;
        struct tern_error err = {0};
        gguf_begin(&file, bytes, 2, 2, 0);
        gguf_tensor(&file, "a", TN_GGML_Q2_0, 128, 1, blocks[i]); /* fits both */
        gguf_tensor(&file, "b", TN_GGML_Q2_0, 512, 8, blocks[i]);
        gguf_data(&file, 0);
        assert_int_equal(parse(&part, &err), TERN_OK);
        assert_int_equal(part.q2_block, blocks[i]);
        tn_gguf_part_fini(&part);
    }
    gguf_begin(&file, bytes, 3, 1, 0);
    gguf_tensor(&file, "a", TN_GGML_Q2_0, 128, 1, 64);
    gguf_data(&file, 0);
    expect("one small tensor", TERN_INPUT, "fit blocks of 64 and of 128");
    gguf_begin(&file, bytes, 3, 2, 0);
    gguf_tensor(&file, "a", TN_GGML_Q2_0, 512, 8, 64);
    gguf_tensor(&file, "b", TN_GGML_Q2_0, 512, 8, 128);
    gguf_data(&file, 0);
    expect("a mixture", TERN_INPUT, "tensor \"b\": type Q2_0, [8, 512]: its bytes fit neither");
}

static void sizes_do_not_overflow(void **state)
{
    (void)state;
    uint64_t n;
    assert_false(tn_gguf_type_bytes(&n, TN_GGML_F32, 0, (uint64_t)1 << 40, (uint64_t)1 << 40));
    assert_false(tn_gguf_type_bytes(&n, TN_GGML_F32, 0, 1, (uint64_t)1 << 62));
    assert_false(tn_gguf_type_bytes(&n, 4242, 0, 1, 256));
    assert_false(tn_gguf_type_bytes(&n, TN_GGML_Q2_0, 0, 1, 256));
    assert_true(tn_gguf_type_bytes(&n, TN_GGML_I2_S, 0, 3, 128) && n == 3 * 32 + 32);
    assert_false(tn_gguf_type_bytes(&n, TN_GGML_I2_S, 0, 3, 127));
}

/* ---- split files ---- */

#define DIR TERN_BUILD_DIR "/test_gguf_hostile/"

struct split_case {
    uint32_t part; /* part that is damaged */
    const char *field;
    uint64_t value;
    const char *text;
};

static const struct split_case split_cases[] = {
    {0, "key/split.no/value", 1, "\"split.no\" is 1, expected 0; give the first part"},
    {1, "key/split.no/value", 0, "\"split.no\" is 0, expected 1: the parts are mixed up"},
    {1, "key/split.no/value", 2, "\"split.no\" is 2, expected 1"},
    {2, "key/split.no/value", 1, "\"split.no\" is 1, expected 2"},
    {0, "key/split.count/value", 0, "\"split.count\" is 0"},
    {0, "key/split.count/value", 257, "\"split.count\" is 257"},
    {0, "key/split.count/value", 2, "must be called NAME-00001-of-00002.gguf"},
    {1, "key/split.count/value", 4, "\"split.count\" is 4, expected 3"},
    {2, "key/split.count/value", 65535, "\"split.count\" is 65535, expected 3"},
    {0, "key/split.tensors.count/value", 4, "\"split.tensors.count\" is 3, expected 4"},
    {0, "key/split.tensors.count/value", 0xFFFFFFFF, "\"split.tensors.count\" is -1"},
    {1, "key/split.tensors.count/value", 0, "\"split.tensors.count\" is 0, expected 3"},
    {0, "key/split.no/type", TN_GGUF_I16, "\"split.no\" is of type I16, U16 is right"},
    {1, "key/split.count/type", TN_GGUF_I16, "\"split.count\" is of type I16, U16 is right"},
    {2, "key/split.tensors.count/type", TN_GGUF_U32, "is of type U32, I32 is right"},
    {1, "key/split.no/name", 0x6f6e2e74696c7074, "key \"split.no\" is missing"},
    {2, "key/split.count/name", 0x6f632e74696c7074, "key \"split.count\" is missing"},
    {1, "key/general.x/name", 0x782e6c6172656e65, "key \"eneral.xx\" in a part that is not"},
    {1, "tensor/t1/name", 0x3074, "tensor \"t0\" occurs in s-00001-of-00003.gguf and in s-00002"},
    {2, "version", 9, "s-00003-of-00003.gguf: GGUF version 9"},
    {1, "n_tensors", 0, "the parts hold 2 tensors"},
};

static void write_bytes(const char *path)
{
    struct tn_file *f;
    struct tern_error err;
    assert_int_equal(tn_file_create(&f, path, &err), TERN_OK);
    assert_int_equal(tn_file_write_at(f, 0, bytes, file.n, &err), TERN_OK);
    tn_file_close(f);
}

static void part_path(char *dst, size_t n, uint32_t i)
{
    snprintf(dst, n, DIR "s-%05u-of-00003.gguf", i + 1);
}

static void write_part(uint32_t i, const struct split_case *spoil)
{
    char path[1200], name[8];
    gguf_begin(&file, bytes, 3, 1, i ? 4 : 5);
    gguf_key(&file, "split.no", TN_GGUF_U16, i);
    gguf_key(&file, "split.count", TN_GGUF_U16, 3);
    gguf_key(&file, "split.tensors.count", TN_GGUF_I32, 3);
    gguf_key(&file, "general.x", TN_GGUF_U8, 1);
    if (i == 0)
        gguf_key_text(&file, "general.architecture", "llama");
    snprintf(name, sizeof name, "t%u", i);
    gguf_tensor(&file, name, TN_GGML_F32, 8, 0, 0);
    gguf_data(&file, (unsigned char)(i + 1));
    if (spoil && spoil->part == i)
        gguf_set(&file, spoil->field, spoil->value);
    part_path(path, sizeof path, i);
    write_bytes(path);
}

static void expect_open(const char *what, const char *path, tern_status expected, const char *text)
{
    struct tn_gguf gguf;
    struct tern_error err = {0};
    const tern_status status = tn_gguf_open(&gguf, path, &err);
    if (status != expected || !strstr(err.detail, text)) {
        n_wrong++;
        print_error("%s: status %d \"%s\", expected %d \"...%s...\"\n", what, status, err.detail,
                    expected, text);
    }
    tn_gguf_close(&gguf);
}

static void split_files_are_one_model(void **state)
{
    (void)state;
    struct tn_gguf gguf;
    struct tern_error err = {0};
    char path[1200];
    for (uint32_t i = 0; i < 3; i++)
        write_part(i, NULL);
    part_path(path, sizeof path, 0);
    assert_int_equal(tn_gguf_open(&gguf, path, &err), TERN_OK);
    assert_int_equal(gguf.n_parts, 3);
    assert_int_equal(gguf.n_tensors, 3);
    for (uint32_t i = 0; i < 3; i++) {
        char name[8];
        unsigned char first;
        snprintf(name, sizeof name, "t%u", i);
        const struct tn_gguf_tensor *t = &gguf.tensors[i]; /* sorted by name */
        const struct tn_gguf_input *in = &gguf.parts[t->i_part].input;
        assert_string_equal(t->name, name);
        assert_int_equal(in->read_at(in->arg, t->offset + 31, &first, 1, &err), TERN_OK);
        assert_int_equal(first, i + 1);
    }
    tn_gguf_close(&gguf);
    part_path(path, sizeof path, 1);
    expect_open("part 2", path, TERN_INPUT, "give the first part");
}

static void spoilt_parts_are_refused(void **state)
{
    (void)state;
    char first[1200], second[1200];
    part_path(first, sizeof first, 0);
    part_path(second, sizeof second, 1);
    for (size_t k = 0; k < TN_COUNT_OF(split_cases); k++) {
        const struct split_case *c = &split_cases[k];
        for (uint32_t i = 0; i < 3; i++)
            write_part(i, c);
        expect_open(c->field, first, strcmp(c->field, "version") ? TERN_INPUT : TERN_UNSUPPORTED,
                    c->text);
    }
    for (uint32_t i = 0; i < 3; i++)
        write_part(i, NULL);
    tn_file_remove(second);
    expect_open("missing part", first, TERN_INPUT, "part 2 of 3 is missing");
}

static void an_lfs_pointer_is_named(void **state)
{
    (void)state;
    file.n = (size_t)snprintf((char *)bytes, sizeof bytes,
                              "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
    expect("LFS", TERN_INPUT, "Git-LFS pointer");
}

static int begin(void **state)
{
    (void)state;
    n_wrong = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    return n_wrong;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_good_file_is_read),
        CASE(numbers_out_of_place_are_refused),
        CASE(every_truncation_is_refused),
        CASE(bytes_behind_the_last_tensor_are_refused),
        CASE(both_blocks_of_q2_are_told_apart),
        CASE(sizes_do_not_overflow),
        CASE(split_files_are_one_model),
        CASE(spoilt_parts_are_refused),
        CASE(an_lfs_pointer_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
