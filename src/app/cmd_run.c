/* SPDX-License-Identifier: MIT
 *
 * tern run: one prompt, one answer.
 */
#include <string.h>

#include "app.h"
#include "base/log.h"
#include "generator.h"
#include "output.h"
#include "plat/plat.h"
#include "prompt.h"

/* The ids of the prompt: the conversation of one turn, or the text as it is. */
static tern_status encode(struct tern_ids *ids, const struct tn_options *o,
                          const struct tern_model *model, const struct tn_buf *prompt,
                          const struct tern_chat_template *t, struct tern_error *err)
{
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(model);
    if (!t)
        return tern_tokenizer_encode(tokenizer, prompt->data ? prompt->data : "", prompt->n_bytes,
                                     TERN_ENCODE_ADD_SPECIAL, ids, err);
    struct tern_message messages[2];
    size_t n = 0;
    if (o->system)
        messages[n++] = (struct tern_message){"system", 6, o->system, strlen(o->system)};
    messages[n++] = (struct tern_message){"user", 4, prompt->data, prompt->n_bytes};
    return tern_chat_encode(tokenizer, t, messages, n, true, ids, err);
}

static tern_status read_prompt(struct tn_buf *prompt, const struct tn_options *o, bool is_chat,
                               struct tern_error *err)
{
    tern_status status = tn_prompt_read(prompt, o, err);
    if (status != TERN_OK || !is_chat)
        return status;
    tn_prompt_trim_newlines(prompt);
    if (tn_prompt_is_blank(prompt->data, prompt->n_bytes))
        return tn_fail(err, TERN_USAGE,
                       "the prompt is empty; say something, or use --raw to let the model begin");
    return TERN_OK;
}

static tern_status answer(const struct tn_options *o, const struct tn_opened *opened,
                          const struct tern_ids *ids, const struct tn_buf *echo,
                          struct tern_error *err)
{
    struct tn_generator g;
    struct tern_generate_result result;
    tern_status status = tn_generator_init(&g, o, opened, ids->n, err);
    if (status != TERN_OK)
        return status;
    if (echo)
        tn_out_generated(echo->data, echo->n_bytes);
    status = tn_generator_answer(&g, ids, &result, err);
    if (status == TERN_OK || status == TERN_INTERRUPTED)
        tn_generator_print_stats(&g, &result);
    if (status == TERN_OK && result.stop == TERN_STOP_INTERRUPT && tn_stop_requested())
        status = TERN_INTERRUPTED;
    tn_generator_fini(&g);
    return status;
}

static tern_status run(const struct tn_options *o, struct tern_error *err)
{
    struct tn_opened opened;
    struct tn_buf prompt = {0};
    struct tern_ids ids = {0};
    const struct tern_chat_template *t = NULL;
    tern_status status = tn_prompt_check(o, err);
    if (status == TERN_OK)
        status = tn_check_names(o, err);
    if (status != TERN_OK)
        return status;
    status = tn_open(&opened, o, o->n_positional ? o->positional[0] : NULL,
                     TN_OPEN_MACHINE | TN_OPEN_TOKENIZER, err);
    if (status == TERN_OK)
        status = tn_choose_template(&t, o, opened.model, err);
    if (status == TERN_OK)
        status = read_prompt(&prompt, o, t != NULL, err);
    if (status == TERN_OK)
        status = encode(&ids, o, opened.model, &prompt, t, err);
    if (status == TERN_OK)
        status = answer(o, &opened, &ids, t || !tn_is_terminal(TN_STDOUT) ? NULL : &prompt, err);
    tern_ids_free(&ids);
    tn_buf_fini(&prompt);
    tn_close(&opened);
    return status;
}

int tn_cmd_run(const struct tn_options *o)
{
    struct tern_error err = {0};
    tern_status status = run(o, &err);
    /* Who pressed Ctrl-C need not be told. */
    return status == TERN_OK || status == TERN_INTERRUPTED ? tern_status_exit_code(status)
                                                           : tn_error_print(&err);
}
