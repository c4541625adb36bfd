/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: the header of a safetensors file, which is untrusted JSON.
 *
 * Input: u32 size of the data area | JSON.
 */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "convert/source.h"

#define DATA_OFFSET 1000u

/* Checks the guarantees of tn_st_parse_header: the tensors tile the data area, or a hole is
 * reported. */
static void check(const struct tn_source *source, uint64_t data_bytes)
{
    bool has_hole = source->hole.status != TERN_OK;
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        const struct tn_source_tensor *t = &source->tensors[i];
        char shape[32];
        assert(t->name && t->dtype < TN_DTYPE_COUNT && t->rank <= TN_ST_MAX_RANK);
        assert(has_hole ? t->offset >= DATA_OFFSET + n_bytes : t->offset == DATA_OFFSET + n_bytes);
        assert(tn_range_fits(t->offset - DATA_OFFSET, t->bytes, data_bytes));
        assert(strlen(tn_shape_text(shape, sizeof shape, t)) < sizeof shape);
        n_bytes += t->bytes;
    }
    assert(has_hole ? n_bytes < data_bytes : n_bytes == data_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 4)
        return 0;
    struct tn_source source = {0};
    struct tern_error err;
    const uint64_t data_bytes = tn_load_u32(data);
    const tern_status status = tn_st_parse_header(&source, "fuzz", 0, (const char *)data + 4,
                                                  n - 4, DATA_OFFSET, data_bytes, &err);
    if (status == TERN_OK)
        check(&source, data_bytes);
    else
        assert(err.detail[0] != '\0');
    tn_source_close(&source);
    return 0;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const struct {
        uint32_t data_bytes;
        const char *json;
    } seeds[] = {
        {0, "{}"},
        {6, "{\"__metadata__\":{\"format\":\"pt\"},"
            "\"a\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[0,6]}}  "},
        {24, "{\"a.weight\":{\"dtype\":\"U8\",\"shape\":[2,4],\"data_offsets\":[16,24]},"
             "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
             "\"c\":{\"dtype\":\"F4\",\"shape\":[24],\"data_offsets\":[4,16]},"
             "\"d\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[4,4]}}"},
        {8, "{\"a\":{\"dtype\":\"F64\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[0,8],"
            "\"x\":[[[{}]]]}}"},
        {4, "{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551615],\"data_offsets\":[0,4]}}"},
    };
    if (i >= sizeof seeds / sizeof *seeds)
        return 0;
    const size_t n = strlen(seeds[i].json);
    assert(4 + n <= capacity);
    memcpy(dst, &seeds[i].data_bytes, 4);
    memcpy(dst + 4, seeds[i].json, n);
    return 4 + n;
}
