/* SPDX-License-Identifier: MIT
 *
 * Help texts, made from the tables of options.c, to standard output.
 */
#ifndef TN_HELP_H
#define TN_HELP_H

#include "options.h"

void tn_help_all(void);
void tn_help_command(enum tn_command command);

#endif
