/* SPDX-License-Identifier: MIT
 *
 * One line of progress on standard error, when it is a terminal: redrawn at most ten times a
 * second, shown after half a second, erased when it ends. No escape codes.
 */
#ifndef TN_PROGRESS_H
#define TN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

enum tn_progress_unit {
    TN_PROGRESS_BYTES,
    TN_PROGRESS_TOKENS,
    TN_PROGRESS_TEXTS,
    TN_PROGRESS_STEPS
};

/* Begins a task.  `lines`: without a terminal, print a line per 10 %. */
void tn_progress_start(const char *what, enum tn_progress_unit unit, bool lines);
/* Sets the number of units done before the task began; they do not count for its rate. */
void tn_progress_set_before(uint64_t n_before);
void tn_progress_update(uint64_t n_done, uint64_t n_total);
/* Names the next step, for TN_PROGRESS_STEPS; `text` is copied. */
void tn_progress_name_step(const char *text);
/* Called every few milliseconds by long tasks: draws the line if it is due and nothing was updated
 * since. */
void tn_progress_tick(void);
/* Ends the task and erases the line. */
void tn_progress_end(void);
/* Erases the line until the next update, so that other text can be written. */
void tn_progress_hide(void);

#endif
