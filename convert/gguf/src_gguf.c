/* SPDX-License-Identifier: MIT
 *
 * A GGUF model as a source (source.h): its tensors under their names in the file, with rows as the
 * first dimension.
 */
#include "convert/source.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "convert/encodings.h"
#include "convert/gguf/gguf.h"

static enum tn_dtype dtype_of(uint32_t type)
{
    return type == TN_GGML_F32    ? TN_DTYPE_F32
           : type == TN_GGML_F16  ? TN_DTYPE_F16
           : type == TN_GGML_BF16 ? TN_DTYPE_BF16
                                  : TN_DTYPE_CODED;
}

static bool add_tensor(struct tn_source *s, const struct tn_gguf_tensor *from,
                       enum tern_i2s_layout i2s)
{
    struct tn_source_tensor *t = &s->tensors[s->n_tensors];
    const struct tn_gguf_type *type = tn_gguf_type_find(from->type);
    *t = (struct tn_source_tensor){
        .name = tn_copy_text(from->name),
        .dtype = dtype_of(from->type),
        .type = type ? type->name : "unknown",
        .type_number = from->type,
        .rank = from->rank,
        .offset = from->offset,
        .bytes = from->bytes,
        .i_file = from->i_part,
    };
    if (t->dtype == TN_DTYPE_CODED)
        t->encoding = tn_encoding_find(from->type, s->gguf->parts[from->i_part].q2_block, i2s);
    for (uint32_t i = 0; i < from->rank; i++)
        t->shape[i] = from->ne[from->rank - 1 - i];
    s->n_tensors += t->name != NULL;
    return t->name != NULL;
}

static bool fill(struct tn_source *s, enum tern_i2s_layout i2s)
{
    const struct tn_gguf *g = s->gguf;
    s->files = tn_alloc_zeroed(g->n_parts, sizeof *s->files);
    s->tensors = tn_alloc_zeroed(TN_MAX(g->n_tensors, 1u), sizeof *s->tensors);
    if (!s->files || !s->tensors)
        return false;
    for (uint32_t i = 0; i < g->n_parts; i++) {
        struct tn_source_file *f = &s->files[i];
        f->name = tn_copy_text(g->parts[i].name);
        f->file = g->parts[i].file;
        f->bytes = g->parts[i].input.n_bytes;
        s->n_files++;
        if (!f->name)
            return false;
    }
    for (uint32_t i = 0; i < g->n_tensors; i++)
        if (!add_tensor(s, &g->tensors[i], i2s))
            return false;
    return true;
}

tern_status tn_source_open_gguf(struct tn_source *out, const char *path, enum tern_i2s_layout i2s,
                                struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    out->gguf = tn_alloc_zeroed(1, sizeof *out->gguf);
    if (!out->gguf)
        return tn_fail(err, TERN_MEMORY, "%s: no memory to open it", path);
    tern_status status = tn_gguf_open(out->gguf, path, err);
    if (status == TERN_OK && !fill(out, i2s))
        status = tn_fail(err, TERN_MEMORY, "%s: no memory for its tensors", path);
    if (status != TERN_OK)
        tn_source_close(out);
    return status;
}
