/* SPDX-License-Identifier: MIT
 *
 * Words of other programs (llama.cpp, ollama, Hugging Face), and what tern has in their place.
 */
#ifndef TN_HINTS_H
#define TN_HINTS_H

#include <stddef.h>

#include "options.h"

/* A sentence about a word that is no command here; NULL when nothing is known of it. */
const char *tn_hint_for_command(const char *word);

/* The command that is meant by a word of ollama's: "ls", "rm", "show"; TN_N_COMMANDS: none. */
enum tn_command tn_command_alias(const char *word);

/* As tn_hint_for_command for a flag, dashes included, that `command` does not have. What it
 * recommends is a flag of that command. '_' counts as '-'. */
const char *tn_hint_for_flag(enum tn_command command, const char *name, size_t n);

#endif
