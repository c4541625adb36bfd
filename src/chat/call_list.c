/* SPDX-License-Identifier: MIT
 *
 * Keeps the calls of an answer, and matches words of their text.
 *
 * Text arrives in pieces: a match fails for good only before the end of the text so far.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text_match.h"
#include "chat/call_reader.h"

bool tn_call_begin(struct tn_call_reader *r, const char *name, size_t n_name)
{
    struct tn_call *calls = tn_grow(r->calls, sizeof *calls, r->n_calls, &r->capacity);
    if (!calls)
        return false;
    r->calls = calls;
    char *copy = tn_copy_bytes(name, n_name);
    if (!copy)
        return false;
    r->calls[r->n_calls] = (struct tn_call){.name = copy, .n_text = r->n_text};
    r->is_begun = true;
    return true;
}

static void free_call(struct tn_call *call)
{
    tn_free(call->name);
    tn_buf_fini(&call->arguments);
}

void tn_call_finish(struct tn_call_reader *r, bool counts)
{
    if (r->is_begun && !counts)
        free_call(&r->calls[r->n_calls]);
    r->n_calls += r->is_begun && counts;
    r->is_begun = false;
}

void tn_call_reader_fini(struct tn_call_reader *r)
{
    for (size_t i = 0; i < r->n_calls + r->is_begun; i++)
        free_call(&r->calls[i]);
    tn_free(r->calls);
}

bool tn_call_skip_word(const char *text, size_t n, size_t *at, const char *word)
{
    *at += tn_text_n_space(text + *at, n - *at);
    const size_t n_word = strlen(word), n_there = TN_MIN(n_word, n - *at);
    if (memcmp(text + *at, word, n_there) != 0)
        return false;
    *at += n_there;
    return n_there == n_word;
}

bool tn_call_closes_string(const char *text, size_t n, bool *is_known)
{
    size_t i = 0;
    while (i < n && text[i] != '"' && text[i] != '\n')
        i += text[i] == '\\' ? 2 : 1;
    *is_known = i < n;
    return *is_known && text[i] == '"';
}

bool tn_call_has_string_around(const char *text, size_t n, size_t at, bool *is_known)
{
    const size_t first = tn_text_n_space(text, at);
    bool is_string = false;
    *is_known = true;
    if (first == at || !memchr("{[\"", text[first], 3))
        return false;
    for (size_t i = first; i < at; i++) {
        if (is_string && text[i] == '\n')
            return false;
        if (text[i] == '"')
            is_string = !is_string;
        else if (is_string && text[i] == '\\')
            i++;
    }
    return is_string && tn_call_closes_string(text + at, n - at, is_known);
}
