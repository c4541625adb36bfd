/* SPDX-License-Identifier: MIT
 *
 * The base layer: checked arithmetic, half floats, random numbers, buffers, arenas, dates, error
 * texts, the allocation hook.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/bits.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/date.h"
#include "base/error.h"
#include "base/half.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "failing_alloc.h"

/* ---- bits.h ---- */

static void checked_arithmetic(void **state)
{
    (void)state;
    uint64_t n;
    assert_true(tn_mul_u64(UINT32_MAX, UINT32_MAX, &n) && n == 0xFFFFFFFE00000001u);
    assert_false(tn_mul_u64((uint64_t)1 << 32, (uint64_t)1 << 32, &n));
    /* A product that overflows to 4, as in a known vulnerability of a tensor file reader. */
    assert_true(tn_mul_u64(4194305, 4194305, &n));
    assert_false(tn_mul_u64(n, 211106198978564, &n));
    assert_true(tn_add_u64(UINT64_MAX - 1, 1, &n) && n == UINT64_MAX);
    assert_false(tn_add_u64(UINT64_MAX, 1, &n));
    assert_true(tn_align_up_u64(0, 64, &n) && n == 0);
    assert_true(tn_align_up_u64(65, 64, &n) && n == 128);
    assert_true(tn_align_up_u64(UINT64_MAX - 63, 64, &n) && n == UINT64_MAX - 63);
    assert_false(tn_align_up_u64(UINT64_MAX - 62, 64, &n)); /* would round to 0 */
    assert_false(tn_align_up_u64(UINT64_MAX, 4096, &n));
    assert_int_equal(tn_align_up(4097, 4096), 8192);
    assert_int_equal(tn_div_ceil_u32(0, 7), 0);
    assert_int_equal(tn_div_ceil_u32(14, 7), 2);
    assert_int_equal(tn_div_ceil_u32(UINT32_MAX, 2), 0x80000000u);
}

static void ranges(void **state)
{
    (void)state;
    assert_true(tn_range_fits(0, 10, 10));
    assert_true(tn_range_fits(10, 0, 10));
    assert_false(tn_range_fits(11, 0, 10));
    assert_false(tn_range_fits(5, 6, 10));
    assert_false(tn_range_fits(UINT64_MAX, 2, 10));
    assert_false(tn_range_fits(2, UINT64_MAX, 10));
    assert_true(tn_range_fits(1, UINT64_MAX - 1, UINT64_MAX));
}

static void unaligned_loads(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(tn_load_u16(bytes + 1), 0x0201);
    assert_int_equal(tn_load_u32(bytes + 1), 0x04030201);
    assert_int_equal(tn_load_u64(bytes + 1), 0x0807060504030201u);
}

/* ---- half.h ---- */

/* The value of a half float by its definition. */
static double f16_value(uint16_t h)
{
    int exponent = h >> 10 & 31;
    double mantissa = h & 1023;
    double value = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    return h & 0x8000 ? -value : value;
}

static bool is_f16_nan(uint16_t h)
{
    return (h & 0x7FFF) > 0x7C00;
}

static void every_f16_widens_exactly(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = tn_f16_to_f32((uint16_t)h);
        if (is_f16_nan((uint16_t)h))
            assert_true(isnan(f));
        else if ((h & 0x7FFF) == 0x7C00)
            assert_true(isinf(f) && (f < 0) == (bool)(h >> 15));
        else
            assert_true((double)f == f16_value((uint16_t)h) &&
                        (signbit(f) != 0) == (bool)(h >> 15));
        if (!is_f16_nan((uint16_t)h))
            assert_int_equal(tn_f32_to_f16(f), h);
        else
            assert_true(is_f16_nan(tn_f32_to_f16(f)));
    }
}

/* Rounds to the nearer of two neighbours a and b, to the even one in the middle. */
static void f16_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7C00; h++) {
        float a = tn_f16_to_f32((uint16_t)h);
        /* The next value after the largest half float would be 65536. */
        float b = h == 0x7BFF ? 65536.0f : tn_f16_to_f32((uint16_t)(h + 1));
        float middle = (a + b) / 2;
        float below = nextafterf(middle, a), above = nextafterf(middle, b);
        assert_int_equal(tn_f32_to_f16(below), h);
        assert_int_equal(tn_f32_to_f16(above), h + 1);
        assert_int_equal(tn_f32_to_f16(middle), h + (h & 1));
        assert_int_equal(tn_f32_to_f16(-below), h | 0x8000);
        assert_int_equal(tn_f32_to_f16(-above), (h + 1) | 0x8000);
    }
    assert_int_equal(tn_f32_to_f16(1e30f), 0x7C00);
    assert_int_equal(tn_f32_to_f16(-INFINITY), 0xFC00);
    assert_int_equal(tn_f32_to_f16(-0.0f), 0x8000);
    assert_int_equal(tn_f32_to_f16(1e-40f), 0);
    assert_true(is_f16_nan(tn_f32_to_f16(NAN)));
}

