/* SPDX-License-Identifier: MIT
 *
 * Recognises files of other kinds by their first bytes: saved web pages, error pages, archives,
 * Git-LFS pointers.
 */
#include "file/wrong_file.h"

#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text_match.h"

#define PAGE ": a download saved a web page in place of the file; fetch the file itself"
#define ARCHIVE "; unpack it first"

/* Text is compared case-insensitively, after blanks and a byte order mark. */
static const struct {
    const char *start;
    size_t n;
    bool is_text;
    const char *what;
} signs[] = {
#define BYTES(start, what) {start, sizeof start - 1, false, what}
#define TEXT(start, what) {start, sizeof start - 1, true, what}
    TEXT("<!doctype", "an HTML page" PAGE),
    TEXT("<html", "an HTML page" PAGE),
    TEXT("<?xml", "an XML page" PAGE),
    TEXT("version https://git-lfs",
         "a Git-LFS pointer, not the file itself; run: git lfs pull, or download the file from the "
         "web page"),
    TEXT("entry not found", "the error page of a server" PAGE),
    TEXT("repository not found", "the error page of a server" PAGE),
    TEXT("not found", "the error page of a server" PAGE),
    TEXT("access to model", "the error page of a server (no access to this model)" PAGE),
    TEXT("invalid username", "the error page of a server (not logged in)" PAGE),
    BYTES("\x1F\x8B", "a gzip archive" ARCHIVE),
    BYTES("\x28\xB5\x2F\xFD", "a zstd archive" ARCHIVE),
    BYTES("\xFD" "7zXZ", "an xz archive" ARCHIVE),
    BYTES("7z\xBC\xAF", "a 7z archive" ARCHIVE),
    BYTES("Rar!", "a rar archive" ARCHIVE),
    BYTES("BZh", "a bzip2 archive" ARCHIVE),
#undef BYTES
#undef TEXT
};

static bool same_text(const char *bytes, const char *start, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = bytes[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != start[i])
            return false;
    }
    return true;
}

const char *tn_wrong_file_text(const void *bytes, size_t n_bytes)
{
    const char *text = bytes, *end = text + n_bytes;
    if (n_bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        text += 3;
    text += tn_text_n_space(text, (size_t)(end - text));
    for (size_t i = 0; i < TN_COUNT_OF(signs); i++) {
        size_t n = signs[i].n;
        if (signs[i].is_text ? (size_t)(end - text) >= n && same_text(text, signs[i].start, n)
                             : n_bytes >= n && memcmp(bytes, signs[i].start, n) == 0)
            return signs[i].what;
    }
    return NULL;
}
