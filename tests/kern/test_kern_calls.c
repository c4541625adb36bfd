/* SPDX-License-Identifier: MIT
 *
 * The operations of measure/kernel_calls.h: every row of kern_list.h that this CPU supports must
 * return the bits of ref, for every size around its blocks, with inputs and outputs that end at
 * inaccessible pages.  test_kern_formula.c checks the results of ref.
 *
 * The table says how an operation is called; here are the dimensions, the values that kernels get
 * wrong, and the outputs that may be inputs.
 */
#include "measure/kernel_calls.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kern/operands.h"

#include "base/bits.h"
#include "base/compiler.h"
#include "kern/exp.h"
#include "kern/tanh.h"

/* ---- dimensions ---- */

static bool is_op(const char *op, const char *prefix)
{
    return strncmp(op, prefix, strlen(prefix)) == 0;
}

/* n_pos and n_q around the tiles, sometimes a whole block; n / 16 + 1 sixteens. */
static void set_cache(struct tn_call_dims *d, uint32_t n)
{
    d->head_dim = 16 * (1 + n / 16);
    d->n_pos = random_u32() % (n % 8 ? 12 : n < 70 ? 400 : 70);
    d->n_pos = TN_MIN(d->n_pos, TN_KV_BLOCK);
    d->n_q = 1 + random_u32() % 9;
    d->score_stride = d->n_pos + n % 3;
    d->scale = 0.088f;
}

static struct tn_call_dims dims_of(const char *op, uint32_t n, enum fill fill)
{
    struct tn_call_dims d = {.n = n, .eps = 1e-5f, .scale = random_f32(fill)};
    if (is_op(op, "attn_")) {
        set_cache(&d, n);
    } else if (is_op(op, "kv_store")) {
        d.head_dim = 16 * (1 + n / 16);
    } else if (is_op(op, "rope")) {
        d.n_heads = 1 + n % 4;
        d.head_dim = 2 * n;
        d.head_stride = 2 * n + n % 3 * 5;
    } else if (is_op(op, "gemv_")) {
        d.n_rows = 1 + random_u32() % 20;
        d.n_tokens = 1 + random_u32() % 9;
        d.x_stride = n + n % 3;
        d.dst_stride = d.n_rows + n % 2;
    } else if (is_op(op, "rms_norm_quant")) {
        d.eps = n % 2 ? 1e-6f : 0.0f; /* without eps a row of zeros gives 0 * infinity */
    } else if (is_op(op, "cap")) {
        d.scale = 8.0f;
    } else if (is_op(op, "add_i32_f64")) {
        d.scale = 16.0f;
    }
    return d;
}

/* ---- values ---- */

static void fill_operand(const struct tn_operand *o, enum fill fill)
{
    switch (o->type) {
    case TN_OPERAND_F32:
        fill_f32(o->data, o->n, fill);
        break;
    case TN_OPERAND_F64:
        for (size_t i = 0; i < o->n; i++)
            ((double *)o->data)[i] = (double)random_f32(fill);
        break;
    case TN_OPERAND_F16:
        fill_f16(o->data, o->n, fill);
        break;
    case TN_OPERAND_BF16:
        for (size_t i = 0; i < o->n; i++)
            ((uint16_t *)o->data)[i] = (uint16_t)(tn_f32_to_bits(random_f32(fill)) >> 16);
        break;
    default:
        fill_bytes(o->data, tn_operand_bytes(o));
    }
}

/* Replaces values of a call whose operands are filled. */
typedef void adjust_fn(struct tn_kernel_call *c, enum fill fill);

static void adjust_norm(struct tn_kernel_call *c, enum fill fill)
{
    const struct tn_operand *weights = &c->operands[1];
    const bool is_quant = c->operands[2].type == TN_OPERAND_I8;
    fill_f32(weights->data, weights->n,
             fill == FILL_SPECIAL && !is_quant ? FILL_WIDE : FILL_PLAIN);
}

