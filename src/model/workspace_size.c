/* SPDX-License-Identifier: MIT
 *
 * Sizes of a workspace, and the layout of its scratch memory.  The same functions count (with a
 * NULL arena) and lay out, so that the two cannot disagree.
 */
#include "model/workspace_size.h"

#include "arch/arch.h"
#include "base/bits.h"
#include "base/compiler.h"
#include "model/ffn.h"
#include "model/mixer.h"

static void layout_thread(struct tn_thread_scratch *out, struct tn_arena *arena,
                          const struct tn_weights *weights, uint32_t n_batch)
{
    const size_t n_few = TN_MIN(n_batch, TN_FEW_TOKENS);
    size_t sums = TN_MAX((size_t)n_batch * TN_SUM_STRIDE, (size_t)TN_C2_MAX_ROWS);
    struct tn_thread_scratch t;
    t.unpacked = tn_arena_take(arena, weights->row_bytes);
    t.sum = tn_arena_take(arena, sums * sizeof(int32_t));
    t.col_sum = tn_arena_take(arena, n_few * weights->col_sum_rows * sizeof(int32_t));
    t.col_sum_of = tn_arena_take(arena, sizeof *t.col_sum_of);
    t.kernel = tn_arena_take(arena, TN_KERNEL_SCRATCH_BYTES);
    t.lut = tn_arena_take(arena, weights->lut_bytes);
    t.lut_input = tn_arena_take(arena, sizeof *t.lut_input);
    if (arena->base)
        *out = t;
}

static void layout_search(struct tn_head_search *out, struct tn_arena *arena,
                          const struct tern_file_config *c)
{
    struct tn_head_search s = {0};
    s.x16 = tn_arena_take(arena, tn_align_up(c->hidden, TN_PLANE_COLS) * sizeof(int16_t));
    s.sums = tn_arena_take(arena, c->vocab * sizeof(double));
    s.group_best = tn_take_f32(arena, c->vocab / TN_HEAD_GROUP_ROWS + 1);
    s.counts =
        tn_arena_take(arena, (c->vocab / TN_HEAD_ITEM_ROWS + 1) * sizeof(struct tn_head_count));
    if (out)
        *out = s;
}

static void layout_checkpoints(struct tn_scratch *s, struct tn_arena *arena, size_t n)
{
    s->checkpoints = tn_arena_take(arena, n * sizeof *s->checkpoints);
    s->checkpoint_refs = tn_arena_take(arena, n * sizeof(uint32_t));
    s->free_checkpoints = tn_arena_take(arena, n * sizeof(uint32_t));
}

/* NULL: the model has none, or no memory is wanted for it. */
static const struct tn_layer *draft_layer(const struct tn_weights *weights,
                                          const struct tn_workspace_input *input)
{
    return input->has_drafts ? tn_draft_layer(weights) : NULL;
}

/* The cache of a sequence's draft head, as a table of all blocks of the context. */
static unsigned char **take_draft_blocks(struct tn_arena *arena, const struct tn_layer *layer,
                                         size_t n_blocks)
{
    unsigned char **table = tn_arena_take(arena, n_blocks * sizeof *table), *ring[TN_DRAFT_BLOCKS];
    for (uint32_t i = 0; i < TN_DRAFT_BLOCKS; i++)
        ring[i] = tn_arena_take(arena, tn_draft_block_bytes(layer));
    for (size_t i = 0; i < n_blocks && table; i++)
        table[i] = ring[i % TN_DRAFT_BLOCKS];
    return table;
}

