/* SPDX-License-Identifier: MIT
 *
 * Conversions that the command starts: their messages, and models that are named by their source.
 */
#ifndef TN_CONVERTING_H
#define TN_CONVERTING_H

#include "options.h"
#include "tern/convert.h"

/* tern_convert with progress, notes and warnings, and one line about the result, on standard error.
 * Sets the callbacks of `params`. */
tern_status tn_convert_and_say(struct tern_convert_params *params,
                               struct tern_convert_result *result, struct tern_error *err);

/* Prints "Try: tern chat NAME": the suitable command for a new model, as the user would type it
 * here. */
void tn_suggest_command(const char *output, bool has_tokenizer);

/* The .tern file of a GGUF file or a folder, in tern/models of the user's data folder: its name is
 * NAME-HASH.tern, HASH being 8 hexadecimal digits of tern_source_hash.  If it is missing, the
 * source is converted; on a terminal the user is asked first if the source has more than 1 GB.
 * *path is new memory (tn_free).
 *
 *   TERN_USAGE        a conversion is needed, and --no-convert is given or the user says no
 *   TERN_INTERRUPTED  Ctrl-C
 *   others            as tern_source_hash and tern_convert */
tern_status tn_convert_once(char **path, const char *source, const struct tn_options *o,
                            struct tern_error *err);

#endif
