/* SPDX-License-Identifier: MIT
 *
 * The description of a model in neutral form, read from the small files of a Hugging Face directory
 * (hf/hf_config.h) or from the keys of a GGUF file (gguf/gguf_import.h).
 *
 * Families are rows of arch/family.h, recognised by these values and by the tensors, never by the
 * name of a file; models that fit no row are refused.
 */
#ifndef TN_CONFIG_IMPORT_H
#define TN_CONFIG_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "arch/family.h"
#include "convert/gguf/rotation_import.h"
#include "tern/status.h"

enum tn_tie { TN_TIE_UNSAID, TN_TIE_NO, TN_TIE_YES };

/* quantization_config.quantization_mode */
enum tn_weight_form { TN_FORM_UNSAID, TN_FORM_LATENT, TN_FORM_PACKED };

#define TN_MAX_STOP_IDS 64u /* read from a source; the .tern file may have any number */

struct tn_stop_ids {
    uint32_t n;
    uint32_t ids[TN_MAX_STOP_IDS];
};

/* Adds an id unless it is present; false: the list is full. */
bool tn_stop_ids_add(struct tn_stop_ids *stop_ids, uint32_t id);

struct tn_config_import {
    struct tern_file_config config; /* without n_params, fingerprint and references */
    struct tern_file_layer *layers; /* [config.n_layer + 1]: the last for a draft head */
    struct tn_stop_ids stop_ids;
    const struct tn_family *family;
    const char *family_name; /* shown to users: the family's name, or that of a scheme */
    enum tn_tie tie;
    enum tn_weight_form form; /* according to the file; the tensors decide */
    enum tn_weight_rule rule;
    enum tn_inputs_said inputs_said;
    bool says_ternary;        /* according to the family, a scheme, or a GGUF file's name */
    uint32_t fixups;          /* enum tn_fixup, for this kind of source */
    bool needs[TN_ROLE_END];  /* optional roles that all layers must have */
    uint32_t n_draft_layers; /* GGUF: blocks of draft heads, after the layers */
    const char *draft_refusal; /* why the source's draft head is left out; NULL: used, or none */
    uint32_t rope_dims;     /* rotated values of each head, in all layers */
    float *rope_factors;    /* [rope_dims / 2], for all layers except local ones; NULL: none */
    struct tn_rotation_import rotation;
    uint32_t original_context; /* context beyond which rotations would change; 0: none */
    bool is_dynamic; /* they would change with the length of the text */
};
void tn_config_import_fini(struct tn_config_import *import);

/* Applies the family in `out`, and the scheme of its weights, for any source; the scheme takes
 * precedence.  The caller applies the scheme's rule. */
void tn_config_apply_family(struct tn_config_import *out);
void tn_config_apply_scheme(struct tn_config_import *out, const struct tn_scheme *scheme);
/* Allocates the layers; each becomes the family's default, with the source's activation and
 * rotation. */
tern_status tn_config_make_layers(struct tn_config_import *out, struct tern_error *err);
void tn_config_fill_layers(struct tn_config_import *out, uint32_t activation, double theta);
/* Whether a layer has the separate rotation of local layers (has_local_layers of the family). */
bool tn_config_is_local(const struct tn_config_import *import, uint32_t layer);
/* Marks roles [n], up to the first 0, as needed. */
void tn_config_need(struct tn_config_import *out, const uint8_t *roles, size_t n);

/* Appends name k of n to a list for users: "a, b and c". */
void tn_list_add(char *dst, size_t n_dst, size_t k, size_t n, const char *name);

#endif
