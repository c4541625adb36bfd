/* SPDX-License-Identifier: MIT
 *
 * One line of progress on standard error, when it is a terminal: redrawn at most ten times a
 * second, shown after half a second, erased when it ends. No escape codes.
 */
#ifndef TN_PROGRESS_H
#define TN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

enum tn_progress_unit { TN_PROGRESS_BYTES, TN_PROGRESS_TOKENS };

/* Begins a task. `lines`: without a terminal a line per 10 %. */
void tn_progress_start(const char *what, enum tn_progress_unit unit, bool lines);
/* So many units were done before the task began; they do not count for its rate. */
void tn_progress_set_before(uint64_t n_before);
void tn_progress_update(uint64_t n_done, uint64_t n_total);
/* Ends the task; the line is gone. */
void tn_progress_end(void);
/* Erases the line until the next update, for other text on the screen. */
void tn_progress_hide(void);

#endif
