/* SPDX-License-Identifier: MIT
 *
 * Finds the tensors of a model's slots in a source and checks names, types and shapes: the plan of
 * the conversion (tensor_plan.h).
 */
#include "convert/tensor_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/draft_import.h"
#include "convert/gguf/gguf.h"

#define N_EXPERT_SLOTS 3u /* gate, up, down */
#define NAME_BYTES TN_TENSOR_NAME_BYTES

struct planner {
    struct tn_tensor_plan *plan;
    const struct tn_config_import *import;
    struct tn_model_spec spec;
    struct tn_source *source;
    bool has_slot[TN_ROLE_END]; /* optional slots that the first layer has */
    struct tern_error *err;
};

bool tn_tensor_is_ternary(const struct tn_tensor_plan_row *tensor)
{
    switch (tensor->kind) {
    case TN_TENSOR_LATENT:
    case TN_TENSOR_PACKED:
    case TN_TENSOR_ROUNDED:
    case TN_TENSOR_EXACT:
    case TN_TENSOR_CODED:
        return true;
    default:
        return false;
    }
}

bool tn_tensor_is_dense(const struct tn_tensor_plan_row *tensor)
{
    return tensor->kind == TN_TENSOR_FLOATS &&
           tn_slot_of(tensor->file.role)->kind != TN_SLOT_FLOATS;
}

/* ---- checking one tensor of the source ---- */

static tern_status require(struct planner *p, const char *name, struct tn_source_tensor **out)
{
    *out = tn_source_find(p->source, name);
    if (!*out)
        return tn_fail(p->err, TERN_INPUT, "tensor \"%s\" is missing", name);
    (*out)->was_requested = true;
    return TERN_OK;
}

static const char *origin_of_shape(const struct planner *p)
{
    return p->source->gguf ? "the file's keys make it" : "config.json makes it";
}

/* Checks that the shape is [rows, cols], or [cols] if rows is 0. */
static tern_status check_shape(struct planner *p, const struct tn_source_tensor *t, uint32_t rows,
                               uint32_t cols)
{
    const uint32_t rank = rows ? 2 : 1;
    if (t->rank == rank && t->shape[rank - 1] == cols && (!rows || t->shape[0] == rows))
        return TERN_OK;
    char shape[200];
    char expected[32];
    if (rows)
        snprintf(expected, sizeof expected, "[%u, %u]", rows, cols);
    else
        snprintf(expected, sizeof expected, "[%u]", cols);
    return tn_fail(p->err, TERN_INPUT, "tensor \"%s\": shape %s, but %s %s", t->name,
                   tn_shape_text(shape, sizeof shape, t), origin_of_shape(p), expected);
}

/* Checks the shape of a matrix, or of the stack that contains it. */
static tern_status check_matrix_shape(struct planner *p, const struct tn_match *match)
{
    const struct tn_source_tensor *t = match->weight;
    char shape[200];
    if (match->n_stacked == 0)
        return check_shape(p, t, match->source_rows, match->cols);
    if (t->rank == 3 && t->shape[0] == match->n_stacked && t->shape[1] == match->source_rows &&
        t->shape[2] == match->cols)
        return TERN_OK;
    return tn_fail(p->err, TERN_INPUT, "tensor \"%s\": shape %s, but %s [%u, %u, %u]", t->name,
                   tn_shape_text(shape, sizeof shape, t), origin_of_shape(p), match->n_stacked,
                   match->source_rows, match->cols);
}

/* Refuses a type that tern does not support at all, or not here. */
static tern_status fail_type(struct planner *p, const struct tn_source_tensor *t, const char *what)
{
    const bool is_coded = t->dtype == TN_DTYPE_CODED;
    const char *why = is_coded ? tn_encoding_refusal(t->type_number) : NULL;
    char number[24];
    snprintf(number, sizeof number, "number %" PRIu32, t->type_number);
    return tn_fail(p->err, TERN_UNSUPPORTED, "tensor \"%s\" is of type %s: %s", t->name,
                   is_coded && !tn_gguf_type_find(t->type_number) ? number : t->type,
                   why ? why : what);
}

