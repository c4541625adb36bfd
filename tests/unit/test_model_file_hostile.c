/* SPDX-License-Identifier: MIT
 *
 * Malicious model files: one field is wrong and the head's hash is correct.  Each is refused with
 * the name of the field.
 */
#define PATH "test_model_file_hostile.tern"
#include "hostile_image.h"

static void hostile_headers_are_refused(void **state)
{
    (void)state;
    struct tiny_image image = make_image(&full);
    const struct tern_file_header h = *header_of(&image);
    const struct {
        const char *name;
        size_t offset;
        const struct tern_file_section *section;
    } sections[] = {
#define SECTION(name) {#name, offsetof(struct tern_file_header, name), &h.name}
        SECTION(metadata), SECTION(tensors), SECTION(tokenizer), SECTION(hashes), SECTION(data),
#undef SECTION
    };
    for (size_t i = 0; i < TN_COUNT_OF(sections); i++) {
        const uint64_t offset = sections[i].section->offset, bytes = sections[i].section->bytes;
        const uint64_t offsets[] = {0, 1, offset - 64, offset + 64, offset + 1, offset + 4096,
                                    image.n, image.n + 64, UINT64_MAX, UINT64_MAX - 63,
                                    (uint64_t)1 << 63};
        for (size_t k = 0; k < TN_COUNT_OF(offsets); k++)
            mutate(&image, 0, &(struct mutation){sections[i].name, sections[i].offset, 8,
                                                 offsets[k]});
        /* Changes the size by at least 64 bytes: smaller changes fall into the padding and are
         * harmless. */
        const uint64_t sizes[] = {bytes + 64, bytes - 64, image.n, UINT64_MAX,
                                  UINT64_MAX - offset, UINT64_MAX - offset + 1, (uint64_t)1 << 63};
        for (size_t k = 0; k < TN_COUNT_OF(sizes); k++)
            mutate(&image, 0, &(struct mutation){"", sections[i].offset + 8, 8, sizes[k]});
    }
    const struct mutation list[] = {
        {"not a .tern", FIELD(tern_file_header, magic), 0x1234},
        {"older", FIELD(tern_file_header, version), 0},
        {"older", FIELD(tern_file_header, version), TERN_FILE_VERSION - 1},
        {"newer", FIELD(tern_file_header, version), TERN_FILE_VERSION + 1},
        {"newer", FIELD(tern_file_header, version), UINT32_MAX},
        {"header_bytes", FIELD(tern_file_header, header_bytes), 0},
        {"header_bytes", FIELD(tern_file_header, header_bytes), 255},
        {"header_bytes", FIELD(tern_file_header, header_bytes), UINT32_MAX},
        {"file_bytes", FIELD(tern_file_header, file_bytes), 0},
        {"file_bytes", FIELD(tern_file_header, file_bytes), image.n + 1},
        {"file_bytes", FIELD(tern_file_header, file_bytes), image.n - 1},
        {"truncated", FIELD(tern_file_header, file_bytes), UINT64_MAX},
        {"metadata.bytes", offsetof(struct tern_file_header, metadata) + 8, 8, 0},
        {"metadata.bytes", offsetof(struct tern_file_header, metadata) + 8, 8, 511},
        {"tensors.bytes", offsetof(struct tern_file_header, tensors) + 8, 8, 0},
        {"tensors.bytes", offsetof(struct tern_file_header, tensors) + 8, 8, 96 * (TERN_MAX_TENSORS + 1ull)},
        {"tensors.bytes", offsetof(struct tern_file_header, tensors) + 8, 8, h.tensors.bytes - 1},
        {"hashes.bytes", offsetof(struct tern_file_header, hashes) + 8, 8, 0},
        {"data.bytes", offsetof(struct tern_file_header, data) + 8, 8, 0},
        {"header.reserved", offsetof(struct tern_file_header, reserved) + 0, 1, 1},
        {"header.reserved", offsetof(struct tern_file_header, reserved) + 143, 1, 128},
        {"padding", (size_t)h.data.offset - 1, 1, 1},
    };
    for (size_t i = 0; i < TN_COUNT_OF(list); i++)
        mutate(&image, 0, &list[i]);
    tn_free(image.bytes);
}

