/* SPDX-License-Identifier: MIT
 *
 * Families of models: rows of src/arch/families/, one file each, for both Hugging Face folders and
 * GGUF files.  convert/ reads what all models share; where families differ it uses the row.
 *
 * A family defines a graph.  A scheme defines how the ternary weights of some family were trained
 * and stored, where neither quantization_config nor the types of the tensors do.
 *
 * To add a family: a file in families/ with its row, a line in families/list.h, and a reference
 * model for tests/golden.  Its graph must be what struct tern_file_layer can describe.
 */
#ifndef TN_FAMILY_H
#define TN_FAMILY_H

#include "arch/arch.h"
#include "arch/values.h"

#define TN_FAMILY_MAX_NEEDS 12u
/* For `needs`: biases of all LayerNorms and of every projection. */
#define TN_NEEDS_EVERY_BIAS                                                                        \
    TERN_ROLE_Q_BIAS, TERN_ROLE_K_BIAS, TERN_ROLE_V_BIAS, TERN_ROLE_O_BIAS, TERN_ROLE_UP_BIAS,     \
        TERN_ROLE_DOWN_BIAS, TERN_ROLE_ATTN_NORM_BIAS, TERN_ROLE_FFN_NORM_BIAS,                    \
        TERN_ROLE_FINAL_NORM_BIAS

/* The relation between the stored numbers of matrices and their weights. */
enum tn_weight_rule {
    TN_WEIGHTS_FOUND,      /* scale * trit; the scales are inferred from the data */
    TN_WEIGHTS_MULTIPLIED, /* U8 codes times weight_scale, or latent floats to be rounded */
    TN_WEIGHTS_DIVIDED,    /* the same, but weight_scale divides */
    TN_WEIGHTS_ROUNDED,    /* floats near -1, 0 and +1, and "scales" for each row */
};

/* Whether training rounded the inputs of products to int8, if the source says so. */
enum tn_inputs_said { TN_INPUTS_UNSAID, TN_INPUTS_INT8, TN_INPUTS_FLOAT };

/* Differences between how a source stores tensors and how the model uses them; corrected while
 * weights are streamed. */
enum tn_fixup {
    /* Norms are stored as w - 1, except those of single projections (..._IN_NORM) and of a gated
     * delta rule. */
    TN_FIX_NORMS_PLUS_ONE = 1,
    /* Rows of q and k, weights and biases, are ordered for an interleaved rotation. */
    TN_FIX_QK_ROWS = 2,
    /* The decay of a gated delta rule is stored as the logarithm of its negative. */
    TN_FIX_LOG_DECAY = 4,
    /* Projections are stored as [columns, rows]. */
    TN_FIX_TRANSPOSED = 8,
};

/* A slot whose name differs from slots.h; NULL: it does not.  Role 0 ends a list. */
struct tn_family_name {
    uint32_t role;
    const char *hf, *gguf; /* as in slots.h */
};

/* The order of rows in a fused tensor. */
enum tn_fused_order {
    TN_FUSED_PARTS,   /* all rows of one slot, then those of the next */
    TN_FUSED_BY_HEAD, /* for each attention head, its rows of each slot in turn */
    TN_FUSED_BY_QUARTER, /* the same for each quarter of the heads */
    /* The same for each key head of attention or a gated delta rule; DELTA_QKV counts as three
     * slots. */
    TN_FUSED_BY_KEY_HEAD,
    TN_FUSED_PAIR_FIRST, /* the first two slots by head, then all rows of the next, and so on */
};

/* Slots of a layer that share one tensor, as consecutive rows (of biases: values; of stacks: in
 * each matrix).  The importer looks for it before the slots' single names.  parts[0] 0 ends a
 * list. */
struct tn_fused {
    const char *hf, *gguf; /* as in slots.h; NULL: not in that kind of source */
    uint8_t parts[4];      /* enum tern_role; 0 ends them */
    enum tn_fused_order order;
};

