/* SPDX-License-Identifier: MIT
 *
 * The model of tiny_model.h: weights from a generator with a fixed seed, written by the real
 * writer.
 */
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "file/model_file.h"
#include "kern/bit_planes.h"

#define HIDDEN 64u
#define FFN 96u
#define VOCAB 40u
#define KV 32u
#define N_LAYER 2u
#define EXPERT_LAYER 1u
#define N_EXPERTS 3u
#define EXPERT_FFN 32u
#define SHARED_FFN 48u

static const struct tn_mwriter_source tiny_sources[] = {
    {"config.json", 123, 0x0123456789ABCDEFu},
    {"model.safetensors", 45678, 0xFEDCBA9876543210u},
};

static const uint8_t tiny_signs[FFN / 8] = {0x5A, 0xFF, 0, 1, [11] = 0x80};
static const struct tern_file_rotation tiny_rotations[] = {
    {.cols = HIDDEN},
    {.cols = FFN, .signs = {.offset = 0, .bytes = sizeof tiny_signs}},
};

struct tn_mwriter_meta tiny_model_meta(const struct tiny_variant *variant)
{
    static const char template_source[] = "{% for m in messages %}\n{{ m.content }}";
    static const uint32_t stop_ids[] = {2, 3};
    static struct tern_file_layer layers[N_LAYER + 1];
    for (uint32_t i = 0; i <= N_LAYER; i++)
        layers[i] = tn_layer_default(16, TERN_ACT_RELU2, 10000);
    layers[N_LAYER].is_draft = 1;
    layers[0].window = variant->window;
    if (variant->has_experts)
        layers[EXPERT_LAYER].ffn = TERN_FFN_EXPERTS;
    struct tn_mwriter_meta meta = {
        .config = {
            .flags = variant->has_head ? 0 : TERN_MODEL_TIED_HEAD,
            .n_layer = N_LAYER,
            .hidden = HIDDEN,
            .ffn = FFN,
            .n_head = 4,
            .n_kv_head = 2,
            .head_dim = 16,
            .vocab = VOCAB,
            .context = variant->context ? variant->context : 64,
            .inputs = TERN_INPUTS_I8_TOKEN,
            .bos_id = 1,
            .rms_eps = 1e-5f,
            .in_norm_eps = 1e-6f,
            .embedding_scale = 1,
            .residual_scale = 1,
            .logit_scale = 1,
            .n_params = 1,
            .n_draft_layer = variant->has_draft,
        },
        .layers = layers,
        .stop_ids = stop_ids,
        .n_stop_ids = TN_COUNT_OF(stop_ids),
        .family = "tiny family",
        .name = "tiny",
        .template_name = "llama3",
        .template_source = template_source,
        .template_source_bytes = sizeof template_source - 1,
        .converter = "tern test",
        .n_sources = TN_COUNT_OF(tiny_sources),
        .sources = tiny_sources,
    };
    if (variant->has_experts) {
        meta.config.n_experts = N_EXPERTS;
        meta.config.n_experts_used = 2;
        meta.config.expert_ffn = EXPERT_FFN;
        meta.config.shared_ffn = SHARED_FFN;
        meta.config.expert_flags = TERN_EXPERTS_RENORMALISED;
    }
    if (variant->is_rotated) {
        meta.config.rotation_block = 32;
        meta.rotations = tiny_rotations;
        meta.n_rotations = TN_COUNT_OF(tiny_rotations);
        meta.signs = tiny_signs;
        meta.n_sign_bytes = sizeof tiny_signs;
    }
    return meta;
}

/* ---- tensors, in the order of the table ---- */

#define MAX_TENSORS 48

struct shape {
    enum tern_role role;
    uint32_t layer;
    uint32_t layout;
    uint32_t rows;
    uint32_t cols;
    uint32_t n_stacked;
};

