/* SPDX-License-Identifier: MIT
 *
 * The keys of a GGUF file -> what the model is, in the same neutral form as
 * config.json gives it (config_import.h).
 */
#ifndef TN_GGUF_IMPORT_H
#define TN_GGUF_IMPORT_H

#include "convert/config_import.h"
#include "convert/source.h"

/* Reads the keys of source->gguf, and the small tensors of rotary factors, which count as used.
 * TERN_INPUT names the key, its value and what would be right; TERN_UNSUPPORTED an architecture or
 * a feature that tern does not have. */
tern_status tn_gguf_import(struct tn_config_import *out, struct tn_source *source,
                           struct tern_error *err);

/* The text of a key of type string, NULL when there is none; *n its bytes. */
const char *tn_gguf_text(const struct tn_gguf *gguf, const char *name, size_t *n);

#endif
