/* SPDX-License-Identifier: MIT
 *
 * The banner: two lines about the model and the machine, before a run.  `run`, `chat` and
 * generator.c show it.
 */
#ifndef TN_BANNER_H
#define TN_BANNER_H

#include "planned.h"

/* Writes to standard error, on a terminal or if verbose. */
void tn_banner(const struct tn_options *o, const struct tern_model *model,
               const struct tn_planned *planned);

#endif