static void layout_sequences(struct tn_scratch *s, struct tn_arena *arena,
                             const struct tn_weights *weights,
                             const struct tn_workspace_input *input)
{
    const size_t n = input->n_sequences, n_blocks = tn_div_ceil_u32(input->n_ctx, TN_KV_BLOCK);
    const struct tn_layer *draft = draft_layer(weights, input);
    const struct tn_state_input state_input = tn_workspace_state_input(input);
    struct tn_state_plan states;
    tn_state_plan_make(&states, NULL, weights, &state_input);
    s->state_layers =
        tn_arena_take(arena, tn_n_all_layers(weights->config) * sizeof *s->state_layers);
    layout_checkpoints(s, arena, states.bytes.checkpoint ? input->n_checkpoints : 0);
    s->sequences = tn_arena_take(arena, n * sizeof *s->sequences);
    s->block_refs = tn_arena_take(arena, n * n_blocks * sizeof *s->block_refs);
    s->free_blocks = tn_arena_take(arena, n * n_blocks * sizeof *s->free_blocks);
    for (size_t i = 0; i < n; i++) {
        const struct tn_sequence_scratch one = {
            .ids = tn_arena_take(arena, input->n_ctx * sizeof(uint32_t)),
            .blocks = tn_arena_take(arena, n_blocks * sizeof(unsigned char *)),
            .state = states.bytes.sequence ? tn_arena_take(arena, states.bytes.sequence) : NULL,
            .head_always = tn_arena_take(arena, TN_HEAD_MAX_ALWAYS * sizeof(uint32_t)),
            .draft_blocks = draft ? take_draft_blocks(arena, draft, n_blocks) : NULL,
        };
        if (arena->base)
            s->sequences[i] = one;
    }
}

static void layout_logits(struct tn_scratch *s, struct tn_arena *arena,
                          const struct tn_weights *weights,
                          const struct tn_workspace_input *input)
{
    const struct tern_file_config *c = weights->config;
    const uint32_t n_searches = tn_head_is_searchable(weights) ? input->n_logits : 0;
    s->wanted = tn_arena_take(arena, input->n_batch * sizeof *s->wanted);
    s->logits = tn_take_f32(arena, (size_t)input->n_logits * c->vocab);
    s->searches = n_searches ? tn_arena_take(arena, n_searches * sizeof *s->searches) : NULL;
    for (uint32_t i = 0; i < n_searches; i++)
        layout_search(s->searches ? &s->searches[i] : NULL, arena, c);
}

static size_t x16_bytes(const struct tn_input_widths *widths, size_t n)
{
    return n * TN_X16_BYTES(widths->of[TN_ACT_X16]);
}

static size_t x8_bytes(const struct tn_input_widths *widths, size_t n)
{
    return n * TN_X8_BYTES(widths->of[TN_ACT_X8]);
}

void tn_acts_layout(struct tn_acts *out, struct tn_arena *arena,
                    const struct tn_input_widths *all, enum tn_inputs_as inputs, size_t n)
{
    const struct tn_input_widths *widths = &all[inputs];
    size_t rounded = 0;
    for (uint32_t i = 0; i < TN_N_INPUTS_AS; i++)
        rounded = TN_MAX(rounded, x16_bytes(&all[i], n) + x8_bytes(&all[i], n));
    *out = (struct tn_acts){.i8_stride = tn_kern_pad(widths->of[TN_ACT_I8])};
    out->i8 = tn_arena_take(arena, n * out->i8_stride);
    out->i8_scale = tn_take_f32(arena, n);
    out->i8_sum = tn_arena_take(arena, n * sizeof(int32_t));
    out->prep = tn_arena_take(arena, TN_PREP_R2_BYTES(widths->of[TN_ACT_PREP]));
    unsigned char *x = tn_arena_take(arena, rounded);
    out->x16 = x;
    out->x8 = arena->base ? x + x16_bytes(widths, n) : NULL;
    out->f32_own = tn_take_f32(arena, n * tn_kern_pad(widths->of[TN_ACT_F32]));
}

/* The memory of a mixer or feed-forward, at an arena offset that all of them share: only one of
 * them runs at a time.  *used becomes the end of the largest. */
static void layout_part(void *out, const struct tn_arena *shared, size_t *used,
                        tn_scratch_layout_fn *layout, const struct tn_weights *weights,
                        const struct tn_workspace_input *input)
{
    struct tn_arena arena = *shared;
    layout(out, &arena, weights, input);
    *used = TN_MAX(*used, arena.used);
}

static void *take_part(struct tn_arena *arena, size_t n_bytes)
{
    return n_bytes > 0 ? tn_arena_take(arena, n_bytes) : NULL;
}

