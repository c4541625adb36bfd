/* SPDX-License-Identifier: MIT
 *
 * Converts ids to text: a streaming decoder (token bytes in, whole characters out) and whole texts.
 *
 * In a vocabulary of characters, a character without a token is spelled by byte tokens.  The
 * reference replaces an invalid run of those by one U+FFFD per byte, other invalid bytes by one per
 * maximal subpart.
 */
#include "text/tokenizer_view.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "text/unicode.h"

static const char replacement[3] = {(char)0xEF, (char)0xBF, (char)0xBD};

/* ED A0 .. ED BF begin the encoding of a surrogate, which is invalid.  The reference rejects these
 * two bytes only when a third one follows. */
static bool is_half_surrogate(const char *bytes, size_t n)
{
    return n == 2 && (unsigned char)bytes[0] == 0xED && (unsigned char)bytes[1] >= 0xA0 &&
           (unsigned char)bytes[1] <= 0xBF;
}

/* Writes the text of bytes[0..n) to out.  Returns the number of bytes consumed: all when `final`,
 * else those whose decoding no longer depends on later bytes. */
static size_t decode(const char *bytes, size_t n, bool final, bool by_byte, char *out,
                     size_t *n_out)
{
    size_t i = 0;
    while (i < n) {
        size_t length;
        uint32_t c;
        enum tn_utf8_kind kind = tn_utf8_scan(bytes + i, n - i, &length, &c);
        if (!final && (kind == TN_UTF8_PARTIAL || is_half_surrogate(bytes + i, n - i)))
            break;
        if (kind == TN_UTF8_CHARACTER) {
            memcpy(out + *n_out, bytes + i, length);
            *n_out += length;
        }
        for (size_t k = 0; kind != TN_UTF8_CHARACTER && k < (by_byte ? length : 1); k++) {
            memcpy(out + *n_out, replacement, sizeof replacement);
            *n_out += sizeof replacement;
        }
        i += length;
    }
    return i;
}

size_t tern_decoder_push(struct tern_decoder *decoder, const char *bytes, size_t n_bytes, char *out)
{
    size_t n_out = 0, i = 0;
    /* Held bytes are the start of one character: append bytes until its decoding is certain. */
    while (decoder->n_held > 0 && i < n_bytes) {
        char joined[4];
        memcpy(joined, decoder->held, decoder->n_held);
        joined[decoder->n_held] = bytes[i];
        size_t n_joined = decoder->n_held + 1;
        size_t used = decode(joined, n_joined, false, decoder->by_byte, out, &n_out);
        i++;
        memmove(decoder->held, joined + used, n_joined - used);
        decoder->n_held = (uint32_t)(n_joined - used);
    }
    if (i < n_bytes) {
        i += decode(bytes + i, n_bytes - i, false, decoder->by_byte, out, &n_out);
        memcpy(decoder->held, bytes + i, n_bytes - i);
        decoder->n_held = (uint32_t)(n_bytes - i);
    }
    return n_out;
}

size_t tern_decoder_flush(struct tern_decoder *decoder, char *out)
{
    size_t n_out = 0;
    decode(decoder->held, decoder->n_held, true, decoder->by_byte, out, &n_out);
    decoder->n_held = 0;
    return n_out;
}

/* ---- ids ---- */

/* The byte that an id represents in a vocabulary of characters, if it is a byte token. */
static bool is_byte_token(const struct tern_tokenizer *t, uint32_t id)
{
    size_t n;
    const char *bytes = tn_token_at(t, id, &n);
    return t->head->kind == TERN_TOKENIZER_CHAR_BPE && n == 1 &&
           t->byte_ids[(unsigned char)bytes[0]] == id;
}

void tern_decoder_start(struct tern_decoder *decoder, const struct tern_tokenizer *tokenizer)
{
    *decoder = (struct tern_decoder){.drop_space = tern_tokenizer_adds_space(tokenizer)};
}

static size_t drop_space(struct tern_decoder *decoder, char *out, size_t n)
{
    if (!decoder->drop_space || n == 0)
        return n;
    decoder->drop_space = false;
    if (out[0] != ' ')
        return n;
    memmove(out, out + 1, n - 1);
    return n - 1;
}

size_t tern_decoder_push_id(struct tern_decoder *decoder, const struct tern_tokenizer *tokenizer,
                            uint32_t id, char *out)
{
    size_t n, n_out = 0;
    const char *bytes = tn_token_at(tokenizer, id, &n);
    bool by_byte = is_byte_token(tokenizer, id);
    if (decoder->by_byte && !by_byte)
        n_out = tern_decoder_flush(decoder, out);
    decoder->by_byte = by_byte;
    n_out += tern_decoder_push(decoder, bytes, n, out + n_out);
    return drop_space(decoder, out, n_out);
}

/* Appends bytes as text, with U+FFFD for invalid bytes. */
static void append_text(struct tn_buf *out, const char *bytes, size_t n, bool by_byte)
{
    if (n == 0)
        return;
    if (by_byte && tn_utf8_find_invalid(bytes, n) < n) {
        while (n-- > 0)
            tn_buf_append(out, replacement, sizeof replacement);
    } else if (tn_buf_reserve(out, 3 * n)) {
        size_t n_out = 0;
        decode(bytes, n, true, false, out->data + out->n_bytes, &n_out);
        out->n_bytes += n_out;
    }
}

tern_status tern_tokenizer_decode(const struct tern_tokenizer *tokenizer, const uint32_t *ids,
                                  size_t n_ids, bool skip_special, char **text, size_t *n_text,
                                  struct tern_error *err)
{
    /* `run`: consecutive bytes of one kind (byte tokens or not) */
    struct tn_buf run = {0}, out = {0};
    bool by_byte = false;
    *text = NULL;
    *n_text = 0;
    for (size_t i = 0; i < n_ids; i++) {
        size_t n;
        const char *bytes = tern_tokenizer_token_bytes(tokenizer, ids[i], &n);
        if (!bytes) {
            tn_buf_fini(&run);
            tn_buf_fini(&out);
            return tn_fail(err, TERN_USAGE, "id %u is beyond the vocabulary of %u", ids[i],
                           tern_tokenizer_n_tokens(tokenizer));
        }
        if (skip_special && tern_tokenizer_is_special(tokenizer, ids[i]))
            continue;
        if (is_byte_token(tokenizer, ids[i]) != by_byte) {
            append_text(&out, run.data, run.n_bytes, by_byte);
            tn_buf_clear(&run);
            by_byte = !by_byte;
        }
        tn_buf_append(&run, bytes, n);
    }
    append_text(&out, run.data, run.n_bytes, by_byte);
    struct tern_decoder decoder;
    tern_decoder_start(&decoder, tokenizer);
    if (out.n_bytes > 0)
        out.n_bytes = drop_space(&decoder, out.data, out.n_bytes);
    bool failed = run.failed || out.failed;
    tn_buf_fini(&run);
    if (failed) {
        tn_buf_fini(&out);
        return tn_fail(err, TERN_MEMORY, "not enough memory to decode %zu ids", n_ids);
    }
    *text = out.data;
    *n_text = out.n_bytes;
    return TERN_OK;
}
