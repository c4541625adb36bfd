/* SPDX-License-Identifier: MIT
 *
 * How many weights share a scale, inferred from the scales of a matrix's units.
 *
 * The survey decides the group size of a converted matrix.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "convert/survey.h"

#define COLS 1024u
#define UNIT 64u
#define N_UNITS (COLS / UNIT)
#define ROWS 4u

/* Scales that change every `width` columns, and from row to row. */
static void survey_groups(struct tn_scale_survey *s, uint32_t width, float step)
{
    tn_scale_survey_init(s, COLS, UNIT);
    for (uint32_t r = 0; r < ROWS; r++) {
        float scales[N_UNITS];
        for (uint32_t u = 0; u < N_UNITS; u++)
            scales[u] = 0.5f + step * (float)(r * 100 + u * UNIT / width);
        tn_scale_survey_row(s, scales);
    }
}

static void the_widest_groups_that_fit_are_found(void **state)
{
    (void)state;
    static const uint32_t widths[] = {64, 128, 256, 512, 1024};
    for (size_t i = 0; i < TN_COUNT_OF(widths); i++) {
        struct tn_scale_survey s;
        struct tn_scale_facts facts;
        survey_groups(&s, widths[i], 0.25f);
        assert_true(tn_scale_survey_result(&facts, &s));
        assert_int_equal(facts.group, widths[i]);
        assert_false(facts.is_one);
        assert_true(facts.are_f16);
    }
}

static void one_scale_is_one(void **state)
{
    (void)state;
    struct tn_scale_survey s;
    struct tn_scale_facts facts;
    survey_groups(&s, COLS, 0.0f);
    assert_true(tn_scale_survey_result(&facts, &s));
    assert_true(facts.is_one);
    assert_true(facts.value == 0.5f);
    assert_int_equal(facts.group, COLS);
}

static void units_without_weights_fit_anywhere(void **state)
{
    (void)state;
    struct tn_scale_survey s;
    struct tn_scale_facts facts;
    float scales[N_UNITS];
    tn_scale_survey_init(&s, COLS, UNIT);
    for (uint32_t u = 0; u < N_UNITS; u++) /* the second half of each 128 is empty */
        scales[u] = u % 2 ? 0.0f : (float)(u + 1);
    tn_scale_survey_row(&s, scales);
    assert_true(tn_scale_survey_result(&facts, &s));
    assert_int_equal(facts.group, 128);
    tn_scale_survey_init(&s, COLS, UNIT);
    for (uint32_t u = 0; u < N_UNITS; u++)
        scales[u] = 0.0f;
    tn_scale_survey_row(&s, scales);
    assert_true(tn_scale_survey_result(&facts, &s));
    assert_int_equal(facts.group, COLS);
    assert_true(facts.value == 1.0f);
}

static void one_row_that_differs_makes_groups_narrower(void **state)
{
    (void)state;
    struct tn_scale_survey s;
    struct tn_scale_facts facts;
    survey_groups(&s, 256, 0.25f);
    float scales[N_UNITS];
    for (uint32_t u = 0; u < N_UNITS; u++)
        scales[u] = u == 5 ? 2.0f : 1.0f;
    tn_scale_survey_row(&s, scales);
    assert_true(tn_scale_survey_result(&facts, &s));
    assert_int_equal(facts.group, UNIT);
}

/* Units of 32 columns: model files have no groups below 64 columns. */
static void scales_within_64_columns_are_refused(void **state)
{
    (void)state;
    struct tn_scale_survey s;
    struct tn_scale_facts facts;
    const float scales[] = {1, 2, 1, 1};
    tn_scale_survey_init(&s, 128, 32);
    tn_scale_survey_row(&s, scales);
    assert_false(tn_scale_survey_result(&facts, &s));
}

static void scales_beyond_f16_are_reported(void **state)
{
    (void)state;
    static const struct {
        float scale;
        bool is_f16;
    } rows[] = {
        {0x1p-14f, true},    {0x1.ffcp-14f, true}, {0x1.ffep-14f, false}, {65504.0f, true},
        {65520.0f, false},   {0x1p-24f, true},     {0x1p-25f, false},     {0x1.8p-24f, false},
        {0x1.004p+3f, true}, {0x1.002p+3f, false}, {0.1f, false},         {0x1p+16f, false},
    };
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        struct tn_scale_survey s;
        struct tn_scale_facts facts;
        tn_scale_survey_init(&s, 64, 64);
        tn_scale_survey_row(&s, &rows[i].scale);
        assert_true(tn_scale_survey_result(&facts, &s));
        assert_int_equal(facts.are_f16, rows[i].is_f16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_widest_groups_that_fit_are_found),
        cmocka_unit_test(one_scale_is_one),
        cmocka_unit_test(units_without_weights_fit_anywhere),
        cmocka_unit_test(one_row_that_differs_makes_groups_narrower),
        cmocka_unit_test(scales_within_64_columns_are_refused),
        cmocka_unit_test(scales_beyond_f16_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