static void layout_parts(struct tn_scratch *s, struct tn_arena *arena,
                         const struct tn_weights *weights,
                         const struct tn_workspace_input *input)
{
    const uint32_t mixers = weights->mixers, ffns = weights->ffns, n = input->n_threads;
    for (uint32_t i = 1; i < TERN_MIXER_END; i++)
        s->mixers[i] = take_part(arena, (mixers >> i & 1) * (tn_mixers[i]->scratch_bytes +
                                                             n * tn_mixers[i]->thread_bytes));
    for (uint32_t i = 1; i < TERN_FFN_END; i++)
        s->ffns[i] = take_part(arena, (ffns >> i & 1) * (tn_ffns[i]->scratch_bytes +
                                                         n * tn_ffns[i]->thread_bytes));
    const struct tn_arena shared = *arena;
    for (uint32_t i = 1; i < TERN_MIXER_END; i++)
        if (mixers >> i & 1 && tn_mixers[i]->layout)
            layout_part(s->mixers[i], &shared, &arena->used, tn_mixers[i]->layout, weights, input);
    for (uint32_t i = 1; i < TERN_FFN_END; i++)
        if (ffns >> i & 1 && tn_ffns[i]->layout)
            layout_part(s->ffns[i], &shared, &arena->used, tn_ffns[i]->layout, weights, input);
}

static void layout_drafts(struct tn_scratch *s, struct tn_arena *arena,
                          const struct tn_weights *weights,
                          const struct tn_workspace_input *input)
{
    const size_t hidden = weights->config->hidden;
    const bool has_drafts = draft_layer(weights, input) != NULL;
    s->draft_states = has_drafts ? tn_take_f32(arena, input->n_batch * hidden) : NULL;
    s->draft_input = has_drafts ? tn_take_f32(arena, TN_DRAFT_ROWS * 2 * hidden) : NULL;
    s->draft_last = has_drafts ? tn_take_f32(arena, hidden) : NULL;
}

static bool is_parallel(const struct tern_file_config *c)
{
    return c->order == TERN_ORDER_PARALLEL || c->order == TERN_ORDER_SHARED;
}

void tn_scratch_layout(struct tn_scratch *s, struct tn_arena *arena,
                       const struct tn_weights *weights,
                       const struct tn_workspace_input *input)
{
    const struct tern_file_config *c = weights->config;
    size_t n = input->n_batch;

    s->h = tn_take_f32(arena, n * c->hidden);
    s->x = tn_take_f32(arena, n * c->hidden);
    s->beside = is_parallel(c) ? tn_take_f32(arena, n * c->hidden) : NULL;
    tn_acts_layout(&s->in, arena, weights->widths, input->inputs, n);
    layout_parts(s, arena, weights, input);
    s->cos = tn_take_f32(arena, weights->n_ropes * n * weights->rope_half);
    s->sin = tn_take_f32(arena, weights->n_ropes * n * weights->rope_half);
    s->inv_freq =
        tn_arena_take(arena, weights->n_ropes * weights->rope_half * sizeof *s->inv_freq);
    layout_drafts(s, arena, weights, input);
    s->active = tn_arena_take(arena, weights->n_listed * sizeof(uint32_t));
    s->active_x = tn_arena_take(arena, weights->n_listed);
    s->active_gate = tn_take_f32(arena, weights->n_listed);
    layout_logits(s, arena, weights, input);
    layout_sequences(s, arena, weights, input);
    s->threads = tn_arena_take(arena, input->n_threads * sizeof(struct tn_thread_scratch));
    for (uint32_t i = 0; i < input->n_threads; i++)
        layout_thread(s->threads ? &s->threads[i] : NULL, arena, weights, input->n_batch);
}

void tn_workspace_size_make(struct tn_workspace_size *out, const struct tn_weights *weights,
                            const struct tn_workspace_input *input)
{
    struct tn_scratch scratch;
    struct tn_arena arena = {0};
    const struct tn_state_input state_input = tn_workspace_state_input(input);
    struct tn_state_plan states;
    tn_scratch_layout(&scratch, &arena, weights, input);
    tn_state_plan_make(&states, NULL, weights, &state_input);
    *out = (struct tn_workspace_size){
        .scratch_bytes = arena.used,
        .state_bytes = (uint64_t)states.bytes.sequence * input->n_sequences,
        .kv_block_bytes = states.bytes.block,
        .kv_full_bytes = (uint64_t)states.bytes.block * tn_div_ceil_u32(input->n_ctx, TN_KV_BLOCK) *
                         input->n_sequences,
        .kv_bytes_per_token = tn_kv_bytes_per_token(weights, &state_input),
        .checkpoint_bytes = states.bytes.checkpoint,
        .checkpoints_full_bytes = (uint64_t)states.bytes.checkpoint * input->n_checkpoints,
    };
}
