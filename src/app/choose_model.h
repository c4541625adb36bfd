/* SPDX-License-Identifier: MIT
 *
 * Which model a conversation is held with when nobody named one and none lies where one is looked
 * for: the user of a terminal is asked.
 */
#ifndef TN_CHOOSE_MODEL_H
#define TN_CHOOSE_MODEL_H

#include "tern/status.h"

/* Lists the known models (known_models.h) on standard error and reads a number or a name until one
 * fits; a single model is taken without a question. *path is new memory (tn_free).
 *   TERN_INPUT        there is none, or the input ended; *err then has no text
 *   TERN_INTERRUPTED  Ctrl-C
 *   TERN_MEMORY */
tern_status tn_model_choose(char **path, struct tern_error *err);

#endif
