/* SPDX-License-Identifier: MIT
 *
 * The events of a scheduler one after the other, for tests that submit requests and then only look
 * at what happens:
 *
 *   struct events events = {.scheduler = s};
 *   for (const struct tern_event *event; (event = events_next(&events));)
 *
 * Include cmocka.h first.
 */
#ifndef TEST_EVENTS_H
#define TEST_EVENTS_H

#include "demo.h"
#include "tern/scheduler.h"

struct events {
    struct tern_scheduler *scheduler;
    const struct tern_event *list; /* of the latest step */
    size_t n, next;
    bool is_idle;
};

/* Steps the scheduler as needed; NULL when it is idle.  Valid until the next call. */
static inline const struct tern_event *events_next(struct events *events)
{
    while (events->next == events->n) {
        if (events->is_idle)
            return NULL;
        events->next = 0;
        assert_ok(tern_scheduler_step(events->scheduler, &events->list, &events->n,
                                      &events->is_idle, &e));
    }
    return &events->list[events->next++];
}

#endif
