/* SPDX-License-Identifier: MIT
 *
 * tern convert: Hugging Face directory or GGUF file -> .tern file.
 */
#include <string.h>

#include "app.h"
#include "base/log.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"
#include "tern/convert.h"

static void on_message(void *arg, enum tern_convert_message kind, const char *text)
{
    (void)arg;
    if (kind == TERN_CONVERT_WARNING)
        tn_warning_say("%s", text);
    else if (kind == TERN_CONVERT_NOTE)
        tn_note_say("%s", text);
    else if (tn_message_level() > 0)
        tn_info_say("%s", text);
}

static tern_status choose_source(const char **source, const struct tn_options *o,
                                 struct tern_error *err)
{
    *source = o->n_positional ? o->positional[0] : o->source;
    if (o->n_positional && o->source)
        return tn_fail(err, TERN_USAGE, "two sources are given: \"%s\" and --convert \"%s\"",
                       o->positional[0], o->source);
    if (!*source)
        return tn_fail(err, TERN_USAGE, "no source; usage: tern convert SRC [-o FILE]");
    return TERN_OK;
}

static void print_result(const struct tern_convert_result *r)
{
    if (r->replaced)
        tn_note_say("replaced \"%s\"", r->output);
    tn_info_say("%s: %s -> %s, %.2f bits per weight, %.1f %% zeros, %.1f s (%s/s)", r->output,
                tn_size_decimal((double)r->source_bytes).text,
                tn_size_decimal((double)r->output_bytes).text, r->bits_per_weight,
                r->n_ternary ? 100.0 * (double)r->n_zero / (double)r->n_ternary : 0.0, r->seconds,
                tn_size_decimal(r->seconds > 0 ? (double)r->source_bytes / r->seconds : 0).text);
}

int tn_cmd_convert(const struct tn_options *o)
{
    struct tern_error err = {0};
    struct tern_convert_result result;
    struct tern_convert_params params = {
        .output = o->output,
        .name = o->name,
        .head = (enum tern_head_type)o->head,
        .activations = (enum tern_activations)o->activations,
        .pre = o->pre,
        .i2s_layout = (enum tern_i2s_layout)o->i2s_layout,
        .no_tokenizer = o->no_tokenizer,
        .force = o->force,
        .on_progress = tn_progress_callback,
        .on_message = on_message,
    };
    tern_status status = choose_source(&params.source, o, &err);
    if (status == TERN_OK && o->output && strcmp(o->output, "-") == 0)
        status = tn_fail(&err, TERN_USAGE, "-o \"-\": give the name of a file");
    if (status == TERN_OK) {
        tn_progress_start("converting", TN_PROGRESS_BYTES, true);
        status = tern_convert(&params, &result, &err);
        tn_progress_end();
    }
    if (status != TERN_OK)
        return tn_error_print(&err);
    print_result(&result);
    return 0;
}