static void bf16_is_the_upper_half_rounded(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = tn_bf16_to_f32((uint16_t)h);
        assert_int_equal(tn_f32_to_bits(f), h << 16);
        if ((h & 0x7FFF) > 0x7F80) {
            assert_true((tn_f32_to_bf16(f) & 0x7FFF) > 0x7F80);
            continue;
        }
        assert_int_equal(tn_f32_to_bf16(f), h);
        if ((h & 0x7FFF) == 0x7F80)
            continue;
        uint32_t bits = h << 16; /* larger magnitude with larger bits, either sign */
        assert_int_equal(tn_f32_to_bf16(tn_f32_from_bits(bits | 0x7FFF)), h);
        assert_int_equal(tn_f32_to_bf16(tn_f32_from_bits(bits | 0x8000)), h + (h & 1));
        assert_int_equal(tn_f32_to_bf16(tn_f32_from_bits(bits | 0x8001)), h + 1);
    }
    assert_true((tn_f32_to_bf16(tn_f32_from_bits(0x7F800001u)) & 0x7FFF) > 0x7F80);
}

/* ---- rng.h ---- */

/* Known values: state {1, 2, 3, 4} from the authors' program; splitmix64 from seed 1234567. */
static void random_numbers_are_xoshiro256starstar(void **state)
{
    (void)state;
    static const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240};
    static const uint64_t seeded[] = {6457827717110365317u, 3203168211198807973u,
                                      9817491932198370423u, 4593380528125082431u};
    struct tn_rng rng = {{1, 2, 3, 4}};
    for (size_t i = 0; i < TN_COUNT_OF(expected); i++)
        assert_int_equal(tn_rng_next(&rng), expected[i]);
    tn_rng_seed(&rng, 1234567);
    assert_memory_equal(rng.s, seeded, sizeof seeded);
}

static void random_floats_are_below_one(void **state)
{
    (void)state;
    struct tn_rng a, b;
    tn_rng_seed(&a, 7);
    b = a;
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        float f = tn_rng_f32(&a);
        assert_true(f >= 0 && f < 1);
        assert_true((double)f * 16777216.0 == (double)(tn_rng_next(&b) >> 40));
        sum += (double)f;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 0.005);
}

/* ---- buf.h ---- */

static void buffers_grow(void **state)
{
    (void)state;
    struct tn_buf buf = {0};
    assert_string_equal(tn_buf_text(&buf), "");
    for (int i = 0; i < 1000; i++)
        assert_true(tn_buf_printf(&buf, "%d,", i));
    assert_int_equal(buf.n_bytes, 10 * 2 + 90 * 3 + 900 * 4);
    assert_string_equal(tn_buf_text(&buf) + buf.n_bytes - 8, "998,999,");
    tn_buf_clear(&buf);
    assert_true(tn_buf_append(&buf, "a\0b", 3) && tn_buf_append_text(&buf, "c") &&
                tn_buf_append(&buf, NULL, 0));
    assert_int_equal(buf.n_bytes, 4);
    assert_memory_equal(buf.data, "a\0bc", 4);
    tn_buf_fini(&buf);
    assert_null(buf.data);
}

static void buffers_keep_their_content_without_memory(void **state)
{
    (void)state;
    struct tn_buf buf = {0};
    fail_alloc_after(1);
    assert_true(tn_buf_append_text(&buf, "kept"));
    assert_false(tn_buf_reserve(&buf, 1000));
    assert_true(buf.failed);
    assert_false(tn_buf_printf(&buf, "%1000d", 1));
    assert_false(tn_buf_reserve(&buf, SIZE_MAX));
    assert_int_equal(buf.n_bytes, 4);
    assert_string_equal(tn_buf_text(&buf), "kept");
    fail_alloc_stop();
    tn_buf_clear(&buf);
    assert_false(buf.failed);
    tn_buf_fini(&buf);
}

/* ---- alloc.h, arena.h ---- */

