/* SPDX-License-Identifier: MIT
 *
 * Limits of an answer by its lines, for programs that complete code (llama.cpp's "n_indent" and
 * "t_max_predict_ms").
 */
#ifndef TN_LINE_LIMITS_H
#define TN_LINE_LIMITS_H

#include "server/task.h"

/* Called when a token has added the text from offset n_before on.  Completes the choice if a limit
 * is reached, and cuts a line off that is not part of the block. */
void tn_line_limits_apply(const struct tn_task *task, struct tn_choice *choice, size_t n_before);

#endif
