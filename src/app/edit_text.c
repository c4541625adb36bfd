/* SPDX-License-Identifier: MIT
 *
 * Writes a text to a private file with a random name, runs the user's editor on it, and reads it
 * back (edit_text.h).
 */
#include "edit_text.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "output.h"
#include "plat/external_editor.h"
#include "plat/plat.h"
#include "prompt.h"
#include "repl/grapheme.h"

/* A path with an unpredictable name; new memory. */
static char *make_path(void)
{
#if defined(_WIN32)
    const char *folder = getenv("TEMP");
#else
    const char *folder = getenv("TMPDIR");
#endif
    struct tn_buf name = {0};
    tn_buf_printf(&name, "tern-%016" PRIx64 ".txt", tn_random_seed());
    char *path = name.failed ? NULL
                             : tn_path_join(folder && folder[0] ? folder : "/tmp",
                                            tn_buf_text(&name));
    tn_buf_fini(&name);
    return path;
}

static tern_status read_back(struct tn_buf *text, const char *path, struct tern_error *err)
{
    char *data;
    size_t n;
    struct tn_buf cleaned = {0};
    tern_status status = tn_file_read_all(&data, &n, path, TN_MAX_PROMPT_BYTES, err);
    if (status != TERN_OK)
        return status;
    const size_t start = tn_prompt_mark(data, n);
    if (!tn_clean_append(&cleaned, data + start, n - start))
        status = tn_fail(err, TERN_MEMORY, "no memory for a text of %zu bytes", n);
    tn_free(data);
    tn_prompt_trim_newlines(&cleaned);
    if (status == TERN_OK) {
        tn_buf_fini(text);
        *text = cleaned;
    } else {
        tn_buf_fini(&cleaned);
    }
    return status;
}

bool tn_edit_text(struct tn_buf *text)
{
    struct tern_error err;
    char *path = make_path();
    tern_status status =
        path ? tn_file_write_private(path, tn_buf_bytes(text), text->n_bytes, &err)
             : tn_fail(&err, TERN_MEMORY, "no memory for a path");
    if (status == TERN_OK)
        status = tn_external_editor_run(path, &err);
    if (!tn_terminate_requested())
        tn_interrupt_clear(); /* the Ctrl-C was meant for the editor */
    const bool is_edited = status == TERN_OK;
    if (is_edited)
        status = read_back(text, path, &err);
    const bool is_kept =
        is_edited && status != TERN_OK && tn_path_kind(path) == TN_PATH_FILE;
    if (is_kept)
        tn_error_say(status, "%s; the text is kept in %s", err.detail, path);
    else if (status != TERN_OK)
        tn_error_print(&err);
    if (path && !is_kept)
        tn_file_remove(path);
    tn_free(path);
    return status == TERN_OK;
}
