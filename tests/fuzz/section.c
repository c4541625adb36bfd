/* SPDX-License-Identifier: MIT
 *
 * Opens and uses the section of a tokenizer that a fuzz target made from its input (section.h), as
 * the program does with that of a model file.
 */
#include "fuzz/section.h"

#include <stdlib.h>

#include "text/tokenizer.h"

static void encode(const struct tn_buf *section, uint32_t vocab, const char *text, size_t n)
{
    struct tern_tokenizer *t;
    if (tn_tokenizer_open(&t, section->data, section->n_bytes, vocab, NULL) != TERN_OK)
        abort();
    for (uint32_t flags = 0; flags < 4; flags++) {
        struct tern_ids ids = {0};
        if (tern_tokenizer_encode(t, text, n, flags, &ids, NULL) != TERN_OK)
            abort();
        for (size_t i = 0; i < ids.n; i++)
            if (ids.ids[i] >= tern_tokenizer_n_tokens(t))
                abort();
        tern_ids_free(&ids);
    }
    tn_tokenizer_close(t);
}

void fuzz_check_section(tern_status status, const struct tern_error *err, struct tn_buf *section,
                        uint32_t vocab, const char *text, size_t n)
{
    if (status == TERN_OK)
        encode(section, vocab, text, n);
    else if (err->status != status || err->detail[0] == '\0' || section->data)
        abort();
    tn_buf_fini(section);
}
