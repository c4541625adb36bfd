/* SPDX-License-Identifier: MIT
 *
 * A model before conversion as a set of named tensors, which are read piece by piece.
 *
 *   tn_source_open       a directory with safetensors (src_safetensors.c)
 *   tn_source_open_gguf  a GGUF file (src_gguf.c)
 *   tn_source_find       a tensor by name
 *   tn_source_read       some of its bytes
 *   tn_source_close
 *
 * Files are read, not mapped, so that memory stays small and a file that
 * shrinks is an error instead of a signal.
 */
#ifndef TN_SOURCE_H
#define TN_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "convert/encodings.h"
#include "plat/plat.h"
#include "tern/status.h"

/* Stricter than the format's limits (only 100 MB of header). */
#define TN_ST_MAX_HEADER (16u << 20)
#define TN_ST_MAX_RANK 8u
#define TN_ST_MAX_SHARDS 256u

/* X(name, bits): the element types of safetensors. */
#define TN_DTYPE_LIST(X)                                                                           \
    X(F4, 4) X(F6_E2M3, 6) X(F6_E3M2, 6)                                                           \
    X(BOOL, 8) X(U8, 8) X(I8, 8) X(F8_E5M2, 8) X(F8_E4M3, 8) X(F8_E8M0, 8)                         \
    X(F8_E4M3FNUZ, 8) X(F8_E5M2FNUZ, 8)                                                            \
    X(I16, 16) X(U16, 16) X(F16, 16) X(BF16, 16)                                                   \
    X(I32, 32) X(U32, 32) X(F32, 32)                                                               \
    X(C64, 64) X(F64, 64) X(I64, 64) X(U64, 64)

enum tn_dtype {
#define TN_DTYPE_ENUM(name, bits) TN_DTYPE_##name,
    TN_DTYPE_LIST(TN_DTYPE_ENUM)
#undef TN_DTYPE_ENUM
        TN_DTYPE_COUNT,
    TN_DTYPE_CODED = TN_DTYPE_COUNT /* a type of GGUF other than plain floats: see encoding */
};

struct tn_source_tensor {
    char *name; /* UTF-8, NUL-terminated */
    enum tn_dtype dtype;
    const char *type;     /* shown to users: "BF16", "I2_S" */
    uint32_t type_number; /* GGUF */
    const struct tn_encoding *encoding; /* TN_DTYPE_CODED: NULL if tern does not support the type */
    uint32_t rank;
    uint64_t shape[TN_ST_MAX_RANK];
    uint64_t offset; /* from the start of the file */
    uint64_t bytes;
    uint32_t i_file;
    bool was_requested; /* a slot or the importer took it */
    bool is_rotated; /* set by gguf/rotation_import.c */
};

struct tn_source_file {
    char *name; /* without folder */
    struct tn_file *file;
    uint64_t bytes;
};

struct tn_source {
    struct tn_source_file *files;
    uint32_t n_files;
    struct tn_source_tensor *tensors; /* sorted by name */
    uint32_t n_tensors;
    uint32_t capacity;
    bool has_index; /* there are shards: model.safetensors.index.json is an input, too */
    struct tern_error hole; /* the first bytes that belong to no tensor; status TERN_OK: none */
    struct tn_gguf *gguf;   /* the file's keys; NULL for a directory */
};

#define TN_ST_SINGLE_FILE "model.safetensors"
#define TN_ST_INDEX_FILE "model.safetensors.index.json"

/* Opens model.safetensors, or the shards that the index names.  TERN_INPUT: missing or damaged
 * files, any violation of the format (models are untrusted data), a Git-LFS pointer.  *out is
 * closed on failure.  Bytes that belong to no tensor are only recorded in out->hole: a caller that
 * knows which tensors are required may have a better message, but must not accept them. */
tern_status tn_source_open(struct tn_source *out, const char *dir, struct tern_error *err);
/* Opens one safetensors file with any name. */
tern_status tn_source_open_file(struct tn_source *out, const char *path, struct tern_error *err);
/* Opens a GGUF file, and the other parts of a split one; see tn_gguf_open. */
tern_status tn_source_open_gguf(struct tn_source *out, const char *path, enum tern_i2s_layout i2s,
                                struct tern_error *err);
void tn_source_close(struct tn_source *source);

/* NULL if there is none. */
struct tn_source_tensor *tn_source_find(const struct tn_source *source, const char *name);

/* Reads bytes [begin, begin + n) of a tensor, which must be inside it. */
tern_status tn_source_read(const struct tn_source *source, const struct tn_source_tensor *tensor,
                           uint64_t begin, void *dst, size_t n, struct tern_error *err);

/* Whether it consists of plain floats (F32, F16, BF16); and bytes per value. */
bool tn_source_is_float(const struct tn_source_tensor *tensor);
static inline size_t tn_source_float_bytes(const struct tn_source_tensor *tensor)
{
    return tensor->dtype == TN_DTYPE_F32 ? 4 : 2;
}

/* Rows of a matrix; of a stack, the rows of all its matrices. */
static inline uint64_t tn_source_rows(const struct tn_source_tensor *tensor)
{
    return tensor->rank == 3 ? tensor->shape[0] * tensor->shape[1] : tensor->shape[0];
}

/* Writes "[768, 256]" to dst; returns dst. */
const char *tn_shape_text(char *dst, size_t n_dst, const struct tn_source_tensor *tensor);

/* ---- for src_safetensors.c, the tests and the fuzzer ---- */

/* Checks the JSON text of one header against a data area of data_bytes bytes that starts at
 * data_offset of file i_file, and appends its tensors (unsorted) to source; see source->hole. */
tern_status tn_st_parse_header(struct tn_source *source, const char *file_name, uint32_t i_file,
                               const char *json, size_t n_json, uint64_t data_offset,
                               uint64_t data_bytes, struct tern_error *err);

#endif
