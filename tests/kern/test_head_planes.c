/* SPDX-License-Identifier: MIT
 *
 * The head in planes: packing is lossless, bounds hold at every stage, and greedy choice and top-k
 * see the same bits as with the plain q8 head.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "file/model_file.h"
#include "kern/guard.h"
#include "model/head.h"

enum kind {
    RANDOM,      /* unstructured rows and states: few savings */
    PEAKED,      /* the state is parallel to a row, as in predictable text */
    ADVERSARIAL, /* the state is parallel to the part of a row that stage 0 leaves undetermined */
    OUTLIERS,    /* a few columns of the state dominate */
    EQUAL_ROWS,  /* many equal rows: ties */
    CENTRED,     /* some columns nearly constant and large, the others small; some rows differ */
    N_KINDS
};

/* Kinds that reuse the rows of the kind before. */
static const bool has_same_rows[N_KINDS] = {
    [PEAKED] = true, [ADVERSARIAL] = true, [OUTLIERS] = true};

struct head {
    uint32_t rows, cols;
    int8_t *q;
    float *scales, *x, *full;
    uint8_t *data;
    struct tn_bit_planes w;
    struct tn_head_search s;
    struct tn_head_scratch scratch;
};

static const uint32_t layouts[] = {TERN_LAYOUT_Q4, TERN_LAYOUT_Q6, TERN_LAYOUT_Q8_PLANES};
static struct tn_rng rng;
static struct tn_kernels kernels;

/* Nearly normal with deviation 209: the sum of eight bytes.  Integers and a single random number,
 * because most of this test's time is spent here, above all under an emulator. */
static int32_t normal_209(void)
{
    const uint64_t bytes = tn_rng_next(&rng), low = 0x00FF00FF00FF00FF;
    return (int32_t)(((bytes & low) + (bytes >> 8 & low)) * 0x0001000100010001 >> 48) - 1020;
}

static float normal(void)
{
    return (float)normal_209() / 209.0f;
}

static void *must(void *p)
{
    assert_non_null(p);
    return p;
}

static void fill_rows(struct head *h, enum kind kind, int32_t max)
{
    for (uint32_t r = 0; r < h->rows; r++) {
        for (uint32_t c = 0; c < h->cols; c++) {
            int32_t v = normal_209() * max * 3 / 2090;
            h->q[(size_t)r * h->cols + c] = (int8_t)TN_MAX(-max, TN_MIN(max, v));
        }
        for (uint32_t c = 0; c < h->cols && kind == CENTRED && r % 16 != 5; c++) {
            int8_t *q = &h->q[(size_t)r * h->cols + c];
            *q = (int8_t)(*q / 8 + (c % 40 == 3 ? max - max / 8 : 0));
        }
        h->scales[r] = 0.01f + 0.002f * tn_rng_f32(&rng);
        if (kind == EQUAL_ROWS && r % 8) {
            memcpy(h->q + (size_t)r * h->cols, h->q + (size_t)(r - r % 8) * h->cols, h->cols);
            h->scales[r] = h->scales[r - r % 8];
        }
    }
}

static void fill_state(struct head *h, enum kind kind)
{
    const int8_t *row = h->q + (size_t)(h->rows / 3) * h->cols;
    for (uint32_t c = 0; c < h->cols; c++) {
        float open = (float)((row[c] + 128) & 15) - 7.5f;
        h->x[c] = kind == PEAKED        ? normal() + (float)row[c] * 0.01f
                  : kind == ADVERSARIAL ? open * 0.2f
                  : kind == OUTLIERS    ? normal() * (c % 50 == 0 ? 100.0f : 1.0f)
                                        : normal();
    }
    kernels.gemv_q8_f32(h->full, h->rows, h->q, h->scales, h->rows, h->cols, h->x, h->cols, 1);
}

static _Alignas(64) uint8_t kernel_scratch[TN_PLANE_SCRATCH_BYTES];