static size_t list_experts(struct shape *list, uint32_t i)
{
    const struct shape shapes[] = {
        {TERN_ROLE_ROUTER, i, TERN_LAYOUT_F32, N_EXPERTS, HIDDEN, 0},
        {TERN_ROLE_EXPERT_GATE, i, TERN_LAYOUT_T2, EXPERT_FFN, HIDDEN, N_EXPERTS},
        {TERN_ROLE_EXPERT_UP, i, TERN_LAYOUT_T2, EXPERT_FFN, HIDDEN, N_EXPERTS},
        {TERN_ROLE_EXPERT_DOWN, i, TERN_LAYOUT_T2, HIDDEN, EXPERT_FFN, N_EXPERTS},
        {TERN_ROLE_SHARED_ROUTER, i, TERN_LAYOUT_F32, 1, HIDDEN, 0},
        {TERN_ROLE_SHARED_GATE, i, TERN_LAYOUT_T2, SHARED_FFN, HIDDEN, 0},
        {TERN_ROLE_SHARED_UP, i, TERN_LAYOUT_T2, SHARED_FFN, HIDDEN, 0},
        {TERN_ROLE_SHARED_DOWN, i, TERN_LAYOUT_T2, HIDDEN, SHARED_FFN, 0},
    };
    memcpy(list, shapes, sizeof shapes);
    return TN_COUNT_OF(shapes);
}

static size_t list_draft(struct shape *list)
{
    const struct shape shapes[] = {
        {TERN_ROLE_DRAFT_EMBED_NORM, N_LAYER, TERN_LAYOUT_F32, 1, HIDDEN, 0},
        {TERN_ROLE_DRAFT_STATE_NORM, N_LAYER, TERN_LAYOUT_F32, 1, HIDDEN, 0},
        {TERN_ROLE_DRAFT_FC, N_LAYER, TERN_LAYOUT_T2, HIDDEN, 2 * HIDDEN, 0},
        {TERN_ROLE_DRAFT_NORM, N_LAYER, TERN_LAYOUT_F32, 1, HIDDEN, 0},
    };
    memcpy(list, shapes, sizeof shapes);
    return TN_COUNT_OF(shapes);
}

static size_t list_shapes(struct shape *list, const struct tiny_variant *v)
{
    size_t n = 0;
    for (uint32_t i = 0; i < N_LAYER + v->has_draft; i++) {
        const bool has_experts = v->has_experts && i == EXPERT_LAYER;
        list[n++] = (struct shape){TERN_ROLE_ATTN_NORM, i, TERN_LAYOUT_F32, 1, HIDDEN, 0};
        list[n++] = (struct shape){TERN_ROLE_FFN_NORM, i, TERN_LAYOUT_F32, 1, HIDDEN, 0};
        if (v->has_sub_norms) {
            list[n++] = (struct shape){TERN_ROLE_ATTN_SUB_NORM, i, TERN_LAYOUT_F32, 1, HIDDEN, 0};
            if (!has_experts)
                list[n++] = (struct shape){TERN_ROLE_FFN_SUB_NORM, i, TERN_LAYOUT_F32, 1, FFN, 0};
        }
        list[n++] = (struct shape){TERN_ROLE_Q, i, TERN_LAYOUT_T2, HIDDEN, HIDDEN, 0};
        list[n++] = (struct shape){TERN_ROLE_K, i, TERN_LAYOUT_T2, KV, HIDDEN, 0};
        list[n++] = (struct shape){TERN_ROLE_V, i, TERN_LAYOUT_T2, KV, HIDDEN, 0};
        list[n++] = (struct shape){TERN_ROLE_O, i, TERN_LAYOUT_T2, HIDDEN, HIDDEN, 0};
        if (has_experts) {
            n += list_experts(list + n, i);
            continue;
        }
        list[n++] = (struct shape){TERN_ROLE_GATE, i, TERN_LAYOUT_T2, FFN, HIDDEN, 0};
        list[n++] = (struct shape){TERN_ROLE_UP, i, v->is_sparse ? TERN_LAYOUT_R2 : TERN_LAYOUT_T2,
                                   FFN, HIDDEN, 0};
        list[n++] = (struct shape){TERN_ROLE_DOWN, i,
                                   v->is_sparse ? TERN_LAYOUT_C2 : TERN_LAYOUT_T2, HIDDEN, FFN, 0};
    }
    if (v->has_draft)
        n += list_draft(list + n);
    list[n++] = (struct shape){TERN_ROLE_EMBED, TERN_NO_LAYER, v->embed_layout, VOCAB, HIDDEN, 0};
    if (v->has_head)
        list[n++] =
            (struct shape){TERN_ROLE_HEAD, TERN_NO_LAYER, v->embed_layout, VOCAB, HIDDEN, 0};
    list[n++] = (struct shape){TERN_ROLE_FINAL_NORM, TERN_NO_LAYER, TERN_LAYOUT_F32, 1, HIDDEN, 0};
    return n;
}