/* Whether it is floats of any type, plain or in a table. */
static bool holds_floats(const struct tn_source_tensor *t)
{
    return tn_source_is_float(t) || (t->encoding && t->encoding->layout);
}

static tern_status check_float(struct planner *p, const struct tn_source_tensor *t)
{
    if (holds_floats(t))
        return TERN_OK;
    if (t->dtype == TN_DTYPE_CODED)
        return fail_type(p, t, "ternary, where floats belong");
    if (strcmp(t->type, "U32") == 0)
        return fail_type(p, t, "MLX packs quantized weights so; take the folder that is not "
                               "quantized, or a GGUF file");
    return tn_fail(p->err, TERN_INPUT, "tensor \"%s\": dtype %s, expected BF16, F16 or F32",
                   t->name, t->type);
}

/* ---- planning ---- */

static struct tn_tensor_plan_row *append(struct planner *p, enum tn_tensor_kind kind,
                                         const struct tn_match *match)
{
    const bool is_vector = tn_slot_is_vector(match->slot);
    struct tn_tensor_plan_row *t = &p->plan->tensors[p->plan->n_tensors++];
    *t = (struct tn_tensor_plan_row){
        .kind = kind, .weight = match->weight, .order = match->order, .i_matrix = match->expert};
    t->i_tensor = p->plan->n_tensors == 1 ? 0 : t[-1].i_tensor + (match->expert == 0);
    t->file.n_stacked = tn_slot_n_stacked(match->slot, p->spec.config);
    t->file.role = match->slot->role;
    t->file.layer = match->layer;
    t->file.rows = is_vector ? 1 : match->rows;
    t->file.cols = match->cols;
    t->file.flags = match->weight && match->weight->is_rotated ? TERN_TENSOR_ROTATED : 0;
    p->plan->n_params += (uint64_t)t->file.rows * t->file.cols;
    return t;
}

static bool adds_one(const struct planner *p, const struct tn_slot *slot)
{
    return (p->import->fixups & TN_FIX_NORMS_PLUS_ONE) && slot->kind == TN_SLOT_NORM &&
           (slot->role < TERN_ROLE_Q_IN_NORM || slot->role > TERN_ROLE_HEAD_IN_NORM) &&
           slot->role != TERN_ROLE_DELTA_NORM;
}

/* Checks the taps of a convolution: [channels, 1, taps], in GGUF files [channels, taps]. */
static tern_status check_taps(struct planner *p, const struct tn_match *match)
{
    const struct tn_layer_dims d =
        tn_layer_dims(p->spec.config, &p->spec.layers[match->layer]);
    const struct tn_source_tensor *t = match->weight;
    if (t->rank == 3 && t->shape[0] == d.channels && t->shape[1] == 1 &&
        t->shape[2] == d.conv_taps)
        return TERN_OK;
    return check_shape(p, t, d.channels, d.conv_taps);
}

static tern_status plan_vector(struct planner *p, const struct tn_match *match)
{
    const uint32_t role = match->slot->role;
    tern_status status = check_float(p, match->weight);
    if (status == TERN_OK)
        status = role == TERN_ROLE_DELTA_CONV
                     ? check_taps(p, match)
                     : check_shape(p, match->weight, 0, match->source_rows);
    if (status != TERN_OK)
        return status;
    struct tn_tensor_plan_row *t = append(p, TN_TENSOR_VECTOR, match);
    t->adds_one = adds_one(p, match->slot);
    t->is_log = role == TERN_ROLE_DELTA_DECAY && (p->import->fixups & TN_FIX_LOG_DECAY);
    return TERN_OK;
}

static tern_status plan_scalar(struct planner *p, const struct tn_source_tensor *scale)
{
    if (!tn_source_is_float(scale))
        return check_float(p, scale);
    return scale->rank == 0 ? TERN_OK : check_shape(p, scale, 0, 1); /* both [] and [1] occur */
}