/* A key of config.json that differs from the name `usual` that most families use. */
struct tn_family_key {
    const char *usual, *own;
};

/* general.architecture of GGUF files, and the activation that it implies.  Name NULL ends a
 * list. */
struct tn_gguf_arch {
    const char *name;
    uint32_t activation; /* enum tern_activation */
};

/* The input and output of `spec`.  Sizes are set; layers are tn_layer_default with the source's
 * activation and rotation, before any scaling of the rotation. */
struct tn_family_spec {
    struct tern_file_config *config;
    struct tern_file_layer *layers; /* [config->n_layer] */
};

struct tn_family {
    const char *name;                   /* shown to users */
    const char *model_types[3];         /* of config.json; NULL ends the list */
    /* Prefixes of tensor names in a folder, in addition to "model." and the empty one, and prefixes
     * of tensors that are skipped.  A model that also takes images has its configuration in
     * "text_config". NULL ends a list. */
    const char *prefixes[3];
    const char *skipped[5];
    const char *drafts[4]; /* prefixes of the tensors of a draft head */
    const char *defaults; /* a JSON object with defaults for config.json; NULL: none */
    struct tn_gguf_arch gguf[4];
    const struct tn_family_name *names; /* NULL: no name differs */
    const struct tn_fused *fused;       /* NULL: no tensors are fused */
    const struct tn_family_key *keys;   /* NULL: no key differs; usual NULL ends the list */
    const char *layers;     /* prefix of layer names in a folder; NULL: "layers" */
    const char *buffers[4]; /* suffixes of names of tensors without weights; NULL ends the list */
    uint8_t needs[TN_FAMILY_MAX_NEEDS]; /* optional roles that every model of the family has; 0 ends
                                           the list */
    uint32_t folder_fixups, gguf_fixups; /* enum tn_fixup */
    uint32_t norm, order;          /* enum tern_norm, tern_order */
    uint32_t ffn;                  /* enum tern_ffn; 0: TERN_FFN_GATED */
    uint32_t ffn_factor; /* feed-forward size as a multiple of the width, where config.json may omit
                          * it */
    enum tn_inputs_said inputs;
    bool is_ternary;       /* all published models are ternary: others are damaged */
    bool has_windows;      /* spec reads windows */
    bool may_have_windows; /* spec reads "use_sliding_window" of config.json */
    bool has_caps;         /* spec reads soft caps of scores and logits */
    bool has_local_layers; /* layers with windows have a separate rotation that is never scaled */
    bool rotates_partly;   /* rope_dims may be less than head_dim */
    double rope_theta;     /* where config.json omits it; 0: 10000 */
    bool has_positions;    /* learned positions instead of rotations */
    bool names_positions;  /* only if "position_embedding_type" is "rope" there are rotations */
    uint32_t first_position; /* the row of position 0 in a folder's table of positions */
    bool has_parallel;     /* spec reads "use_parallel_residual" */
    bool has_gpt2_tokenizer; /* that of a folder whose files name no class */
    /* Turns values of the source into config and layers; NULL: the family has nothing special.
     * TERN_INPUT and TERN_UNSUPPORTED name the value. */
    tern_status (*spec)(struct tn_family_spec *out, const struct tn_values *values);
};

struct tn_scheme {
    const char *name; /* shown to users instead of the family's name */
    /* Called twice for a folder: once config.json is known, and once its tensors are; values not
     * yet known are absent. */
    bool (*is_evident)(const struct tn_values *values);
    enum tn_weight_rule rule; /* of a folder; a GGUF file states it in the types of tensors */
    enum tn_inputs_said inputs;
    uint8_t needs[TN_FAMILY_MAX_NEEDS];
    bool in_norms_share_eps; /* in_norm_eps is rms_eps */
    /* The first tokens in GGUF files, which contain no keys of config.json.  NULL: the vocabulary
     * is no evidence, because other ternary models share it. */
    const char *vocabulary[2];
};

