/* SPDX-License-Identifier: MIT
 *
 * The description of a model in neutral form, read from the small files of a Hugging Face directory
 * (config.json, generation_config.json, the chat template) or from the keys of a GGUF file
 * (gguf_import.h).
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
#include "tern/chat.h"

enum tn_tie { TN_TIE_UNSAID, TN_TIE_NO, TN_TIE_YES };

/* quantization_config.quantization_mode */
enum tn_weight_form { TN_FORM_UNSAID, TN_FORM_LATENT, TN_FORM_PACKED };

#define TN_POOLING_FILE "1_Pooling/config.json"
#define TN_MAX_STOP_IDS 64u /* read from a source; the .tern file may have any number */

struct tn_stop_ids {
    uint32_t n;
    uint32_t ids[TN_MAX_STOP_IDS];
};

/* Adds an id unless it is present; ignores it if the list is full. */
void tn_stop_ids_add(struct tn_stop_ids *stop_ids, uint32_t id);

struct tn_config_import {
    struct tern_file_config config; /* without n_params, fingerprint and references */
    struct tern_file_layer *layers; /* [config.n_layer] */
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
    uint32_t n_draft_layers; /* GGUF: blocks after the layers, which are skipped */
    uint32_t rope_dims;     /* rotated values of each head, in all layers */
    float *rope_factors;    /* [rope_dims / 2], for all layers except local ones; NULL: none */
    struct tn_rotation_import rotation;
    uint32_t original_context; /* context beyond which other rope_factors would apply; 0: unknown */
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
/* Marks roles [n], up to the first 0, as needed. */
void tn_config_need(struct tn_config_import *out, const uint8_t *roles, size_t n);

/* Parses config.json and generation_config.json (may be NULL).  TERN_INPUT names the key, its value
 * and the limit; TERN_UNSUPPORTED the reason. */
tern_status tn_config_parse(struct tn_config_import *out, const char *json, size_t n_json,
                            const char *generation_json, size_t n_generation_json,
                            struct tern_error *err);

/* Appends name k of n to a list for users: "a, b and c". */
void tn_list_add(char *dst, size_t n_dst, size_t k, size_t n, const char *name);

struct tn_source;

/* Infers from the tensors what config.json does not state: the scheme of the weights, the head. */
void tn_config_recognise(struct tn_config_import *import, const struct tn_source *source);

/* The pooling of an embedding model's directory: 1_Pooling/config.json, else the last token;
 * *has_file: that file exists. */
tern_status tn_config_read_pooling(struct tn_config_import *import, bool *has_file, const char *dir,
                                   struct tern_error *err);

/* The same from the files of a directory; *has_generation: generation_config.json exists. */
tern_status tn_config_read(struct tn_config_import *out, bool *has_generation, const char *dir,
                           struct tern_error *err);

/* The chat template in tokenizer_config.json: a text, or a list of {name, template} of which
 * "default" is used.  *source is new memory (tn_free), NULL if there is none.  TERN_UNSUPPORTED: a
 * list without "default", which must not be treated as a model without template. */
tern_status tn_template_parse(char **source, size_t *n_source, const char *json, size_t n_json,
                              struct tern_error *err);

/* TERN_INPUT: not a text of at most 1 MiB; `from` names its source. */
tern_status tn_template_check(const char *from, const char *text, size_t n, struct tern_error *err);

/* chat_template.jinja (empty: none), else tokenizer_config.json; *from is the name of the file that
 * was read, NULL if neither exists. */
tern_status tn_template_read(char **source, size_t *n_source, const char **from, const char *dir,
                             struct tern_error *err);

/* Whether the source of a template contains `mark`. */
bool tn_template_holds(const char *source, size_t n, const char *mark);

/* Evidence of the tokens that end an answer, in addition to the ids that the source names. */
struct tn_answer_ends {
    const char *template; /* source of the chat template; NULL: none */
    size_t n_template;
    const struct tern_chat_template *known; /* the built-in one that it equals; NULL: none */
    bool is_gguf; /* without generation_config.json, which lists all of them */
};
/* Adds special tokens of a tokenizer section to the stop ids: ends of turns that the template
 * writes, and in a GGUF file the usual ends of texts.  `vocab`: the model's number of ids. */
tern_status tn_template_add_stop_ids(struct tn_stop_ids *stop_ids, uint32_t vocab,
                                     const struct tn_answer_ends *ends, const void *tokenizer,
                                     size_t tokenizer_bytes, struct tern_error *err);

/* Reads a text file of the directory; refuses Git-LFS pointers and more than max_bytes.  *text is
 * new memory, NUL-terminated; NULL (and TERN_OK) if the file does not exist. */
tern_status tn_dir_read_text(char **text, size_t *n_text, const char *dir, const char *name,
                             size_t max_bytes, struct tern_error *err);

#endif
