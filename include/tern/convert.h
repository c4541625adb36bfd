/* SPDX-License-Identifier: MIT
 *
 * Converts a Hugging Face directory or a GGUF file to a .tern file, as `tern convert` does: one
 * function with its parameters, progress and result.
 */
#ifndef TERN_CONVERT_H
#define TERN_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tern_convert_message { TERN_CONVERT_TENSOR, TERN_CONVERT_NOTE, TERN_CONVERT_WARNING };

/* The type of embedding and head, unless the source has ternary ones. */
enum tern_head_type {
    TERN_HEAD_AUTO, /* block types of GGUF files keep their values; others become q8; in an
                     * embedding model, whose vectors show the difference, they keep the source's
                     * type: bf16, f16 or f32 */
    TERN_HEAD_Q8,
    TERN_HEAD_Q6,
    TERN_HEAD_Q4,
    TERN_HEAD_F16,
    TERN_HEAD_BF16,
    TERN_HEAD_F32
};

/* Whether inputs of ternary products are rounded to int8.  AUTO: decided by the family, else by the
 * names and the vocabulary in a GGUF file, else: yes, with a warning, if every matrix has one
 * scale, no if some have several. */
enum tern_activations { TERN_ACTIVATIONS_AUTO, TERN_ACTIVATIONS_INT8, TERN_ACTIVATIONS_FLOAT };

/* Three layouts of GGUF's type I2_S, which files do not distinguish; all published ones are X86. */
enum tern_i2s_layout { TERN_I2S_X86, TERN_I2S_ARM, TERN_I2S_1X4 };

/* The layout of ternary matrices: 2 bits per weight (T2), or 1.625 (T5), which takes less memory
 * and is unpacked before a product.  Matrices whose rows or columns are skipped (R2, C2) are not
 * affected. */
enum tern_pack {
    TERN_PACK_FAST,
    TERN_PACK_SMALL,
    TERN_PACK_AUTO, /* small if the source has a type below 2 bits, if fast would not stay in this
                       machine's memory together with a conversation of 4096 tokens, or if
                       measuring shows that small decodes faster; a note reports the choice */
};

struct tern_convert_params {
    const char *source;  /* directory, or GGUF file (of a split one the first file) */
    const char *output;  /* file; NULL = ./NAME.tern, NAME being the source without its path */
    const char *name;    /* NULL = last component of the resolved source */
    enum tern_head_type head;
    enum tern_activations activations;
    enum tern_i2s_layout i2s_layout;
    enum tern_pack pack;
    const char *pre; /* the splitter of a GGUF file that does not name one; NULL: the file's */
    bool no_tokenizer;
    /* Replaces an existing output whatever it contains; false: only a .tern file or an empty
     * one. */
    bool force;
    /* Progress: bytes of the source processed so far, and in total (a matrix that is read more than
     * once counts in fractions).  Return false to stop (TERN_INTERRUPTED). */
    bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total);
    /* One line for the user: a tensor (verbose), a note, a warning. */
    void (*on_message)(void *arg, enum tern_convert_message kind, const char *text);
    void *arg;
};

struct tern_convert_result {
    char output[4096]; /* the path written */
    bool replaced;     /* an existing file was replaced */
    uint64_t source_bytes; /* of all files read, each counted once */
    uint64_t output_bytes;
    uint64_t n_ternary;
    uint64_t n_zero;
    double bits_per_weight; /* output bits per parameter */
    double seconds;
};

/* Converts as a stream; memory does not grow with the model.  On any failure the output is
 * unchanged. TERN_INPUT names the file, tensor or key that is missing or wrong; TERN_UNSUPPORTED: a
 * model of a family, tokenizer or kind that tern does not support, or one that should be ternary
 * and is not quite; TERN_USAGE: a bad name, an output that is one of the inputs or may not be
 * replaced (force); TERN_OUTPUT, TERN_LIMIT: the file cannot be written, would be too large;
 * TERN_MEMORY; TERN_INTERRUPTED. */
tern_status tern_convert(const struct tern_convert_params *params,
                         struct tern_convert_result *result, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