static void allocation(void **state)
{
    (void)state;
    fail_alloc_after(0);
    assert_null(tn_alloc(1));
    assert_null(tn_alloc_zeroed(1, 1));
    assert_null(tn_realloc(NULL, 1));
    assert_null(tn_alloc_aligned(1, 64));
    fail_alloc_stop();
    assert_null(tn_alloc_zeroed(SIZE_MAX / 2, 3));
    assert_null(tn_alloc_aligned(SIZE_MAX, 64));
    void *empty = tn_alloc(0);
    assert_non_null(empty);
    tn_free(empty);
    tn_free(NULL);
    unsigned char *zeroed = tn_alloc_zeroed(10, 10);
    for (int i = 0; i < 100; i++)
        assert_int_equal(zeroed[i], 0);
    tn_free(zeroed);
    for (size_t align = 16; align <= 4096; align *= 2) {
        void *p = tn_alloc_aligned(100, align);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        tn_free_aligned(p);
    }
    tn_free_aligned(NULL);
}

static void arenas_count_and_cut_the_same(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 64, 0, 65, 1000};
    struct tn_arena counter = {0};
    for (size_t i = 0; i < TN_COUNT_OF(sizes); i++)
        assert_null(tn_arena_take(&counter, sizes[i]));
    assert_int_equal(counter.used, 64 + 64 + 128 + 1024);
    char *base = tn_alloc_aligned(counter.used, 64);
    struct tn_arena arena = {.base = base, .capacity = counter.used};
    for (size_t i = 0, end = 0; i < TN_COUNT_OF(sizes); i++) {
        assert_ptr_equal(tn_arena_take(&arena, sizes[i]), base + end);
        end += tn_align_up(sizes[i], 64);
    }
    assert_int_equal(arena.used, arena.capacity);
    tn_free_aligned(base);
}

/* ---- status, error.h ---- */

static void error_texts(void **state)
{
    (void)state;
    struct tern_error err;
    assert_int_equal(tn_fail(&err, TERN_INPUT, "%s is %d", "x", 5), TERN_INPUT);
    assert_int_equal(err.status, TERN_INPUT);
    assert_string_equal(err.detail, "x is 5");
    assert_int_equal(tn_fail(NULL, TERN_LIMIT, "nobody listens"), TERN_LIMIT);
    tn_fail(&err, TERN_INPUT, "a\nb\x1b[31mc\x7f");
    assert_string_equal(err.detail, "a?b?[31mc?");
    /* the format's precision cuts a character */
    tn_fail(&err, TERN_INPUT, "[%.2s]", "\xe2\x82\xac");
    assert_string_equal(err.detail, "[??]");
    tn_fail(&err, TERN_INPUT, "\xff \xc2\x9b" "31m \xc2\xa0 \xf0\x9f\x98\x80");
    assert_string_equal(err.detail, "? ?31m \xc2\xa0 \xf0\x9f\x98\x80"); /* U+009B is CSI */
    assert_int_equal(tn_ok(&err), TERN_OK);
    assert_string_equal(err.detail, "");
    assert_int_equal(tn_ok(NULL), TERN_OK);
}