static uint32_t scale_kind(uint32_t layout)
{
    return layout >= TERN_LAYOUT_T2   ? TERN_SCALE_TENSOR
           : tn_layout_scales(layout) ? TERN_SCALE_ROW
                                      : TERN_SCALE_NONE;
}

/* Any bytes are valid in q8; f32, f16 and bf16 get ones; ternary codes must not be 3. */
static void fill(unsigned char *bytes, size_t n, uint32_t layout, struct tn_rng *rng)
{
    static const unsigned char one_f32[4] = {0, 0, 0x80, 0x3F}, one_f16[2] = {0, 0x3C},
                               one_bf16[2] = {0x80, 0x3F};
    for (size_t i = 0; i < n; i++) {
        uint64_t random = tn_rng_next(rng);
        uint64_t codes = random % 3 | random / 3 % 3 << 2 | random / 9 % 3 << 4 |
                         random / 27 % 3 << 6;
        bytes[i] = layout >= TERN_LAYOUT_T2      ? (unsigned char)codes
                   : layout == TERN_LAYOUT_F32   ? one_f32[i % 4]
                   : layout == TERN_LAYOUT_F16   ? one_f16[i % 2]
                   : layout == TERN_LAYOUT_BF16  ? one_bf16[i % 2]
                   : (unsigned char)random == 128 ? 0
                                                  : (unsigned char)random;
    }
}

/* Real planes, with several shifts: a search of the head relies on their norms. */
static tern_status write_planes(struct tn_mwriter *w, uint32_t i, const struct shape *shape,
                                struct tn_rng *rng, struct tern_error *err)
{
    static_assert(VOCAB <= TERN_PLANE_BLOCK_ROWS, "one block");
    static int8_t q[VOCAB * HIDDEN];
    static union {
        float f[VOCAB];
        unsigned char bytes[VOCAB * 5 * sizeof(float) + HIDDEN + VOCAB];
    } scales;
    const uint32_t n_planes = tn_layout_planes(shape->layout);
    const int32_t max = tn_bit_planes_max(n_planes);
    const size_t scale_bytes =
        (size_t)tn_layout_scale_bytes(shape->layout, shape->rows, shape->cols);
    const size_t n_packed = tn_bit_planes_block_bytes(VOCAB, HIDDEN, n_planes);
    uint8_t *packed = tn_alloc(n_packed);
    if (!packed)
        return TERN_MEMORY;
    for (uint32_t r = 0; r < VOCAB; r++) {
        const int32_t factor = 1 << r % 7, n = max / factor;
        for (uint32_t c = 0; c < HIDDEN; c++) {
            const int32_t random = (int32_t)(tn_rng_next(rng) % (uint64_t)(2 * n + 1));
            q[r * HIDDEN + c] = (int8_t)(factor * (random - n));
        }
        scales.f[r] = 0.002f * (0.5f + tn_rng_f32(rng));
    }
    tn_bit_planes_offsets(tn_bit_planes_place_offsets(&scales, VOCAB, n_planes), q, VOCAB, HIDDEN);
    tn_bit_planes_pack(packed, &scales, q, 0, VOCAB, VOCAB, HIDDEN, n_planes);
    tern_status status = tn_mwriter_append(w, i, packed, n_packed, err);
    tn_free(packed);
    return status ? status : tn_mwriter_append_scales(w, i, &scales, scale_bytes, err);
}

