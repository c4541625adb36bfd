/* SPDX-License-Identifier: MIT
 *
 * The command line: argv to struct tn_options.
 *
 * Flags may precede or follow the other arguments; `--flag value`, `--flag=value`, `-f value`,
 * `-f=value`; `--` ends the flags; the last of equal flags wins.  A value that is itself the name
 * of a flag counts as missing; `-p=--greedy` passes it explicitly.  Numbers are parsed the same in
 * every locale.
 */
#ifndef TN_ARGS_H
#define TN_ARGS_H

#include "options.h"
#include "tern/status.h"

/* TERN_USAGE with the error and the nearest valid name.  Opens files only to distinguish file names
 * from commands. */
tern_status tn_args_parse(struct tn_options *out, int argc, char **argv, struct tern_error *err);

/* Sets the value of a numeric flag of out->command, like `--name value`; NULL: the default, as if
 * the flag had not been given.  TERN_USAGE with the range, and nothing is changed. */
tern_status tn_args_set(struct tn_options *out, const struct tn_option_row *row, const char *value,
                        struct tern_error *err);

/* The command of that name, or TN_N_COMMANDS. */
enum tn_command tn_command_find(const char *name);

/* The name nearest to a mistyped command, or NULL if none is near. */
const char *tn_command_nearest(const char *name);

#endif