static void put_edges(const struct tn_operand *o, const float *edges, size_t n)
{
    memcpy(o->data, edges, TN_MIN(o->n / 8, n) * sizeof *edges);
}

/* Where exp begins to overflow, and where its results become subnormal. */
static void adjust_gate(struct tn_kernel_call *c, enum fill fill)
{
    const float edges[] = {-TN_EXP_MAX, nextafterf(-TN_EXP_MAX, -INFINITY), -TN_EXP_MIN,
                           nextafterf(-TN_EXP_MIN, INFINITY)};
    (void)fill;
    put_edges(&c->operands[0], edges, TN_COUNT_OF(edges));
}

/* Both sides of the limit of the polynomial, and values at which exp overflows. */
static void adjust_cap(struct tn_kernel_call *c, enum fill fill)
{
    const float cap = c->dims.scale, limit = cap * TN_TANH_SMALL;
    const float edges[] = {limit, nextafterf(limit, 0), -limit, nextafterf(-limit, 0),
                           cap * TN_EXP_MAX / 2, -cap * TN_EXP_MAX};
    (void)fill;
    put_edges(&c->operands[0], edges, TN_COUNT_OF(edges));
}

static void adjust_rope(struct tn_kernel_call *c, enum fill fill)
{
    (void)fill;
    fill_operand(&c->operands[1], FILL_PLAIN);
    fill_operand(&c->operands[2], FILL_PLAIN);
}

/* Zeros of both signs. */
static void adjust_list_positive(struct tn_kernel_call *c, enum fill fill)
{
    float *x = c->operands[0].data;
    (void)fill;
    for (uint32_t i = 0; i < c->dims.n; i += 3)
        x[i] = i % 2 ? -0.0f : 0.0f;
}

/* Half of the values are zero. */
static void adjust_list_nonzero(struct tn_kernel_call *c, enum fill fill)
{
    int8_t *x = c->operands[0].data;
    for (uint32_t i = 0; i < c->dims.n && fill != FILL_WIDE; i++)
        x[i] = (int8_t)(x[i] % 2);
}

static void adjust_gemv_q8(struct tn_kernel_call *c, enum fill fill)
{
    (void)fill;
    fill_operand(&c->operands[2], FILL_WIDE);
}

/* Integers, as in a search. */
static void adjust_add_i32_f64(struct tn_kernel_call *c, enum fill fill)
{
    double *dst = c->operands[0].data;
    const int32_t *src = c->operands[1].data;
    for (uint32_t i = 0; i < c->dims.n && fill == FILL_SPECIAL; i++)
        dst[i] = (double)(src[i] % 1000);
}

/* Kernels may not see NaN. */
static void adjust_max(struct tn_kernel_call *c, enum fill fill)
{
    float *x = c->operands[0].data;
    for (uint32_t i = 0; i < c->dims.n && fill == FILL_SPECIAL; i++)
        x[i] = i % 5 ? -INFINITY : -0.0f - (float)(i % 2);
}

static void adjust_exp_sum(struct tn_kernel_call *c, enum fill fill)
{
    float *x = c->operands[0].data;
    for (uint32_t i = 0; i < c->dims.n && fill == FILL_WIDE; i++)
        x[i] = (random_f32(FILL_PLAIN) - 2.0f) * 27.5f;
    c->dims.max = fill == FILL_SPECIAL ? 0.5f : tn_max_f32_ref(x, c->dims.n);
}

static void adjust_attn_pv_q8(struct tn_kernel_call *c, enum fill fill)
{
    (void)fill;
    c->dims.next = random_u32() % 2 ? c->operands[1].data : NULL;
}

/* What only some operations have: their values, and an output (second number) that may be an
 * input (first). */