/* Offsets of the metadata records: two layers, sources, stop ids. */
#define SOURCES (LAYERS + 2 * sizeof(struct tern_file_layer))
#define STOP_IDS (SOURCES + 2 * sizeof(struct tern_file_source))

static void hostile_layers_are_refused(void **state)
{
    (void)state;
    const uint64_t inf32 = 0x7F800000u, nan32 = 0x7FC00000u, minus1_32 = 0xBF800000u;
    const uint64_t inf64 = 0x7FF0000000000000u, nan64 = 0x7FF8000000000000u,
                   minus1_64 = 0xBFF0000000000000u;
#define L(member) FIELD(tern_file_layer, member)
    const struct mutation list[] = {
        {"mixer", L(mixer), 0}, {"value_dim", L(mixer), TERN_MIXER_GATED_DELTA},
        {"mixer", L(mixer), TERN_MIXER_END}, {"mixer", L(mixer), UINT32_MAX},
        {"value_dim", L(value_dim), 16}, {"conv_taps", L(conv_taps), 4},
        {"delta_flags", L(delta_flags), TERN_DELTA_TILED},
        {"ffn", L(ffn), 0}, {"layers.ffn", L(ffn), TERN_FFN_END},
        {"n_experts", L(ffn), TERN_FFN_EXPERTS}, {"activation", L(activation), 0},
        {"activation", L(activation), 6}, {"activation", L(activation), UINT32_MAX},
        {"layers.rope", L(rope), 0}, {"layers.rope", L(rope), 3},
        {"rope_dims", L(rope_dims), 0}, {"rope_dims", L(rope_dims), 15},
        {"rope_dims", L(rope_dims), 18}, {"rope_dims", L(rope_dims), UINT32_MAX},
        {"window", L(window), TERN_MAX_CONTEXT + 1}, {"window", L(window), UINT32_MAX},
        {"score_scale", L(score_scale), 0}, {"score_scale", L(score_scale), minus1_32},
        {"score_scale", L(score_scale), inf32}, {"score_scale", L(score_scale), nan32},
        {"rope_theta", L(rope_theta), 0}, {"rope_theta", L(rope_theta), minus1_64},
        {"rope_theta", L(rope_theta), 1}, {"rope_theta", L(rope_theta), 0x3FEFFFFFFFFFFFFFu},
        {"rope_theta", L(rope_theta), 0x7E70000000000001u}, /* below 1, above 1e300 */
        {"rope_theta", L(rope_theta), inf64}, {"rope_theta", L(rope_theta), nan64},
        {"rope_scale", L(rope_scale), 1}, {"rope_scale", L(rope_scale), minus1_32},
        {"rope_scale", L(rope_scale), inf32}, {"rope_scale", L(rope_scale), nan32},
        {"layers.reserved", offsetof(struct tern_file_layer, reserved), 1, 1},
        {"layers.reserved", offsetof(struct tern_file_layer, reserved) + 2, 1, 255},
        {"is_draft", L(is_draft), 1}, {"is_draft", L(is_draft), 255},
        {"n_head", L(n_head), TERN_MAX_DIM + 1}, {"n_kv_head", L(n_head), 3},
        {"cols", L(n_head), 8}, {"n_kv_head", L(n_kv_head), 3}, {"n_kv_head", L(n_kv_head), 5},
        {"rows", L(n_kv_head), 1}, {"head_dim", L(head_dim), 17}, {"rope_dims", L(head_dim), 8},
        {"cols", L(head_dim), 18}, {"n_head * head_dim", L(head_dim), TERN_MAX_DIM},
        {"cols", L(ffn_dim), 95}, {"ffn", L(ffn_dim), UINT32_MAX},
    };
#undef L
    struct tiny_image image = make_image(&full);
    size_t metadata = (size_t)header_of(&image)->metadata.offset;
    for (size_t i = 0; i < TN_COUNT_OF(list); i++)
        for (size_t layer = 0; layer < 2; layer++)
            mutate(&image, metadata + LAYERS + layer * sizeof(struct tern_file_layer), &list[i]);
    tn_free(image.bytes);
}

