/* SPDX-License-Identifier: MIT
 *
 * A GGUF model: its keys and tensors, from one file or from the parts of a split one.
 *
 *   "GGUF" | u32 version | i64 n_tensors | i64 n_keys | keys | tensor infos | padding | data
 *
 * Versions 2 and 3, little-endian.  After tn_gguf_open every offset, size, type and text has been
 * checked, by the rules of ggml's reader (gguf.cpp), and more strictly where that one would guess.
 * The file is read in pieces, not mapped: memory grows with the number of keys and tensors, not
 * with arrays (a vocabulary stays in the file until it is loaded) or weights.  gguf_header.c reads
 * the header of one file, gguf_layout.c checks the offsets of its tensors, gguf_types.c lists the
 * types.
 */
#ifndef TN_GGUF_H
#define TN_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plat/plat.h"
#include "tern/status.h"

#define TN_GGUF_MAX_KEYS 65536u
#define TN_GGUF_MAX_KEY_BYTES 1024u
#define TN_GGUF_MAX_NAME 64u              /* of a tensor, with the NUL */
#define TN_GGUF_MAX_RANK 4u
#define TN_GGUF_MAX_TEXT (16u << 20)      /* for all keys and texts of one file */
#define TN_GGUF_MAX_HEADER (512u << 20)   /* vocabulary and merges included */
#define TN_GGUF_MAX_ALIGNMENT (1u << 20)
#define TN_GGUF_MAX_PARTS 256u

/* ---- types of values ---- */

/* X(number, NAME, bytes): bytes 0 for types without a fixed size. */
#define TN_GGUF_VALUE_LIST(X)                                                                      \
    X(0, U8, 1) X(1, I8, 1) X(2, U16, 2) X(3, I16, 2) X(4, U32, 4) X(5, I32, 4) X(6, F32, 4)       \
    X(7, BOOL, 1) X(8, STRING, 0) X(9, ARRAY, 0) X(10, U64, 8) X(11, I64, 8) X(12, F64, 8)

enum tn_gguf_value_type {
#define TN_GGUF_VALUE_ENUM(number, name, bytes) TN_GGUF_##name = number,
    TN_GGUF_VALUE_LIST(TN_GGUF_VALUE_ENUM)
#undef TN_GGUF_VALUE_ENUM
        TN_GGUF_N_VALUE_TYPES
};
const char *tn_gguf_value_text(uint32_t type); /* "u32" */

/* ---- types of tensors ---- */

/* The size of a tensor: rows * (row_bytes + cols / block * block_bytes), and `block` divides the
 * columns.  block 0: unknown, or another rule (I2_S, Q2_0). */
struct tn_gguf_type {
    uint32_t id;
    const char *name;
    uint32_t block;
    uint32_t block_bytes;
    uint32_t row_bytes;
};

/* X(NAME, number, columns, bytes): the types of blocks that are not ternary, and the size of a
 * block.  TERN_LAYOUT_NAME holds their values. */
#define TN_GGUF_BLOCK_LIST(X)                                                                      \
    X(Q4_0, 2, 32, 18) X(Q4_1, 3, 32, 20) X(Q5_0, 6, 32, 22) X(Q5_1, 7, 32, 24)                    \
    X(Q8_0, 8, 32, 34) X(Q2_K, 10, 256, 84) X(Q3_K, 11, 256, 110) X(Q4_K, 12, 256, 144)            \
    X(Q5_K, 13, 256, 176) X(Q6_K, 14, 256, 210) X(IQ4_NL, 20, 32, 18) X(IQ4_XS, 23, 256, 136)

enum tn_gguf_type_id {
#define TN_GGUF_BLOCK_ENUM(name, number, columns, bytes) TN_GGML_##name = number,
    TN_GGUF_BLOCK_LIST(TN_GGUF_BLOCK_ENUM)
#undef TN_GGUF_BLOCK_ENUM
    TN_GGML_F32 = 0,
    TN_GGML_F16 = 1,
    TN_GGML_IQ2_XXS = 16,
    TN_GGML_IQ2_XS = 17,
    TN_GGML_IQ3_XXS = 18,
    TN_GGML_IQ1_S = 19,
    TN_GGML_IQ3_S = 21,
    TN_GGML_IQ2_S = 22,
    TN_GGML_IQ1_M = 29,
    TN_GGML_BF16 = 30,
    TN_GGML_TQ1_0 = 34,
    TN_GGML_TQ2_0 = 35,
    TN_GGML_I2_S = 36,
    TN_GGML_TL1 = 38,
    TN_GGML_MXFP4 = 39,
    TN_GGML_Q1_0 = 41,
    TN_GGML_Q2_0 = 42, /* blocks of 64 or of 128, see tn_gguf_part.q2_block */
    TN_GGML_IQ1_BN = 134,
    TN_GGML_IQ2_BN = 135,
    TN_GGML_PQ2_0 = 142,
    TN_GGML_PTQ1_0 = 143,
    TN_GGML_IQ2_BN_R4 = 335,
    TN_GGML_TL2 = 10039, /* 39 in files of bitnet.cpp: gguf_layout.c tells them apart */
};

/* NULL if no program known to tern writes this number. */
const struct tn_gguf_type *tn_gguf_type_find(uint32_t id);

