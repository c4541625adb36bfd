/* SPDX-License-Identifier: MIT
 *
 * Ends an answer at a line that leaves the block of code, or after a time.
 *
 * Both wait for the end of a line: half a line is useless to an editor.  The time counts from the
 * first token, on the loop thread.
 */
#include "server/line_limits.h"

#include <string.h>

#include "plat/plat.h"

static void complete(struct tn_choice *choice)
{
    choice->is_complete = choice->is_cut = true;
}

/* Checks every line after the first that has a character other than a blank. */
static void check_indentation(struct tn_choice *choice, uint32_t n_indent)
{
    struct tn_buf *text = &choice->text;
    while (choice->line_at > 0) {
        size_t at = choice->line_at;
        while (at < text->n_bytes && (text->data[at] == ' ' || text->data[at] == '\t'))
            at++;
        if (at == text->n_bytes)
            return; /* the next token decides */
        if (at - choice->line_at < n_indent) {
            text->n_bytes = at; /* what a stream may have sent already */
            complete(choice);
            return;
        }
        const char *end = memchr(text->data + at, '\n', text->n_bytes - at);
        choice->line_at = end ? (size_t)(end + 1 - text->data) : 0;
    }
}

void tn_line_limits_apply(const struct tn_task *task, struct tn_choice *choice, size_t n_before)
{
    const struct tn_gen *gen = &task->gen;
    const struct tn_buf *text = &choice->text;
    const size_t n_new = text->n_bytes - n_before;
    const char *end = n_new > 0 ? memchr(text->data + n_before, '\n', n_new) : NULL;
    const uint64_t now_ns = gen->max_predict_ns ? tn_now_ns() : 0;
    if (choice->first_ns == 0)
        choice->first_ns = now_ns;
    if (end && choice->line_at == 0)
        choice->line_at = (size_t)(end + 1 - text->data);
    if (gen->n_indent > 0)
        check_indentation(choice, gen->n_indent);
    if (end && gen->max_predict_ns && now_ns - choice->first_ns > gen->max_predict_ns)
        complete(choice);
}