/* U8: four blocks of rows in the bits of one, and a scale. */
static tern_status plan_packed(struct planner *p, const struct tn_match *match)
{
    char scale_name[NAME_BYTES + 8];
    struct tn_source_tensor *weight = match->weight, *scale;
    const uint32_t rows = match->source_rows;
    snprintf(scale_name, sizeof scale_name, "%s_scale", weight->name);
    if (weight->dtype != TN_DTYPE_U8)
        return tn_fail(p->err, TERN_INPUT,
                       "tensor \"%s\": dtype %s, expected U8 as in the other layers", weight->name,
                       weight->type);
    if (rows % 4)
        return tn_fail(p->err, TERN_INPUT,
                       "tensor \"%s\": config.json makes it %u rows, but packed weights need a "
                       "multiple of 4",
                       weight->name, rows);
    if (rows != match->rows)
        return tn_fail(p->err, TERN_UNSUPPORTED,
                       "tensor \"%s\": packed weights of several projections are not supported",
                       weight->name);
    tern_status status = check_shape(p, weight, rows / 4, match->cols);
    if (status == TERN_OK)
        status = require(p, scale_name, &scale);
    if (status == TERN_OK)
        status = plan_scalar(p, scale);
    if (status != TERN_OK)
        return status;
    struct tn_tensor_plan_row *t = append(p, TN_TENSOR_PACKED, match);
    t->scale = scale;
    t->scale_divides = p->import->rule == TN_WEIGHTS_DIVIDED;
    return TERN_OK;
}

/* Finds the tensor whose name has another ending than ".weight"; false if there is none. */
static bool find_beside(const struct planner *p, const struct tn_source_tensor *weight,
                        const char *ending, struct tn_source_tensor **out)
{
    char name[NAME_BYTES + 8];
    const char *point = strrchr(weight->name, '.');
    if (!point || strcmp(point, ".weight") != 0)
        return false;
    snprintf(name, sizeof name, "%.*s.%s", (int)(point - weight->name), weight->name, ending);
    *out = tn_source_find(p->source, name);
    if (*out)
        (*out)->was_requested = true;
    return *out != NULL;
}

/* I2_S cannot represent weights that do not fill its blocks. */
static tern_status check_i2s(struct planner *p, const struct tn_source_tensor *w, uint32_t rows,
                             uint32_t cols)
{
    const struct tn_encoding *e = w->encoding;
    const uint64_t n = (uint64_t)rows * cols;
    const uint32_t unit = tn_encoding_unit(e, cols);
    if (n % unit == 0)
        return TERN_OK;
    return tn_fail(p->err, TERN_UNSUPPORTED,
                   "tensor \"%s\": %llu weights are not a multiple of the %u of a block of %s, and "
                   "the program that wrote it lost the rest",
                   w->name, (unsigned long long)n, unit, e->name);
}

/* A matrix of floats as [columns, rows]. */
static tern_status plan_transposed(struct planner *p, const struct tn_match *match)
{
    struct tn_source_tensor *weight = match->weight;
    tern_status status = tn_source_is_float(weight) ? TERN_OK : check_float(p, weight);
    if (status == TERN_OK)
        status = check_shape(p, weight, match->cols, match->source_rows);
    if (status == TERN_OK)
        append(p, TN_TENSOR_FLOATS, match)->is_transposed = true;
    return status;
}

/* A matrix of a GGUF file, or of floats that are ternary. */
static tern_status plan_found(struct planner *p, const struct tn_match *match)
{
    struct tn_source_tensor *weight = match->weight;
    const bool is_coded = weight->encoding && weight->encoding->trits;
    const bool is_blocks = weight->encoding && weight->encoding->layout;
    tern_status status = TERN_OK;
    if (!is_coded && !is_blocks && !tn_source_is_float(weight))
        return weight->dtype == TN_DTYPE_CODED
                   ? fail_type(p, weight, "tern does not know this type")
                   : check_float(p, weight);
    if (is_coded && weight->type_number == TN_GGML_I2_S && match->n_stacked)
        return fail_type(p, weight, "its one scale is not for a stack of matrices");
    if (is_coded && weight->type_number == TN_GGML_I2_S)
        status = check_i2s(p, weight, match->source_rows, match->cols);
    if (status == TERN_OK)
        status = check_matrix_shape(p, match);
    if (status != TERN_OK)
        return status;
    if (is_blocks) {
        append(p, TN_TENSOR_BLOCKS, match);
        return TERN_OK;
    }
    struct tn_tensor_plan_row *t = append(p, is_coded ? TN_TENSOR_CODED : TN_TENSOR_EXACT, match);
    if (!find_beside(p, weight, "scale", &t->scale))
        return TERN_OK;
    p->plan->says_ternary = true;
    return plan_scalar(p, t->scale);
}

