/* SPDX-License-Identifier: MIT
 *
 * Searches for the closing tag by the automaton of Knuth, Morris and Pratt: state k is reached when
 * the last k bytes are the first k of the tag, and no more of them are.
 */
#include "grammar/preamble_rule.h"

#include <string.h>

/* The state after state k < strlen(tag) and a byte: the length of the longest beginning of the tag
 * that tag[0..k) and the byte end with. */
static uint32_t next_state(const char *tag, size_t k, unsigned byte)
{
    size_t n = k + 1;
    while (n > 0 &&
           ((unsigned char)tag[n - 1] != byte || memcmp(tag, tag + k + 1 - n, n - 1) != 0))
        n--;
    return (uint32_t)n;
}

/* Adds the edges of state k, one for each range of bytes with the same next state. */
static void add_edges(struct tern_grammar *g, uint32_t first, const char *tag, size_t k)
{
    unsigned low = 1; /* no NUL */
    for (unsigned byte = 1; byte < 256; byte++) {
        const uint32_t next = next_state(tag, k, byte);
        if (byte < 255 && next_state(tag, k, byte + 1) == next)
            continue;
        tn_grammar_bytes(g, first + (uint32_t)k, (uint8_t)low, (uint8_t)byte, first + next);
        low = byte + 1;
    }
}

/* Returns the state after the preamble. */
static uint32_t add_preamble(struct tern_grammar *g, uint32_t start,
                             const struct tern_grammar_preamble *preamble)
{
    const size_t n = strlen(preamble->close);
    const uint32_t opened = tn_grammar_text(g, start, preamble->open, strlen(preamble->open));
    const uint32_t first = tn_grammar_state(g);
    for (size_t k = 0; k < n; k++)
        tn_grammar_state(g);
    tn_grammar_empty(g, opened, first);
    for (size_t k = 0; k < n && !g->failed; k++)
        add_edges(g, first, preamble->close, k);
    const uint32_t closed = first + (uint32_t)n, end = tn_grammar_state(g);
    const uint32_t line = tn_grammar_text(g, closed, "\n", 1);
    tn_grammar_empty(g, closed, end);
    tn_grammar_empty(g, line, end);
    tn_grammar_bytes(g, line, '\n', '\n', end);
    return end;
}

void tn_grammar_begin(struct tern_grammar *g, const struct tern_grammar_preamble *preamble)
{
    g->start = tn_grammar_state(g);
    g->parts = preamble ? add_preamble(g, g->start, preamble) : g->start;
}
