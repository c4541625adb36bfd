/* SPDX-License-Identifier: MIT
 *
 * The structs of an engine and of a model, shared by the files of this folder.
 *
 * Programs see include/tern/tern.h only.
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

/* TERN_USAGE: the model does not support the engine's activation precision. */
tern_status tn_engine_check_inputs(const struct tern_engine *engine, const struct tern_model *model,
                                   struct tern_error *err);

struct tern_model {
    struct tn_model_file file;
    struct tern_model_config public_config;
    struct tn_weights weights;
    struct tern_tokenizer *tokenizer;              /* NULL: none */
    struct tern_chat_template *chat_template;      /* NULL: none, or not usable (template_error) */
    struct tern_error template_error; /* why the template is not usable; TERN_OK otherwise */
    char *bos_text; /* "": none */
    char *eos_text; /* of the first stop id; "": none */
    uint32_t *stop_ids; /* [public_config.n_stop_ids] of the file, then of tern_model_end_turns */
    unsigned char *is_control; /* [vocab] 1 for ids that are never penalised or printed */
    uint32_t n_allowed;        /* upper bound of ids that may be sampled */
    char *name;
    char *family;
    char *path;
    bool pages_experts;  /* experts are read ahead when chosen; nothing else is */
    uint64_t heap_bytes; /* allocated by opening; constant until the model is freed */
    /* [file.map.n_bytes] inaccessible address space of an outline; NULL: a real model */
    void *addresses;
};

/* A model whose file does not exist yet, for planning: answers tern_model_get_info; its weights
 * have no data.  Arguments as tern_plan_outline_sizes; spec and tensors must outlive it; free with
 * tern_model_free. */
tern_status tn_model_outline(struct tern_model **out, const struct tn_model_spec *spec,
                             const struct tern_file_tensor *tensors, uint32_t n_tensors,
                             uint64_t data_bytes, struct tern_error *err);

#endif
