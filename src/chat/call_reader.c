/* SPDX-License-Identifier: MIT
 *
 * Reads a call of either form.  Its first character tells which: an object begins with a brace,
 * tags with an angle bracket.
 */
#include "chat/call_reader.h"

static bool has_tags(const char *text, size_t n)
{
    size_t at = 0;
    return tn_call_skip_word(text, n, &at, "<");
}

bool tn_call_read(struct tn_call_reader *r, const char *text, size_t n)
{
    const bool is_good =
        has_tags(text, n) ? tn_call_read_tags(r, text, n) : tn_call_read_object(r, text, n);
    return is_good && (!r->is_begun || tn_buf_reserve(tn_call_arguments(r), 1));
}

bool tn_call_is_inside_string(const struct tn_call_reader *r, const char *text, size_t n, size_t at,
                              bool *is_known)
{
    *is_known = true;
    if (!has_tags(text, n))
        return r->phase == TN_CALL_ARGUMENTS && r->is_string && !r->has_line_feed &&
               tn_call_closes_string(text + at, n - at, is_known);
    return r->phase == TN_CALL_VALUE && r->value != TN_CALL_TEXT &&
           tn_call_has_string_around(text + r->n_read, n - r->n_read, at - r->n_read, is_known);
}

tern_status tn_call_end(struct tn_call_reader *r, const char *text, size_t n)
{
    r->is_last = true;
    if (!tn_call_read(r, text, n))
        return TERN_MEMORY;
    const bool is_kept = r->is_begun && r->is_early;
    const tern_status status =
        has_tags(text, n) ? tn_call_end_tags(r) : tn_call_end_object(r, text, n);
    r->phase = TN_CALL_NAME;
    r->n_read = 0;
    r->is_whole = r->is_last = false;
    return status == TERN_INPUT && is_kept ? TERN_OK : status;
}
