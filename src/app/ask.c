/* SPDX-License-Identifier: MIT
 *
 * Questions on standard error, answered on standard input (ask.h).  Ctrl-C and the end of the input
 * end a question.
 */
#include "ask.h"

#include <string.h>

#include "base/error.h"
#include "output.h"
#include "plat/plat.h"

#define MAX_ANSWER_BYTES ((size_t)4096)

bool tn_can_ask(void)
{
    return tn_is_terminal(TN_STDIN) && tn_is_terminal(TN_STDERR);
}

static void append_answer(void *arg, const char *bytes, size_t n)
{
    struct tn_buf *answer = arg;
    if (n > MAX_ANSWER_BYTES - answer->n_bytes)
        answer->failed = true;
    else
        tn_buf_append(answer, bytes, n);
}

static void trim(struct tn_buf *answer)
{
    const size_t n_before = answer->n_bytes ? strspn(tn_buf_text(answer), " \t") : 0;
    while (answer->n_bytes > n_before && strchr(" \t\r\n", answer->data[answer->n_bytes - 1]))
        answer->n_bytes--;
    if (n_before > 0)
        memmove(answer->data, answer->data + n_before, answer->n_bytes - n_before);
    answer->n_bytes -= n_before;
}

tern_status tn_ask_line(struct tn_buf *answer, const char *question, struct tern_error *err)
{
    bool interrupted = false;
    tern_status status = TERN_OK;
    tn_buf_clear(answer);
    tn_message_text(question, strlen(question));
    if (!tn_read_line(append_answer, answer, &interrupted, err))
        status = err->status != TERN_OK ? err->status
                                        : tn_fail(err, TERN_INPUT, "the question was not answered");
    else if (interrupted)
        status = tn_fail(err, TERN_INTERRUPTED, "interrupted at a question");
    if (status != TERN_OK)
        tn_message_text("\n", 1); /* ends the line of the question */
    if (answer->failed)
        tn_buf_fini(answer);
    trim(answer);
    return status;
}

tern_status tn_ask_yes(bool *is_yes, const char *question, struct tern_error *err)
{
    struct tn_buf answer = {0};
    tern_status status;
    char first;
    do {
        status = tn_ask_line(&answer, question, err);
        first = answer.n_bytes > 0 ? answer.data[0] : 'y';
    } while (status == TERN_OK && !(first && strchr("yYnN", first)));
    *is_yes = status == TERN_OK && (first == 'y' || first == 'Y');
    tn_buf_fini(&answer);
    return status;
}
