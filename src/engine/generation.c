/* SPDX-License-Identifier: MIT
 *
 * Chooses, decodes and ends a text, id by id.
 *
 * Decides which bytes are certain: a partial character and a possible start of a stop string are
 * held back.
 */
#include "engine/generation.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/text_match.h"
#include "engine/fill_choice.h"
#include "grammar/token_mask.h"
#include "model/forward.h"
#include "text/tokenizer.h"

/* ---- creation ---- */

tern_status tn_generation_init(struct tn_generation *g, struct tern_error *err)
{
    const struct tern_tokenizer *tokenizer = g->model->tokenizer;
    size_t longest = 0, room = 3 * ((tokenizer ? tn_tokenizer_longest(tokenizer) : 0) + 4);
    for (size_t i = 0; i < g->n_stop_strings; i++)
        longest = TN_MAX(longest, strlen(g->stop_strings[i]));
    g->piece = tn_alloc(room + 12);
    /* Room for the held bytes, the tokens of a step, and the end of an incomplete character. */
    if (!g->piece || !tn_buf_reserve(&g->text, longest + (1 + TERN_MAX_DRAFT) * room + 12)) {
        tn_generation_fini(g);
        return tn_fail(err, TERN_MEMORY, "no memory for the text of a token");
    }
    return tn_ok(err);
}

void tn_generation_fini(struct tn_generation *g)
{
    tn_free(g->piece);
    g->piece = NULL;
    tn_buf_fini(&g->text);
}

void tn_generation_start(struct tn_generation *g, const uint32_t *ids, size_t n_ids)
{
    /* After a special token the tokenizer would emit a space, which is not part of the text. */
    if (g->model->tokenizer && g->model->is_control[ids[n_ids - 1]])
        tern_decoder_start(&g->decoder, g->model->tokenizer);
    tern_sampler_set_exempt(g->sampler, g->model->is_control);
    tern_sampler_clear_history(g->sampler);
    for (size_t i = 0; i < n_ids; i++)
        tern_sampler_accept(g->sampler, ids[i]);
}

/* ---- choice ---- */

void tn_generation_need(const struct tn_generation *g, uint32_t *always, struct tn_head_need *out)
{
    /* The sampler needs only the best few logits and those of penalised ids. */
    *out = (struct tn_head_need){
        .n_best = tn_sampler_n_best(g->sampler),
        .n_allowed = g->model->n_allowed,
        .always = always,
    };
    if (out->n_best &&
        !tn_sampler_penalised(g->sampler, always, TN_HEAD_MAX_ALWAYS, &out->n_always))
        out->n_best = 0;
    struct tn_allowed allowed;
    if (!g->constraint || tn_constraint_allowed(g->constraint, &allowed, NULL) != TERN_OK)
        return; /* the choice reports the error */
    out->bits = allowed.bits;
    out->only = allowed.ids;
    out->n_only = allowed.ids ? allowed.n : 0;
}

bool tn_generation_is_decided(const struct tn_generation *g)
{
    struct tn_allowed allowed;
    return g->constraint && tn_constraint_allowed(g->constraint, &allowed, NULL) == TERN_OK &&
           allowed.n == 1;
}

static tern_status sample(struct tn_generation *g, const float *logits, uint32_t *id,
                          struct tern_error *err)
{
    if (g->fits_gap && !g->constraint)
        return tn_fill_choose(g, logits, id, err);
    return tern_sampler_sample(g->sampler, logits, g->model->file.spec.config->vocab,
                               g->model->n_allowed, id, err);
}

/* Samples under a grammar.  If only one id is possible no random number is drawn, with or without
 * logits. */
