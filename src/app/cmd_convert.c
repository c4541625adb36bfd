/* SPDX-License-Identifier: MIT
 *
 * tern convert: turns a Hugging Face directory or a GGUF file into a .tern file.  Checks the flags;
 * converting.c shows the progress.
 */
#include <string.h>

#include "app.h"
#include "base/error.h"
#include "converting.h"
#include "output.h"

static tern_status choose_source(const char **source, const struct tn_options *o,
                                 struct tern_error *err)
{
    *source = o->n_positional ? o->positional[0] : o->source;
    if (o->n_positional && o->source)
        return tn_fail(err, TERN_USAGE, "two sources are given: \"%s\" and --convert \"%s\"",
                       o->positional[0], o->source);
    if (!*source)
        return tn_fail(err, TERN_USAGE, "no source; usage: tern convert SRC [-o FILE]");
    if (!(*source)[0])
        return tn_fail(err, TERN_USAGE, "the source's name is empty");
    return TERN_OK;
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
        .pack = (enum tern_pack)o->pack,
        .i2s_layout = (enum tern_i2s_layout)o->i2s_layout,
        .no_tokenizer = o->no_tokenizer,
        .force = o->force,
    };
    tern_status status = choose_source(&params.source, o, &err);
    if (status == TERN_OK && o->output && strcmp(o->output, "-") == 0)
        status = tn_fail(&err, TERN_USAGE, "-o \"-\": give the name of a file");
    if (status == TERN_OK)
        status = tn_convert_and_say(&params, &result, &err);
    if (status != TERN_OK)
        return tn_error_print(&err);
    tn_suggest_command(result.output, !o->no_tokenizer);
    return 0;
}
