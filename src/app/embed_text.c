/* SPDX-License-Identifier: MIT
 *
 * Texts of `tern embed`.
 */
#include "embed_text.h"

#include "base/alloc.h"
#include "base/log.h"
#include "plat/plat.h"
#include "prompt.h"

#define MAX_TEXT_BYTES ((size_t)1 << 30)

tern_status tn_embed_text(const struct tn_embed *e, const char *task, const char *text, size_t n,
                          float *dst, size_t *n_tokens, struct tern_error *err)
{
    if (!task || !task[0])
        return tern_embed_text(e->embedder, text, n, dst, n_tokens, err);
    struct tn_buf whole = {0};
    tn_buf_printf(&whole, "Instruct: %s\nQuery: ", task);
    tn_buf_append(&whole, text, n);
    tern_status status =
        whole.failed ? tn_fail(err, TERN_MEMORY, "no memory for a text of %zu bytes", n)
                     : tern_embed_text(e->embedder, whole.data, whole.n_bytes, dst, n_tokens, err);
    tn_buf_fini(&whole);
    return status;
}

tern_status tn_embed_read(char **data, size_t *start, size_t *n, const char *path,
                          struct tern_error *err)
{
    tern_status status = path ? tn_file_read_all(data, n, path, MAX_TEXT_BYTES, err)
                              : tn_stdin_read_all(data, n, MAX_TEXT_BYTES, err);
    if (status != TERN_OK)
        return status;
    *start = tn_prompt_mark(*data, *n);
    status = tn_prompt_check_text(*data, *n, path ? path : "standard input", err);
    if (status != TERN_OK) {
        tn_free(*data);
        *data = NULL;
    }
    return status;
}