static tern_status plan_rounded(struct planner *p, const struct tn_match *match)
{
    struct tn_source_tensor *weight = match->weight, *scales;
    tern_status status = tn_source_is_float(weight) ? TERN_OK : check_float(p, weight);
    if (status == TERN_OK)
        status = check_shape(p, weight, match->source_rows, match->cols);
    if (status != TERN_OK)
        return status;
    if (!find_beside(p, weight, "scales", &scales))
        return tn_fail(p->err, TERN_INPUT, "tensor \"%s\": its \"scales\" are missing",
                       weight->name);
    if (!tn_source_is_float(scales))
        return check_float(p, scales);
    append(p, TN_TENSOR_ROUNDED, match)->scale = scales;
    return check_shape(p, scales, 0, match->source_rows);
}

static tern_status plan_matrix(struct planner *p, const struct tn_match *match)
{
    tern_status status;
    switch (p->import->rule) {
    case TN_WEIGHTS_MULTIPLIED:
    case TN_WEIGHTS_DIVIDED:
        if (p->plan->is_packed)
            return plan_packed(p, match);
        status = check_float(p, match->weight);
        if (status == TERN_OK)
            status = check_shape(p, match->weight, match->source_rows, match->cols);
        if (status == TERN_OK)
            append(p, TN_TENSOR_LATENT, match);
        return status;
    case TN_WEIGHTS_ROUNDED:
        return plan_rounded(p, match);
    default:
        if (p->import->fixups & TN_FIX_TRANSPOSED)
            return plan_transposed(p, match);
        return plan_found(p, match);
    }
}

/* Floats in the type of the source. */
static tern_status plan_floats(struct planner *p, const struct tn_match *match)
{
    const struct tn_source_tensor *t = match->weight;
    if (!tn_source_is_float(t))
        return t->encoding ? fail_type(p, t, "this matrix must be in floats") : check_float(p, t);
    const bool is_flat = match->rows == 1 && t->rank == 1; /* GGUF files store a single row as a
                                                            * vector */
    tern_status status = check_shape(p, t, is_flat ? 0 : match->source_rows, match->cols);
    if (status == TERN_OK)
        append(p, TN_TENSOR_FLOATS, match);
    return status;
}

static tern_status plan_table(struct planner *p, const struct tn_match *match)
{
    const struct tn_source_tensor *t = match->weight;
    if (t->encoding && t->encoding->trits)
        return plan_found(p, match);
    if (t->dtype == TN_DTYPE_U8 && p->plan->is_packed)
        return plan_packed(p, match);
    tern_status status = check_float(p, t);
    if (status == TERN_OK)
        status = check_shape(p, t, match->rows, match->cols);
    if (status == TERN_OK)
        append(p, TN_TENSOR_TABLE, match)->may_be_ternary =
            p->import->rule == TN_WEIGHTS_FOUND && tn_source_is_float(t);
    return status;
}

/* ---- selecting slots ---- */

/* Finds the first layer of a slot's scope, TERN_NO_LAYER for slots of the model; false: none. */
static bool find_first_layer(uint32_t *layer, const struct planner *p, const struct tn_slot *slot)
{
    const uint32_t n_layer = p->spec.config->n_layer;
    *layer = slot->scope == TN_SCOPE_MODEL ? TERN_NO_LAYER : 0;
    while (*layer < n_layer && !tn_slot_is_in(slot, &p->spec.layers[*layer]))
        ++*layer;
    return *layer != n_layer;
}

/* Optional tensors are in all layers of their scope or in none: looks at the first one. */
static void look_for_optional(struct planner *p)
{
    for (uint32_t i = 0; i < tn_n_slots; i++) {
        const struct tn_slot *slot = &tn_slots[i];
        struct tn_match match;
        uint32_t layer;
        if ((slot->need != TN_NEED_OPTIONAL && slot->need != TN_NEED_WITH_HEAD &&
             slot->need != TN_NEED_NORM_BIAS) ||
            !find_first_layer(&layer, p, slot))
            continue;
        tn_tensor_find(&match, p->import, p->source, slot, layer, 0);
        p->has_slot[slot->role] = p->import->needs[slot->role] || match.weight;
    }
}

