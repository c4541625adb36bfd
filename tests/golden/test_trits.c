/* SPDX-License-Identifier: MIT
 *
 * The ternary tensors of converted reference models, compared with golden/trits.json (counts,
 * CRC-32 of the trits, scales) and with each other: latent and packed forms of the same weights
 * give the same trits, and the same input the same bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "file/model_file.h"
#include "kern/pack.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "trits_crc.h"

#define MODELS TERN_SHARED_DIR "/reference/models/"
#define OUTPUT TERN_BUILD_DIR "/test_trits_"

static void convert(const char *source, const char *output, enum tern_head_type head)
{
    const struct tern_convert_params params = {.source = source, .output = output, .head = head};
    struct tern_convert_result result;
    struct tern_error err;
    if (tern_convert(&params, &result, &err) != TERN_OK)
        fail_msg("%s: %s", source, err.detail);
    assert_string_equal(result.output, output);
}

static void open_model(struct tn_model_file *out, const char *path)
{
    struct tern_error err;
    if (tn_model_file_open(out, path, &err) != TERN_OK)
        fail_msg("%s: %s", path, err.detail);
}

/* Trits of a tensor in new memory (free). */
static int8_t *unpack(const struct tn_model_file *file, const struct tern_file_tensor *t)
{
    int8_t *trits = malloc((size_t)t->rows * t->cols);
    assert_non_null(trits);
    tn_unpack_rows(trits, tn_model_file_data(file, t), t->layout, t->rows, t->cols, 0, t->rows);
    return trits;
}

static void check_tensor(const struct tn_model_file *file, const char *name, const json_t *golden)
{
    static const struct {
        const char *name;
        enum tern_role role;
        enum tern_layout layout;
    } roles[] = {
        {"self_attn.q_proj", TERN_ROLE_Q, TERN_LAYOUT_T2},
        {"self_attn.k_proj", TERN_ROLE_K, TERN_LAYOUT_T2},
        {"self_attn.v_proj", TERN_ROLE_V, TERN_LAYOUT_T2},
        {"self_attn.o_proj", TERN_ROLE_O, TERN_LAYOUT_T2},
        {"mlp.gate_proj", TERN_ROLE_GATE, TERN_LAYOUT_T2},
        {"mlp.up_proj", TERN_ROLE_UP, TERN_LAYOUT_R2},
        {"mlp.down_proj", TERN_ROLE_DOWN, TERN_LAYOUT_C2},
    };
    unsigned layer;
    char part[64];
    assert_int_equal(sscanf(name, "model.layers.%u.%63s", &layer, part), 2);
    size_t i = 0;
    while (strcmp(roles[i].name, part) != 0)
        assert_true(++i < sizeof roles / sizeof *roles);
    const struct tern_file_tensor *t = tn_model_file_tensor(file, roles[i].role, layer);
    assert_non_null(t);
    assert_int_equal(t->layout, roles[i].layout);
    const json_t *shape = json_object_get(golden, "shape");
    assert_int_equal(t->rows, json_integer_value(json_array_get(shape, 0)));
    assert_int_equal(t->cols, json_integer_value(json_array_get(shape, 1)));
    int8_t *trits = unpack(file, t);
    const size_t n = (size_t)t->rows * t->cols;
    size_t count[3] = {0, 0, 0};
    for (size_t k = 0; k < n; k++) {
        assert_in_range(trits[k] + 1, 0, 2);
        count[trits[k] + 1]++;
    }
    assert_int_equal(count[0], json_integer_value(json_object_get(golden, "minus")));
    assert_int_equal(count[1], json_integer_value(json_object_get(golden, "zero")));
    assert_int_equal(count[2], json_integer_value(json_object_get(golden, "plus")));
    assert_int_equal(t->n_zero, count[1]);
    assert_true(trits_have_crc(trits, n, golden));
    free(trits);
    const json_t *scales = json_object_get(golden, "scales");
    assert_int_equal(json_array_size(scales), 1);
    /* The same bits in f32: absmean in float64 leaves no room for more than that. */
    assert_true(t->scale == (float)json_number_value(json_array_get(scales, 0)));
}