static tern_status sample_allowed(struct tn_generation *g, const float *logits, uint32_t *id,
                                  struct tern_error *err)
{
    struct tn_allowed allowed;
    tern_status status = tn_constraint_allowed(g->constraint, &allowed, err);
    if (status == TERN_OK && allowed.n == 1) {
        *id = allowed.ids[0];
    } else if (status == TERN_OK) {
        tn_sampler_set_bits(g->sampler, allowed.bits);
        status = sample(g, logits, id, err);
        tn_sampler_set_bits(g->sampler, NULL);
    }
    return status == TERN_OK ? tn_constraint_push(g->constraint, *id, &g->is_complete, err)
                             : status;
}

tern_status tn_generation_choose(struct tn_generation *g, const float *logits, uint32_t *id,
                                 struct tern_error *err)
{
    tern_status status =
        g->constraint ? sample_allowed(g, logits, id, err) : sample(g, logits, id, err);
    if (status != TERN_OK)
        return status;
    tern_sampler_accept(g->sampler, *id);
    g->n_new++;
    return TERN_OK;
}

/* ---- text ---- */

/* Offset of the earliest stop string after the taken text, or SIZE_MAX. */
static size_t find_stop(struct tn_generation *g)
{
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < g->n_stop_strings; i++) {
        const size_t at =
            tn_text_find(g->text.data, g->text.n_bytes, g->n_taken, g->stop_strings[i]);
        if (at < g->text.n_bytes && at < first) {
            first = at;
            g->i_stop_string = (uint32_t)i;
        }
    }
    return first;
}

/* Length of the longest end of the text that is a prefix of a stop string. */
static size_t undecided(const struct tn_generation *g)
{
    size_t longest = 0;
    for (size_t i = 0; i < g->n_stop_strings; i++) {
        const size_t n = tn_text_n_begun(tn_buf_bytes(&g->text) + g->n_taken,
                                         g->text.n_bytes - g->n_taken, g->stop_strings[i]);
        longest = TN_MAX(longest, n);
    }
    return longest;
}

/* Decides as many bytes as possible.  true: a stop string occurred; it and the rest are cut off. */
static bool decide(struct tn_generation *g, bool at_end)
{
    const size_t stop = find_stop(g);
    if (stop != SIZE_MAX)
        g->text.n_bytes = stop;
    g->n_decided = g->text.n_bytes - (at_end || stop != SIZE_MAX ? 0 : undecided(g));
    return stop != SIZE_MAX;
}

/* Appends an id's text.  true: it ends with a stop string. */
static bool push_text(struct tn_generation *g, uint32_t id)
{
    if (!g->model->tokenizer || g->model->is_control[id])
        return false;
    size_t n = tern_decoder_push_id(&g->decoder, g->model->tokenizer, id, g->piece);
    tn_buf_append(&g->text, g->piece, n);
    return decide(g, false);
}

bool tn_generation_push(struct tn_generation *g, uint32_t id, bool is_full, enum tern_stop *stop)
{
    if (!g->ignore_eos && tn_generation_ends(g, id)) {
        *stop = TERN_STOP_EOS;
        return true;
    }
    const bool has_stop = push_text(g, id), is_last = g->n_new == g->max_tokens;
    *stop = has_stop         ? TERN_STOP_STRING
            : g->is_complete ? TERN_STOP_EOS
            : is_last        ? TERN_STOP_LENGTH
                             : TERN_STOP_CONTEXT;
    return has_stop || g->is_complete || is_last || is_full;
}

void tn_generation_end(struct tn_generation *g)
{
    tn_buf_append(&g->text, g->piece, tern_decoder_flush(&g->decoder, g->piece));
    decide(g, true);
}

const char *tn_generation_take(struct tn_generation *g, size_t *n)
{
    const char *begin = g->text.data + g->n_taken;
    *n = g->n_decided - g->n_taken;
    g->n_taken = g->n_decided;
    return begin;
}

void tn_generation_forget(struct tn_generation *g)
{
    memmove(g->text.data, g->text.data + g->n_taken, g->text.n_bytes - g->n_taken);
    g->text.n_bytes -= g->n_taken;
    g->n_decided -= g->n_taken;
    g->n_taken = 0;
}
