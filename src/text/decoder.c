/* SPDX-License-Identifier: MIT
 *
 * Streaming decoder: token bytes in, whole characters out.
 */
#include "tern/tokenizer.h"

#include <string.h>

#include "text/unicode.h"

static const char replacement[3] = {(char)0xEF, (char)0xBF, (char)0xBD};

/* ED A0 .. ED BF begin the encoding of a surrogate, which is no character.  The reference decides
 * about these two bytes when a third one is there. */
static bool is_half_surrogate(const char *bytes, size_t n)
{
    return n == 2 && (unsigned char)bytes[0] == 0xED && (unsigned char)bytes[1] >= 0xA0 &&
           (unsigned char)bytes[1] <= 0xBF;
}

/* Writes what bytes[0..n) are to out and returns the number of bytes used: all of them when
 * `final`, else those that are decided. */
static size_t decode(const char *bytes, size_t n, bool final, char *out, size_t *n_out)
{
    size_t i = 0;
    while (i < n) {
        size_t length;
        enum tn_utf8_kind kind = tn_utf8_scan(bytes + i, n - i, &length);
        if (!final && (kind == TN_UTF8_PARTIAL || is_half_surrogate(bytes + i, n - i)))
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
        size_t used = decode(joined, n_joined, false, out, &n_out);
        i++;
        memmove(decoder->held, joined + used, n_joined - used);
        decoder->n_held = (uint32_t)(n_joined - used);
    }
    if (i < n_bytes) {
        i += decode(bytes + i, n_bytes - i, false, out, &n_out);
        memcpy(decoder->held, bytes + i, n_bytes - i);
        decoder->n_held = (uint32_t)(n_bytes - i);
    }
    return n_out;
}

size_t tern_decoder_flush(struct tern_decoder *decoder, char *out)
{
    size_t n_out = 0;
    decode(decoder->held, decoder->n_held, true, out, &n_out);
    decoder->n_held = 0;
    return n_out;
}