static void check_model(const char *model)
{
    char source[1024];
    char golden_path[1024];
    char output[1024];
    snprintf(source, sizeof source, "%s%s", MODELS, model);
    snprintf(golden_path, sizeof golden_path, "%s%s/golden/trits.json", MODELS, model);
    snprintf(output, sizeof output, "%s%s.tern", OUTPUT, model);
    convert(source, output, TERN_HEAD_Q8);
    struct tn_model_file file;
    open_model(&file, output);
    json_error_t error;
    json_t *golden = json_load_file(golden_path, 0, &error);
    if (!golden)
        fail_msg("%s: %s", golden_path, error.text);
    size_t n_ternary = 0;
    for (uint32_t i = 0; i < file.n_tensors; i++)
        n_ternary += file.tensors[i].scale_kind == TERN_SCALE_TENSOR;
    assert_int_equal(json_object_size(golden), n_ternary);
    const char *name;
    json_t *value;
    json_object_foreach(golden, name, value)
        check_tensor(&file, name, value);
    json_decref(golden);
    tn_model_file_close(&file);
}

static void test_latent(void **state)
{
    (void)state;
    check_model("tiny-bitnet-bf16");
}

static void test_packed(void **state)
{
    (void)state;
    check_model("tiny-bitnet-packed");
}

/* Scales differ (those in the packed file are rounded to BF16), trits do not. */
static void test_latent_equals_packed(void **state)
{
    (void)state;
    struct tn_model_file a;
    struct tn_model_file b;
    open_model(&a, OUTPUT "tiny-bitnet-bf16.tern");
    open_model(&b, OUTPUT "tiny-bitnet-packed.tern");
    assert_int_equal(a.n_tensors, b.n_tensors);
    size_t n_compared = 0;
    for (uint32_t i = 0; i < a.n_tensors; i++) {
        const struct tern_file_tensor *t = &a.tensors[i];
        assert_int_equal(t->role, b.tensors[i].role);
        assert_int_equal(t->bytes, b.tensors[i].bytes);
        if (t->scale_kind != TERN_SCALE_TENSOR)
            continue;
        assert_memory_equal(tn_model_file_data(&a, t), tn_model_file_data(&b, &b.tensors[i]),
                            t->bytes);
        n_compared++;
    }
    assert_int_equal(n_compared, 21);
    tn_model_file_close(&a);
    tn_model_file_close(&b);
}

static void assert_same_file(const char *path_a, const char *path_b)
{
    char *a;
    char *b;
    size_t n_a;
    size_t n_b;
    struct tern_error err;
    assert_int_equal(tn_file_read_all(&a, &n_a, path_a, 1u << 28, &err), TERN_OK);
    assert_int_equal(tn_file_read_all(&b, &n_b, path_b, 1u << 28, &err), TERN_OK);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    tn_free(a);
    tn_free(b);
}

static void test_same_input_same_bytes(void **state)
{
    (void)state;
    static const enum tern_head_type heads[] = {TERN_HEAD_Q8, TERN_HEAD_F16, TERN_HEAD_BF16};
    for (size_t i = 0; i < 3; i++) {
        convert(MODELS "demo", OUTPUT "a.tern", heads[i]);
        convert(MODELS "demo", OUTPUT "b.tern", heads[i]);
        assert_same_file(OUTPUT "a.tern", OUTPUT "b.tern");
    }
}

static int clean(void **state)
{
    (void)state;
    tn_file_remove(OUTPUT "tiny-bitnet-bf16.tern");
    tn_file_remove(OUTPUT "tiny-bitnet-packed.tern");
    tn_file_remove(OUTPUT "a.tern");
    tn_file_remove(OUTPUT "b.tern");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latent),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_latent_equals_packed),
        cmocka_unit_test(test_same_input_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, clean);
}
