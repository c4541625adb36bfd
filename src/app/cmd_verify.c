/* SPDX-License-Identifier: MIT
 *
 * tern verify: checks that the file is intact and that this machine computes it correctly;
 * tern_verify (tern/measure.h) does the work.
 */
#include <string.h>

#include "app.h"
#include "base/error.h"
#include "output.h"
#include "progress.h"
#include "tern/measure.h"

/* A line per level, then the file. */
static void print_result(const struct tern_verify_result *r, const char *path)
{
    for (uint32_t i = 0; i < r->n_levels; i++) {
        const struct tern_verify_level *level = &r->levels[i];
        if (i == 0)
            tn_out_printf("%-8s %u operations, the reference\n", level->name, level->n_operations);
        else
            tn_out_printf("%-8s %u operations equal the reference, %u with kernels of this level\n",
                          level->name, level->n_operations, level->n_own);
    }
    tn_out_generated(path, strlen(path)); /* a name may contain control characters */
    tn_out_printf(": intact: %s checked at %.2f GB/s, %u kernel level%s right, %s\n",
                  tn_size_decimal((double)r->data_bytes).text,
                  r->seconds > 0 ? (double)r->data_bytes / r->seconds * 1e-9 : 0.0, r->n_levels,
                  r->n_levels == 1 ? "" : "s",
                  r->fingerprint_checked ? "fingerprint equal" : "no fingerprint in the file");
}

int tn_cmd_verify(const struct tn_options *o)
{
    struct tn_opened opened;
    struct tern_error err = {0};
    struct tern_verify_result r;
    tern_status status = tn_open(&opened, o, tn_first_argument(o), TN_OPEN_MACHINE, &err);
    if (status != TERN_OK)
        return tn_error_print(&err);
    tn_progress_start("verifying", TN_PROGRESS_BYTES, false);
    status = tern_verify(opened.model, opened.machine, tn_progress_callback, NULL, &r, &err);
    tn_progress_end();
    const char *path = tern_model_path(opened.model);
    if (status == TERN_INPUT) /* the message is about tensors and bytes: adds the file */
        tn_fail_prefix(&err, path);
    if (status == TERN_OK)
        print_result(&r, path);
    tn_close(&opened);
    if (status == TERN_INTERNAL)
        err.status = TERN_INPUT; /* `verify` has only two results: all is well, or not */
    return status == TERN_OK ? 0 : tn_error_print(&err);
}
