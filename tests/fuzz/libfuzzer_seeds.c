/* SPDX-License-Identifier: MIT
 *
 * Under libFuzzer: copies the target's seeds into the given corpus folder, because random input
 * never becomes anything as deep as a model file.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "plat/plat.h"

#define MAX_INPUT ((size_t)256 << 10)

static void write_seed(const char *dir, uint32_t i, const uint8_t *bytes, size_t n)
{
    char name[32];
    struct tn_file *file;
    struct tern_error err = {TERN_OK, "no memory"};
    snprintf(name, sizeof name, "seed-%03u", i);
    char *path = tn_path_join(dir, name);
    if (!path || tn_file_create(&file, path, &err) || tn_file_write_at(file, 0, bytes, n, &err)) {
        fprintf(stderr, "%s\n", err.detail);
        exit(4);
    }
    tn_file_close(file);
    tn_free(path);
}

/* Called by libFuzzer, which has no header for it, before it reads the corpus. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *dir = NULL;
    for (int i = 1; i < *argc && !dir; i++)
        if ((*argv)[i][0] != '-' && tn_path_kind((*argv)[i]) == TN_PATH_DIR)
            dir = (*argv)[i];
    uint8_t *bytes = dir ? tn_alloc(MAX_INPUT) : NULL;
    size_t n;
    for (uint32_t i = 0; bytes && (n = fuzz_seed(i, bytes, MAX_INPUT)) > 0; i++)
        write_seed(dir, i, bytes, n);
    tn_free(bytes);
    return 0;
}
