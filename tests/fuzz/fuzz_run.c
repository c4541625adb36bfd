/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: a whole model, opened and run.  The file's size and head hash are corrected first,
 * so that absurd weights, scales, norms, tokenizers and dimensions reach the forward pass, the
 * tokenizer and the sampler.  The result is tokens or one error with a message.
 */
#define XXH_INLINE_ALL
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "plat/plat.h"
#include "tern/tern.h"
#include "tiny_model.h"

#define N_CTX 40u

static const char path[] = "fuzz_run.tern";

static void must_be_explained(tern_status status, const struct tern_error *err)
{
    if (status != TERN_OK && (err->status != status || err->detail[0] == '\0'))
        abort();
}

static void generate(struct tern_session *session, const struct tern_model *model,
                     const uint32_t *ids, size_t n)
{
    struct tern_error err = {TERN_OK, ""};
    struct tern_sampler *sampler;
    struct tern_sampler_params sp;
    struct tern_generate_result result;
    tern_sampler_params_default(&sp);
    if (tern_sampler_create(&sampler, &sp, tern_model_config(model)->vocab, &err) != TERN_OK)
        return;
    struct tern_generate_params params = {.sampler = sampler, .max_tokens = 3};
    must_be_explained(tern_generate(session, ids, n, &params, &result, &err), &err);
    tern_sampler_free(sampler);
}

static void run(const struct tern_model *model, enum tern_kv kv)
{
    struct tern_error err = {TERN_OK, ""};
    struct tern_engine *engine;
    struct tern_session *session = NULL;
    struct tern_ids ids = {0};
    uint32_t context = tern_model_config(model)->context;
    struct tern_session_params params = {
        .n_ctx = TN_MIN(context, N_CTX), .kv = kv, .n_batch = 8};
    static struct tern_sysinfo machine;
    if (!machine.n_cores)
        tern_sysinfo_read_cpu(&machine);
    if (tern_engine_create(&engine, &machine, &(struct tern_engine_params){.n_threads = 1}, &err) !=
        TERN_OK)
        abort();
    tern_status status = tern_session_create(&session, engine, model, &params, &err);
    must_be_explained(status, &err);
    if (tern_model_tokenizer(model))
        must_be_explained(tern_tokenizer_encode(tern_model_tokenizer(model),
                                                "Hi <s>\n12 \xC3\xA9", 12,
                                                TERN_ENCODE_ADD_SPECIAL, &ids, &err),
                          &err);
    static const uint32_t fixed[] = {1, 0, 2};
    if (status == TERN_OK && ids.n > 0)
        generate(session, model, ids.ids, ids.n);
    if (status == TERN_OK)
        generate(session, model, fixed, TN_COUNT_OF(fixed));
    tern_ids_free(&ids);
    tern_session_free(session);
    tern_engine_free(engine);
}

/* Corrects size and hash; false: the header is too damaged. */
static bool put_right(uint8_t *bytes, size_t n)
{
    struct tern_file_header header;
    if (n < sizeof header)
        return false;
    memcpy(&header, bytes, sizeof header);
    if (header.data.offset < sizeof header || header.data.offset > n)
        return false;
    header.file_bytes = n;
    header.head_hash = 0;
    memcpy(bytes, &header, sizeof header);
    header.head_hash = XXH3_64bits(bytes, (size_t)header.data.offset);
    memcpy(bytes, &header, sizeof header);
    return true;
}

static bool write_file(const uint8_t *bytes, size_t n)
{
    struct tn_file *file;
    if (tn_file_create(&file, path, NULL) != TERN_OK)
        return false;
    bool written = tn_file_write_at(file, 0, bytes, n, NULL) == TERN_OK;
    tn_file_close(file);
    return written;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tern_error err = {TERN_OK, ""};
    struct tern_model *model;
    uint8_t *copy = tn_alloc(n);
    if (!copy)
        return 0;
    if (n)
        memcpy(copy, data, n);
    if (put_right(copy, n)) {
        if (!write_file(copy, n))
            abort();
        tern_status status = tern_model_open(&model, path, &err);
        must_be_explained(status, &err);
        if (status == TERN_OK) {
            run(model, (enum tern_kv)(n % 3));
            tern_model_free(model);
        }
    }
    tn_free(copy);
    return 0;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const struct tiny_variant variants[] = {
        {.embed_layout = TERN_LAYOUT_Q8, .has_head = true, .has_sub_norms = true, .is_sparse = true,
         .has_tokenizer = true},
        {.embed_layout = TERN_LAYOUT_F16, .has_sub_norms = true, .has_tokenizer = true},
        {.embed_layout = TERN_LAYOUT_BF16, .has_head = true, .is_sparse = true,
         .has_tokenizer = true},
        {.embed_layout = TERN_LAYOUT_Q8_PLANES, .has_head = true, .has_sub_norms = true,
         .is_sparse = true, .has_tokenizer = true},
        {.embed_layout = TERN_LAYOUT_Q8, .has_tokenizer = true, .has_experts = true},
        {.embed_layout = TERN_LAYOUT_Q8, .has_head = true, .is_rotated = true},
        {.embed_layout = TERN_LAYOUT_Q8, .has_tokenizer = true, .has_draft = true},
    };
    struct tern_error err;
    char *bytes;
    size_t n;
    if (i >= TN_COUNT_OF(variants))
        return 0;
    if (tiny_model_make(path, &variants[i], &err) ||
        tn_file_read_all(&bytes, &n, path, capacity, &err))
        abort();
    memcpy(dst, bytes, n);
    tn_free(bytes);
    return n;
}