/* For `spec`: all layers see "sliding_window" positions, or everything if the key is absent. */
tern_status tn_spec_windows(struct tn_family_spec *out, const struct tn_values *values);
/* For `spec` of Qwen2 and 3: if "use_sliding_window" is true, the layers that the source lists, or
 * all from "max_window_layers" on, see "sliding_window" positions. */
tern_status tn_spec_qwen_windows(struct tn_family_spec *out, const struct tn_values *values);
/* For `spec` of Gemma 2 and 3: the scales of embeddings and scores, and the caps; where the source
 * has no key, those of `config` apply.  GGUF files do not state the scale of scores: it follows
 * from the head size, except in the model with n_layer_27b layers, where it follows from the
 * width. */
tern_status tn_spec_gemma(struct tn_family_spec *out, const struct tn_values *values,
                          uint32_t n_layer_27b);
/* For `spec`: whether the layer has a window.  The source lists its layers, or every pattern-th
 * layer has none; `pattern` is the default if the source states no pattern. */
tern_status tn_spec_is_sliding(bool *out, const struct tn_values *values, uint32_t layer,
                               uint32_t pattern);
/* For `spec`: every layer has experts, whose numbers and sizes the configuration states;
 * renormalises: see TERN_EXPERTS_RENORMALISED.  TERN_INPUT names a number that is missing or out of
 * range. */
tern_status tn_spec_experts(struct tn_family_spec *out, const struct tn_values *values,
                            bool renormalises);
/* For `spec`, after tn_spec_experts: the layers that "mlp_only_layers" lists have none, and with a
 * "decoder_sparse_step" n only every n-th layer has. */
tern_status tn_spec_dense_layers(struct tn_family_spec *out, const struct tn_values *values);
/* For `spec`, after tn_spec_experts: the layers also have a shared expert. */
tern_status tn_spec_shared_expert(struct tn_family_spec *out, const struct tn_values *values);
/* For `spec`: the layers that the source lists as linear attention, or all but every n-th, mix with
 * a gated delta rule.  flags: TERN_DELTA_*.  TERN_INPUT, TERN_UNSUPPORTED name the value. */
tern_status tn_spec_gated_delta(struct tn_family_spec *out, const struct tn_values *values,
                                uint8_t flags);

#define FAMILY(name) extern const struct tn_family tn_family_##name;
#define SCHEME(name) extern const struct tn_scheme tn_scheme_##name;
#include "arch/families/list.h"
#undef FAMILY
#undef SCHEME

/* All families, in the order in which users see them; NULL ends the list. */
extern const struct tn_family *const tn_families[];

/* The family of a model_type of config.json; NULL: none. */
const struct tn_family *tn_family_of_model_type(const char *model_type);
const struct tn_family *tn_family_of_gguf(const char *arch, const struct tn_gguf_arch **row);
/* The first scheme whose evidence is in the values; NULL: none. */
const struct tn_scheme *tn_scheme_find(const struct tn_values *values);
/* The scheme whose vocabulary begins with these two tokens; NULL: none. */
const struct tn_scheme *tn_scheme_of_vocabulary(const char *first, const char *second);

/* Prefix i of tensor names in a folder; NULL after the last one. */
const char *tn_family_prefix(const struct tn_family *family, size_t i);
/* The entry of a list such as `skipped` that is a prefix of the name, or of one such as `buffers`
 * that is its suffix; NULL: none. */
const char *tn_name_begins(const char *const *beginnings, const char *name);
const char *tn_name_ends(const char *const *endings, const char *name);
/* The family's name for a usual key of config.json. */
const char *tn_family_key(const struct tn_family *family, const char *usual);
/* The family's names for a slot. */
const char *tn_family_hf_name(const struct tn_family *family, const struct tn_slot *slot);
const char *tn_family_gguf_name(const struct tn_family *family, const struct tn_slot *slot);

#endif
