/* SPDX-License-Identifier: MIT
 *
 * Conversations.
 */
#include "conversation.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

void tn_conversation_clear(struct tn_conversation *c)
{
    for (size_t i = 0; i < c->n_turns; i++)
        tn_buf_fini(&c->turns[i].text);
    c->n_turns = 0;
}

void tn_conversation_fini(struct tn_conversation *c)
{
    tn_conversation_clear(c);
    tn_buf_fini(&c->system);
    tn_free(c->turns);
    *c = (struct tn_conversation){0};
}

tern_status tn_conversation_set_system(struct tn_conversation *c, const char *text, size_t n,
                                       struct tern_error *err)
{
    tn_buf_clear(&c->system);
    c->has_system = true;
    if (!tn_buf_append(&c->system, text, n))
        return tn_fail(err, TERN_MEMORY, "no memory for a system message of %zu bytes", n);
    return TERN_OK;
}

static bool make_room(struct tn_conversation *c)
{
    if (c->n_turns < c->capacity)
        return true;
    size_t capacity = c->capacity ? 2 * c->capacity : 16;
    struct tn_turn *turns = tn_realloc(c->turns, capacity * sizeof *turns);
    if (!turns)
        return false;
    c->turns = turns;
    c->capacity = capacity;
    return true;
}

tern_status tn_conversation_add(struct tn_conversation *c, const char *role, const char *text,
                                size_t n, struct tn_turn **turn, struct tern_error *err)
{
    struct tn_turn new_turn = {.role = role};
    if (!make_room(c) || !tn_buf_append(&new_turn.text, text, n)) {
        tn_buf_fini(&new_turn.text);
        return tn_fail(err, TERN_MEMORY, "no memory for a message of %zu bytes", n);
    }
    c->turns[c->n_turns] = new_turn;
    if (turn)
        *turn = &c->turns[c->n_turns];
    c->n_turns++;
    return TERN_OK;
}

bool tn_conversation_take_last(struct tn_conversation *c, const char *role, struct tn_turn *out)
{
    if (c->n_turns == 0 || strcmp(c->turns[c->n_turns - 1].role, role) != 0)
        return false;
    *out = c->turns[--c->n_turns];
    return true;
}

void tn_conversation_put_back(struct tn_conversation *c, const struct tn_turn *turn)
{
    assert(c->n_turns < c->capacity && "the turn was taken from here");
    c->turns[c->n_turns++] = *turn;
}

bool tn_conversation_remove_last(struct tn_conversation *c, const char *role)
{
    struct tn_turn turn;
    if (!tn_conversation_take_last(c, role, &turn))
        return false;
    tn_buf_fini(&turn.text);
    return true;
}

size_t tn_conversation_next_question(const struct tn_conversation *c, size_t from)
{
    do
        from++;
    while (from < c->n_turns && strcmp(c->turns[from].role, "user") != 0);
    return from;
}

void tn_conversation_drop(struct tn_conversation *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tn_buf_fini(&c->turns[i].text);
    memmove(c->turns, c->turns + n, (c->n_turns - n) * sizeof *c->turns);
    c->n_turns -= n;
}

tern_status tn_conversation_encode(const struct tn_conversation *c, size_t from,
                                   const struct tern_model *model,
                                   const struct tern_chat_template *t, struct tern_ids *out,
                                   struct tern_error *err)
{
    tern_status status = tern_model_check_unchanged(model, err); /* while the user was typing */
    if (status != TERN_OK)
        return status;
    struct tern_message *messages = tn_alloc_zeroed(c->n_turns + 1, sizeof *messages);
    if (!messages)
        return tn_fail(err, TERN_MEMORY, "no memory for %zu messages", c->n_turns + 1);
    size_t n = 0;
    if (c->has_system)
        messages[n++] = (struct tern_message){"system", 6, c->system.data ? c->system.data : "",
                                              c->system.n_bytes};
    for (size_t i = from; i < c->n_turns; i++) {
        const struct tn_turn *turn = &c->turns[i];
        messages[n++] = (struct tern_message){turn->role, strlen(turn->role),
                                              turn->text.data ? turn->text.data : "",
                                              turn->text.n_bytes};
    }
    out->n = 0;
    status = tern_chat_encode(tern_model_tokenizer(model), t, messages, n, true, out, err);
    tn_free(messages);
    return status;
}
