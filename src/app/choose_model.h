/* SPDX-License-Identifier: MIT
 *
 * Chooses the model of a conversation by asking the user of a terminal, if none was named and none
 * was found in the usual places.
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
