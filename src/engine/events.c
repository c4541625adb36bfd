/* SPDX-License-Identifier: MIT
 *
 * Emits the events of a request, and ends requests.
 *
 * Every request ends here, whatever the reason, so its last event cannot be forgotten.
 */
#include "engine/steps.h"

bool tn_emit_event(struct tn_steps *s, struct tn_request *r, struct tern_event *event)
{
    event->request = r->id;
    event->arg = r->asked.arg;
    return s->on_event(s->arg, r, event);
}

void tn_end_request(struct tn_steps *s, struct tn_request *r, enum tern_stop stop,
                    const struct tern_error *why)
{
    struct tern_event event = {.kind = TERN_EVENT_END};
    r->result.stop = stop;
    r->result.n_new = r->generation.n_new;
    r->result.i_stop_string = r->generation.i_stop_string;
    if (r->first_ns)
        r->result.decode_s = tn_seconds_since(r->first_ns);
    else if (r->start_ns)
        r->result.prompt_s = tn_seconds_since(r->start_ns);
    if (r->generation.n_new > 0 && stop != TERN_STOP_STRING)
        tn_generation_end(&r->generation);
    event.text = tn_generation_take(&r->generation, &event.n_text);
    event.result = r->result;
    if (why) {
        event.status = why->status;
        event.error = *why;
    }
    (void)tn_emit_event(s, r, &event);
}

void tn_end_lane(struct tn_steps *s, struct tn_lane *lane, enum tern_stop stop,
                 const struct tern_error *why)
{
    struct tn_request *r = lane->request;
    lane->request = NULL;
    lane->n_rows = 0;
    s->n_running--;
    tn_end_request(s, r, stop, why);
}
