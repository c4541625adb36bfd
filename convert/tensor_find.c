/* SPDX-License-Identifier: MIT
 *
 * Finds the tensor of a slot in a source (tensor_find.h): by its spellings, as a section of a fused
 * tensor, or as an expert.
 */
#include "convert/tensor_find.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

#define NAME_BYTES TN_TENSOR_NAME_BYTES

/* ---- names ---- */

/* What follows a spelling of *n characters: ".weight", ".bias" or nothing; drops the point of
 * "name.". */
static const char *ending_of(const struct tn_match *match, const char *spelling, int *n)
{
    const bool is_whole = *n > 0 && spelling[*n - 1] == '.';
    *n -= is_whole;
    return is_whole ? "" : match->slot->kind == TN_SLOT_BIAS ? ".bias" : ".weight";
}

static void gguf_name(char *dst, const struct tn_match *match, const char *spelling)
{
    int n = (int)strlen(spelling);
    const char *ending = ending_of(match, spelling, &n);
    if (match->slot->scope == TN_SCOPE_MODEL)
        snprintf(dst, NAME_BYTES, "%.*s%s", n, spelling, ending);
    else
        snprintf(dst, NAME_BYTES, "blk.%u.%.*s%s", match->layer, n, spelling, ending);
}

/* Writes a spelling of n characters with the expert's number instead of its "*". */
static void number_expert(char *dst, size_t n_dst, const char *spelling, int n,
                          uint32_t expert)
{
    const char *star = memchr(spelling, '*', (size_t)n);
    const int n_before = star ? (int)(star - spelling) : n;
    snprintf(dst, n_dst, "%.*s", n_before, spelling);
    if (star)
        snprintf(dst + n_before, n_dst - (size_t)n_before, "%u%.*s", expert,
                 n - n_before - 1, star + 1);
}

/* Writes the full name for one spelling. */
static void hf_name(char *dst, const struct tn_family *family, const char *prefix,
                    const struct tn_match *match, const char *spelling)
{
    int n = (int)strlen(spelling);
    const char *ending = ending_of(match, spelling, &n);
    const char *layers = family->layers ? family->layers : "layers";
    const uint32_t layer = match->is_draft ? 0 : match->layer;
    if (spelling[0] == '/')
        snprintf(dst, NAME_BYTES, "%.*s%s", n - 1, spelling + 1, ending);
    else if (match->slot->scope == TN_SCOPE_MODEL || match->slot->scope == TN_SCOPE_DRAFT)
        snprintf(dst, NAME_BYTES, "%s%.*s%s", prefix, n, spelling, ending);
    else
        snprintf(dst, NAME_BYTES, "%s%s.%u.%.*s%s", prefix, layers, layer, n, spelling,
                 ending);
}

/* The tensor found holds the matrices of all experts. */
static void stack(struct tn_match *match, const struct tn_config_import *import)
{
    match->n_stacked = tn_slot_n_stacked(match->slot, &import->config);
}

/* Prefix i of the names that a folder may have for the tensor; NULL after the last one. */
static const char *prefix_of(const struct tn_match *match, const struct tn_family *family, size_t i)
{
    return match->is_draft ? family->drafts[i] : tn_family_prefix(family, i);
}

static struct tn_source_tensor *find_hf(struct tn_match *match,
                                        const struct tn_config_import *import,
                                        const struct tn_source *source, const char *spelling)
{
    while (*spelling) {
        const int n = (int)strcspn(spelling, "|");
        const char *prefix;
        char numbered[NAME_BYTES / 2];
        number_expert(numbered, sizeof numbered, spelling, n, match->expert);
        for (size_t i = 0; (prefix = prefix_of(match, import->family, i)) != NULL; i++) {
            char name[NAME_BYTES];
            hf_name(name, import->family, prefix, match, numbered);
            if (match->name[0] == '\0')
                snprintf(match->name, NAME_BYTES, "%s", name);
            struct tn_source_tensor *t = tn_source_find(source, name);
            if (!t)
                continue;
            if (!memchr(spelling, '*', (size_t)n))
                stack(match, import);
            return t;
        }
        spelling += n + (spelling[n] == '|');
    }
    return NULL;
}

/* Sets match->weight, and match->name to the first spelling. */
static void find_spellings(struct tn_match *match, const struct tn_config_import *import,
                           const struct tn_source *source, const char *hf, const char *gguf)
{
    const char *spelling = source->gguf ? gguf : hf;
    match->name[0] = '\0';
    match->weight = NULL;
    if (!spelling || !spelling[0])
        return;
    if (!source->gguf) {
        match->weight = find_hf(match, import, source, spelling);
        return;
    }
    gguf_name(match->name, match, spelling);
    match->weight = tn_source_find(source, match->name);
    stack(match, import);
}

/* ---- sections of fused tensors ---- */

static uint32_t rows_of(uint32_t role, const struct tn_model_spec *spec, uint32_t layer)
{
    uint32_t rows, cols;
    const struct tn_slot *slot = tn_slot_of(role);
    tn_slot_shape(&rows, &cols, slot, spec, layer);
    return tn_slot_is_vector(slot) ? cols : rows;
}

/* The section has `rows` rows that alternate with those of other slots, head by head, in the first
 * `sum` rows: in each of n heads, its rows follow those of the slots with the `first` rows. */
static void order_by_head(struct tn_match *match, uint32_t n, uint32_t first, uint32_t rows,
                          uint32_t sum)
{
    match->order.sections[0] = (struct tn_row_section){rows, first / n, rows / n, sum / n};
}