static const struct special {
    const char *op;
    adjust_fn *adjust;
    uint32_t n_aliases;
    uint8_t aliases[2][2];
} specials[] = {
    {"rms_norm_f32", adjust_norm, 1, {{0, 2}}},
    {"rms_norm_quant", adjust_norm, 0, {{0}}},
    {"scale_i32_f32", NULL, 1, {{0, 1}}},
    {"relu2_mul_f32", adjust_gate, 2, {{0, 2}, {1, 2}}},
    {"silu_mul_f32", adjust_gate, 2, {{0, 2}, {1, 2}}},
    {"gelu_mul_f32", adjust_gate, 2, {{0, 2}, {1, 2}}},
    {"cap_f32", adjust_cap, 0, {{0}}},
    {"rope_f32", adjust_rope, 0, {{0}}},
    {"list_positive_f32", adjust_list_positive, 0, {{0}}},
    {"list_nonzero_i8", adjust_list_nonzero, 0, {{0}}},
    {"gemv_q8_f32", adjust_gemv_q8, 0, {{0}}},
    {"add_i32_f64", adjust_add_i32_f64, 0, {{0}}},
    {"max_f32", adjust_max, 0, {{0}}},
    {"exp_sum_f32", adjust_exp_sum, 0, {{0}}},
    {"attn_pv_q8", adjust_attn_pv_q8, 0, {{0}}},
};

static const struct special *special_of(const char *op)
{
    static const struct special none;
    for (size_t i = 0; i < TN_COUNT_OF(specials); i++)
        if (!strcmp(specials[i].op, op))
            return &specials[i];
    return &none;
}

/* ---- calls ---- */

static void (*ref_of(const char *op))(void)
{
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++)
        if (!strcmp(tn_kernel_rows[i].op, op) && !strcmp(tn_kernel_rows[i].isa, "ref"))
            return tn_kernel_rows[i].fn;
    fail_msg("%s has no reference", op);
    return NULL;
}

/* Calls a kernel on the same inputs, with `written` as the operands that it writes. */
static void call(struct tn_kernel_call *c, const char *op, void (*fn)(void),
                 void *const written[TN_CALL_MAX_OPERANDS])
{
    for (uint32_t i = 0; i < c->n_operands; i++)
        if (tn_operand_is_written(&c->operands[i]))
            c->operands[i].data = written[i];
    c->fn = fn;
    c->n_operands = 0;
    tn_kernel_call_find(op)->run(c);
}

static void compare(const struct tn_kernel_row *row, const struct tn_kernel_call *c,
                    void *const got[TN_CALL_MAX_OPERANDS], void *const want[TN_CALL_MAX_OPERANDS],
                    const char *shape)
{
    for (uint32_t i = 0; i < c->n_operands; i++) {
        const struct tn_operand *o = &c->operands[i];
        if (!tn_operand_is_written(o))
            continue;
        if (o->type == TN_OPERAND_F32)
            check_f32(row, got[i], want[i], o->n, shape);
        else
            check_bytes(row, got[i], want[i], tn_operand_bytes(o), shape);
    }
}

/* An output that is an input as well. */
static void check_alias(const struct tn_kernel_row *row, struct tn_kernel_call *c,
                        const uint8_t alias[2], void *const want[TN_CALL_MAX_OPERANDS],
                        const char *shape)
{
    const struct tn_operand input = c->operands[alias[0]];
    void *got[TN_CALL_MAX_OPERANDS] = {NULL};
    got[alias[1]] = take(tn_operand_bytes(&input), input.align);
    memcpy(got[alias[1]], input.data, tn_operand_bytes(&input));
    c->operands[alias[0]].data = got[alias[1]];
    call(c, row->op, row->fn, got);
    c->operands[alias[0]] = input;
    compare(row, c, got, want, shape);
}

