/* SPDX-License-Identifier: MIT
 *
 * Inspects a model before it is converted: a GGUF file, a safetensors file, or a Hugging Face
 * directory. `tern info` and `tern pull` show the results.
 */
#ifndef TERN_INSPECT_H
#define TERN_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "tern/plan.h"
#include "tern/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opaque; one thread at a time.  Reads headers and the small files of a directory, and the first
 * layer of models whose weights alone show whether they are ternary. */
struct tern_source;

struct tern_source_summary {
    const char *format; /* "gguf", "safetensors" (one file), "folder" */
    const char *family; /* "bitnet", "llama", ...; NULL: not recognised */
    bool is_convertible; /* judging by headers and the first layer, tern_convert accepts it */
    const char *reason;  /* why not; "" otherwise */
    bool has_tokenizer;  /* else a convertible source needs tern_convert_params.no_tokenizer */
    uint64_t file_bytes; /* of all weight files */
    uint32_t n_keys;
    uint32_t n_tensors;
};

struct tern_source_key {
    const char *name;
    const char *json; /* the value; long texts are cut, arrays are shown by type and length */
};

#define TERN_SOURCE_MAX_RANK 8u

struct tern_source_tensor_info {
    const char *name;
    const char *type;     /* "BF16", "I2_S" */
    uint32_t rank;
    uint64_t shape[TERN_SOURCE_MAX_RANK]; /* columns last */
    uint64_t n_bytes;
};

/* Whether tern_source_inspect accepts the path: a directory, or a file that begins like GGUF and
 * safetensors files. */
bool tern_source_is_one(const char *path);

/* Identifies a source, and its version, without reading its weights: a hash of the names, sizes,
 * modification times and first 64 KiB of its files.  TERN_INPUT: a file cannot be read;
 * TERN_MEMORY. *out is 0 on failure. */
tern_status tern_source_hash(uint64_t *out, const char *path, struct tern_error *err);

/* TERN_INPUT: missing, or damaged so that not even its tensors can be listed; TERN_UNSUPPORTED: an
 * unsupported version; TERN_MEMORY.  *out is NULL on failure. */
tern_status tern_source_inspect(struct tern_source **out, const char *path, struct tern_error *err);
void tern_source_free(struct tern_source *source);

/* Sizes of a convertible source after conversion, from its headers and the first layer.  Values
 * that only the conversion determines are estimated: later layers are like the first, the cache is
 * q8, and the tokenizer takes no space. */
struct tern_source_sizes {
    struct tern_plan_model plan; /* file_bytes: of the .tern file */
    uint64_t table_bytes;        /* of these, the embedding, if it is also the head, else both
                                  * tables */
    uint64_t bytes_per_token;    /* as in struct tern_model_info */
};
/* TERN_MEMORY; TERN_UNSUPPORTED: the reason of the summary. */
tern_status tern_source_get_sizes(const struct tern_source *source, struct tern_source_sizes *out,
                                  struct tern_error *err);

/* Texts are valid as long as the source. */
void tern_source_get_summary(const struct tern_source *source, struct tern_source_summary *out);
/* i below n_keys, in the order of names; those of a folder's config.json in its order. */
void tern_source_get_key(const struct tern_source *source, uint32_t i,
                         struct tern_source_key *out);
/* i below n_tensors, in the order of names. */
void tern_source_get_tensor(const struct tern_source *source, uint32_t i,
                            struct tern_source_tensor_info *out);

#ifdef __cplusplus
}
#endif
#endif
