/* SPDX-License-Identifier: MIT
 *
 * Streaming decoder: token bytes in, whole characters out.
 */
#include "tern/tokenizer.h"

#include <string.h>

#include "text/unicode.h"

static const char replacement[3] = {(char)0xEF, (char)0xBF, (char)0xBD};

/* The longest start of bytes[0..n) that is decided; writes it to out and returns the bytes used. */
static size_t decode_decided(const char *bytes, size_t n, char *out, size_t *n_out)
{
    size_t i = 0;
    while (i < n) {
        size_t length;
        enum tn_utf8_kind kind = tn_utf8_scan(bytes + i, n - i, &length);
        if (kind == TN_UTF8_PARTIAL)
            break;
        bool whole = kind == TN_UTF8_CHARACTER;
        memcpy(out + *n_out, whole ? bytes + i : replacement, whole ? length : 3);
        *n_out += whole ? length : 3;
        i += length;
    }
    return i;
}

size_t tern_decoder_push(struct tern_decoder *decoder, const char *bytes, size_t n_bytes, char *out)
{
    size_t n_out = 0, i = 0;
    /* Held bytes are the start of one character: feed it until it is decided. */
    while (decoder->n_held > 0 && i < n_bytes) {
        char joined[4];
        memcpy(joined, decoder->held, decoder->n_held);
        joined[decoder->n_held] = bytes[i];
        size_t n_joined = decoder->n_held + 1;
        size_t used = decode_decided(joined, n_joined, out, &n_out);
        i++;
        memmove(decoder->held, joined + used, n_joined - used);
        decoder->n_held = (uint32_t)(n_joined - used);
    }
    if (i < n_bytes) {
        i += decode_decided(bytes + i, n_bytes - i, out, &n_out);
        memcpy(decoder->held, bytes + i, n_bytes - i);
        decoder->n_held = (uint32_t)(n_bytes - i);
    }
    return n_out;
}

size_t tern_decoder_flush(struct tern_decoder *decoder, char *out)
{
    if (decoder->n_held == 0)
        return 0;
    memcpy(out, replacement, 3);
    decoder->n_held = 0;
    return 3;
}
