/* SPDX-License-Identifier: MIT
 *
 * Lines of standard input, read on a thread of their own, so that one can be seen while an answer
 * to an earlier one is computed: `tern chat --jsonl`.
 */
#ifndef TN_LINE_QUEUE_H
#define TN_LINE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "tern/status.h"

enum tn_queued { TN_QUEUED_LINE, TN_QUEUED_END, TN_QUEUED_INTERRUPT, TN_QUEUED_FAILED };

struct tn_line_queue;

/* Begins to read. `is_signal` says which lines are not handed out: they end the answers to all
 * lines before them. It runs on the reading thread. TERN_MEMORY. */
tern_status tn_line_queue_open(struct tn_line_queue **out,
                               bool (*is_signal)(const char *line, size_t n),
                               struct tern_error *err);
/* Waits for the next line; TN_QUEUED_INTERRUPT as soon as tn_stop_requested(), which the reading
 * thread, blind to signals, may not see before its next line. *line is given memory of its own
 * (tn_buf_fini), with `failed` set when memory or the limit of 16 MiB cut it off. *err belongs to
 * TN_QUEUED_FAILED. */
enum tn_queued tn_line_queue_take(struct tn_line_queue *queue, struct tn_buf *line,
                                  struct tern_error *err);
/* Has a signal come behind the line that was taken last? Quick, for should_stop. */
bool tn_line_queue_is_signalled(const struct tn_line_queue *queue);
/* A thread that still waits for input cannot be ended: then nothing is freed, and the process has
 * to end with it. */
void tn_line_queue_close(struct tn_line_queue *queue);

#endif
