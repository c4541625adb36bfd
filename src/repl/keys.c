/* SPDX-License-Identifier: MIT
 *
 * Decodes terminal input: tables for control keys, for letters after ESC, and for CSI sequences
 * (ECMA-48 with xterm's modifiers: 1 + shift + 2 alt + 4 ctrl).
 */
#include "repl/keys.h"

#include <string.h>

#include "base/compiler.h"
#include "base/utf8.h"
#include "repl/grapheme.h"

#define ESC '\x1b'
#define CTRL_X ('X' & 31)
#define PASTE_END "\x1b[201~"
#define N_PASTE_END (sizeof PASTE_END - 1)
#define MAX_SEQUENCE 64 /* longer input is not a sequence */

/* ---- tables ---- */

static const unsigned char control_keys[33] = {
    ['A' & 31] = TN_KEY_HOME,
    ['B' & 31] = TN_KEY_LEFT,
    ['C' & 31] = TN_KEY_INTERRUPT,
    ['D' & 31] = TN_KEY_EOF,
    ['E' & 31] = TN_KEY_END,
    ['F' & 31] = TN_KEY_RIGHT,
    ['G' & 31] = TN_KEY_CANCEL,
    ['H' & 31] = TN_KEY_BACKSPACE,
    ['I' & 31] = TN_KEY_TAB,
    ['J' & 31] = TN_KEY_ENTER,
    ['K' & 31] = TN_KEY_KILL_TO_END,
    ['L' & 31] = TN_KEY_REDRAW,
    ['M' & 31] = TN_KEY_ENTER,
    ['N' & 31] = TN_KEY_NEWER,
    ['P' & 31] = TN_KEY_OLDER,
    ['R' & 31] = TN_KEY_SEARCH,
    ['S' & 31] = TN_KEY_SEARCH_NEWER,
    ['T' & 31] = TN_KEY_TRANSPOSE,
    ['U' & 31] = TN_KEY_KILL_TO_START,
    ['W' & 31] = TN_KEY_KILL_BLANK_WORD,
    ['Y' & 31] = TN_KEY_YANK,
    ['Z' & 31] = TN_KEY_SUSPEND,
    ['\\' & 31] = TN_KEY_QUIT,
    ['_' & 31] = TN_KEY_UNDO,
};

/* ESC and one character: Alt with a key. */
static const struct {
    char c;
    unsigned char kind;
} alt_keys[] = {
    {'b', TN_KEY_WORD_LEFT},       {'f', TN_KEY_WORD_RIGHT},  {'d', TN_KEY_KILL_WORD_RIGHT},
    {'\x7f', TN_KEY_KILL_WORD_LEFT}, {'\b', TN_KEY_KILL_WORD_LEFT}, {'\r', TN_KEY_NEWLINE},
    {'\n', TN_KEY_NEWLINE},        {'y', TN_KEY_YANK_POP},    {'_', TN_KEY_REDO},
    {'<', TN_KEY_OLDEST},          {'>', TN_KEY_NEWEST},
};

/* Final byte of a sequence; `with` applies when Ctrl or Alt is held. */
static const struct {
    char last;
    unsigned char kind, with;
} csi_letters[] = {
    {'A', TN_KEY_UP, TN_KEY_UP},          {'B', TN_KEY_DOWN, TN_KEY_DOWN},
    {'C', TN_KEY_RIGHT, TN_KEY_WORD_RIGHT}, {'D', TN_KEY_LEFT, TN_KEY_WORD_LEFT},
    {'H', TN_KEY_HOME, TN_KEY_TEXT_START}, {'F', TN_KEY_END, TN_KEY_TEXT_END},
    {'M', TN_KEY_ENTER, TN_KEY_NEWLINE}, /* numeric keypad, sent as ESC O M */
};

/* ESC [ number ~ */
static const struct {
    unsigned char number, kind, with;
} csi_numbers[] = {
    {1, TN_KEY_HOME, TN_KEY_TEXT_START}, {3, TN_KEY_DELETE, TN_KEY_KILL_WORD_RIGHT},
    {4, TN_KEY_END, TN_KEY_TEXT_END},    {5, TN_KEY_OLDER, TN_KEY_OLDER},
    {6, TN_KEY_NEWER, TN_KEY_NEWER},     {7, TN_KEY_HOME, TN_KEY_TEXT_START},
    {8, TN_KEY_END, TN_KEY_TEXT_END},
};

