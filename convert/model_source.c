/* SPDX-License-Identifier: MIT */
#include "model_source.h"

#include <string.h>

#include "gguf_import.h"

/* What the directory holds beside config.json and weights. */
static tern_status recognise(struct tn_model_source *out, const char *dir, struct tern_error *err)
{
    tern_status status = tn_config_recognise(&out->import, &out->source, err);
    if (status == TERN_OK && (out->import.config.flags & TERN_MODEL_NO_HEAD))
        status = tn_config_read_pooling(&out->import, &out->has_pooling, dir, err);
    return status;
}

tern_status tn_model_source_open_weights(struct tn_model_source *out, const char *path,
                                         enum tern_i2s_layout i2s, struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    out->is_gguf = tn_path_kind(path) == TN_PATH_FILE;
    return out->is_gguf ? tn_source_open_gguf(&out->source, path, i2s, err)
                        : tn_source_open(&out->source, path, err);
}

tern_status tn_model_source_import(struct tn_model_source *out, const char *path,
                                   struct tern_error *err)
{
    if (out->is_gguf)
        return tn_gguf_import(&out->import, &out->source, err);
    tern_status status = tn_config_read(&out->import, &out->has_generation, path, err);
    return status == TERN_OK ? recognise(out, path, err) : status;
}

tern_status tn_model_source_open(struct tn_model_source *out, const char *path,
                                 enum tern_i2s_layout i2s, struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    if (tn_path_kind(path) == TN_PATH_FILE) {
        tern_status status = tn_model_source_open_weights(out, path, i2s, err);
        return status == TERN_OK ? tn_model_source_import(out, path, err) : status;
    }
    tern_status status = tn_config_read(&out->import, &out->has_generation, path, err);
    if (status == TERN_OK)
        status = tn_source_open(&out->source, path, err);
    return status == TERN_OK ? recognise(out, path, err) : status;
}

void tn_model_source_close(struct tn_model_source *out)
{
    tn_config_import_fini(&out->import);
    tn_source_close(&out->source);
}