static void head_init(struct head *h, uint32_t rows, uint32_t cols, enum kind kind,
                      uint32_t layout)
{
    const uint32_t n_planes = tn_layout_planes(layout);
    memset(h, 0, sizeof *h);
    h->rows = rows;
    h->cols = cols;
    h->q = must(malloc((size_t)rows * cols));
    h->scales = must(malloc(tn_layout_scale_bytes(layout, rows, cols)));
    h->x = must(malloc(cols * sizeof(float)));
    h->full = must(malloc(rows * sizeof(float)));
    h->scratch.unpacked = must(malloc((size_t)TN_HEAD_UNPACK_ROWS * cols));
    h->scratch.kernel = kernel_scratch;
    fill_rows(h, kind, tn_bit_planes_max(n_planes));
    h->data = must(malloc(tn_bit_planes_block_bytes(rows, cols, n_planes)));
    uint8_t *block = h->data;
    tn_bit_planes_offsets(tn_bit_planes_place_offsets(h->scales, rows, n_planes), h->q,
                          TN_MIN(rows, 100u), cols);
    for (uint32_t r = 0; r < rows; r += TERN_PLANE_BLOCK_ROWS) {
        uint32_t n = TN_MIN(TERN_PLANE_BLOCK_ROWS, rows - r);
        tn_bit_planes_pack(block, h->scales, h->q + (size_t)r * cols, r, n, rows, cols, n_planes);
        block += tn_bit_planes_block_bytes(n, cols, n_planes);
    }
    h->w = tn_bit_planes_view(h->data, h->scales, rows, cols, n_planes);
    h->s = (struct tn_head_search){
        .w = &h->w,
        .kernels = &kernels,
        .x = h->x,
        .n_allowed = rows,
        .logits = must(malloc(rows * sizeof(float))),
        .x16 = must(malloc(tn_plane_row_bytes(cols, 8) * sizeof(int16_t))),
        .sums = must(malloc(rows * sizeof(double))),
        .group_best = must(malloc((rows / TN_HEAD_GROUP_ROWS + 1) * sizeof(float))),
        .counts = must(malloc((rows / TN_HEAD_ITEM_ROWS + 1) * sizeof(struct tn_head_count))),
    };
    fill_state(h, kind);
}

static void head_fini(struct head *h)
{
    void *all[] = {h->q,        h->scales, h->x,      h->full,         h->data,     h->s.logits,
                   h->s.x16,    h->s.sums, h->s.group_best, h->s.counts, h->scratch.unpacked};
    for (size_t i = 0; i < TN_COUNT_OF(all); i++)
        free(all[i]);
}

static uint32_t n_violations;

/* Checks the bounds of all rows that a stage has read. */
static void check_bounds(const struct head *h, uint32_t stage)
{
    for (uint32_t r = 0; r < h->rows; r++) {
        if (h->s.logits[r] == -INFINITY)
            continue;
        float low, high;
        tn_head_bounds(&h->s, stage, r, h->s.sums[r], &low, &high);
        n_violations += !(low <= h->full[r] && h->full[r] <= high);
    }
}