static bool is_wanted(const struct planner *p, const struct tn_slot *slot)
{
    if (slot->need == TN_NEED_OPTIONAL)
        return p->has_slot[slot->role];
    if (slot->need == TN_NEED_WITH_HEAD || slot->need == TN_NEED_NORM_BIAS)
        return p->has_slot[slot->role] && tn_slot_is_allowed(slot, p->spec.config);
    return tn_slot_is_required(slot, p->spec.config);
}

static bool has_factors(const struct planner *p, uint32_t layer)
{
    return p->import->rope_factors && !tn_config_is_local(p->import, layer);
}

static tern_status plan_tensor(struct planner *p, const struct tn_slot *slot, uint32_t layer,
                               uint32_t expert)
{
    struct tn_match match;
    if (slot->role != TERN_ROLE_ROPE_FACTORS && !is_wanted(p, slot))
        return TERN_OK;
    tn_tensor_find(&match, p->import, p->source, slot, layer, expert);
    if (slot->role == TERN_ROLE_ROPE_FACTORS) {
        if (has_factors(p, layer))
            append(p, TN_TENSOR_FACTORS, &match);
        return TERN_OK;
    }
    if (!match.weight)
        return tn_fail(p->err, TERN_INPUT, "tensor \"%s\" is missing", match.name);
    match.weight->was_requested = true;
    if (match.weight->is_rotated && !tn_slot_may_be_rotated(slot, p->spec.config))
        return tn_fail(p->err, TERN_UNSUPPORTED,
                       "tensor \"%s\" is rotated by a Hadamard matrix, which is not supported for "
                       "it", match.weight->name);
    if (tn_slot_is_vector(slot))
        return plan_vector(p, &match);
    if (slot->kind == TN_SLOT_FLOATS)
        return plan_floats(p, &match);
    return slot->kind == TN_SLOT_TABLE ? plan_table(p, &match) : plan_matrix(p, &match);
}

static tern_status plan_slot(struct planner *p, const struct tn_slot *slot, uint32_t layer)
{
    const uint32_t n = TN_MAX(tn_slot_n_stacked(slot, p->spec.config), 1u);
    tern_status status = TERN_OK;
    for (uint32_t i = 0; i < n && status == TERN_OK; i++)
        status = plan_tensor(p, slot, layer, i);
    return status;
}

/* The ending of a table that programs store with the weights; NULL: it is none. */
static const char *find_buffer(const struct tn_family *family, const char *name)
{
    static const char *const usual[] = {".rotary_emb.inv_freq", NULL};
    const char *ending = tn_name_ends(usual, name);
    return ending ? ending : tn_name_ends(family->buffers, name);
}

const struct tn_tensor_plan_row *tn_tensor_plan_embed(const struct tn_tensor_plan *plan)
{
    const struct tn_tensor_plan_row *t = plan->tensors;
    while (t->file.role != TERN_ROLE_EMBED)
        t++;
    return t;
}

/* Plans a head that config.json ties to the embeddings.  Codes cannot be compared. */
static tern_status plan_twin(struct planner *p, const struct tn_match *head)
{
    struct tn_source_tensor *t = head->weight;
    const struct tn_source_tensor *embed = tn_tensor_plan_embed(p->plan)->weight;
    if (!tn_source_is_float(t) || !tn_source_is_float(embed))
        return tn_fail(p->err, TERN_INPUT,
                       "tensor \"%s\" of type %s contradicts config.json, where "
                       "\"tie_word_embeddings\" is true and the embeddings are %s",
                       t->name, t->type, embed->type);
    p->plan->twin = t;
    return check_shape(p, t, head->rows, head->cols);
}

/* Counts a tensor that is left out; keeps the part of the first one's name. */
static void count(uint32_t *n, const char **first, const char *part)
{
    *first = *first ? *first : part;
    ++*n;
}

