/* SPDX-License-Identifier: MIT
 *
 * The demo model, conversations with it, and their turns and ids, for the tests of conversations
 * and of saved ones.
 */
#ifndef TEST_CONVERSATION_FIXTURE_H
#define TEST_CONVERSATION_FIXTURE_H

#include "demo.h"
#include "plat/plat.h"
#include "tern/conversation.h"

#define N_CTX 256u
#define SYSTEM "Be kind."

static struct demo demo;
static struct tern_engine *engine;
static struct tern_model *model;
static struct tern_session *session;
static struct tern_sampler *greedy, *random_sampler;

static inline int setup(void **state)
{
    (void)state;
    struct tern_error e;
    struct tern_sampler_params sampling;
    struct tern_session_params params = {.n_ctx = N_CTX};
    if (!demo_open(&demo, MODEL_PATH, 1))
        return 1;
    engine = demo.engine;
    model = demo.model;
    tern_sampler_params_default(&sampling);
    if (tern_session_create(&session, engine, model, &params, &e) != TERN_OK ||
        tern_sampler_create(&random_sampler, &sampling, tern_model_config(model)->vocab, &e) !=
            TERN_OK)
        return 1;
    sampling = (struct tern_sampler_params){.top_p = 1.0f, .repeat_penalty = 1.0f};
    return tern_sampler_create(&greedy, &sampling, tern_model_config(model)->vocab, &e) != TERN_OK;
}

static inline int teardown(void **state)
{
    (void)state;
    tern_sampler_free(greedy);
    tern_sampler_free(random_sampler);
    tern_session_free(session);
    demo_close(&demo);
    tn_file_remove(SAVED_PATH);
    return 0;
}

static inline void use_template(struct tern_conversation *c, const struct tern_chat_template *t)
{
    struct tern_chat_params params;
    tern_model_chat_params(model, t, &params);
    tern_conversation_set_template(c, tern_model_tokenizer(model), t, &params);
}

static inline struct tern_conversation *begin(void)
{
    struct tern_conversation *c;
    const struct tern_chat_template *t;
    assert_ok(tern_conversation_create(&c, &e));
    assert_ok(tern_model_chat_template(&t, model, &e));
    use_template(c, t);
    return c;
}

static inline struct tern_text text_of(const char *text)
{
    return (struct tern_text){text, strlen(text)};
}

static inline void say(struct tern_conversation *c, const char *role, const char *text)
{
    struct tern_turn turn = {.role = text_of(role), .content = text_of(text)};
    assert_ok(tern_conversation_add(c, &turn, &e));
}

static inline struct tern_answer_params answer_params(uint32_t max_tokens)
{
    return (struct tern_answer_params){
        .generate = {.sampler = greedy, .max_tokens = max_tokens, .ignore_eos = true}, .seed = 1};
}

static inline struct tern_answer_result answer(struct tern_conversation *c, uint32_t max_tokens)
{
    struct tern_answer_params params = answer_params(max_tokens);
    struct tern_answer_result result;
    assert_ok(tern_conversation_answer(c, session, &params, &result, &e));
    return result;
}

static inline struct tern_turn last_turn(const struct tern_conversation *c)
{
    struct tern_turn turn;
    tern_conversation_get(c, tern_conversation_n_turns(c) - 1, &turn);
    return turn;
}

static inline void assert_same_text(struct tern_text a, struct tern_text b)
{
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.bytes, b.bytes, a.n);
}

static inline void assert_same_ids(const struct tern_ids *a, const struct tern_ids *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->ids, b->ids, a->n * sizeof *a->ids);
}

static inline struct tern_ids ids_of(const struct tern_conversation *c)
{
    struct tern_ids ids = {0};
    assert_ok(tern_conversation_encode(c, &ids, &e));
    return ids;
}

/* "" expects no text. */
static inline void assert_ends_with(struct tern_text text, const char *tail)
{
    const size_t n = strlen(tail);
    if (n == 0 ? text.n > 0 : text.n < n || memcmp(text.bytes + text.n - n, tail, n) != 0)
        fail_msg("\"%.*s\" does not end with \"%s\"", (int)text.n, text.bytes, tail);
}

#endif
