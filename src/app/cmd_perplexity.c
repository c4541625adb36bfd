/* SPDX-License-Identifier: MIT
 *
 * tern perplexity: measures how well a model predicts a text; tern_perplexity (tern/measure.h) does
 * the work.
 */
#include <float.h>
#include <inttypes.h>
#include <stdio.h>

#include "app.h"
#include "base/alloc.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"
#include "prompt.h"
#include "tern/measure.h"

#define MAX_TEXT_BYTES ((size_t)1 << 30)

static bool on_progress(void *arg, size_t n_done, size_t n_total)
{
    return tn_progress_callback(arg, n_done, n_total);
}

static tern_status measure(struct tern_perplexity_result *r, const struct tn_options *o,
                           struct tn_opened *opened, const char *path, struct tern_error *err)
{
    struct tern_perplexity_params params = {
        .n_ctx = (uint32_t)o->ctx,
        .n_stride = (uint32_t)o->stride,
        .kv = (enum tern_kv)o->kv,
        .on_progress = on_progress,
    };
    char *text;
    size_t n;
    tern_status status = tn_file_read_all(&text, &n, path, MAX_TEXT_BYTES, err);
    if (status == TERN_OK)
        status = tn_prompt_check_text(text, n, path, err);
    if (status == TERN_OK) {
        size_t start = tn_prompt_mark(text, n);
        tn_progress_start("perplexity", TN_PROGRESS_TOKENS, false);
        status = tern_perplexity(opened->engine, opened->model, text + start, n - start, &params, r,
                                 err);
        tn_progress_end();
    }
    tn_free(text);
    return status;
}

int tn_cmd_perplexity(const struct tn_options *o)
{
    struct tn_opened opened;
    struct tern_error err = {0};
    struct tern_perplexity_result r;
    const bool lacks_text =
        o->n_positional == 1 && !o->model && tn_argument_is_model(o->positional[0]);
    if (o->n_positional == 0 || lacks_text)
        return tn_error_say(TERN_USAGE, "no text; usage: tern perplexity [MODEL] FILE");
    const char *model = o->n_positional == 2 ? o->positional[0] : NULL;
    tern_status status = tn_open(&opened, o, model, TN_OPEN_ENGINE | TN_OPEN_TOKENIZER, &err);
    if (status == TERN_OK)
        status = measure(&r, o, &opened, o->positional[o->n_positional - 1], &err);
    tn_close(&opened);
    if (status != TERN_OK)
        return tn_error_print(&err);
    if (o->json) {
        char perplexity[32] = "null"; /* JSON has no infinity */
        if (r.perplexity <= DBL_MAX)
            snprintf(perplexity, sizeof perplexity, "%.9g", r.perplexity);
        tn_out_printf("{\"tokens\":%" PRIu64 ",\"nats_per_token\":%.9g,\"perplexity\":%s}\n",
                      r.n_scored, r.nats_per_token, perplexity);
    } else {
        tn_out_printf("%" PRIu64 " tokens, %.5f nats per token, perplexity %.4f\n", r.n_scored,
                      r.nats_per_token, r.perplexity);
    }
    return 0;
}
