/* SPDX-License-Identifier: MIT
 *
 * tern run: one prompt, one answer.  Reads the prompt, chooses template and grammar, and streams
 * the answer.
 */
#include <string.h>

#include "app.h"
#include "base/alloc.h"
#include "base/error.h"
#include "close_off.h"
#include "generator.h"
#include "output.h"
#include "plat/plat.h"
#include "plat/sandbox.h"
#include "prompt.h"
#include "template.h"
#include "tern/grammar.h"
#include "turn_prompt.h"

/* The text verbatim; with --special, text that looks like a control token becomes one. */
static tern_status encode_raw(struct tern_ids *ids, const struct tn_options *o,
                              const struct tern_tokenizer *tokenizer, const struct tn_buf *prompt,
                              struct tern_error *err)
{
    const uint32_t flags = o->special ? TERN_ENCODE_PARSE_SPECIAL : TERN_ENCODE_ADD_SPECIAL;
    tern_status status = tern_tokenizer_encode(tokenizer, tn_buf_bytes(prompt), prompt->n_bytes,
                                               flags, ids, err);
    return status == TERN_OK && o->special
               ? tern_tokenizer_add_special(tokenizer, ids, 0, NULL, err)
               : status;
}

/* The ids of the prompt: a conversation of one turn, or the text verbatim. */
static tern_status encode(struct tern_ids *ids, const struct tn_options *o,
                          const struct tern_model *model, const struct tn_buf *prompt,
                          const struct tn_template *template, struct tern_error *err)
{
    const struct tern_tokenizer *tokenizer = tern_model_tokenizer(model);
    if (!template->t)
        return encode_raw(ids, o, tokenizer, prompt, err);
    if (o->special)
        return tn_fail(err, TERN_USAGE, "--special is for raw prompts: messages of a conversation "
                                        "stay text; add --raw");
    return tn_turn_encode(ids, o, tokenizer, prompt, template, err);
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
                       "the prompt is empty; give a text, or use --raw to let the model begin");
    return TERN_OK;
}

/* A file that already held most of the prompt is not rewritten: it contains the common prefix. */
static tern_status keep_prefix(struct tn_generator *g, const char *path,
                               const struct tern_generate_result *r, struct tern_error *err)
{
    const uint32_t n_loaded = r->n_prompt - r->n_prompt_evaluated;
    if (n_loaded > 0 && (uint64_t)n_loaded * 4 >= (uint64_t)r->n_prompt * 3)
        return TERN_OK;
    return tn_generator_save_cache(g, path, r->n_prompt, err);
}

/* Refuses a file that cannot be replaced before anything is computed for it. */
static tern_status check_prefix_cache(const char *path, struct tern_error *err)
{
    const enum tn_path_kind kind = path ? tn_path_kind(path) : TN_PATH_ABSENT;
    if (kind == TN_PATH_ABSENT || kind == TN_PATH_FILE)
        return TERN_OK;
    return tn_fail(err, TERN_OUTPUT, "%s: is %s, give the name of a file", path,
                   kind == TN_PATH_DIR ? "a directory" : "not a regular file");
}

/* The grammar of --schema or --grammar; NULL without them. */
static tern_status read_format(struct tern_grammar **out, const struct tn_options *o,
                               struct tern_error *err)
{
    const char *path = o->schema ? o->schema : o->grammar;
    char *text;
    size_t n;
    *out = NULL;
    if (!path)
        return TERN_OK;
    if (o->schema && o->grammar)
        return tn_fail(err, TERN_USAGE, "--schema and --grammar: an answer has one format");
    tern_status status = tn_file_read_all(&text, &n, path, TERN_GRAMMAR_MAX_SCHEMA, err);
    if (status != TERN_OK)
        return status;
    const size_t start = tn_prompt_mark(text, n);
    status = o->schema ? tern_grammar_from_schema(out, text + start, n - start, 0, err)
                       : tern_grammar_from_gbnf(out, text + start, n - start, NULL, err);
    if (status != TERN_OK)
        tn_fail_prefix(err, path);
    tn_free(text);
    return status;
}

static tern_status answer_prompt(const struct tn_options *o, const struct tn_opened *opened,
                                 const struct tern_ids *ids, const struct tn_buf *echo,
                                 const struct tern_grammar *grammar, struct tern_error *err)
{
    struct tn_generator g;
    struct tern_generate_result result;
    tern_status status = tn_generator_init(&g, o, opened, ids->n, grammar, err);
    if (status != TERN_OK)
        return status;
    if (o->prefix_cache)
        tn_generator_load_cache(&g, o->prefix_cache);
    const bool may_write = o->prefix_cache || tern_steering_may_save(g.steering);
    tn_close_off(o, may_write ? TN_SANDBOX_FILES : 0, 1);
    if (echo)
        tn_out_answer(echo->data, echo->n_bytes);
    status = tn_generator_answer(&g, ids, &result, err);
    if (status == TERN_OK || status == TERN_INTERRUPTED)
        tn_generator_print_stats(&g, &result);
    if (status == TERN_OK && o->prefix_cache)
        status = keep_prefix(&g, o->prefix_cache, &result, err);
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
    struct tn_template template = {0};
    struct tern_grammar *grammar = NULL;
    tern_status status = tn_prompt_check(o, err);
    if (status == TERN_OK)
        status = tn_check_names(o, err);
    if (status == TERN_OK)
        status = check_prefix_cache(o->prefix_cache, err);
    if (status == TERN_OK)
        status = read_format(&grammar, o, err);
    if (status != TERN_OK)
        return status;
    status = tn_open(&opened, o, tn_first_argument(o),
                     TN_OPEN_MACHINE | TN_OPEN_TOKENIZER | TN_OPEN_CONVERT, err);
    if (status == TERN_OK)
        status = tn_template_choose(&template, o, opened.model, err);
    if (status == TERN_OK)
        status = read_prompt(&prompt, o, template.t != NULL, err);
    if (status == TERN_OK)
        status = encode(&ids, o, opened.model, &prompt, &template, err);
    if (status == TERN_OK)
        status = answer_prompt(o, &opened, &ids,
                               template.t || !tn_is_terminal(TN_STDOUT) ? NULL : &prompt, grammar,
                               err);
    tern_ids_free(&ids);
    tn_buf_fini(&prompt);
    tn_template_fini(&template);
    tern_grammar_free(grammar);
    tn_close(&opened);
    return status;
}

int tn_cmd_run(const struct tn_options *o)
{
    struct tern_error err = {0};
    tern_status status = run(o, &err);
    /* No message: the user pressed Ctrl-C. */
    return status == TERN_OK || status == TERN_INTERRUPTED ? tern_status_exit_code(status)
                                                           : tn_error_print(&err);
}