/* Characters of one to four bytes, so that each of their bytes is at the cut once. */
static void long_error_texts_lose_their_middle(void **state)
{
    (void)state;
    static const char *const characters[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    struct tern_error err;
    for (size_t k = 0; k < TN_COUNT_OF(characters); k++) {
        size_t n_char = strlen(characters[k]);
        for (size_t shift = 0; shift < n_char; shift++) {
            struct tn_buf buf = {0};
            for (size_t i = 0; i < shift; i++)
                tn_buf_append_text(&buf, "-");
            while (buf.n_bytes < 2 * sizeof err.detail)
                tn_buf_append_text(&buf, characters[k]);
            tn_fail(&err, TERN_INPUT, "%s: reason", tn_buf_text(&buf));
            size_t n = strlen(err.detail);
            const char *gap = strstr(err.detail, "...");
            assert_true(n < sizeof err.detail && n >= sizeof err.detail - 2 * n_char);
            assert_non_null(gap);
            size_t n_head = (size_t)(gap - err.detail);
            size_t n_tail = n - n_head - strlen("...: reason");
            assert_int_equal((n_head - shift) % n_char, 0);
            assert_memory_equal(err.detail, buf.data, n_head);
            assert_int_equal(n_tail % n_char, 0);
            assert_memory_equal(gap + 3, buf.data + buf.n_bytes - n_tail, n_tail);
            assert_string_equal(gap + 3 + n_tail, ": reason");
            tn_buf_fini(&buf);
        }
    }
}

static void texts_for_people(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bad, bad_in_line;
    } list[] = {
        {"", 0, 0},
        {"a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 13, 13},
        {"a\n\t\r\f", 5, 1},
        {"a\x1b[31m", 1, 1},
        {"ab\x7f", 2, 2},
        {"a\xc2\x9b" "31m", 6, 1}, /* U+009B: terminals treat it like ESC [ */
        {"a\xc2\xa0", 3, 3},
        {"abc\xe2\x82", 3, 3},
        {"\xed\xa0\x80", 0, 0}, /* a surrogate */
        {"\xc0\xaf", 0, 0},      /* overlong */
    };
    for (size_t i = 0; i < TN_COUNT_OF(list); i++) {
        const char *text = list[i].text;
        assert_int_equal(tn_utf8_find_bad(text, strlen(text), false), list[i].bad);
        assert_int_equal(tn_utf8_find_bad(text, strlen(text), true), list[i].bad_in_line);
    }
    assert_int_equal(tn_utf8_find_bad("a\0b", 3, false), 1);
    assert_int_equal(tn_utf8_find_invalid("a\0b\x1b", 4), 4);
    assert_int_equal(tn_utf8_find_invalid("a\0\xff", 3), 2);
}

static void statuses_have_texts_and_exit_codes(void **state)
{
    (void)state;
    static const int codes[] = {0, 1, 2, 3, 3, 4, 5, 6, 74, 130, 3, 7};
    assert_int_equal(TN_COUNT_OF(codes), TERN_STATUS_COUNT);
    for (int i = 0; i < TERN_STATUS_COUNT; i++) {
        assert_int_equal(tern_status_exit_code((tern_status)i), codes[i]);
        assert_true(strlen(tern_status_text((tern_status)i)) > 0);
    }
    assert_int_equal(tern_status_exit_code((tern_status)99), 1);
    assert_int_equal(tern_status_exit_code((tern_status)-1), 1);
    assert_non_null(tern_status_text((tern_status)-1));
}

/* ---- date.h ---- */

/* Counts the days of 800 years from a known one: years, months and days of the week agree. */
static void days_follow_each_other(void **state)
{
    (void)state;
    uint32_t n_days = 0;
    for (int32_t year = 1601; year < 2401; year++) {
        uint16_t of_year = 0;
        for (uint8_t month = 1; month <= 12; month++)
            for (uint8_t day = 1; day <= tn_date_days_in_month(year, month); day++, n_days++) {
                assert_int_equal(tn_date_day_of_year(year, month, day), ++of_year);
                /* 1 January 1601 was a Monday. */
                assert_int_equal(tn_date_day_of_week(year, month, day), (n_days + 1) % 7);
            }
    }
    assert_int_equal(n_days, 2 * 146097);
    assert_int_equal(tn_date_days_in_month(1900, 2), 28);
    assert_int_equal(tn_date_days_in_month(2000, 2), 29);
    assert_int_equal(tn_date_days_in_month(2024, 2), 29);
    assert_int_equal(tn_date_day_of_week(2026, 11, 22), 0);
}

static void assert_sha256(const void *bytes, size_t n, size_t n_times, const char *expected)
{
    char hex[TN_SHA256_HEX_BYTES];
    struct tn_sha256 sha;
    tn_sha256_init(&sha);
    for (size_t i = 0; i < n_times; i++)
        tn_sha256_update(&sha, bytes, n);
    tn_sha256_finish(&sha, hex);
    assert_string_equal(hex, expected);
}

/* The examples of FIPS 180-4 and the first of NIST's short and long messages. */
static void sha256_gives_the_published_digests(void **state)
{
    (void)state;
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static const unsigned char d3[] = {0xd3}, b4190e[] = {0xb4, 0x19, 0x0e};
    assert_sha256("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_sha256("abc", 3, 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_sha256(two_blocks, sizeof two_blocks - 1, 1,
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_sha256("a", 1, 1000000,
                  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    assert_sha256(d3, 1, 1, "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
    assert_sha256(b4190e, 3, 1,
                  "dff2e73091f6c05e528896c4c831b9448653dc2ff043528f6769437bc7b975c2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checked_arithmetic),
        cmocka_unit_test(ranges),
        cmocka_unit_test(unaligned_loads),
        cmocka_unit_test(every_f16_widens_exactly),
        cmocka_unit_test(f16_rounds_to_nearest_even),
        cmocka_unit_test(bf16_is_the_upper_half_rounded),
        cmocka_unit_test(random_numbers_are_xoshiro256starstar),
        cmocka_unit_test(random_floats_are_below_one),
        cmocka_unit_test(buffers_grow),
        cmocka_unit_test(buffers_keep_their_content_without_memory),
        cmocka_unit_test(allocation),
        cmocka_unit_test(arenas_count_and_cut_the_same),
        cmocka_unit_test(days_follow_each_other),
        cmocka_unit_test(error_texts),
        cmocka_unit_test(long_error_texts_lose_their_middle),
        cmocka_unit_test(texts_for_people),
        cmocka_unit_test(sha256_gives_the_published_digests),
        cmocka_unit_test(statuses_have_texts_and_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
