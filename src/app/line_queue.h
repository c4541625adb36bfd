/* SPDX-License-Identifier: MIT
 *
 * Reads lines of standard input on a separate thread, so that a line can be seen while an answer to
 * an earlier one is computed: for `tern chat --jsonl`.
 */
#ifndef TN_LINE_QUEUE_H
#define TN_LINE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "tern/status.h"

enum tn_queued { TN_QUEUED_LINE, TN_QUEUED_END, TN_QUEUED_INTERRUPT, TN_QUEUED_FAILED };

struct tn_line_queue;

/* Starts reading.  Lines for which `is_signal` returns true are not queued: they end the answers to
 * all earlier lines.  It is called on the reading thread.  TERN_MEMORY. */
tern_status tn_line_queue_open(struct tn_line_queue **out,
                               bool (*is_signal)(const char *line, size_t n),
                               struct tern_error *err);
/* Waits for the next line; TN_QUEUED_INTERRUPT as soon as tn_stop_requested(), which the reading
 * thread, on which signals are blocked, may not notice before its next line.  *line receives new
 * memory (tn_buf_fini), with `failed` set if memory or the limit of 16 MiB truncated it.  *err is
 * set with TN_QUEUED_FAILED. */
enum tn_queued tn_line_queue_take(struct tn_line_queue *queue, struct tn_buf *line,
                                  struct tern_error *err);
/* Whether a signal has arrived after the line taken last.  Quick, for should_stop. */
bool tn_line_queue_is_signalled(const struct tn_line_queue *queue);
/* A thread that still waits for input cannot be ended: then nothing is freed, and the process has
 * to exit with it. */
void tn_line_queue_close(struct tn_line_queue *queue);

#endif
