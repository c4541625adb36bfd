/* SPDX-License-Identifier: MIT
 *
 * Applies the normaliser of a tokenizer before the splitter: NFC, then space marks.
 *
 * Texts that need no change are returned in place, without a copy.
 */
#include "text/normalize.h"

#include <string.h>

#include "tern/model_format.h"
#include "text/unicode.h"

void tn_normalize_room_fini(struct tn_normalize_room *room)
{
    tn_buf_fini(&room->composed);
    tn_buf_fini(&room->marked);
}

static const char *find_mark(const char *text, const char *end)
{
    while ((text = memchr(text, TN_SPACE_MARK[0], (size_t)(end - text))) != NULL) {
        if (end - text < TN_SPACE_MARK_BYTES)
            return NULL;
        if (memcmp(text, TN_SPACE_MARK, TN_SPACE_MARK_BYTES) == 0)
            return text;
        text++;
    }
    return NULL;
}

bool tn_put_spaces(struct tn_buf *room, const char **text, size_t *n, bool prepend)
{
    const char *from = *text, *end = from + *n, *mark = find_mark(from, end);
    if (!mark && !prepend)
        return true;
    tn_buf_clear(room);
    if (!tn_buf_reserve(room, *n + 1))
        return false;
    if (prepend)
        tn_buf_append(room, " ", 1);
    for (; mark; from = mark + TN_SPACE_MARK_BYTES, mark = find_mark(from, end)) {
        tn_buf_append(room, from, (size_t)(mark - from));
        tn_buf_append(room, " ", 1);
    }
    tn_buf_append(room, from, (size_t)(end - from));
    *text = room->data;
    *n = room->n_bytes;
    return true;
}

bool tn_normalize(struct tn_normalize_room *room, uint32_t flags, const char **text, size_t *n)
{
    if (flags & TERN_TOK_NFC && !tn_nfc_is_normal(*text, *n)) {
        tn_buf_clear(&room->composed);
        if (!tn_nfc_append(&room->composed, *text, *n))
            return false;
        *text = room->composed.data;
        *n = room->composed.n_bytes;
    }
    if (!(flags & TERN_TOK_SPACE_MARKS) || flags & TERN_TOK_META)
        return true;
    return tn_put_spaces(&room->marked, text, n, (flags & TERN_TOK_PREPEND) != 0);
}