static void check_block(const struct tn_kernel_row *row, uint32_t n, uint32_t block,
                        enum fill fill)
{
    const struct special *special = special_of(row->op);
    struct tn_kernel_call c = {.dims = dims_of(row->op, n, fill)};
    void *want[TN_CALL_MAX_OPERANDS] = {NULL}, *got[TN_CALL_MAX_OPERANDS] = {NULL};
    c.dims.block = block;
    tn_kernel_call_find(row->op)->run(&c);
    for (uint32_t i = 0; i < c.n_operands; i++) {
        struct tn_operand *o = &c.operands[i];
        o->data = want[i] = take(tn_operand_bytes(o), o->align);
        if (tn_operand_is_read(o))
            fill_operand(o, fill);
    }
    if (special->adjust)
        special->adjust(&c, fill);
    for (uint32_t i = 0; i < c.n_operands; i++)
        if (tn_operand_is_written(&c.operands[i])) {
            got[i] = take(tn_operand_bytes(&c.operands[i]), c.operands[i].align);
            memcpy(got[i], want[i], tn_operand_bytes(&c.operands[i]));
        }
    const struct tn_call_dims *d = &c.dims;
    SHAPE("n %u fill %d, %u rows, %u tokens, %u heads, %u queries, %u positions of %u, block %u",
          n, (int)fill, d->n_rows, d->n_tokens, d->n_heads, d->n_q, d->n_pos, d->head_dim, block);
    call(&c, row->op, ref_of(row->op), want);
    const size_t n_last = c.operands[c.n_operands - 1].n;
    call(&c, row->op, row->fn, got);
    c.operands[c.n_operands - 1].n = n_last; /* a list is as long as that of ref */
    compare(row, &c, got, want, shape_text);
    for (uint32_t i = 0; i < special->n_aliases; i++)
        check_alias(row, &c, special->aliases[i], want, shape_text);
}

static void check_call(const struct tn_kernel_row *row, uint32_t n, enum fill fill)
{
    if (strcmp(row->op, "hadamard_f32"))
        check_block(row, n, 0, fill);
    for (uint32_t block = 2; !strcmp(row->op, "hadamard_f32") && n % block == 0; block *= 2) {
        check_block(row, n, block, fill);
        if (n % (2 * block) == 0)
            release_all(row);
    }
}

static void test_like_ref(void **state)
{
    const struct tn_kernel_call_row *calls = *state;
    check_sizes(calls->op, check_call);
}

/* Every operation has a check: here, or in test_kern_head.c, test_kern_ternary.c, test_kern_x16.c,
 * test_kern_quant.c or test_kern_blocks.c. */
static void test_no_row_is_forgotten(void **state)
{
    (void)state;
    static const char *const others[] = {
        "dot_u5_i16",     "dot_u4_i16",     "dot_u2_i16",      "dot_u1_i16",      "bound_logits",
        "unpack_planes",  "lut_t2",         "gemv_t2_i8",      "prep_r2",         "gemv_r2_i8",
        "few_r2_i8",      "gemv_c2_i8",     "sum_i8",          "unpack_t5",       "gemm_t2_i8",
        "gemm_r2_i8",     "gemm_c2_i8",     "gemv_t2_x16",     "gemm_t2_x16",     "gemv_t2_f32",
        "gemv_t2_x8",     "gemm_t2_x8",     "gemv_blocks_x8",  "gemm_blocks_x8",  "gemv_blocks_x16",
        "gemm_blocks_x16", "gemv_blocks_f32"};
    for (uint32_t i = 0; i < tn_n_kernel_rows; i++) {
        const char *op = tn_kernel_rows[i].op;
        bool is_known = tn_kernel_call_find(op) != NULL;
        for (size_t k = 0; k < TN_COUNT_OF(others); k++)
            is_known |= !strcmp(others[k], op);
        if (!is_known)
            fail_msg("%s has no kernel test", op);
    }
}

int main(void)
{
    struct CMUnitTest tests[TN_N_CALL_OPS + 1] = {
        cmocka_unit_test(test_no_row_is_forgotten),
    };
    for (size_t i = 0; i < TN_N_CALL_OPS; i++)
        tests[1 + i] = (struct CMUnitTest){.name = tn_kernel_calls[i].op,
                                           .test_func = test_like_ref,
                                           .initial_state = (void *)(uintptr_t)&tn_kernel_calls[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
