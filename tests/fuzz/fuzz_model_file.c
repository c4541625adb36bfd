/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: a whole .tern file, unchanged and with corrected size and head hash, so that
 * mutations reach deeper checks.  A file that is accepted is used: everything that its tables
 * describe is read to the last byte.
 */
#define XXH_INLINE_ALL
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "file/model_file.h"
#include "tiny_model.h"

static volatile unsigned char sink;

/* Reads the first and last byte and enough between them to touch every page and red zone. */
static void read_bytes(const void *bytes, uint64_t n)
{
    const unsigned char *b = bytes;
    for (uint64_t i = 0; i < n; i += 32)
        sink = b[i];
    if (n > 0)
        sink = b[n - 1];
}

static void read_text(const struct tn_model_file *file, struct tern_file_ref ref)
{
    size_t n;
    const char *text = tn_model_file_text(file, ref, &n);
    read_bytes(text, n);
}

static void use(const struct tn_model_file *file)
{
    struct tern_error err;
    char name[48];
    for (uint32_t i = 0; i < file->n_tensors; i++) {
        const struct tern_file_tensor *t = &file->tensors[i];
        if (tn_model_file_tensor(file, (enum tern_role)t->role, t->layer) != t ||
            strlen(tn_tensor_name(name, sizeof name, t)) == 0)
            abort();
        read_bytes(tn_model_file_data(file, t), t->bytes);
        if (t->scale_bytes)
            read_bytes(tn_model_file_scales(file, t), t->scale_bytes);
    }
    read_text(file, file->spec.config->name);
    read_text(file, file->spec.config->template_name);
    read_text(file, file->spec.config->template_source);
    read_text(file, file->spec.config->converter);
    for (uint32_t i = 0; i < file->n_chunks; i++)
        (void)tn_model_file_verify_chunk(file, i, &err);
    read_bytes(file->tokenizer, file->tokenizer ? file->tokenizer_bytes : 0);
}

static void check(const uint8_t *bytes, size_t n)
{
    struct tn_model_file file;
    struct tern_error err = {TERN_OK, ""};
    tern_status status = tn_model_file_check(&file, bytes, n, "fuzz", &err);
    if (status == TERN_OK)
        use(&file);
    else if (err.status != status || err.detail[0] == '\0' || file.header)
        abort(); /* every refusal has a message and leaves nothing open */
    tn_model_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tern_file_header header;
    uint8_t *copy = tn_alloc(n); /* aligned, and its end is guarded */
    if (!copy)
        return 0;
    if (n)
        memcpy(copy, data, n);
    check(copy, n);
    if (n >= sizeof header) {
        memcpy(&header, copy, sizeof header);
        header.file_bytes = n;
        header.head_hash = 0;
        memcpy(copy, &header, sizeof header);
        if (header.data.offset >= sizeof header && header.data.offset <= n)
            header.head_hash = XXH3_64bits(copy, (size_t)header.data.offset);
        memcpy(copy, &header, sizeof header);
        check(copy, n);
    }
    tn_free(copy);
    return 0;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const struct tiny_variant variants[] = {
        {TERN_LAYOUT_Q8, true, true, true, true, 0, false, false, 0, false},
        {TERN_LAYOUT_F16, false, false, false, false, 0, false, false, 0, false},
        {TERN_LAYOUT_BF16, true, true, false, true, 0, false, false, 0, false},
        {TERN_LAYOUT_Q8_PLANES, true, true, true, true, 0, false, false, 0, false},
        {.embed_layout = TERN_LAYOUT_Q8, .has_tokenizer = true, .has_experts = true},
        {.embed_layout = TERN_LAYOUT_Q8, .has_head = true, .is_rotated = true},
        {.embed_layout = TERN_LAYOUT_Q8, .has_sub_norms = true, .has_draft = true},
    };
    const char path[] = "fuzz_model_file.seed.tern";
    struct tern_error err;
    struct tiny_image image;
    if (i >= TN_COUNT_OF(variants))
        return 0;
    if (tiny_model_image(&image, path, &variants[i], &err) || image.n > capacity)
        abort();
    memcpy(dst, image.bytes, image.n);
    tn_free(image.bytes);
    return image.n;
}
