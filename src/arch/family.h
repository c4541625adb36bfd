/* SPDX-License-Identifier: MIT
 *
 * Families of models: rows of src/arch/families/, one file each, good for Hugging Face folders and
 * GGUF files alike.  convert/ reads what all models have; where families differ it asks the row.
 *
 * A family says what is computed.  A scheme says how the ternary weights of some family were
 * trained and stored, where neither quantization_config nor the types of the tensors do.
 *
 * To add a family: a file in families/ with its row, a line in families/list.h, and a reference
 * model for tests/golden.  Its graph must be what struct tern_file_layer can describe.
 */
#ifndef TN_FAMILY_H
#define TN_FAMILY_H

#include "arch/arch.h"
#include "arch/values.h"

#define TN_FAMILY_MAX_NEEDS 12u
/* For `needs`: LayerNorms, and biases of all of them and of every projection. */
#define TN_NEEDS_EVERY_BIAS                                                                        \
    TERN_ROLE_Q_BIAS, TERN_ROLE_K_BIAS, TERN_ROLE_V_BIAS, TERN_ROLE_O_BIAS, TERN_ROLE_UP_BIAS,     \
        TERN_ROLE_DOWN_BIAS, TERN_ROLE_ATTN_NORM_BIAS, TERN_ROLE_FFN_NORM_BIAS,                    \
        TERN_ROLE_FINAL_NORM_BIAS

/* What the numbers in the matrices mean. */
enum tn_weight_rule {
    TN_WEIGHTS_FOUND,      /* scale * trit, and the data tell the scales */
    TN_WEIGHTS_MULTIPLIED, /* U8 codes times weight_scale, or latent floats to be rounded */
    TN_WEIGHTS_DIVIDED,    /* the same, but weight_scale divides */
    TN_WEIGHTS_ROUNDED,    /* floats near -1, 0 and +1, and "scales" for each row */
};

/* Were inputs of products rounded to int8 in training? */
enum tn_inputs_said { TN_INPUTS_UNSAID, TN_INPUTS_INT8, TN_INPUTS_FLOAT };

/* What is stored otherwise than the model uses it; put right while weights are streamed. */
enum tn_fixup {
    /* Norms are stored as w - 1, except those of single projections (..._IN_NORM) and of a gated
     * delta rule. */
    TN_FIX_NORMS_PLUS_ONE = 1,
    /* Rows of q and k, weights and biases, are in the order of an interleaved rotation. */
    TN_FIX_QK_ROWS = 2,
    /* The decay of a gated delta rule is stored as the logarithm of its opposite. */
    TN_FIX_LOG_DECAY = 4,
    /* Projections are stored as [columns, rows]. */
    TN_FIX_TRANSPOSED = 8,
};

/* A slot that is called otherwise than slots.h says; NULL: as there.  Role 0 ends a list. */
struct tn_family_name {
    uint32_t role;
    const char *hf, *gguf; /* as in slots.h */
};

/* Whose rows come first in a fused tensor. */
enum tn_fused_order {
    TN_FUSED_PARTS,   /* those of one part after the other */
    TN_FUSED_BY_HEAD, /* those of one attention head after the other, of each part after part */
    TN_FUSED_BY_QUARTER, /* likewise of a quarter of the heads after the other */
    /* Likewise of the key heads of attention or a gated delta rule; DELTA_QKV is three parts. */
    TN_FUSED_BY_KEY_HEAD,
};

/* Slots of a layer that one tensor holds: their rows (biases: values).  Of stacks, in each matrix.
 * Looked for before the slots' own names.  parts[0] 0 ends a list. */
struct tn_fused {
    const char *hf, *gguf; /* as in slots.h; NULL: not in that kind of source */
    uint8_t parts[4];      /* enum tern_role; 0 ends them */
    enum tn_fused_order order;
};

/* A key of config.json that most families call `usual`. */
struct tn_family_key {
    const char *usual, *own;
};

/* general.architecture of GGUF files, and the activation it implies.  Name NULL ends a list. */
struct tn_gguf_arch {
    const char *name;
    uint32_t activation; /* enum tern_activation */
};

/* What `spec` completes.  Sizes are known; layers are tn_layer_default with the source's
 * activation and rotation, before any scaling of it. */
struct tn_family_spec {
    struct tern_file_config *config;
    struct tern_file_layer *layers; /* [config->n_layer] */
};