static void hostile_configurations_are_refused(void **state)
{
    (void)state;
    const uint64_t inf32 = 0x7F800000u, nan32 = 0x7FC00000u, minus1_32 = 0xBF800000u;
#define C(member) FIELD(tern_file_config, member)
    const struct mutation list[] = {
        {"flags", C(flags), 4}, {"flags", C(flags), 1u << 31},
        {"both", C(flags), TERN_MODEL_TIED_HEAD | TERN_MODEL_NO_HEAD},
        {"head", C(flags), TERN_MODEL_TIED_HEAD}, /* although there is a head */
        {"head", C(flags), TERN_MODEL_NO_HEAD},
        {"n_layer", C(n_layer), 0}, {"n_layer", C(n_layer), 1025},
        {"n_layer", C(n_layer), UINT32_MAX}, {"layer", C(n_layer), 1}, {"layers", C(n_layer), 3},
        {"hidden", C(hidden), 0}, {"hidden", C(hidden), TERN_MAX_DIM + 1},
        {"hidden", C(hidden), UINT32_MAX}, {"cols", C(hidden), 63}, {"cols", C(hidden), 128},
        {"ffn", C(ffn), 0}, {"ffn", C(ffn), TERN_MAX_DIM + 1}, {"ffn", C(ffn), UINT32_MAX},
        {"cols", C(ffn), 97}, {"cols", C(ffn), TERN_MAX_DIM},
        {"n_head", C(n_head), 0}, {"n_head", C(n_head), TERN_MAX_DIM + 1},
        {"n_head", C(n_head), UINT32_MAX}, {"n_kv_head", C(n_head), 1}, {"n_kv_head", C(n_head), 3},
        {"n_head * head_dim", C(n_head), TERN_MAX_DIM}, {"cols", C(n_head), 8},
        {"n_kv_head", C(n_kv_head), 0}, {"n_kv_head", C(n_kv_head), 3},
        {"n_kv_head", C(n_kv_head), 5}, {"n_kv_head", C(n_kv_head), UINT32_MAX},
        {"rows", C(n_kv_head), 1}, {"rows", C(n_kv_head), 4},
        {"head_dim", C(head_dim), 0}, {"head_dim", C(head_dim), 15},
        {"head_dim", C(head_dim), TERN_MAX_DIM + 2}, {"head_dim", C(head_dim), UINT32_MAX},
        {"n_head * head_dim", C(head_dim), TERN_MAX_DIM}, {"cols", C(head_dim), 32},
        {"vocab", C(vocab), 0}, {"vocab", C(vocab), TERN_MAX_VOCAB + 1},
        {"vocab", C(vocab), UINT32_MAX}, {"stop_ids", C(vocab), 3}, {"bos_id", C(vocab), 1},
        {"rows", C(vocab), 39}, {"rows", C(vocab), TERN_MAX_VOCAB},
        {"context", C(context), 0}, {"context", C(context), TERN_MAX_CONTEXT + 1},
        {"context", C(context), UINT32_MAX},
        {"inputs", C(inputs), 2}, {"inputs", C(inputs), UINT32_MAX},
        {"pooling", C(pooling), 4}, {"pooling", C(pooling), UINT32_MAX},
        {"rms_eps", C(rms_eps), 0}, {"rms_eps", C(rms_eps), 0x80000000u},
        {"rms_eps", C(rms_eps), minus1_32}, {"rms_eps", C(rms_eps), inf32},
        {"rms_eps", C(rms_eps), nan32},
        {"in_norm_eps", C(in_norm_eps), 0}, {"in_norm_eps", C(in_norm_eps), nan32},
        {"embedding_scale", C(embedding_scale), 0},
        {"embedding_scale", C(embedding_scale), minus1_32},
        {"residual_scale", C(residual_scale), inf32}, {"logit_scale", C(logit_scale), nan32},
        {"bos_id", C(bos_id), 40}, {"bos_id", C(bos_id), UINT32_MAX - 1},
        {"stop_ids", offsetof(struct tern_file_config, stop_ids), 4, UINT32_MAX},
        {"stop_ids", offsetof(struct tern_file_config, stop_ids), 4, 514},
        {"stop_ids", offsetof(struct tern_file_config, stop_ids) + 4, 4, 7},
        {"stop_ids", offsetof(struct tern_file_config, stop_ids) + 4, 4, 1u << 30},
        {"layers", offsetof(struct tern_file_config, layers), 4, 516},
        {"layers", offsetof(struct tern_file_config, layers), 4, UINT32_MAX},
        {"layers", offsetof(struct tern_file_config, layers) + 4, 4, 64},
        {"layers", offsetof(struct tern_file_config, layers) + 4, 4, 192},
        {"layers", offsetof(struct tern_file_config, layers) + 4, 4, 127},
        {"n_fingerprint_ids", C(n_fingerprint_ids), 9},
        {"n_fingerprint_ids", C(n_fingerprint_ids), UINT32_MAX},
        {"fingerprint_ids", offsetof(struct tern_file_config, fingerprint_ids), 4, 1},
        {"fingerprint_ids", offsetof(struct tern_file_config, fingerprint_ids) + 28, 4, UINT32_MAX},
        {"stop_ids", STOP_IDS, 4, 40}, {"stop_ids", STOP_IDS + 4, 4, UINT32_MAX},
        {"cache", C(cache), 2}, {"cache", C(cache), UINT32_MAX},
        /* Fields of experts in a model without experts. */
        {"n_experts", C(n_experts), 1}, {"n_experts", C(n_experts), UINT32_MAX},
        {"n_experts_used", C(n_experts_used), 1}, {"expert_ffn", C(expert_ffn), 64},
        {"shared_ffn", C(shared_ffn), 64},
        {"expert_flags", C(expert_flags), 1}, {"expert_flags", C(expert_flags), 2},
        {"expert_limit", C(expert_limit), minus1_32}, {"expert_limit", C(expert_limit), nan32},
        {"expert_limit", C(expert_limit), inf32},
        /* Fields of rotation in a model without rotation. */
        {"rotation_block", C(rotation_block), 3},
        {"rotations", offsetof(struct tern_file_config, rotations), 4, 512},
        {"rotations", offsetof(struct tern_file_config, rotations) + 4, 4, 16},
        {"score_cap", C(score_cap), minus1_32}, {"score_cap", C(score_cap), nan32},
        {"score_cap", C(score_cap), inf32},     {"score_cap", C(score_cap), 1},
        {"logit_cap", C(logit_cap), minus1_32}, {"logit_cap", C(logit_cap), nan32},
        {"logit_cap", C(logit_cap), inf32},     {"logit_cap", C(logit_cap), 1},
        {"norm", C(norm), TERN_NORM_END}, {"norm", C(norm), UINT32_MAX},
        {"order", C(order), TERN_ORDER_END}, {"order", C(order), UINT32_MAX},
        /* The file has all norms, and no matrices of another width. */
        {"no such norm", C(order), TERN_ORDER_BARE}, {"no such norm", C(order), TERN_ORDER_AFTER},
        {"no such norm", C(order), TERN_ORDER_SHARED},
        {"embed_width", C(embed_width), 65}, {"embed_width", C(embed_width), UINT32_MAX},
        {"cols", C(embed_width), 32}, {"embed_in", C(embed_width), 64},
        {"config.reserved", offsetof(struct tern_file_config, reserved), 1, 1},
        {"config.reserved", offsetof(struct tern_file_config, reserved) + 263, 1, 255},
        {"layers", C(n_draft_layer), 1}, {"n_draft_layer", C(n_draft_layer), 2},
        {"n_draft_layer", C(n_draft_layer), UINT32_MAX},
        {"sources", offsetof(struct tern_file_config, sources), 4, 513},
        {"sources", offsetof(struct tern_file_config, sources), 4, UINT32_MAX},
        {"sources", offsetof(struct tern_file_config, sources) + 4, 4, 47},
        {"sources", offsetof(struct tern_file_config, sources) + 4, 4, UINT32_MAX},
        {"sources.name", SOURCES, 4, UINT32_MAX},
        {"sources.name", SOURCES + 4, 4, UINT32_MAX},
        {"sources.name", SOURCES + 24 + 4, 4, 1u << 20},
    };
    struct tiny_image image = make_image(&full);
    size_t metadata = (size_t)header_of(&image)->metadata.offset;
    for (size_t i = 0; i < TN_COUNT_OF(list); i++)
        mutate(&image, metadata, &list[i]);

    static const struct {
        const char *name;
        size_t offset; /* of the reference */
        bool is_line;
    } texts[] = {
        {"family", offsetof(struct tern_file_config, family), true},
        {"name", offsetof(struct tern_file_config, name), true},
        {"template_name", offsetof(struct tern_file_config, template_name), true},
        {"template_source", offsetof(struct tern_file_config, template_source), false},
        {"converter", offsetof(struct tern_file_config, converter), true},
    };
    for (size_t i = 0; i < TN_COUNT_OF(texts); i++) {
        struct tern_file_ref ref;
        memcpy(&ref, image.bytes + metadata + texts[i].offset, sizeof ref);
        const struct mutation m[] = {
            {texts[i].name, texts[i].offset, 4, UINT32_MAX},
            {texts[i].name, texts[i].offset, 4, 1u << 20},
            {texts[i].name, texts[i].offset + 4, 4, UINT32_MAX},
            {texts[i].name, texts[i].offset + 4, 4, 1u << 20},
            {texts[i].name, texts[i].offset, 8, UINT64_MAX},
            {texts[i].name, ref.offset, 1, 0},         /* NUL */
            {texts[i].name, ref.offset, 1, 0x1B},      /* escape */
            {texts[i].name, ref.offset + ref.bytes - 2, 2,
             texts[i].is_line ? 0x9BC2 : 0x9B41}, /* U+009B acts like an escape; or invalid UTF-8 */
            {texts[i].name, ref.offset, 1, 0x80},      /* not a first byte */
            {texts[i].name, ref.offset, 1, 0xFF},
            {texts[i].name, ref.offset, 2, 0xAFC0},    /* overlong */
            {texts[i].name, ref.offset, 3, 0x80A0ED},  /* surrogate */
            {texts[i].name, ref.offset, 4, 0x808090F4}, /* beyond U+10FFFF */
            {texts[i].name, ref.offset + ref.bytes - 1, 1, 0xE2}, /* truncated */
        };
        for (size_t k = 0; k < TN_COUNT_OF(m); k++)
            mutate(&image, metadata, &m[k]);
    }
    tn_free(image.bytes);
#undef C
}

