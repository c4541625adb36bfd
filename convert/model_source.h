/* SPDX-License-Identifier: MIT
 *
 * A model before conversion: its tensors and its description, from a Hugging Face directory or from
 * a GGUF file.  Opened in two steps, because `tern info` lists the tensors of unsupported models,
 * too.
 */
#ifndef TN_MODEL_SOURCE_H
#define TN_MODEL_SOURCE_H

#include <stdbool.h>

#include "base/buf.h"
#include "convert/config_import.h"
#include "convert/source.h"
#include "convert/tensor_plan.h"

struct tn_model_source {
    bool is_gguf;
    bool has_generation, has_pooling; /* whether a directory has these files */
    struct tn_config_import import;
    struct tn_source source;
};

/* Both steps; the small files of a directory are read before the weights. */
tern_status tn_model_source_open(struct tn_model_source *out, const char *path,
                                 enum tern_i2s_layout i2s, struct tern_error *err);

/* Opens the headers of the weights; see tn_source_open, tn_gguf_open. */
tern_status tn_model_source_open_weights(struct tn_model_source *out, const char *path,
                                         enum tern_i2s_layout i2s, struct tern_error *err);
/* Reads family, sizes, and everything else except weights, which must be open. */
tern_status tn_model_source_import(struct tn_model_source *out, const char *path,
                                   struct tern_error *err);

#define TN_MAX_TOKENIZER_FILES 5

/* Whether the source, at `path`, has a tokenizer. */
bool tn_model_source_has_tokenizer(const struct tn_model_source *source, const char *path);

/* Makes the tokenizer section of an imported source; *section is empty and stays so on failure.
 * `pre` names the splitter of a GGUF file, NULL: the file names it; *splitter: the name found in
 * the file, NULL for a folder.  TERN_INPUT: none, or a damaged one; TERN_UNSUPPORTED: a kind that
 * tern does not implement. */
tern_status tn_model_source_tokenizer(struct tn_buf *section, const char **splitter,
                                      const struct tn_model_source *source, const char *path,
                                      const char *pre, struct tern_error *err);

/* Lists the files of a folder that make its tokenizer section: tokenizer.json, or those of GPT-2's
 * tokenizer; returns their number, 0 if there is no tokenizer. */
uint32_t tn_model_source_tokenizer_files(const char *names[TN_MAX_TOKENIZER_FILES],
                                         const char *path);

/* The chat template of an imported source, checked (tn_free); NULL: there is none.  *from: the name
 * of the folder's file, or `path` of a GGUF file; NULL: no file has one. */
tern_status tn_model_source_template(char **text, size_t *n, const char **from,
                                     const struct tn_model_source *source, const char *path,
                                     struct tern_error *err);

/* Safe after a failure, too. */
void tn_model_source_close(struct tn_model_source *out);

#endif
