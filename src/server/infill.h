/* SPDX-License-Identifier: MIT
 *
 * Prompts for filling in the middle of a text: POST /infill of llama.cpp's server, and "suffix" of
 * /v1/completions and /api/generate.
 *
 *   BOS REPOSITORY name FILE name text ... FILE name PREFIX before typed SUFFIX after MIDDLE
 *
 * Repository and files are there if the vocabulary has ids for them; a few models have the suffix
 * first and no middle (struct tern_fim_ids).
 */
#ifndef TN_INFILL_H
#define TN_INFILL_H

#include "server/task.h"

struct tn_infill_text {
    const char *text;
    size_t n;
};

struct tn_infill_gap {
    struct tn_infill_text before; /* the lines before that of the gap */
    struct tn_infill_text typed;  /* the line up to the gap: ids of `before` do not depend on it */
    struct tn_infill_text after;
    const json_t *extra; /* other files, an array of {"filename","text"}; NULL: none */
};

/* Refuses with this status if the task's model has no ids for it. */
bool tn_infill_check(const struct tn_task *task, int status, struct tn_refusal *refusal);
/* Encodes the prompt, without the ends of long texts that are far from the gap.  Called by a
 * tn_task_prepare_fn. */
bool tn_infill_encode(struct tn_task *task, const struct tn_infill_gap *gap,
                      struct tn_refusal *refusal);
/* Reads "suffix": a text after the answer to "prompt".  false: refused. */
bool tn_infill_read_suffix(struct tn_task *task, struct tn_refusal *refusal);
/* Encodes the "prompt" and "suffix" of the task's body.  A tn_task_prepare_fn. */
bool tn_infill_prepare(struct tn_task *task, struct tn_refusal *refusal);
/* Writes the ids that end the answer to a prompt with a gap, also if the client built the prompt,
 * besides the model's stop ids.  Returns their number; 0 for other prompts. */
uint32_t tn_infill_end_ids(const struct tn_task *task, const struct tern_ids *prompt,
                           uint32_t out[TN_TASK_MAX_END_IDS]);

#endif
