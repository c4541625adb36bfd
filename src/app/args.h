/* SPDX-License-Identifier: MIT
 *
 * The command line: argv -> struct tn_options.
 *
 * Flags stand before or after the other arguments; `--flag value`, `--flag=value`, `-f value`,
 * `-f=value`; `--` ends the flags; the last of equal flags wins. A value that is itself the name of
 * a flag counts as missing: `-p=--greedy` says that it is meant. Numbers are read the same in
 * every locale.
 */
#ifndef TN_ARGS_H
#define TN_ARGS_H

#include "options.h"
#include "tern/status.h"

/* TERN_USAGE with what is wrong and the nearest thing that would be right. Looks at no file, but
 * to tell a file name from a command. */
tern_status tn_args_parse(struct tn_options *out, int argc, char **argv, struct tern_error *err);

/* Sets what `--name value` of out->command would: a flag with a value that is a number. TERN_USAGE
 * with the range, and nothing is changed. */
tern_status tn_args_set(struct tn_options *out, const struct tn_option_row *row, const char *value,
                        struct tern_error *err);

/* The command of that name, or TN_N_COMMANDS. */
enum tn_command tn_command_find(const char *name);

/* The name nearest to a mistyped command, or NULL when none is near. */
const char *tn_command_nearest(const char *name);

#endif
