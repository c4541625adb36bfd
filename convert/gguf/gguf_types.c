/* SPDX-License-Identifier: MIT
 *
 * The types of tensors in GGUF files by number, with block sizes from ggml-common.h, from
 * ik_llama.cpp for 133 and above, and from bitnet.cpp for 36 to 39, which mainline ggml used for
 * other types.
 */
#include "convert/gguf/gguf.h"

#include "base/bits.h"
#include "base/compiler.h"

static const struct tn_gguf_type types[] = {
#define BLOCKS(name, number, columns, bytes) {number, #name, columns, bytes, 0},
    TN_GGUF_BLOCK_LIST(BLOCKS)
#undef BLOCKS
    {TN_GGML_F32, "F32", 1, 4, 0},
    {TN_GGML_F16, "F16", 1, 2, 0},
    {9, "Q8_1", 32, 36, 0},
    {15, "Q8_K", 256, 292, 0},
    {TN_GGML_IQ2_XXS, "IQ2_XXS", 256, 66, 0},
    {TN_GGML_IQ2_XS, "IQ2_XS", 256, 74, 0},
    {TN_GGML_IQ3_XXS, "IQ3_XXS", 256, 98, 0},
    {TN_GGML_IQ1_S, "IQ1_S", 256, 50, 0},
    {TN_GGML_IQ3_S, "IQ3_S", 256, 110, 0},
    {TN_GGML_IQ2_S, "IQ2_S", 256, 82, 0},
    {24, "I8", 1, 1, 0},
    {25, "I16", 1, 2, 0},
    {26, "I32", 1, 4, 0},
    {27, "I64", 1, 8, 0},
    {28, "F64", 1, 8, 0},
    {TN_GGML_IQ1_M, "IQ1_M", 256, 56, 0},
    {TN_GGML_BF16, "BF16", 1, 2, 0},
    {31, "Q4_0_4_4", 32, 18, 0},
    {32, "Q4_0_4_8", 32, 18, 0},
    {33, "Q4_0_8_8", 32, 18, 0},
    {TN_GGML_TQ1_0, "TQ1_0", 256, 54, 0},
    {TN_GGML_TQ2_0, "TQ2_0", 256, 66, 0},
    {TN_GGML_I2_S, "I2_S", 0, 0, 0},
    {37, "I8_S", 0, 0, 0},
    {TN_GGML_TL1, "TL1", 0, 0, 0},
    {TN_GGML_MXFP4, "MXFP4", 32, 17, 0},
    {40, "NVFP4", 64, 36, 0},
    {TN_GGML_Q1_0, "Q1_0", 128, 18, 0},
    {TN_GGML_Q2_0, "Q2_0", 0, 0, 0},
    {133, "Q6_0", 0, 0, 0},
    {TN_GGML_IQ1_BN, "IQ1_BN", 64, 13, 2},
    {TN_GGML_IQ2_BN, "IQ2_BN", 64, 16, 4},
    {136, "Q8_K64", 0, 0, 0},
    {137, "IQ2_K", 0, 0, 0},
    {138, "IQ3_K", 0, 0, 0},
    {139, "IQ4_K", 0, 0, 0},
    {140, "IQ5_K", 0, 0, 0},
    {141, "IQ6_K", 0, 0, 0},
    {TN_GGML_PQ2_0, "PQ2_0", 128, 34, 0},
    {TN_GGML_PTQ1_0, "PTQ1_0", 128, 28, 0},
    {144, "IQ4_KS", 0, 0, 0},
    {TN_GGML_IQ2_BN_R4, "IQ2_BN_R4", 0, 0, 0},
    {TN_GGML_TL2, "TL2", 0, 0, 0},
};

const struct tn_gguf_type *tn_gguf_type_find(uint32_t id)
{
    for (size_t i = 0; i < TN_COUNT_OF(types); i++)
        if (types[i].id == id)
            return &types[i];
    return NULL;
}

bool tn_gguf_type_is_sized(uint32_t id)
{
    const struct tn_gguf_type *type = tn_gguf_type_find(id);
    return id == TN_GGML_I2_S || id == TN_GGML_Q2_0 || (type && type->block > 0);
}

static bool block_bytes(uint64_t *bytes, const struct tn_gguf_type *type, uint64_t rows,
                        uint64_t cols)
{
    uint64_t row;
    return cols % type->block == 0 && tn_mul_u64(cols / type->block, type->block_bytes, &row) &&
           tn_add_u64(row, type->row_bytes, &row) && tn_mul_u64(rows, row, bytes);
}

bool tn_gguf_type_bytes(uint64_t *bytes, uint32_t id, uint32_t q2_block, uint64_t rows,
                        uint64_t cols)
{
    const struct tn_gguf_type *type = tn_gguf_type_find(id);
    struct tn_gguf_type q2 = {.block = q2_block, .block_bytes = 2 + q2_block / 4};
    uint64_t n;
    *bytes = 0;
    if (!tn_mul_u64(rows, cols, &n))
        return false;
    if (id == TN_GGML_I2_S)
        return n % 4 == 0 && tn_add_u64(n / 4, 32, bytes);
    if (id == TN_GGML_Q2_0)
        return q2_block > 0 && block_bytes(bytes, &q2, rows, cols);
    return type && type->block > 0 && block_bytes(bytes, type, rows, cols);
}
