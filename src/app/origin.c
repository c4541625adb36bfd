/* SPDX-License-Identifier: MIT
 *
 * Reads and writes NAME.json next to NAME.tern, which records the repository, revision and file of
 * a pulled model (pull.h).
 */
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json_load.h"
#include "plat/plat.h"
#include "pull.h"

#define MAX_BYTES 4096u

/* "DIR/NAME.tern" to "DIR/NAME.json", in new memory. */
static char *path_beside(const char *path)
{
    struct tn_buf beside = {0};
    tn_buf_append(&beside, path, strlen(path) - 4);
    tn_buf_append(&beside, "json", sizeof "json");
    if (beside.failed)
        tn_buf_fini(&beside);
    return beside.data;
}

static void take_text(char *dst, size_t n_dst, const json_t *root, const char *name)
{
    const char *text = json_string_value(json_object_get(root, name));
    if (text && strlen(text) < n_dst)
        memcpy(dst, text, strlen(text) + 1);
}

void tn_origin_read(struct tn_origin *out, const char *path)
{
    char *text = NULL;
    size_t n;
    json_t *root = NULL;
    *out = (struct tn_origin){{0}, {0}, {0}};
    char *beside = path_beside(path);
    if (beside && tn_path_kind(beside) == TN_PATH_FILE &&
        tn_file_read_all(&text, &n, beside, MAX_BYTES, NULL) == TERN_OK &&
        tn_json_load(&root, beside, text, n, TN_JSON_LARGE_AS_REAL, NULL) == TERN_OK) {
        take_text(out->repository, sizeof out->repository, root, "repository");
        take_text(out->revision, sizeof out->revision, root, "revision");
        take_text(out->file, sizeof out->file, root, "file");
    }
    json_decref(root);
    tn_free(text);
    tn_free(beside);
}

tern_status tn_origin_write(const struct tn_origin *origin, const char *path,
                            struct tern_error *err)
{
    struct tn_buf text = {0};
    tn_buf_printf(&text, "{\"repository\":\"%s\",\"revision\":\"%s\",\"file\":\"%s\"}\n",
                  origin->repository, origin->revision, origin->file);
    char *beside = path_beside(path);
    const tern_status status =
        beside && !text.failed
            ? tn_file_write_private(beside, text.data, text.n_bytes, err)
            : tn_fail(err, TERN_MEMORY, "no memory to note where the model came from");
    tn_free(beside);
    tn_buf_fini(&text);
    return status;
}

void tn_origin_remove(const char *path)
{
    char *beside = path_beside(path);
    if (beside)
        tn_file_remove(beside);
    tn_free(beside);
}
