/* SPDX-License-Identifier: MIT
 *
 * The insides of an engine and of a model, for the other files of this layer.
 */
#ifndef TN_ENGINE_H
#define TN_ENGINE_H

#include "kern/kern.h"
#include "model/weights.h"
#include "par/team.h"
#include "tern/tern.h"

struct tern_engine {
    struct tn_kernels kernels;
    struct tn_team *team;
    const char *level;
    uint32_t n_decode;  /* threads */
    uint32_t n_prefill;
    enum tern_inputs_as inputs;
};

/* TERN_USAGE: the engine's form of inputs is not for this model. */
tern_status tn_engine_check_inputs(const struct tern_engine *engine, const struct tern_model *model,
                                   struct tern_error *err);

struct tern_model {
    struct tn_model_file file;
    struct tern_model_config public_config;
    struct tn_weights weights;
    struct tern_tokenizer *tokenizer;              /* NULL without */
    struct tern_chat_template *chat_template;      /* NULL: none, or see template_error */
    struct tern_error template_error; /* why the template cannot be used; TERN_OK: there is none */
    char *bos_text; /* "": none */
    char *eos_text; /* of the first stop id; "": none */
    unsigned char *is_control; /* [vocab] 1 for ids that are never penalised or printed */
    uint32_t n_allowed;        /* ids that may be sampled: below this */
    char *name;
    char *family;
    char *path;
    bool pages_experts;  /* those that are chosen are read ahead, nothing else is */
    uint64_t heap_bytes; /* that opening took; it frees none of them before the model is freed */
    void *addresses;     /* [file.map.n_bytes] of an outline, unreadable; NULL: a real model */
};

/* A model whose file is not written yet: what tern_model_get_info says of it, and its weights
 * without data.  As tern_plan_outline_sizes; spec and tensors outlive it; tern_model_free. */
tern_status tn_model_outline(struct tern_model **out, const struct tn_model_spec *spec,
                             const struct tern_file_tensor *tensors, uint32_t n_tensors,
                             uint64_t data_bytes, struct tern_error *err);

#endif
