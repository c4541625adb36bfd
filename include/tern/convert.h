/* SPDX-License-Identifier: MIT
 *
 * Hugging Face directory or GGUF file -> .tern file.
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

/* Of embedding and head, unless they are ternary in the source. */
enum tern_head_type {
    TERN_HEAD_AUTO, /* block types of GGUF files keep their values; others become q8, in an
                       embedding model, whose vectors show the difference, the source's type:
                       bf16, f16 or f32 */
    TERN_HEAD_Q8,
    TERN_HEAD_Q6,
    TERN_HEAD_Q4,
    TERN_HEAD_F16,
    TERN_HEAD_BF16,
    TERN_HEAD_F32
};

/* Are inputs of ternary products rounded to int8?  By the family, else by the names and the
 * vocabulary in a GGUF file, else: yes, with a warning, where every matrix has one scale, no where
 * some have several. */
enum tern_activations { TERN_ACTIVATIONS_AUTO, TERN_ACTIVATIONS_INT8, TERN_ACTIVATIONS_FLOAT };

/* Three layouts of GGUF's type I2_S, which files do not tell apart; all published ones are X86. */
enum tern_i2s_layout { TERN_I2S_X86, TERN_I2S_ARM, TERN_I2S_1X4 };

/* The layout of ternary matrices: 2 bits for a weight (T2), or 1.625 (T5), which takes less memory
 * and is unpacked before a product.  Matrices whose rows or columns are skipped (R2, C2) stay. */
enum tern_pack {
    TERN_PACK_FAST,
    TERN_PACK_SMALL,
    TERN_PACK_AUTO, /* small where the source is of a type below 2 bits, where fast would not stay
                       in this machine's memory beside a conversation of 4096 tokens, or where
                       measuring says that small decodes faster; a note names the choice */
};

struct tern_convert_params {
    const char *source;  /* directory, or GGUF file (of a split one the first part) */
    const char *output;  /* file; NULL = ./NAME.tern, NAME being the source without its path */
    const char *name;    /* NULL = last component of the resolved source */
    enum tern_head_type head;
    enum tern_activations activations;
    enum tern_i2s_layout i2s_layout;
    enum tern_pack pack;
    const char *pre; /* the splitter of a GGUF file that does not name it; NULL: as it says */
    bool no_tokenizer;
    /* Replace an existing output whatever it holds; false: only a .tern file or an empty one. */
    bool force;
    /* Progress: bytes of the source that are done, of all that there are (a matrix that is read
     * more than once counts in parts). Return false to stop (TERN_INTERRUPTED). */
    bool (*on_progress)(void *arg, uint64_t n_done, uint64_t n_total);
    /* One line for people: a tensor (verbose), a note, a warning. */
    void (*on_message)(void *arg, enum tern_convert_message kind, const char *text);
    void *arg;
};

struct tern_convert_result {
    char output[4096]; /* path that was written */
    bool replaced;     /* an existing file was replaced */
    uint64_t source_bytes; /* of all files that were read, each once */
    uint64_t output_bytes;
    uint64_t n_ternary;
    uint64_t n_zero;
    double bits_per_weight; /* output bits per parameter */
    double seconds;
};

/* Streams; memory does not grow with the model. On any failure the output is as it was before.
 * TERN_INPUT names the file, tensor or key that is missing or wrong; TERN_UNSUPPORTED: a model of a
 * family, tokenizer or kind that tern does not have, or that should be ternary and is not quite;
 * TERN_USAGE: a bad name, an output that is one of the inputs or may not be replaced (force);
 * TERN_OUTPUT, TERN_LIMIT: the file cannot be written, would be too large; TERN_MEMORY;
 * TERN_INTERRUPTED. */
tern_status tern_convert(const struct tern_convert_params *params,
                         struct tern_convert_result *result, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
