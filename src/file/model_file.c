/* SPDX-License-Identifier: MIT
 *
 * Opens a .tern file and finds tensors and texts in it; recognises other files that users pass by
 * mistake.  The checks are in model_file_check*.c.
 */
#define XXH_INLINE_ALL
#include "file/model_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/error.h"
#include "base/text_match.h"
#include "file/model_file_check.h"
#include "file/wrong_file.h"

/* The end of a path that is too long for a message. */
static const char *short_name(const char *path)
{
    const size_t max = 200;
    size_t n = strlen(path);
    if (n <= max)
        return path;
    path += n - max;
    while (((unsigned char)*path & 0xC0) == 0x80) /* not in the middle of a character */
        path++;
    return path;
}

/* ---- files passed by mistake ---- */

static bool begins_with(const unsigned char *bytes, size_t n_bytes, const void *prefix, size_t n)
{
    return n_bytes >= n && memcmp(bytes, prefix, n) == 0;
}

/* A u64 with the length of a JSON object, followed by the object. */
static bool is_safetensors(const unsigned char *bytes, size_t n_bytes)
{
    return n_bytes > 9 && bytes[8] == '{' && tn_load_u64(bytes) >= 2 &&
           tn_load_u64(bytes) <= n_bytes - 8;
}

/* A JSON object or array after blanks: config.json, tokenizer.json, or a server's response. */
static bool is_json(const unsigned char *bytes, size_t n_bytes)
{
    size_t i = tn_text_n_space((const char *)bytes, n_bytes);
    if (i == n_bytes || (bytes[i] != '{' && bytes[i] != '['))
        return false;
    for (size_t end = TN_MIN(n_bytes, i + 32); i < end; i++)
        if (bytes[i] < ' ' && !strchr("\t\r\n", bytes[i]))
            return false;
    return true;
}

/* Fails because `bytes` does not begin with the magic; names the kind of file if it is known. */
static tern_status fail_not_tern(const unsigned char *bytes, size_t n_bytes, const char *name,
                                 struct tern_error *err)
{
#define BEGINS(text) begins_with(bytes, n_bytes, text, sizeof text - 1)
    const char *what = tn_wrong_file_text(bytes, n_bytes);
    if (what)
        return tn_fail(err, TERN_INPUT, "%s: is %s", name, what);
    what = "not a .tern file; tern convert makes one from a Hugging Face directory or a GGUF file";
    if (BEGINS("GGUF"))
        what = "a GGUF file; make a .tern file from it with: tern convert FILE";
    else if (is_safetensors(bytes, n_bytes))
        what = "a .safetensors file; make a .tern file from its directory with: tern convert DIR";
    else if (is_json(bytes, n_bytes))
        what = "a JSON file; make a .tern file from the directory of config.json with: tern "
               "convert DIR";
    else if (BEGINS("PK\003\004"))
        what = "a zip or PyTorch file; tern convert makes a .tern file from a Hugging Face "
               "directory with .safetensors";
    else if (BEGINS("TERN\n") || BEGINS("TERN\r\r\n") || BEGINS("TERN\r\n\x1A\r\n"))
        what = "damaged by a transfer that changed line endings; copy it again in binary mode";
    else if (n_bytes < 8 && memcmp(bytes, TERN_FILE_MAGIC, n_bytes) == 0)
        what = "truncated: less than the 8 bytes that mark a .tern file";
    else if (BEGINS("\0\0\0\0\0\0\0\0"))
        what = "empty at its start (zeros): an unfinished copy or download";
    return tn_fail(err, TERN_INPUT, "%s: is %s", name, what);
#undef BEGINS
}

/* ---- open ---- */

