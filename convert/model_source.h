/* SPDX-License-Identifier: MIT
 *
 * A model before conversion: its tensors, and what it is, from a Hugging Face
 * directory or from a GGUF file.
 *
 * In two steps where the tensors are wanted of models that tern does not know.
 */
#ifndef TN_MODEL_SOURCE_H
#define TN_MODEL_SOURCE_H

#include <stdbool.h>

#include "config_import.h"
#include "source.h"
#include "tensor_plan.h"

struct tn_model_source {
    bool is_gguf;
    bool has_generation, has_pooling; /* files that a directory holds beside config.json */
    struct tn_config_import import;
    struct tn_source source;
};

/* Both steps; the small files of a directory are read before the weights. */
tern_status tn_model_source_open(struct tn_model_source *out, const char *path,
                                 enum tern_i2s_layout i2s, struct tern_error *err);

/* The headers of the weights; see tn_source_open, tn_gguf_open. */
tern_status tn_model_source_open_weights(struct tn_model_source *out, const char *path,
                                         enum tern_i2s_layout i2s, struct tern_error *err);
/* Family, sizes, and all else that is no weight; the weights are open. */
tern_status tn_model_source_import(struct tn_model_source *out, const char *path,
                                   struct tern_error *err);
/* Also after a failure. */
void tn_model_source_close(struct tn_model_source *out);

#endif
