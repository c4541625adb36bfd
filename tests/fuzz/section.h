/* SPDX-License-Identifier: MIT
 *
 * The common check of fuzz targets that make the section of a tokenizer: from the keys of a GGUF
 * file, or from the files of GPT-2.
 */
#ifndef FUZZ_SECTION_H
#define FUZZ_SECTION_H

#include "base/buf.h"
#include "tern/tern.h"

/* Aborts unless the section opens and encodes text [n] to ids of its vocabulary with every
 * combination of flags, or, if status is not TERN_OK, unless there is an error and no section.
 * Frees it. */
void fuzz_check_section(tern_status status, const struct tern_error *err, struct tn_buf *section,
                        uint32_t vocab, const char *text, size_t n);

#endif