/* The same for the queries, keys and values of each key head. */
static void order_qkv(struct tn_match *match, const struct tn_layer_dims *dims, uint32_t first)
{
    const uint32_t n = dims->n_kv_head, step = match->source_rows / n;
    const uint32_t widths[] = {dims->head_dim, dims->head_dim, dims->n_head / n * dims->value_dim};
    uint32_t at = first / n;
    for (uint32_t i = 0; i < TN_COUNT_OF(widths); at += widths[i++])
        match->order.sections[i] = (struct tn_row_section){n * widths[i], at, widths[i], step};
}

/* Finds the rows of the slot in a fused tensor of `sum` rows, in which the slots before it have
 * `first` rows. */
static void set_order(struct tn_match *match, const struct tn_model_spec *spec,
                      const struct tn_fused *fused, uint32_t first, uint32_t sum)
{
    const struct tn_layer_dims dims = tn_layer_dims(spec->config, &spec->layers[match->layer]);
    const uint32_t role = match->slot->role, rows = match->source_rows;
    const bool is_in_pair = role == fused->parts[0] || role == fused->parts[1];
    match->source_rows = sum;
    if (fused->order == TN_FUSED_PAIR_FIRST && is_in_pair)
        order_by_head(match, dims.n_head, first, rows,
                      rows_of(fused->parts[0], spec, match->layer) +
                          rows_of(fused->parts[1], spec, match->layer));
    else if (fused->order == TN_FUSED_PARTS || fused->order == TN_FUSED_PAIR_FIRST)
        match->order.sections[0].first = first;
    else if (fused->order == TN_FUSED_BY_HEAD)
        order_by_head(match, dims.n_head, first, rows, sum);
    else if (fused->order == TN_FUSED_BY_QUARTER)
        order_by_head(match, 4, first, rows, sum);
    else if (role == TERN_ROLE_DELTA_QKV)
        order_qkv(match, &dims, first);
    else
        order_by_head(match, dims.n_kv_head, first, rows, sum);
}

/* Finds the slot's section of one fused tensor. */
static bool find_part(struct tn_match *match, const struct tn_model_spec *spec,
                      const struct tn_config_import *import, const struct tn_source *source,
                      const struct tn_fused *fused)
{
    uint32_t first = 0, sum = 0;
    bool is_part = false;
    for (size_t i = 0; i < TN_COUNT_OF(fused->parts) && fused->parts[i]; i++) {
        if (fused->parts[i] == match->slot->role) {
            first = sum;
            is_part = true;
        }
        sum += rows_of(fused->parts[i], spec, match->layer);
    }
    if (!is_part)
        return false;
    find_spellings(match, import, source, fused->hf, fused->gguf);
    if (match->weight)
        set_order(match, spec, fused, first, sum);
    return match->weight != NULL;
}

/* The same for a list of fused tensors. */
static bool find_parts(struct tn_match *match, const struct tn_model_spec *spec,
                       const struct tn_config_import *import, const struct tn_source *source,
                       const struct tn_fused *fused)
{
    for (; fused && fused->parts[0]; fused++)
        if (find_part(match, spec, import, source, fused))
            return true;
    return false;
}

/* llama.cpp's converter fuses q, k and v of any family by request ("--fuse-qkv"). */
static const struct tn_fused by_request[] = {
    {NULL, "attn_qkv", {TERN_ROLE_Q, TERN_ROLE_K, TERN_ROLE_V}, TN_FUSED_PARTS},
    {NULL,
     "attn_qkv",
     {TERN_ROLE_Q_BIAS, TERN_ROLE_K_BIAS, TERN_ROLE_V_BIAS},
     TN_FUSED_PARTS},
    {NULL, NULL, {0}, TN_FUSED_PARTS},
};

/* Reorders the heads of q and k, weights and biases, from interleaved pairs to halves. */
static void set_permutation(struct tn_match *match, const struct tn_config_import *import)
{
    const uint32_t role = match->slot->role;
    const bool is_q_or_k = role == TERN_ROLE_Q || role == TERN_ROLE_K ||
                           role == TERN_ROLE_Q_BIAS || role == TERN_ROLE_K_BIAS;
    if (!is_q_or_k || !(import->fixups & TN_FIX_QK_ROWS))
        return;
    match->order.head_dim = import->config.head_dim;
    match->order.permuted_dim = import->layers[match->layer].rope_dims;
}

void tn_tensor_find(struct tn_match *out, const struct tn_config_import *import,
                    const struct tn_source *source, const struct tn_slot *slot, uint32_t layer,
                    uint32_t expert)
{
    const struct tn_family *family = import->family;
    const struct tn_model_spec spec = {.config = &import->config, .layers = import->layers};
    *out = (struct tn_match){.slot = slot, .layer = layer, .expert = expert};
    out->is_draft = layer != TERN_NO_LAYER && import->layers[layer].is_draft;
    tn_slot_shape(&out->rows, &out->cols, slot, &spec, layer == TERN_NO_LAYER ? 0 : layer);
    const uint32_t rows = tn_slot_is_vector(slot) ? out->cols : out->rows;
    out->source_rows = rows;
    out->order = tn_row_order_straight(0, rows);
    /* Only layers have fused tensors. */
    if (layer != TERN_NO_LAYER && !find_parts(out, &spec, import, source, family->fused))
        find_parts(out, &spec, import, source, by_request);
    set_permutation(out, import);
    if (!out->weight)
        find_spellings(out, import, source, tn_family_hf_name(family, slot),
                       tn_family_gguf_name(family, slot));
    if (out->n_stacked)
        out->order.first += expert * out->source_rows;
    if (!source->gguf && slot->role == TERN_ROLE_POSITIONS) {
        out->order.first = family->first_position;
        out->source_rows += family->first_position;
    }
}
