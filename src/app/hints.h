/* SPDX-License-Identifier: MIT
 *
 * Words of other programs (llama.cpp, ollama, Hugging Face), and tern's names for the same things;
 * commands to be typed.
 */
#ifndef TN_HINTS_H
#define TN_HINTS_H

#include <stddef.h>

#include "options.h"

/* A hint for a word that is not a command; NULL if the word is unknown. */
const char *tn_hint_for_command(const char *word);

/* The command for a word of ollama: "ls", "rm", "show"; TN_N_COMMANDS: none. */
enum tn_command tn_command_alias(const char *word);

/* As tn_hint_for_command for a flag, with its dashes, that `command` does not have.  The hint names
 * a flag of that command.  '_' is equivalent to '-'. */
const char *tn_hint_for_flag(enum tn_command command, const char *name, size_t n);

/* What precedes and follows a text in a command to be typed: quotes if it has blanks. */
const char *tn_typed_quote(const char *text);

/* The program in a command to be typed: as it was started if by a path, otherwise "tern", which the
 * shell found.  `started_as` must stay valid. */
void tn_typed_program_set(const char *started_as);
const char *tn_typed_program(void);

#endif