/* Bytes of a tensor of `rows` rows of `cols`, by the rule above and those of I2_S (a quarter of the
 * weights, and 32) and Q2_0 (q2_block 64 or 128: 2 + block / 4 bytes a block).  False if the
 * columns are not a whole number of blocks, the size overflows, or the type has no known size. */
bool tn_gguf_type_bytes(uint64_t *bytes, uint32_t id, uint32_t q2_block, uint64_t rows,
                        uint64_t cols);
/* Whether the size of this type is known (given the block of Q2_0). */
bool tn_gguf_type_is_sized(uint32_t id);

/* ---- an opened model ---- */

struct tn_gguf_key {
    char *name;
    uint32_t type;         /* enum tn_gguf_value_type */
    uint32_t element_type; /* of an array; never ARRAY */
    uint64_t count;        /* number of elements; bytes of a text; else 1 */
    union {
        uint64_t u; /* U8 to U64, BOOL */
        int64_t i;  /* I8 to I64 */
        double f;   /* F32, F64 */
    } value;
    char *text;      /* STRING: count bytes and a NUL */
    uint64_t offset; /* ARRAY: of the first element in the part's file */
    uint64_t bytes;  /* ARRAY: of all elements */
};

struct tn_gguf_tensor {
    char name[TN_GGUF_MAX_NAME];
    uint32_t rank;
    uint64_t ne[TN_GGUF_MAX_RANK]; /* columns first, 1 beyond the rank */
    uint32_t type;   /* the number in the file, even if unknown */
    uint32_t i_part;
    uint64_t offset; /* from the start of the part's file */
    uint64_t bytes;  /* exact; for a type of unknown size: up to the next tensor */
};

/* The source of bytes: a file, or memory in tests. */
struct tn_gguf_input {
    tern_status (*read_at)(void *arg, uint64_t offset, void *dst, size_t n,
                           struct tern_error *err);
    void *arg;
    uint64_t n_bytes;
    const char *name; /* for messages */
};

struct tn_gguf_part {
    struct tn_file *file; /* NULL in tests */
    struct tn_gguf_input input;
    char *name; /* name of the file, without folder */
    uint32_t alignment;
    uint32_t q2_block; /* columns of a block of type Q2_0: 64 or 128; 0 without such tensors */
    uint64_t data_offset;
    struct tn_gguf_key *keys; /* sorted by name */
    uint32_t n_keys;
    struct tn_gguf_tensor *tensors; /* in file order; moved to struct tn_gguf when it is open */
    uint32_t n_tensors;
    size_t text_bytes;
};

struct tn_gguf {
    struct tn_gguf_part *parts;
    uint32_t n_parts;
    struct tn_gguf_tensor *tensors; /* of all parts, sorted by name */
    uint32_t n_tensors;
};

/* Opens a file, or the parts of a split one by the name of the first.  TERN_INPUT names the file,
 * key or tensor, the value and the expected one; TERN_UNSUPPORTED: another version or byte order.
 * *out is closed on failure. */
tern_status tn_gguf_open(struct tn_gguf *out, const char *path, struct tern_error *err);
void tn_gguf_close(struct tn_gguf *gguf);

/* True for the first bytes of any GGUF file. */
bool tn_is_gguf(const void *bytes, size_t n);

/* A key of the first part; NULL if there is none. */
const struct tn_gguf_key *tn_gguf_find_key(const struct tn_gguf *gguf, const char *name);
/* An integer of any width and sign; false: another type. */
bool tn_gguf_integer(const struct tn_gguf_key *key, double *out);
/* TERN_INPUT: the key has another type than the expected one. */
tern_status tn_gguf_fail_type(const struct tn_gguf_key *key, const char *expected,
                              struct tern_error *err);

/* An array of texts in memory. */
struct tn_gguf_texts {
    char *bytes;       /* concatenated */
    uint32_t *offsets; /* [n + 1] */
    uint32_t n;
};

/* Reads an array of strings of the first part, in total less than 256 MiB. */
tern_status tn_gguf_load_texts(struct tn_gguf_texts *out, const struct tn_gguf *gguf,
                               const struct tn_gguf_key *key, struct tern_error *err);
void tn_gguf_texts_fini(struct tn_gguf_texts *texts);
/* Reads an array of numbers of the first part: *data is key->bytes bytes of new memory (tn_free),
 * NULL if the array is empty. */
tern_status tn_gguf_load_numbers(void **data, const struct tn_gguf *gguf,
                                 const struct tn_gguf_key *key, struct tern_error *err);

/* Writes "[256, 768]", columns last as in the rest of tern, to dst; returns dst. */
const char *tn_gguf_shape_text(char *dst, size_t n_dst, const struct tn_gguf_tensor *tensor);

/* ---- between the files of the reader, for tests and the fuzzer ---- */

/* Reads and checks the header of part->input.  The caller checks numbers of parts. */
tern_status tn_gguf_parse(struct tn_gguf_part *part, uint32_t i_part, struct tern_error *err);
void tn_gguf_part_fini(struct tn_gguf_part *part);
const struct tn_gguf_key *tn_gguf_part_key(const struct tn_gguf_part *part, const char *name);

/* Offsets of part->tensors, relative to the data so far, must be exactly cumulative and end with
 * the file; sets sizes and q2_block and makes offsets absolute. */
tern_status tn_gguf_check_layout(struct tn_gguf_part *part, struct tern_error *err);

#endif