/* ---- input bytes ---- */

void tn_keys_fini(struct tn_keys *keys)
{
    tn_buf_fini(&keys->bytes);
    tn_buf_fini(&keys->paste);
    *keys = (struct tn_keys){0};
}

bool tn_keys_feed(struct tn_keys *keys, const char *bytes, size_t n)
{
    if (keys->next == keys->bytes.n_bytes) {
        tn_buf_clear(&keys->bytes);
        keys->next = 0;
    }
    return tn_buf_append(&keys->bytes, bytes, n);
}

bool tn_keys_is_partial(const struct tn_keys *keys)
{
    const size_t n = keys->bytes.n_bytes - keys->next;
    return keys->in_paste || n > 1 || (n == 1 && keys->bytes.data[keys->next] != CTRL_X);
}

const char *tn_keys_pending(const struct tn_keys *keys, size_t *n_bytes)
{
    *n_bytes = keys->bytes.n_bytes - keys->next;
    return *n_bytes > 0 ? keys->bytes.data + keys->next : "";
}

void tn_keys_drop(struct tn_keys *keys, size_t n)
{
    keys->next += n;
    keys->n_searched = 0;
    keys->in_paste = false;
}

/* ---- pastes ---- */

static const char *find_paste_end(const char *bytes, size_t n)
{
    for (const char *at = bytes; n >= N_PASTE_END;) {
        const char *esc = memchr(at, ESC, n - N_PASTE_END + 1);
        if (!esc)
            return NULL;
        if (memcmp(esc, PASTE_END, N_PASTE_END) == 0)
            return esc;
        n -= (size_t)(esc + 1 - at);
        at = esc + 1;
    }
    return NULL;
}

/* Returns the whole paste as one key.  Its end mark may arrive in pieces, so the last searched
 * bytes are searched again. */
static bool next_paste(struct tn_keys *keys, bool is_final, struct tn_key *key)
{
    size_t n;
    const char *bytes = tn_keys_pending(keys, &n);
    const size_t from = keys->n_searched;
    const char *end = find_paste_end(bytes + from, n - from);
    if (!end && !is_final) {
        keys->n_searched = n >= N_PASTE_END ? n - (N_PASTE_END - 1) : 0;
        return false;
    }
    const size_t n_text = end ? (size_t)(end - bytes) : n;
    tn_buf_clear(&keys->paste);
    bool ok = tn_clean_append(&keys->paste, bytes, n_text);
    tn_keys_drop(keys, n_text + (end ? N_PASTE_END : 0));
    *key = (struct tn_key){ok ? TN_KEY_PASTE : TN_KEY_UNKNOWN, keys->paste.data,
                           keys->paste.n_bytes};
    return true;
}

/* ---- sequences ---- */

/* Decodes a control sequence of n bytes: ESC [ parameters final, or ESC O [modifier] final. */
static enum tn_key_kind csi_kind(const char *sequence, size_t n)
{
    const char last = sequence[n - 1];
    unsigned numbers[2] = {0, 1};
    size_t i_number = 0;
    for (size_t i = 2; i + 1 < n; i++) {
        if (sequence[i] == ';')
            i_number++;
        else if (sequence[i] < '0' || sequence[i] > '9')
            return TN_KEY_UNKNOWN;
        else if (i_number < 2)
            numbers[i_number] =
                (i > 2 && sequence[i - 1] != ';' ? numbers[i_number] % 1000 * 10 : 0) +
                (unsigned)(sequence[i] - '0');
    }
    const bool is_held = i_number > 0 && ((numbers[1] - 1) & 6) != 0;
    if (last == '~') {
        for (size_t i = 0; i < TN_COUNT_OF(csi_numbers); i++)
            if (csi_numbers[i].number == numbers[0])
                return is_held ? csi_numbers[i].with : csi_numbers[i].kind;
        return TN_KEY_UNKNOWN;
    }
    for (size_t i = 0; i < TN_COUNT_OF(csi_letters); i++)
        if (csi_letters[i].last == last && (last != 'M' || sequence[1] == 'O'))
            return is_held ? csi_letters[i].with : csi_letters[i].kind;
    return TN_KEY_UNKNOWN;
}