static tern_status write_tensor(struct tn_mwriter *w, uint32_t i, const struct shape *shape,
                                struct tn_rng *rng, struct tern_error *err)
{
    if (tn_layout_planes(shape->layout))
        return write_planes(w, i, shape, rng, err);
    const float scales[VOCAB] = {0.5f, [VOCAB - 1] = 0.25f};
    unsigned char part[100]; /* a size that divides nothing evenly */
    uint64_t n_bytes;
    const struct tern_file_tensor t = {.layout = shape->layout, .rows = shape->rows,
                                       .cols = shape->cols, .n_stacked = shape->n_stacked};
    if (!tn_tensor_bytes(&t, &n_bytes))
        return TERN_INTERNAL;
    for (uint64_t done = 0; done < n_bytes;) {
        size_t n = (size_t)TN_MIN(n_bytes - done, (uint64_t)sizeof part);
        fill(part, n, shape->layout, rng);
        tern_status status = tn_mwriter_append(w, i, part, n, err);
        if (status)
            return status;
        done += n;
    }
    if (shape->layout >= TERN_LAYOUT_T2)
        tn_mwriter_add_tensor_facts(w, i, 0.5f, 7);
    return scale_kind(shape->layout) == TERN_SCALE_ROW
               ? tn_mwriter_append_scales(w, i, scales, sizeof scales, err)
               : TERN_OK;
}

static tern_status write_all(struct tn_mwriter *w, const struct tiny_variant *variant,
                             struct tern_error *err)
{
    /* its content is tested elsewhere */
    static const unsigned char tokenizer[300] = {1, 2, 3, [299] = 4};
    struct shape shapes[MAX_TENSORS];
    size_t n = list_shapes(shapes, variant);
    const struct tn_mwriter_meta meta = tiny_model_meta(variant);
    struct tn_rng rng;
    tn_rng_seed(&rng, 42);
    tern_status status = TERN_OK;
    for (size_t i = 0; i < n && !status; i++) {
        uint32_t index;
        struct tern_file_tensor t = {
            .role = shapes[i].role, .layer = shapes[i].layer, .layout = shapes[i].layout,
            .scale_kind = scale_kind(shapes[i].layout), .rows = shapes[i].rows,
            .cols = shapes[i].cols, .n_stacked = shapes[i].n_stacked};
        if (variant->is_rotated && tn_slot_may_be_rotated(tn_slot_of(t.role), &meta.config))
            t.flags = TERN_TENSOR_ROTATED;
        status = tn_mwriter_declare(w, &t, &index, err);
    }
    if (!status)
        status = tn_mwriter_begin(w, &meta, tokenizer, variant->has_tokenizer ? 300 : 0, err);
    for (size_t i = 0; i < n && !status; i++)
        status = write_tensor(w, (uint32_t)i, &shapes[i], &rng, err);
    return status ? status : tn_mwriter_seal(w, err);
}

tern_status tiny_model_write(struct tn_mwriter **out, const char *path,
                             const struct tiny_variant *variant, struct tern_error *err)
{
    tern_status status = tn_mwriter_create(out, path, err);
    if (status)
        return status;
    status = write_all(*out, variant, err);
    if (status) {
        tn_mwriter_abort(*out);
        *out = NULL;
    }
    return status;
}

tern_status tiny_model_make(const char *path, const struct tiny_variant *variant,
                            struct tern_error *err)
{
    struct tn_mwriter *w;
    tern_status status = tiny_model_write(&w, path, variant, err);
    return status ? status : tn_mwriter_commit(w, err);
}

bool tiny_model_open(struct tern_model **out, const char *path,
                     const struct tiny_variant *variant)
{
    struct tern_error err;
    if (tiny_model_make(path, variant, &err) == TERN_OK &&
        tern_model_open(out, path, &err) == TERN_OK)
        return true;
    fprintf(stderr, "%s\n", err.detail);
    return false;
}

tern_status tiny_model_image(struct tiny_image *out, const char *path,
                             const struct tiny_variant *variant, struct tern_error *err)
{
    tern_status status = tiny_model_make(path, variant, err);
    char *bytes = NULL;
    if (!status)
        status = tn_file_read_all(&bytes, &out->n, path, SIZE_MAX, err);
    out->bytes = (unsigned char *)bytes;
    tn_file_remove(path);
    return status;
}
