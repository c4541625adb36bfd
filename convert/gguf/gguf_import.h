/* SPDX-License-Identifier: MIT
 *
 * Reads the keys of a GGUF file into the same neutral description that config.json gives
 * (config_import.h).
 */
#ifndef TN_GGUF_IMPORT_H
#define TN_GGUF_IMPORT_H

#include "convert/config_import.h"
#include "convert/source.h"

/* Reads the keys of source->gguf, and the small tensors of rotary factors, which it marks as
 * requested. TERN_INPUT names the key, its value and the expected one; TERN_UNSUPPORTED: an
 * architecture or a feature that tern does not implement. */
tern_status tn_gguf_import(struct tn_config_import *out, struct tn_source *source,
                           struct tern_error *err);

/* The text of a key of type string, NULL if there is none; *n is its length. */
const char *tn_gguf_text(const struct tn_gguf *gguf, const char *name, size_t *n);

#endif