struct tn_family {
    const char *name;                   /* shown to people */
    const char *model_types[3];         /* of config.json; NULL ends the list */
    /* What names of a folder's tensors begin with, beside "model." and nothing, and names of those
     * that are left out.  The configuration of a model that also sees pictures is "text_config".
     * NULL ends a list. */
    const char *prefixes[3];
    const char *skipped[5];
    const char *drafts[3]; /* the same of a draft head, which no layer uses */
    const char *defaults; /* a JSON object of what config.json may leave out; NULL: nothing */
    struct tn_gguf_arch gguf[4];
    const struct tn_family_name *names; /* NULL: none differ */
    const struct tn_fused *fused;       /* NULL: none are */
    const struct tn_family_key *keys;   /* NULL: all are usual; usual NULL ends them */
    const char *layers;     /* names of a folder's layers begin with this; NULL: "layers" */
    const char *buffers[4]; /* endings of names of tensors without weights; NULL ends them */
    uint8_t needs[TN_FAMILY_MAX_NEEDS]; /* optional roles that every model of the family has; 0 ends
                                           the list */
    uint32_t folder_fixups, gguf_fixups; /* enum tn_fixup */
    uint32_t norm, order;          /* enum tern_norm, tern_order */
    uint32_t ffn;                  /* enum tern_ffn; 0: TERN_FFN_GATED */
    uint32_t ffn_factor; /* feed-forward size, in widths, where config.json may leave it out */
    uint32_t gelu;                 /* what config.json means by "gelu"; 0: that is not supported */
    enum tn_inputs_said inputs;
    bool is_ternary;       /* every published model is: weights that are not are damaged */
    bool has_windows;      /* which spec reads */
    bool has_caps;         /* of scores and logits, which spec reads */
    bool has_local_layers; /* windows come with a rotation of their own, which is never scaled; that
                              of the other layers may be slowed down evenly ("linear") */
    bool rotates_partly;   /* rope_dims may be less than head_dim */
    bool has_positions;    /* learned ones, in place of rotations */
    uint32_t first_position; /* the row of position 0 in a folder's table of positions */
    bool has_parallel;     /* "use_parallel_residual", which spec reads */
    /* Values of the source -> config and layers; NULL: nothing beyond what all models have.
     * TERN_INPUT, TERN_UNSUPPORTED name the value. */
    tern_status (*spec)(struct tn_family_spec *out, const struct tn_values *values);
};

struct tn_scheme {
    const char *name; /* shown to people instead of the family's */
    /* Asked twice of a folder: when its config.json is known, and when its tensors are; what is not
     * known is absent. */
    bool (*is_evident)(const struct tn_values *values);
    enum tn_weight_rule rule; /* of a folder; in a GGUF file the types of the tensors say it */
    enum tn_inputs_said inputs;
    uint8_t needs[TN_FAMILY_MAX_NEEDS];
    bool in_norms_share_eps; /* in_norm_eps is rms_eps */
    /* The first tokens in GGUF files, which keep no key of config.json.  NULL: other ternary models
     * have such a vocabulary too. */
    const char *vocabulary[2];
};

/* For `spec`: all layers see "sliding_window" positions, or all where there is none. */
tern_status tn_spec_windows(struct tn_family_spec *out, const struct tn_values *values);
/* For `spec` of Gemma 2 and 3: the scales of embeddings and scores, and the caps.  GGUF files do
 * not state the scale of scores: it follows from the head size, but in the model with n_layer_27b
 * layers from the width. */
tern_status tn_spec_gemma(struct tn_family_spec *out, const struct tn_values *values,
                          uint32_t n_layer_27b);
/* For `spec`: does the layer have a window?  The source lists its layers, or every pattern-th sees
 * all; `pattern` counts where the source has none. */
tern_status tn_spec_is_sliding(bool *out, const struct tn_values *values, uint32_t layer,
                               uint32_t pattern);
/* For `spec`: every layer has experts, and the configuration their numbers and sizes; renormalises:
 * see TERN_EXPERTS_RENORMALISED.  TERN_INPUT names a number that is missing or out of its range. */
tern_status tn_spec_experts(struct tn_family_spec *out, const struct tn_values *values,
                            bool renormalises);
/* For `spec`: refuses sources in which some layers have no experts. */
tern_status tn_spec_all_have_experts(const struct tn_values *values);
/* For `spec`, after tn_spec_experts: they have a shared expert too. */
tern_status tn_spec_shared_expert(struct tn_family_spec *out, const struct tn_values *values);
/* For `spec`: the layers that the source lists as linear attention, or all but every n-th, mix by a
 * gated delta rule.  flags: TERN_DELTA_*.  TERN_INPUT, TERN_UNSUPPORTED name the value. */
tern_status tn_spec_gated_delta(struct tn_family_spec *out, const struct tn_values *values,
                                uint8_t flags);

#define FAMILY(name) extern const struct tn_family tn_family_##name;
#define SCHEME(name) extern const struct tn_scheme tn_scheme_##name;
#include "arch/families/list.h"
#undef FAMILY
#undef SCHEME

/* All of them, in the order in which they are listed for people; NULL ends the list. */
extern const struct tn_family *const tn_families[];

/* NULL: none. */
const struct tn_family *tn_family_of_model_type(const char *model_type);
const struct tn_family *tn_family_of_gguf(const char *arch, const struct tn_gguf_arch **row);
/* The first scheme that the values are evidence of. */
const struct tn_scheme *tn_scheme_find(const struct tn_values *values);
/* The scheme that a vocabulary with these first tokens is evidence of; NULL: none. */
const struct tn_scheme *tn_scheme_of_vocabulary(const char *first, const char *second);

/* What names of tensors in a folder may begin with; NULL: there are no more than i. */
const char *tn_family_prefix(const struct tn_family *family, size_t i);
/* The entry of a list such as `skipped` that the name begins with; NULL: none. */
const char *tn_name_begins(const char *const *beginnings, const char *name);
/* The name of a usual key of config.json. */
const char *tn_family_key(const struct tn_family *family, const char *usual);
/* A slot's names in this family. */
const char *tn_family_hf_name(const struct tn_family *family, const struct tn_slot *slot);
const char *tn_family_gguf_name(const struct tn_family *family, const struct tn_slot *slot);

#endif
