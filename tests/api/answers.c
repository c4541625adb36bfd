/* SPDX-License-Identifier: MIT
 *
 * Records answers of tern_generate and of the scheduler, and compares them.
 *
 * A request must get the same answer from both, whatever else runs.
 */
#include "answers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "demo.h"
#include "events.h"

static bool on_text(void *arg, const char *text, size_t n)
{
    struct answer *a = arg;
    assert_true(a->n_text + n <= MAX_TEXT);
    memcpy(a->text + a->n_text, text, n);
    a->n_text += n;
    return true;
}

static void on_token(void *arg, uint32_t id)
{
    struct answer *a = arg;
    assert_true(a->n < MAX_NEW);
    a->ids[a->n++] = id;
}

void answer_generate(struct answer *out, struct tern_engine *engine, const struct tern_model *model,
                     const struct tern_request *r, uint32_t n_ctx, enum tern_kv kv)
{
    struct tern_session *session;
    struct tern_sampler *sampler;
    struct tern_generate_result result;
    const struct tern_session_params sp = {.n_ctx = n_ctx, .kv = kv};
    *out = (struct answer){0};
    const struct tern_generate_params p = {.max_tokens = r->max_tokens,
                                           .ignore_eos = r->ignore_eos,
                                           .stop_strings = r->stop_strings,
                                           .n_stop_strings = r->n_stop_strings,
                                           .on_text = on_text,
                                           .on_token = on_token,
                                           .arg = out};
    struct tern_generate_params with = p;
    assert_ok(tern_session_create(&session, engine, model, &sp, &e));
    assert_ok(tern_sampler_create(&sampler, &r->sampler, tern_model_config(model)->vocab, &e));
    with.sampler = sampler;
    assert_ok(tern_generate(session, r->ids, r->n_ids, &with, &result, &e));
    out->stop = result.stop;
    tern_sampler_free(sampler);
    tern_session_free(session);
}

void answers_schedule(uint32_t *out, uint32_t n_new, struct tern_engine *engine,
                      const struct tern_model *model, const struct tern_scheduler_params *params,
                      const struct tern_request *requests, uint32_t n)
{
    struct tern_scheduler *s;
    struct answer list[8];
    memset(list, 0, sizeof list);
    assert_true(n <= TN_COUNT_OF(list) && n_new <= MAX_NEW);
    assert_ok(tern_scheduler_create(&s, engine, model, params, &e));
    for (uint32_t k = 0; k < n; k++) {
        struct tern_request r = requests[k];
        r.arg = &list[k];
        assert_ok(tern_scheduler_submit(s, &r, &(uint64_t){0}, &e));
    }
    struct events events = {.scheduler = s};
    for (const struct tern_event *event; (event = events_next(&events));)
        if (event->kind == TERN_EVENT_TOKEN)
            on_token(event->arg, event->id);
    tern_scheduler_free(s);
    for (uint32_t k = 0; k < n; k++) {
        assert_int_equal(list[k].n, n_new);
        memcpy(out + k * n_new, list[k].ids, n_new * sizeof *out);
    }
}

void running_take_event(struct running *r, const struct tern_event *event)
{
    assert_false(r->has_ended);
    switch (event->kind) {
    case TERN_EVENT_PREFILL:
        assert_int_equal(r->got.n, 0);
        assert_true(event->n_done > 0 && event->n_done <= event->n_total);
        break;
    case TERN_EVENT_TOKEN:
        on_token(&r->got, event->id);
        on_text(&r->got, event->text, event->n_text);
        break;
    case TERN_EVENT_END:
        on_text(&r->got, event->text, event->n_text);
        r->has_ended = true;
        r->got.stop = event->result.stop;
        r->result = event->result;
        assert_int_equal(event->status, TERN_OK);
        assert_int_equal(event->result.n_new, r->got.n);
        assert_int_equal(event->result.n_prompt, r->request->n_ids);
        break;
    default:
        fail_msg("event %d", (int)event->kind);
    }
}

void running_check(const struct running *r)
{
    const struct answer *want = r->want, *got = &r->got;
    assert_true(r->has_ended);
    assert_true(got->n <= want->n && got->n_text <= want->n_text + 16);
    assert_memory_equal(got->ids, want->ids, got->n * sizeof *got->ids);
    if (r->is_cancelled && got->stop == TERN_STOP_INTERRUPT)
        return;
    assert_int_equal(got->n, want->n);
    assert_int_equal(got->stop, want->stop);
    assert_int_equal(got->n_text, want->n_text);
    assert_memory_equal(got->text, want->text, want->n_text);
}

