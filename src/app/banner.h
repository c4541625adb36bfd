/* SPDX-License-Identifier: MIT
 *
 * The banner: two lines about what runs, and on what.
 */
#ifndef TN_BANNER_H
#define TN_BANNER_H

#include "planned.h"

/* To standard error: on a terminal, or when verbose. */
void tn_banner(const struct tn_options *o, const struct tern_model *model,
               const struct tn_planned *planned);

#endif
