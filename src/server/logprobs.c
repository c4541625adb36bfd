/* SPDX-License-Identifier: MIT
 *
 * Writes entries of log-probabilities in the formats of the APIs.
 *
 * Infinite values are clamped to TN_LOGPROB_FLOOR, because JSON has no infinity.
 */
#include "server/logprobs.h"

#include "server/json_out.h"

bool tn_logprobs_read(struct tn_task *task, struct tn_refusal *r)
{
    double n_top = -1;
    if (!tn_json_get_bool(task->body, "logprobs", &task->gen.has_logprobs, r) ||
        !tn_json_get_count(task->body, "top_logprobs", 0, TN_GEN_MAX_TOP, &n_top, r))
        return false;
    if (n_top > 0 && !task->gen.has_logprobs)
        return tn_refuse(r, 400, "top_logprobs", "\"top_logprobs\" needs \"logprobs\": true");
    task->gen.n_top = n_top > 0 ? (uint32_t)n_top : 0;
    return true;
}

/* Appends an entry without its closing brace. */
static void append_entry(struct tn_buf *out, const struct tn_task *task,
                         const struct tern_token_logprob *entry, bool has_id)
{
    size_t n;
    const char *bytes = tern_tokenizer_token_bytes(tn_task_tokenizer(task), entry->id, &n);
    tn_buf_append_text(out, "{");
    if (has_id)
        tn_buf_printf(out, "\"id\":%u,", entry->id);
    tn_buf_append_text(out, "\"token\":");
    tn_json_string(out, bytes, n);
    tn_buf_append_text(out, ",\"logprob\":");
    tn_json_real(out, entry->logprob, TN_LOGPROB_FLOOR);
    tn_buf_append_text(out, ",\"bytes\":");
    tn_json_bytes(out, bytes, n);
}

void tn_logprobs_append(struct tn_buf *out, const struct tn_task *task,
                        const struct tn_choice *choice, uint32_t from, uint32_t to, bool has_ids)
{
    tn_buf_append_text(out, "[");
    for (uint32_t i = from; i < to; i++) {
        const struct tern_token_logprob *entries = tn_choice_logprobs(choice, i);
        tn_buf_append_text(out, i > from ? "," : "");
        append_entry(out, task, &entries[0], has_ids);
        tn_buf_append_text(out, ",\"top_logprobs\":[");
        for (uint32_t j = 1; j <= task->gen.n_top; j++) {
            tn_buf_append_text(out, j > 1 ? "," : "");
            append_entry(out, task, &entries[j], has_ids);
            tn_buf_append_text(out, "}");
        }
        tn_buf_append_text(out, "]}");
    }
    tn_buf_append_text(out, "]");
}