static void search(struct head *h, uint32_t n_first, uint32_t n_best, const uint32_t *always,
                   uint32_t n_always)
{
    struct tn_head_search *s = &h->s;
    s->n_first = n_first;
    s->n_best = n_best;
    s->always = always;
    s->n_always = n_always;
    uint32_t n_stages = tn_head_n_stages(s);
    uint32_t first = tn_head_search_begin(s) ? 0 : n_stages - 1;
    for (uint32_t stage = first; stage < n_stages; stage = tn_head_next_stage(s, stage)) {
        for (uint32_t i = 0; i * TN_HEAD_ITEM_ROWS < s->n_allowed; i++)
            tn_head_search_items(&s, 1, stage, i, &h->scratch);
        if (stage + 1 < n_stages)
            check_bounds(h, TN_MAX(stage, n_first - 1));
        tn_head_search_end(s, stage, h->scratch.unpacked);
    }
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The smallest logit among the n_best largest of the rows that are not in `always`. */
static float least_needed(const struct head *h, uint32_t n_best, const uint32_t *always,
                          uint32_t n_always)
{
    float *sorted = must(malloc(h->rows * sizeof *sorted));
    uint32_t n = 0, i_always = 0;
    for (uint32_t r = 0; r < h->s.n_allowed; r++) {
        if (i_always < n_always && always[i_always] == r)
            i_always++;
        else
            sorted[n++] = h->full[r];
    }
    qsort(sorted, n, sizeof *sorted, descending);
    float least = n_best <= n ? sorted[n_best - 1] : -INFINITY;
    free(sorted);
    return least;
}

/* Every row from `least` on and all of `always` must be exact, the others exact or minus infinity.
 */
static void check_result(const struct head *h, float least, const uint32_t *always,
                         uint32_t n_always)
{
    uint32_t i_always = 0;
    for (uint32_t r = 0; r < h->rows; r++) {
        bool is_always = i_always < n_always && always[i_always] == r;
        i_always += is_always;
        bool is_needed = r < h->s.n_allowed && (is_always || h->full[r] >= least);
        if (is_needed || h->s.logits[r] != -INFINITY)
            assert_memory_equal(&h->s.logits[r], &h->full[r], sizeof(float));
        if (r >= h->s.n_allowed)
            assert_true(h->s.logits[r] == -INFINITY);
    }
}

/* With every number of planes that stage 0 may read. */
static void check_choice(struct head *h, uint32_t n_best, const uint32_t *always, uint32_t n_always)
{
    const float least = least_needed(h, n_best, always, n_always);
    for (uint32_t n_first = 1; n_first <= h->w.n_planes; n_first++) {
        search(h, n_first, n_best, always, n_always);
        check_result(h, least, always, n_always);
    }
}

static void check_head(struct head *h)
{
    static const uint32_t n_best[] = {1, 2, 20, 40, 256};
    const uint32_t rows = h->rows;
    const uint32_t always[] = {0, 5, rows / 3, rows / 3 + 1, rows - 2};
    h->s.n_allowed = rows;
    for (size_t k = 0; k < TN_COUNT_OF(n_best); k++) {
        check_choice(h, n_best[k], NULL, 0);
        check_choice(h, n_best[k], always, TN_COUNT_OF(always));
    }
    h->s.n_allowed = rows - 100;
    check_choice(h, 3, always, TN_COUNT_OF(always) - 1);
}

static void test_choice_is_that_of_the_plain_head(void **state)
{
    (void)state;
    /* Enough rows for n_best groups where that is cheap. */
    static const struct {
        uint32_t cols, rows;
    } sizes[] = {{1, 3001},   {17, 3001}, {64, 3001}, {127, 700}, {128, 700},
                 {129, 1300}, {256, 700}, {640, 530}, {2560, 170}};
    n_violations = 0;
    for (size_t i = 0; i < TN_COUNT_OF(sizes) * TN_COUNT_OF(layouts); i++) {
        const uint32_t layout = layouts[i / TN_COUNT_OF(sizes)];
        const uint32_t rows = sizes[i % TN_COUNT_OF(sizes)].rows;
        const uint32_t cols = sizes[i % TN_COUNT_OF(sizes)].cols;
        struct head h = {0};
        for (enum kind kind = 0; kind < N_KINDS; kind++) {
            if (has_same_rows[kind]) {
                fill_state(&h, kind);
            } else {
                head_fini(&h);
                head_init(&h, rows, cols, kind, layout);
            }
            check_head(&h);
        }
        head_fini(&h);
    }
    assert_int_equal(n_violations, 0);
}

/* The bound is tight enough to save work. */
static void test_peaked_states_read_few_rows(void **state)
{
    (void)state;
    struct head h;
    head_init(&h, 4000, 256, PEAKED, TERN_LAYOUT_Q8_PLANES);
    search(&h, 1, 1, NULL, 0);
    assert_int_equal(h.s.n_rows[0], 4000);
    assert_true(h.s.n_rows[1] < 2000);
    assert_true(h.s.n_rows[2] < 600);
    assert_true(h.s.n_rows[3] < 200);
    assert_true(h.s.n_rows[4] < 20);
    head_fini(&h);
}

/* The threshold comes from exact logits: of unstructured rows few remain, where lower bounds would
 * leave 600. */
static void test_leaders_rule_out_most_rows(void **state)
{
    (void)state;
    struct head h;
    head_init(&h, 4000, 256, RANDOM, TERN_LAYOUT_Q8_PLANES);
    search(&h, 3, 40, NULL, 0);
    assert_true(h.s.n_rows[3] < 400);
    assert_true(h.s.n_rows[4] < 250);
    head_fini(&h);
}

static void test_states_without_bounds(void **state)
{
    (void)state;
    static const float values[] = {INFINITY, NAN, 1e38f};
    for (size_t i = 0; i < TN_COUNT_OF(values); i++) {
        struct head h;
        head_init(&h, 700, 64, RANDOM, TERN_LAYOUT_Q8_PLANES);
        h.x[3] = values[i];
        kernels.gemv_q8_f32(h.full, h.rows, h.q, h.scales, h.rows, h.cols, h.x, h.cols, 1);
        search(&h, 1, 1, NULL, 0);
        assert_int_equal(h.s.n_rows[4], 700);
        assert_memory_equal(h.s.logits, h.full, h.rows * sizeof(float));
        head_fini(&h);
    }
}

/* Nearly constant columns cost nothing, and rows with few bits are determined early. */
static void test_centred_rows_read_fewer_bits(void **state)
{
    (void)state;
    struct head h;
    head_init(&h, 4000, 256, CENTRED, TERN_LAYOUT_Q8_PLANES);
    assert_int_equal(h.w.forms[0], TERN_PLANE_CENTRED | 3);
    assert_int_equal(h.w.forms[5], 0);
    search(&h, 1, 1, NULL, 0);
    check_result(&h, least_needed(&h, 1, NULL, 0), NULL, 0);
    assert_true(h.s.n_rows[2] <= 4000 / 16);
    assert_true(h.s.n_rows[3] <= 4000 / 16);
    head_fini(&h);
}

static void test_rows_come_back(void **state)
{
    (void)state;
    for (uint32_t cols = 1; cols < 300; cols += 13) {
        struct head h;
        head_init(&h, 7, cols, cols % 2 ? RANDOM : CENTRED, layouts[cols % TN_COUNT_OF(layouts)]);
        for (uint32_t r = 0; r < 7; r++) {
            tn_unpack_planes_ref(h.scratch.unpacked, &h.w, r);
            assert_memory_equal(h.scratch.unpacked, h.q + (size_t)r * cols, cols);
        }
        head_fini(&h);
    }
}

/* Searches of several states, more than share one read of a plane, in groups that allow the same
 * rows: each gives the result of a single search. */
#define TOGETHER 11u

static void test_joint_searches_equal_single_ones(void **state)
{
    (void)state;
    static struct head heads[TOGETHER];
    struct tn_head_search *s[TOGETHER];
    const uint32_t rows = 1300, cols = 200;
    for (uint32_t i = 0; i < TOGETHER; i++) {
        head_init(&heads[i], rows, cols, PEAKED, TERN_LAYOUT_Q8_PLANES);
        s[i] = &heads[i].s;
        s[i]->w = &heads[0].w; /* the state is kept */
        s[i]->n_allowed = i < 9 ? rows : 520;
        s[i]->n_best = 1 + i % 4;
        s[i]->n_first = 2;
        kernels.gemv_q8_f32(heads[i].full, rows, heads[0].q, heads[0].scales, rows, cols,
                            heads[i].x, cols, 1);
        assert_true(tn_head_search_begin(s[i]));
    }
    for (uint32_t stage = 0; stage < tn_head_n_stages(s[0]);
         stage = tn_head_next_stage(s[0], stage)) {
        for (uint32_t i = 0; i * TN_HEAD_ITEM_ROWS < rows; i++)
            tn_head_search_items(s, TOGETHER, stage, i, &heads[0].scratch);
        for (uint32_t i = 0; i < TOGETHER; i++)
            tn_head_search_end(s[i], stage, heads[0].scratch.unpacked);
    }
    for (uint32_t i = 0; i < TOGETHER; i++) {
        float *together = must(malloc(rows * sizeof *together));
        memcpy(together, s[i]->logits, rows * sizeof *together);
        check_result(&heads[i], least_needed(&heads[i], s[i]->n_best, NULL, 0), NULL, 0);
        search(&heads[i], 2, s[i]->n_best, NULL, 0);
        assert_memory_equal(together, s[i]->logits, rows * sizeof *together);
        free(together);
    }
    for (uint32_t i = 0; i < TOGETHER; i++)
        head_fini(&heads[i]);
}

int main(void)
{
    tn_rng_seed(&rng, 8);
    tn_kernels_select(&kernels, tn_test_cpu_features());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_come_back),
        cmocka_unit_test(test_choice_is_that_of_the_plain_head),
        cmocka_unit_test(test_centred_rows_read_fewer_bits),
        cmocka_unit_test(test_peaked_states_read_few_rows),
        cmocka_unit_test(test_leaders_rule_out_most_rows),
        cmocka_unit_test(test_states_without_bounds),
        cmocka_unit_test(test_joint_searches_equal_single_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
