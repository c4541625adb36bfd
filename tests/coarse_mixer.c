/* SPDX-License-Identifier: MIT
 *
 * The mixer of coarse_mixer.h, and the function that installs it in a model.
 *
 * It keeps its state like a recurrent layer and can only roll back to its bases.
 */
#include "coarse_mixer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"

#define WIDTH 16u
#define N_BASES 2u

struct at {
    uint32_t position; /* 0: unused */
    float sum[WIDTH];
};

struct coarse {
    struct at now;
    struct at bases[N_BASES]; /* newest first */
    uint32_t unused[13];
};
static_assert(sizeof(struct coarse) % 64 == 0, "parts of states are multiples of 64 bytes");

static void add_row(struct coarse *s, float *h)
{
    for (uint32_t i = 0; i < WIDTH; i++) {
        s->now.sum[i] = 0.75f * s->now.sum[i] + h[i];
        h[WIDTH + i] += 0.5f * s->now.sum[i];
    }
    if (++s->now.position % COARSE_STEP == 0) {
        memmove(s->bases + 1, s->bases, (N_BASES - 1) * sizeof *s->bases);
        s->bases[0] = s->now;
    }
}

static void run(struct tn_forward *f, uint32_t i_layer)
{
    const uint32_t hidden = f->weights->config->hidden;
    for (uint32_t k = 0; k < f->batch->n_spans; k++) {
        const struct tn_span *span = &f->batch->spans[k];
        struct coarse *s = tn_state_of(f, span, i_layer);
        assert_int_equal(s->now.position, span->position);
        for (uint32_t t = 0; t < span->n_rows; t++)
            add_row(s, f->s.h + (size_t)(span->row + t) * hidden);
    }
}

static struct tn_state_bytes bytes(const struct tn_weights *weights, const struct tn_layer *layer,
                                   const struct tn_state_input *input)
{
    (void)weights, (void)layer, (void)input;
    return (struct tn_state_bytes){.sequence = sizeof(struct coarse),
                                   .checkpoint = sizeof(struct coarse)};
}

static uint32_t reach(const struct tn_state_layer *layer, const void *state, uint32_t position)
{
    const struct coarse *s = state;
    (void)layer;
    if (position >= s->now.position)
        return s->now.position;
    for (uint32_t i = 0; i < N_BASES; i++)
        if (s->bases[i].position <= position)
            return s->bases[i].position;
    return 0;
}

static void truncate(const struct tn_state_layer *layer, void *state, uint32_t position)
{
    struct coarse *s = state;
    assert_int_equal(reach(layer, state, position), position);
    if (position == 0)
        *s = (struct coarse){0};
    while (s->now.position > position) {
        if (s->bases[0].position <= position)
            s->now = s->bases[0];
        if (s->bases[0].position <= position)
            break;
        memmove(s->bases, s->bases + 1, (N_BASES - 1) * sizeof *s->bases);
        s->bases[N_BASES - 1] = (struct at){0};
    }
}

static void checkpoint(const struct tn_state_layer *layer, const void *state, uint32_t position,
                       void *kept)
{
    memcpy(kept, state, sizeof(struct coarse));
    truncate(layer, kept, position);
}

static void restore(const struct tn_state_layer *layer, void *state, const void *kept)
{
    (void)layer;
    memcpy(state, kept, sizeof(struct coarse));
}

static bool is_sound(const struct tn_state_layer *layer, const void *kept, uint32_t position)
{
    const struct coarse *s = kept;
    (void)layer;
    return s->now.position == position && s->bases[0].position <= position &&
           s->bases[1].position <= s->bases[0].position;
}

static const struct tn_state_ops state = {.bytes = bytes,
                                          .reach = reach,
                                          .truncate = truncate,
                                          .checkpoint = checkpoint,
                                          .restore = restore,
                                          .is_sound = is_sound};

const struct tn_mixer coarse_mixer = {.name = "coarse", .run = run, .state = &state};

void coarse_layers(struct tern_model *model)
{
    const struct tn_weights *w = &model->weights;
    for (uint32_t i = w->config->n_layer - 1; i < w->config->n_layer; i -= 2)
        w->layers[i].mixer = &coarse_mixer;
}
