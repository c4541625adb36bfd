/* SPDX-License-Identifier: MIT
 *
 * Malicious model files: parts that only some models have (draft heads, experts, rotations), and
 * data that are checked at the start (scales, shifts).
 */
#define PATH "test_model_file_parts.tern"
#include "hostile_image.h"

/* A draft head, whose layer follows the two of the model. */
static void hostile_draft_heads_are_refused(void **state)
{
    (void)state;
    static const struct tiny_variant draft = {.embed_layout = TERN_LAYOUT_Q8, .has_head = true,
                                              .has_draft = true};
    struct tiny_image image = make_image(&draft);
    struct tn_model_file file;
    struct tern_error err;
    const size_t metadata = (size_t)header_of(&image)->metadata.offset;
    const struct mutation configs[] = {
        {"layers.bytes", FIELD(tern_file_config, n_draft_layer), 0},
        {"n_draft_layer", FIELD(tern_file_config, n_draft_layer), 2},
        {"without a head", FIELD(tern_file_config, flags), TERN_MODEL_NO_HEAD},
        {"2 * hidden", FIELD(tern_file_config, hidden), TERN_MAX_DIM},
        {"embed_width", FIELD(tern_file_config, embed_width), 32},
        {"layers.bytes", FIELD(tern_file_config, n_layer), 1},
    };
    const struct mutation layers[] = {
        {"is_draft is 0, must be 1", FIELD(tern_file_layer, is_draft), 0},
        {"is_draft", FIELD(tern_file_layer, is_draft), 2},
        {"layers.ffn 2 is not supported in a draft", FIELD(tern_file_layer, ffn), TERN_FFN_EXPERTS},
        {"rope_dims", FIELD(tern_file_layer, rope_dims), 18},
    };
    assert_int_equal(tn_model_file_check(&file, image.bytes, image.n, "model", &err), TERN_OK);
    for (size_t i = 0; i < TN_COUNT_OF(configs); i++)
        mutate(&image, metadata, &configs[i]);
    for (size_t i = 0; i < TN_COUNT_OF(layers); i++)
        mutate(&image, metadata + LAYERS + 2 * sizeof(struct tern_file_layer), &layers[i]);
    for (uint32_t i = 0; i < file.n_tensors; i++) {
        const bool is_of_head = file.tensors[i].role >= TERN_ROLE_DRAFT_EMBED_NORM;
        const struct mutation list[] = {
            {"layer", FIELD(tern_file_tensor, layer), 3},
            {is_of_head ? "not for this kind of layer" : "", FIELD(tern_file_tensor, layer), 1},
            {"cols", FIELD(tern_file_tensor, cols), file.tensors[i].cols / 2},
        };
        for (size_t k = 0; k < TN_COUNT_OF(list) && file.tensors[i].layer == 2; k++)
            mutate(&image, (size_t)header_of(&image)->tensors.offset +
                               i * sizeof(struct tern_file_tensor), &list[k]);
    }
    tn_model_file_close(&file);
    tn_free(image.bytes);
}

/* Sizes of experts and of stacks. */
static void hostile_experts_are_refused(void **state)
{
    (void)state;
    static const struct tiny_variant experts = {.embed_layout = TERN_LAYOUT_Q8,
                                                .has_experts = true};
    struct tiny_image image = make_image(&experts);
    struct tn_model_file file;
    struct tern_error err;
    assert_int_equal(tn_model_file_check(&file, image.bytes, image.n, "model", &err), TERN_OK);
#define C(member) FIELD(tern_file_config, member)
    const struct mutation sizes[] = {
        {"n_experts", C(n_experts), 0}, {"n_experts", C(n_experts), TERN_MAX_EXPERTS + 1},
        {"n_experts", C(n_experts), UINT32_MAX}, {"must be 2", C(n_experts), 2},
        {"must be 4", C(n_experts), 4}, {"n_experts_used", C(n_experts_used), 0},
        {"n_experts_used", C(n_experts_used), 4}, {"expert_ffn", C(expert_ffn), 0},
        {"must be 31", C(expert_ffn), 31}, {"expert_ffn", C(expert_ffn), TERN_MAX_DIM + 1},
        {"no shared expert", C(shared_ffn), 0}, {"must be 49", C(shared_ffn), 49},
        {"shared_ffn", C(shared_ffn), TERN_MAX_DIM + 1}, {"expert_flags", C(expert_flags), 2},
    };
#undef C
    for (size_t k = 0; k < TN_COUNT_OF(sizes); k++)
        mutate(&image, (size_t)file.header->metadata.offset, &sizes[k]);
    const size_t i = (size_t)(tn_model_file_tensor(&file, TERN_ROLE_EXPERT_UP, 1) - file.tensors);
#define T(member) FIELD(tern_file_tensor, member)
    const struct mutation stacks[] = {
        {"n_stacked", T(n_stacked), 0}, {"n_stacked", T(n_stacked), 2},
        {"n_stacked", T(n_stacked), 4}, {"n_stacked", T(n_stacked), UINT32_MAX},
        {"rows", T(rows), 64}, {"bytes", T(bytes), file.tensors[i].bytes / 3},
        {"not for this kind of layer", T(layer), 0},
        {"n_zero", T(n_zero), 3ull * 32 * 64 + 1},
    };
#undef T
    for (size_t k = 0; k < TN_COUNT_OF(stacks); k++)
        mutate(&image, (size_t)file.header->tensors.offset + i * sizeof *file.tensors, &stacks[k]);
    tn_model_file_close(&file);
    tn_free(image.bytes);
}

