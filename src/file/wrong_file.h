/* SPDX-License-Identifier: MIT
 *
 * What people have on their disks in place of the file they wanted.
 */
#ifndef TN_WRONG_FILE_H
#define TN_WRONG_FILE_H

#include <stddef.h>

/* What a file that begins with these bytes is, and what to do about it: "an HTML page, ...". NULL
 * when it begins like nothing that is known. 64 bytes are enough. Formats that are somebody's
 * input (.tern, .safetensors, JSON) are not among them. */
const char *tn_wrong_file_text(const void *bytes, size_t n_bytes);

#endif