static void hostile_tensors_are_refused(void **state)
{
    (void)state;
    const uint64_t inf32 = 0x7F800000u, nan32 = 0x7FC00000u, minus1_32 = 0xBF800000u;
    struct tiny_image image = make_image(&full);
    struct tn_model_file file;
    struct tern_error err;
    assert_int_equal(tn_model_file_check(&file, image.bytes, image.n, "model", &err), TERN_OK);
#define T(member) FIELD(tern_file_tensor, member)
    for (uint32_t i = 0; i < file.n_tensors; i++) {
        const struct tern_file_tensor t = file.tensors[i];
        const char *name = tn_role_name(t.role);
        bool ternary = t.layout >= TERN_LAYOUT_T2;
        const struct mutation list[] = {
            {"role", T(role), 0}, {"role", T(role), TN_ROLE_END},
            {"role", T(role), UINT32_MAX}, {"", T(role), TERN_ROLE_Q_NORM},
            {"", T(role), TERN_ROLE_O_BIAS}, {"", T(role), TERN_ROLE_ROPE_FACTORS},
            {"layer", T(layer), 2}, {"layer", T(layer), 0xFFFFFFFEu},
            {"layer", T(layer), t.layer == TERN_NO_LAYER ? 0 : TERN_NO_LAYER},
            {"layout", T(layout), 0}, {"layout", T(layout), TERN_LAYOUT_T3},
            {"layout", T(layout),
             t.layout <= TERN_LAYOUT_Q4 && t.rows > 1 ? TERN_LAYOUT_R2 : TERN_LAYOUT_Q4},
            {"layout", T(layout), 32}, {"layout", T(layout), UINT32_MAX},
            {"layout", T(layout), ternary ? TERN_LAYOUT_Q8 : TERN_LAYOUT_C2},
            {"scale_kind", T(scale_kind), 3}, {"scale_kind", T(scale_kind), 4},
            {"scale_kind", T(scale_kind), UINT32_MAX},
            {"scale_kind", T(scale_kind), t.scale_kind == 0 ? 1 : 0},
            {"rows", T(rows), 0}, {"rows", T(rows), t.rows + 1}, {"rows", T(rows), UINT32_MAX},
            {"cols", T(cols), 0}, {"cols", T(cols), t.cols - 1}, {"cols", T(cols), UINT32_MAX},
            {"scale_group", T(scale_group), 1},
            {"scale is", T(scale), minus1_32}, {"scale is", T(scale), inf32},
            {"scale is", T(scale), nan32},
            {"offset", T(offset), 0}, {"offset", T(offset), t.offset + 64},
            {"offset", T(offset), t.offset - 64}, {"offset", T(offset), t.offset + 1},
            {"offset", T(offset), image.n}, {"offset", T(offset), UINT64_MAX},
            {"offset", T(offset), (uint64_t)1 << 63},
            {"bytes", T(bytes), 0}, {"bytes", T(bytes), t.bytes + 1},
            {"bytes", T(bytes), t.bytes - 1}, {"bytes", T(bytes), UINT64_MAX},
            {"bytes", T(bytes), (uint64_t)0 - t.offset},
            {"scale_offset", T(scale_offset), t.scale_offset + 64},
            {"scale_offset", T(scale_offset), UINT64_MAX},
            {"scale_bytes", T(scale_bytes), t.scale_bytes + 4},
            {"scale_bytes", T(scale_bytes), UINT64_MAX},
            {"n_zero", T(n_zero), (uint64_t)t.rows * t.cols + 1}, {"n_zero", T(n_zero), UINT64_MAX},
            {"tensor.reserved", offsetof(struct tern_file_tensor, reserved), 8, 1},
            {"tensor.reserved", offsetof(struct tern_file_tensor, reserved) + 8, 8, UINT64_MAX},
            {"rotated", T(flags), TERN_TENSOR_ROTATED}, /* although there are no rotations */
            {"tensor.flags", T(flags), 2}, {"tensor.flags", T(flags), UINT32_MAX},
            {"n_stacked", offsetof(struct tern_file_tensor, n_stacked), 4, 1},
        };
        size_t base = (size_t)file.header->tensors.offset + i * sizeof *file.tensors;
        for (size_t k = 0; k < TN_COUNT_OF(list); k++)
            mutate(&image, base, &list[k]);
        /* The message names the tensor. */
        struct tiny_image copy = copy_image(&image);
        memset(copy.bytes + base + offsetof(struct tern_file_tensor, rows), 0, 4);
        fix_hash(&copy);
        assert_int_equal(check(&copy, &err), TERN_INPUT);
        assert_non_null(strstr(err.detail, name));
        tn_free(copy.bytes);
    }
#undef T
    tn_model_file_close(&file);
    tn_free(image.bytes);
    print_message("%u hostile fields\n", n_mutations);
    assert_true(n_mutations >= 200);
}

static void tables_out_of_order_are_refused(void **state)
{
    (void)state;
    struct tiny_image image = make_image(&full);
    struct tern_error err;
    size_t table = (size_t)header_of(&image)->tensors.offset;
    const size_t size = sizeof(struct tern_file_tensor);
    struct tiny_image copy = copy_image(&image);
    memcpy(copy.bytes + table + size, image.bytes + table, 8);
    fix_hash(&copy);
    assert_int_equal(check(&copy, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "same role and layer"));
    memcpy(copy.bytes + table, image.bytes + table + size, size);
    memcpy(copy.bytes + table + size, image.bytes + table, size);
    fix_hash(&copy);
    assert_int_equal(check(&copy, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "\"layers.0.ffn_norm\": offset"));
    tn_free(copy.bytes);
    tn_free(image.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(hostile_layers_are_refused),
        cmocka_unit_test(hostile_configurations_are_refused),
        cmocka_unit_test(hostile_tensors_are_refused),
        cmocka_unit_test(tables_out_of_order_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
