/* SPDX-License-Identifier: MIT
 *
 * Events, and the last one of a request.
 */
#include "run/scheduler.h"

bool tn_is_cancelled(const struct tern_scheduler *s, const struct tn_request *r)
{
    return s->cancelled[r->id % s->n_places] == r->id;
}

struct tern_event *tn_add_event(struct tern_scheduler *s, enum tern_event_kind kind,
                                const struct tn_request *r)
{
    struct tern_event *event = &s->events[s->n_events++];
    *event = (struct tern_event){.kind = kind, .request = r->id, .arg = r->asked.arg};
    return event;
}

/* The last event of a request; it does not run any more, or never did. */
static void end_request(struct tern_scheduler *s, struct tn_request *r, enum tern_stop stop,
                        const struct tern_error *why)
{
    struct tern_event *event = tn_add_event(s, TERN_EVENT_END, r);
    r->result.stop = stop;
    r->result.n_new = r->generation.n_new;
    if (r->first_ns)
        r->result.decode_s = tn_seconds_since(r->first_ns);
    if (r->generation.n_new > 0 && stop != TERN_STOP_STRING)
        tn_generation_end(&r->generation);
    event->text = tn_generation_take(&r->generation, &event->n_text);
    event->result = r->result;
    if (why) {
        event->status = why->status;
        event->error = *why;
    }
    s->is_taken[r->id % s->n_places] = false;
    r->next = s->ended;
    s->ended = r;
}

void tn_end_lane(struct tern_scheduler *s, struct tn_lane *lane, enum tern_stop stop,
                 const struct tern_error *why)
{
    end_request(s, lane->request, stop, why);
    lane->request = NULL;
    lane->n_rows = 0;
    s->n_running--;
}

void tn_end_cancelled(struct tern_scheduler *s)
{
    for (uint32_t i = 0; i < s->params.n_sequences; i++)
        if (s->lanes[i].request && tn_is_cancelled(s, s->lanes[i].request))
            tn_end_lane(s, &s->lanes[i], TERN_STOP_INTERRUPT, NULL);
    struct tn_request **at = &s->first;
    for (struct tn_request *r; (r = *at) != NULL;) {
        if (!tn_is_cancelled(s, r)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        s->n_waiting--;
        end_request(s, r, TERN_STOP_INTERRUPT, NULL);
    }
    s->last = at;
}
