/* SPDX-License-Identifier: MIT
 *
 * Draft heads (tern/model_format.h) of a source: which tensors belong to one, and whether tern can
 * use it.
 *
 * A folder names them "mtp.*" (families list the prefixes), a GGUF file has them in the blocks that
 * follow those of the layers.
 */
#ifndef TN_DRAFT_IMPORT_H
#define TN_DRAFT_IMPORT_H

#include "convert/config_import.h"
#include "convert/source.h"

/* The rest of the name of a tensor of a draft head, after its prefix; NULL: of another tensor. */
const char *tn_draft_name(const struct tn_config_import *import, const struct tn_source *source,
                          const char *name);

/* Sets config.n_draft_layer and the record of its layer if tern can use the draft head of the
 * source; else draft_refusal, if there is one. */
void tn_draft_recognise(struct tn_config_import *import, const struct tn_source *source);

#endif
