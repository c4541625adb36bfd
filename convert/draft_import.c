/* SPDX-License-Identifier: MIT
 *
 * Recognises draft heads (draft_import.h).  A head that tern cannot use is left out: the model is
 * complete without it.
 */
#include "convert/draft_import.h"

#include <stdio.h>
#include <string.h>

const char *tn_draft_name(const struct tn_config_import *import, const struct tn_source *source,
                          const char *name)
{
    if (!source->gguf) {
        const char *prefix = tn_name_begins(import->family->drafts, name);
        return prefix ? name + strlen(prefix) : NULL;
    }
    unsigned block = 0;
    int end = 0;
    const uint32_t n = import->config.n_layer;
    const bool is_draft = sscanf(name, "blk.%u.%n", &block, &end) == 1 && end > 0 && block >= n &&
                          block < n + import->n_draft_layers;
    return is_draft ? name + end : NULL;
}

/* The layer that a draft head resembles: the first with attention and without experts; NULL: the
 * model has none. */
static const struct tern_file_layer *find_example(const struct tn_config_import *import)
{
    for (uint32_t i = 0; i < import->config.n_layer; i++) {
        const struct tern_file_layer *layer = &import->layers[i];
        if (layer->mixer == TERN_MIXER_ATTENTION && layer->ffn != TERN_FFN_EXPERTS)
            return layer;
    }
    return NULL;
}

/* Why tern cannot use a draft head with this tensor; NULL: no reason. */
static const char *refuse_tensor(const char *name, bool is_gguf)
{
    if (strstr(name, "exps.") || strstr(name, ".experts."))
        return "its layer has experts";
    if (strstr(name, "embed_tokens") || strstr(name, "lm_head") || strstr(name, "shared_head_head"))
        return "it has separate embeddings or a separate head";
    if (!is_gguf && strncmp(name, "layers.", 7) == 0 && strncmp(name, "layers.0.", 9) != 0)
        return "it has several layers";
    return NULL;
}

void tn_draft_recognise(struct tn_config_import *import, const struct tn_source *source)
{
    struct tern_file_config *c = &import->config;
    const struct tern_file_layer *example = find_example(import);
    const bool is_gguf = source->gguf != NULL;
    const char *why = c->flags & TERN_MODEL_NO_HEAD            ? "the model has no head"
                      : import->n_draft_layers > 1             ? "it has several layers"
                      : !example                               ? "its layer has experts"
                      : 2 * (uint64_t)c->hidden > TERN_MAX_DIM ? "it is too wide"
                                                               : NULL;
    bool exists = false;
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        const char *name = tn_draft_name(import, source, source->tensors[i].name);
        if (!name)
            continue;
        exists = true;
        why = why ? why : refuse_tensor(name, is_gguf);
    }
    import->draft_refusal = exists ? why : NULL;
    if (!exists || why)
        return;
    c->n_draft_layer = 1;
    import->layers[c->n_layer] = *example;
    import->layers[c->n_layer].is_draft = 1;
}
