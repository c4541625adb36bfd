/* SPDX-License-Identifier: MIT
 *
 * One thread reads lines and appends them, another takes them: a list protected by a lock that is
 * held only briefly.  Lines are counted, so that the lines before a signal are known whichever
 * thread is faster.
 */
#include "line_queue.h"

#include <stdatomic.h>

#include "app.h"
#include "base/alloc.h"
#include "base/error.h"
#include "plat/lock.h"
#include "plat/plat.h"
#include "prompt.h"

/* Limit of the queue; beyond it the reader waits. */
#define MAX_WAITING_BYTES ((size_t)64 << 20)
/* A signal may arrive between the check and the wait, and not every system's wait is interrupted by
 * it. */
#define LOOK_EVERY_NS 100000000u

struct entry {
    struct entry *next;
    struct tn_buf line;
};

struct tn_line_queue {
    struct tn_thread *thread;
    bool (*is_signal)(const char *line, size_t n);
    struct tn_lock lock;
    _Atomic uint32_t n_changes; /* of the list: threads wait for a change of it */
    struct entry *first, **end;
    size_t n_bytes; /* of the queued lines */
    bool is_done;
    enum tn_queued done; /* the reason for the end of the lines */
    struct tern_error err;
    _Atomic uint64_t n_signalled; /* number of lines before the last signal */
    uint64_t n_read;              /* lines; only for the reader */
    uint64_t n_taken;             /* lines; only for the taker */
};

static void changed(struct tn_line_queue *q)
{
    atomic_fetch_add(&q->n_changes, 1);
    tn_lock_release(&q->lock);
    tn_wake_all(&q->n_changes);
}

/* ---- the reader ---- */

static void put_line(struct tn_line_queue *q, struct entry *entry)
{
    tn_lock_take(&q->lock);
    while (q->n_bytes > MAX_WAITING_BYTES) {
        uint32_t seen = atomic_load(&q->n_changes);
        tn_lock_release(&q->lock);
        tn_wait_on(&q->n_changes, seen, 0);
        tn_lock_take(&q->lock);
    }
    *q->end = entry;
    q->end = &entry->next;
    q->n_bytes += entry->line.n_bytes;
    changed(q);
}

static void put_end(struct tn_line_queue *q, enum tn_queued done, const struct tern_error *err)
{
    tn_lock_take(&q->lock);
    q->is_done = true;
    q->done = done;
    q->err = *err;
    changed(q);
}

/* False: it was the last. */
static bool read_one(struct tn_line_queue *q)
{
    bool interrupted;
    struct tern_error err;
    struct entry *entry = tn_alloc_zeroed(1, sizeof *entry);
    if (!entry) {
        tn_fail(&err, TERN_MEMORY, "no memory for a line");
        put_end(q, TN_QUEUED_FAILED, &err);
        return false;
    }
    bool is_line = tn_read_line(tn_prompt_append, &entry->line, &interrupted, &err);
    if (is_line && !interrupted && q->is_signal(entry->line.data, entry->line.n_bytes)) {
        atomic_store(&q->n_signalled, q->n_read);
    } else if (is_line && !interrupted) {
        q->n_read++;
        put_line(q, entry);
        return true;
    }
    tn_buf_fini(&entry->line);
    tn_free(entry);
    if (is_line && !interrupted)
        return true;
    put_end(q,
            interrupted             ? TN_QUEUED_INTERRUPT
            : err.status == TERN_OK ? TN_QUEUED_END
                                    : TN_QUEUED_FAILED,
            &err);
    return false;
}

static void read_all(void *arg)
{
    while (read_one(arg))
        ;
}

tern_status tn_line_queue_open(struct tn_line_queue **out,
                               bool (*is_signal)(const char *line, size_t n),
                               struct tern_error *err)
{
    struct tn_line_queue *q = *out = tn_alloc_zeroed(1, sizeof *q);
    if (!q)
        return tn_fail(err, TERN_MEMORY, "no memory to read lines");
    q->is_signal = is_signal;
    q->end = &q->first;
    q->thread = tn_thread_start(read_all, q);
    if (q->thread)
        return tn_ok(err);
    tn_free(q);
    *out = NULL;
    return tn_fail(err, TERN_MEMORY, "cannot start the thread that reads lines");
}

/* ---- the taker ---- */

enum tn_queued tn_line_queue_take(struct tn_line_queue *q, struct tn_buf *line,
                                  struct tern_error *err)
{
    tn_lock_take(&q->lock);
    while (!q->first && !q->is_done && !tn_stop_requested()) {
        uint32_t seen = atomic_load(&q->n_changes);
        tn_lock_release(&q->lock);
        tn_wait_on(&q->n_changes, seen, LOOK_EVERY_NS);
        tn_lock_take(&q->lock);
    }
    if (tn_stop_requested()) {
        tn_lock_release(&q->lock);
        return TN_QUEUED_INTERRUPT;
    }
    struct entry *entry = q->first;
    if (!entry) {
        *err = q->err;
        tn_lock_release(&q->lock);
        return q->done;
    }
    q->first = entry->next;
    if (!q->first)
        q->end = &q->first;
    q->n_bytes -= entry->line.n_bytes;
    changed(q);
    q->n_taken++;
    *line = entry->line;
    tn_free(entry);
    return TN_QUEUED_LINE;
}

bool tn_line_queue_is_signalled(const struct tn_line_queue *q)
{
    return atomic_load(&q->n_signalled) >= q->n_taken;
}

void tn_line_queue_close(struct tn_line_queue *q)
{
    tn_lock_take(&q->lock);
    const bool is_done = q->is_done;
    tn_lock_release(&q->lock);
    if (!is_done)
        return;
    tn_thread_join(q->thread);
    while (q->first) {
        struct entry *entry = q->first;
        q->first = entry->next;
        tn_buf_fini(&entry->line);
        tn_free(entry);
    }
    tn_free(q);
}
