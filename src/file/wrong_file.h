/* SPDX-License-Identifier: MIT
 *
 * Recognises files that users have instead of the one they wanted, such as a saved web page or a
 * Git-LFS pointer.
 */
#ifndef TN_WRONG_FILE_H
#define TN_WRONG_FILE_H

#include <stddef.h>

/* The kind of a file that begins with these bytes, and advice: "an HTML page, ...".  NULL if
 * unknown. 64 bytes are enough.  Formats that are valid input somewhere (.tern, .safetensors, JSON)
 * are not included. */
const char *tn_wrong_file_text(const void *bytes, size_t n_bytes);

#endif