static void hostile_rotations_are_refused(void **state)
{
    (void)state;
    static const struct tiny_variant rotated = {
        .embed_layout = TERN_LAYOUT_Q8, .has_head = true, .is_rotated = true};
    struct tiny_image image = make_image(&rotated);
    struct tern_error err;
    struct tn_model_file file;
    assert_int_equal(tn_model_file_check(&file, image.bytes, image.n, "model", &err), TERN_OK);
    assert_int_equal(file.spec.n_rotations, 2);
    const size_t config = (size_t)file.header->metadata.offset;
    const struct tern_file_ref ref = file.spec.config->rotations;
    const struct mutation of_config[] = {
#define C(member) FIELD(tern_file_config, member)
        {"rotations", C(rotation_block), 0}, {"rotation_block", C(rotation_block), 1},
        {"power of two", C(rotation_block), 48}, {"multiple of", C(rotation_block), 64},
        {"rotation_block", C(rotation_block), 1u << 21},
        {"rotation_block", C(rotation_block), UINT32_MAX},
        {"rotations", offsetof(struct tern_file_config, rotations), 4, ref.offset + 2},
        {"rotations", offsetof(struct tern_file_config, rotations), 4, UINT32_MAX},
        {"rotations", offsetof(struct tern_file_config, rotations) + 4, 4, ref.bytes - 1},
        {"rotations", offsetof(struct tern_file_config, rotations) + 4, 4, UINT32_MAX},
        /* Rotates half of the matrices, so the other half has no flag. */
        {"is rotated, but", offsetof(struct tern_file_config, rotations) + 4, 4, 16},
#undef C
    };
    const struct mutation of_record[] = {
#define R(member) FIELD(tern_file_rotation, member)
        {"rotations.cols", R(cols), 64}, {"multiple of", R(cols), 80},
        {"rotations.cols", R(cols), UINT32_MAX}, {"rotations.signs.bytes", R(cols), 128},
        {"rotations.reserved", R(reserved), 1},
        {"rotations.signs", offsetof(struct tern_file_rotation, signs), 4, UINT32_MAX},
        {"rotations.signs.bytes", offsetof(struct tern_file_rotation, signs) + 4, 4, 11},
        {"rotations.signs.bytes", offsetof(struct tern_file_rotation, signs) + 4, 4, UINT32_MAX},
#undef R
    };
    for (size_t i = 0; i < TN_COUNT_OF(of_config); i++)
        mutate(&image, config, &of_config[i]);
    for (size_t i = 0; i < TN_COUNT_OF(of_record); i++)
        mutate(&image, config + ref.offset + sizeof(struct tern_file_rotation), &of_record[i]);
    tn_model_file_close(&file);
    tn_free(image.bytes);
}

/* Row scales are data, but are checked too. */
static void hostile_row_scales_are_refused(void **state)
{
    (void)state;
    struct tiny_image image = make_image(&full);
    struct tn_model_file file;
    struct tern_error err;
    assert_int_equal(tn_model_file_check(&file, image.bytes, image.n, "model", &err), TERN_OK);
    const struct tern_file_tensor *embed =
        tn_model_file_tensor(&file, TERN_ROLE_EMBED, TERN_NO_LAYER);
    const struct mutation scales[] = {
        {"row 3", 12, 4, 0x7FC00000u},    /* NaN */
        {"row 39", 156, 4, 0x7F800000u}, /* infinity */
        {"row 0", 0, 4, 0xBF800000u},     /* -1 */
    };
    for (size_t i = 0; i < TN_COUNT_OF(scales); i++)
        mutate(&image, (size_t)embed->scale_offset, &scales[i]);
    tn_model_file_close(&file);
    tn_free(image.bytes);
}

static void hostile_shifts_are_refused(void **state)
{
    (void)state;
    static const struct tiny_variant planes = {
        TERN_LAYOUT_Q8_PLANES, false, true, true, true, 0, false, false, 0, false};
    static const unsigned char forms[] = {16, 15 + 16, 128, 255};
    struct tiny_image image = make_image(&planes);
    struct tern_error err;
    struct tn_model_file file;
    assert_int_equal(tn_model_file_check(&file, image.bytes, image.n, "model", &err), TERN_OK);
    const struct tern_file_tensor *t = tn_model_file_tensor(&file, TERN_ROLE_EMBED, TERN_NO_LAYER);
    unsigned char *last = image.bytes + t->scale_offset + t->scale_bytes - 1;
    for (size_t i = 0; i < TN_COUNT_OF(forms); i++) {
        *last = forms[i];
        assert_int_equal(check(&image, &err), TERN_INPUT);
        assert_non_null(strstr(err.detail, "shift of row"));
    }
    *last = 15;
    assert_int_equal(check(&image, &err), TERN_OK);
    tn_model_file_close(&file);
    tn_free(image.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_draft_heads_are_refused),
        cmocka_unit_test(hostile_experts_are_refused),
        cmocka_unit_test(hostile_rotations_are_refused),
        cmocka_unit_test(hostile_row_scales_are_refused),
        cmocka_unit_test(hostile_shifts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