tern_status tn_model_file_check(struct tn_model_file *out, const void *bytes, size_t n_bytes,
                                const char *name, struct tern_error *err)
{
    *out = (struct tn_model_file){0};
    assert((uintptr_t)bytes % 8 == 0);
    name = short_name(name);
    if (!begins_with(bytes, n_bytes, TERN_FILE_MAGIC, 8))
        return fail_not_tern(bytes, n_bytes, name, err);
    struct tn_model_file file = {.map = {.data = bytes, .n_bytes = n_bytes}};
    struct tn_mcheck check = {&file, bytes, n_bytes, name, err};
    tern_status status = tn_mcheck_header(&check);
    if (!status)
        status = tn_mcheck_head_hash(&check);
    if (!status)
        status = tn_mcheck_config(&check);
    if (!status)
        status = tn_mcheck_layers(&check);
    if (!status)
        status = tn_mcheck_rotations(&check);
    if (!status)
        status = tn_mcheck_tensors(&check);
    if (status) {
        tn_free(file.head);
        return status;
    }
    *out = file;
    return tn_ok(err);
}

tern_status tn_model_file_open(struct tn_model_file *out, const char *path, struct tern_error *err)
{
    *out = (struct tn_model_file){0};
    if (tn_path_kind(path) == TN_PATH_DIR)
        return tn_fail(err, TERN_INPUT,
                       "%s: is a directory; make a model file from it with: tern convert DIR",
                       short_name(path));
    struct tn_map map;
    tern_status status = tn_map_open(&map, path, err);
    if (status)
        return status;
    status = tn_model_file_check(out, map.data, map.n_bytes, path, err);
    if (status)
        tn_map_close(&map);
    else
        out->map = map;
    out->is_mapped = !status;
    return status;
}

void tn_model_file_close(struct tn_model_file *file)
{
    if (file->is_mapped)
        tn_map_close(&file->map);
    tn_free(file->head);
    *file = (struct tn_model_file){0};
}

/* ---- look up ---- */

const struct tern_file_tensor *tn_model_file_tensor(const struct tn_model_file *file,
                                                    enum tern_role role, uint32_t layer)
{
    const struct tern_file_tensor key = {.role = (uint32_t)role, .layer = layer};
    uint32_t begin = 0, end = file->n_tensors;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        const struct tern_file_tensor *t = &file->tensors[middle];
        int order = tn_tensor_compare(t, &key);
        if (order == 0)
            return t;
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

const char *tn_model_file_text(const struct tn_model_file *file, struct tern_file_ref ref,
                               size_t *n_bytes)
{
    *n_bytes = ref.bytes;
    return (const char *)file->head + file->header->metadata.offset + ref.offset;
}

/* ---- data ---- */

/* The tensor whose data or scales contain the byte at this offset. */
static const struct tern_file_tensor *tensor_at(const struct tn_model_file *file, uint64_t offset)
{
    const struct tern_file_tensor *found = file->tensors;
    for (uint32_t i = 0; i < file->n_tensors && file->tensors[i].offset <= offset; i++)
        found = &file->tensors[i];
    return found;
}

tern_status tn_model_file_verify_chunk(const struct tn_model_file *file, uint32_t i_chunk,
                                       struct tern_error *err)
{
    assert(i_chunk < file->n_chunks);
    uint64_t begin = (uint64_t)i_chunk * TERN_FILE_CHUNK;
    uint64_t n_bytes = TN_MIN((uint64_t)TERN_FILE_CHUNK, file->header->data.bytes - begin);
    uint64_t offset = file->header->data.offset + begin;
    uint64_t hash = XXH3_64bits(file->map.data + offset, (size_t)n_bytes);
    if (hash == file->data_hashes[i_chunk])
        return TERN_OK;
    char name[48];
    return tn_fail(err, TERN_INPUT,
                   "damaged: data chunk %u of %u (bytes %" PRIu64 " to %" PRIu64
                   ", from tensor \"%s\"): checksum is %016" PRIx64 ", the bytes give %016" PRIx64
                   "; copy or download the file again",
                   i_chunk, file->n_chunks, offset, offset + n_bytes - 1,
                   tn_tensor_name(name, sizeof name, tensor_at(file, offset)),
                   file->data_hashes[i_chunk], hash);
}