/* Length of the control sequence that begins with ESC [ or ESC O; 0: incomplete. */
static size_t sequence_length(const char *bytes, size_t n)
{
    for (size_t i = 2; i < n && i < MAX_SEQUENCE; i++) {
        if (bytes[i] >= 0x40 && bytes[i] <= 0x7E && !(i == 2 && bytes[1] == '[' && bytes[i] == '['))
            return i + 1;
        if ((unsigned char)bytes[i] < 0x20 || (unsigned char)bytes[i] > 0x7E)
            return i; /* aborted; the rest is a key by itself */
    }
    return n >= MAX_SEQUENCE ? MAX_SEQUENCE : 0;
}

/* Decodes input that begins with ESC.  Returns its length, 0 if incomplete. */
static size_t next_escape(const char *bytes, size_t n, bool is_final, enum tn_key_kind *kind)
{
    *kind = TN_KEY_ESCAPE;
    if (n == 1)
        return is_final;
    if (bytes[1] == ESC) /* the first ESC is a key by itself */
        return 1;
    *kind = TN_KEY_UNKNOWN;
    if (bytes[1] == '[' || bytes[1] == 'O') {
        size_t length = sequence_length(bytes, n);
        if (length == 0)
            return is_final ? n : 0;
        if (length == 6 && memcmp(bytes, "\x1b[200~", 6) == 0)
            *kind = TN_KEY_PASTE;
        else if (length > 2)
            *kind = csi_kind(bytes, length);
        return length;
    }
    for (size_t i = 0; i < TN_COUNT_OF(alt_keys); i++)
        if (alt_keys[i].c == bytes[1])
            *kind = (enum tn_key_kind)alt_keys[i].kind;
    if ((unsigned char)bytes[1] < 0x80)
        return 2;
    *kind = TN_KEY_ESCAPE; /* then a character */
    return 1;
}

/* Decodes input that begins with Ctrl-X, which waits for its second key without a timeout. Returns
 * its length, 0 if incomplete. */
static size_t next_prefixed(const char *bytes, size_t n, enum tn_key_kind *kind)
{
    *kind = n > 1 && bytes[1] == ('E' & 31) ? TN_KEY_EDITOR : TN_KEY_UNKNOWN;
    return n == 1 ? 0 : *kind == TN_KEY_EDITOR ? 2 : 1;
}

/* Length of the characters before the next other key, without an incomplete character at the end
 * unless `is_final`. */
static size_t text_length(const char *bytes, size_t n, bool is_final)
{
    size_t at = 0;
    uint32_t c;
    while (at < n && (unsigned char)bytes[at] >= 0x20 && bytes[at] != 0x7F) {
        size_t length = tn_utf8_character(bytes + at, n - at, &c);
        bool may_grow = length == 0 && n - at < 4 && !is_final && (unsigned char)bytes[at] >= 0xC2;
        for (size_t i = at + 1; may_grow && i < n; i++)
            may_grow = ((unsigned char)bytes[i] & 0xC0) == 0x80;
        if (may_grow)
            break;
        at += length ? length : 1;
    }
    return at;
}

static bool next_text(struct tn_keys *keys, bool is_final, struct tn_key *key)
{
    size_t n;
    const char *bytes = tn_keys_pending(keys, &n);
    size_t length = text_length(bytes, n, is_final);
    if (length == 0)
        return false;
    *key = (struct tn_key){TN_KEY_TEXT, bytes, length};
    keys->next += length;
    return true;
}

bool tn_keys_next(struct tn_keys *keys, bool is_final, struct tn_key *key)
{
    size_t n;
    *key = (struct tn_key){0};
    if (keys->in_paste)
        return next_paste(keys, is_final, key);
    const char *bytes = tn_keys_pending(keys, &n);
    if (n == 0)
        return false;
    const unsigned char first = (unsigned char)bytes[0];
    if (first == ESC) {
        size_t length = next_escape(bytes, n, is_final, &key->kind);
        keys->next += length;
        if (length == 0 || key->kind != TN_KEY_PASTE)
            return length > 0;
        keys->in_paste = true;
        keys->n_searched = 0;
        return next_paste(keys, is_final, key);
    }
    if (first == CTRL_X) {
        const size_t length = next_prefixed(bytes, n, &key->kind);
        keys->next += length;
        return length > 0;
    }
    if (first >= 0x20 && first != 0x7F)
        return next_text(keys, is_final, key);
    keys->next++;
    key->kind = first == 0x7F ? TN_KEY_BACKSPACE
                              : control_keys[first] ? (enum tn_key_kind)control_keys[first]
                                                    : TN_KEY_UNKNOWN;
    return true;
}