/* No tensor may be left over: an unknown one belongs to a model that tern would compute wrongly. */
static tern_status check_unused(struct planner *p)
{
    const bool is_gguf = p->source->gguf != NULL;
    struct tn_match head;
    tern_status status = TERN_OK;
    tn_tensor_find(&head, p->import, p->source, tn_slot_of(TERN_ROLE_HEAD), TERN_NO_LAYER, 0);
    for (uint32_t i = 0; i < p->source->n_tensors && status == TERN_OK; i++) {
        const struct tn_source_tensor *t = &p->source->tensors[i];
        if (t->was_requested)
            continue;
        const char *buffer = find_buffer(p->import->family, t->name);
        const char *skipped =
            is_gguf ? NULL : tn_name_begins(p->import->family->skipped, t->name);
        if (buffer)
            count(&p->plan->n_buffers, &p->plan->buffer, buffer);
        else if (skipped)
            count(&p->plan->n_skipped, &p->plan->skipped, skipped);
        else if (t == head.weight && is_gguf) /* the file names a pooling */
            p->plan->idle_head = t;
        else if (t == head.weight)
            status = plan_twin(p, &head);
        else if (p->import->draft_refusal && tn_draft_name(p->import, p->source, t->name))
            p->plan->n_drafts++;
        else
            status = tn_fail(p->err, TERN_INPUT,
                             "tensor \"%s\" is not part of this architecture; tern does not know "
                             "what it is for",
                             t->name);
    }
    return status;
}

/* Plans in the order of the file: layer after layer, then the tensors of no layer. */
static tern_status plan_all(struct planner *p)
{
    const uint32_t n_layer = tn_n_all_layers(p->spec.config);
    tern_status status = TERN_OK;
    for (uint32_t layer = 0; layer < n_layer; layer++)
        for (uint32_t i = 0; i < tn_n_slots && status == TERN_OK; i++)
            if (tn_slot_is_in(&tn_slots[i], &p->spec.layers[layer]))
                status = plan_slot(p, &tn_slots[i], layer);
    for (uint32_t i = 0; i < tn_n_slots && status == TERN_OK; i++)
        if (tn_slots[i].scope == TN_SCOPE_MODEL)
            status = plan_slot(p, &tn_slots[i], TERN_NO_LAYER);
    if (status == TERN_OK)
        status = check_unused(p);
    /* Reported last: a tensor missing from the header leaves a hole, and its name is more
     * useful. */
    if (status == TERN_OK && p->source->hole.status != TERN_OK)
        status = tn_fail(p->err, p->source->hole.status, "%s", p->source->hole.detail);
    return status;
}

tern_status tn_tensor_plan_make(struct tn_tensor_plan *out, const struct tn_config_import *import,
                                struct tn_source *source, struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    const size_t n_max = ((size_t)tn_n_all_layers(&import->config) + 1) *
                         (tn_n_slots + (size_t)N_EXPERT_SLOTS * import->config.n_experts);
    if (n_max > TERN_MAX_TENSORS)
        return tn_fail(err, TERN_LIMIT, "%u layers of %u experts are more than %u tensors",
                       import->config.n_layer, import->config.n_experts, TERN_MAX_TENSORS);
    out->tensors = tn_alloc_zeroed(n_max, sizeof *out->tensors);
    if (!out->tensors)
        return tn_fail(err, TERN_MEMORY, "no memory to plan %zu tensors", n_max);
    struct planner p = {.plan = out, .import = import, .source = source, .err = err};
    p.spec = (struct tn_model_spec){.config = &import->config, .layers = import->layers};
    struct tn_match q;
    tn_tensor_find(&q, import, source, tn_slot_of(TERN_ROLE_Q), 0, 0);
    out->is_packed = q.weight && q.weight->dtype == TN_DTYPE_U8;
    out->factors = import->rope_factors;
    out->says_ternary = import->says_ternary;
    look_for_optional(&p);
    const tern_status status = plan_all(&p);
    if (status != TERN_OK)
        tn_tensor_plan_fini(out);
    return status;
}

void tn_tensor_plan_fini(struct tn_tensor_plan *plan)
{
    tn_free(plan->tensors);
    memset(plan, 0, sizeof *plan);
}
