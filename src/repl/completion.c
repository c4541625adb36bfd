/* SPDX-License-Identifier: MIT
 *
 * Collects completion candidates and lays them out in columns.
 *
 * A completer of the caller supplies commands and names; file names are read from the folder here.
 */
#include "repl/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/text_match.h"
#include "plat/plat.h"
#include "repl/grapheme.h"

void tn_candidates_fini(struct tn_candidates *c)
{
    for (size_t i = 0; i < c->n_texts; i++)
        tn_free(c->texts[i]);
    tn_free(c->texts);
    *c = (struct tn_candidates){0};
}

static bool make_room(struct tn_candidates *c)
{
    char **texts = tn_grow(c->texts, sizeof *texts, c->n_texts, &c->n_room);
    if (texts)
        c->texts = texts;
    return texts != NULL;
}

/* Adds a cleaned copy.  A name that cleaning changes is skipped: it could not be typed. */
static void add_text(struct tn_candidates *c, const char *text, size_t n)
{
    struct tn_buf clean = {0};
    bool ok = tn_clean_append(&clean, text, n) && tn_buf_append(&clean, "", 1) && make_room(c);
    if (ok && clean.n_bytes == n + 1 && memcmp(clean.data, text, n) == 0 && !memchr(text, '\n', n))
        c->texts[c->n_texts++] = clean.data;
    else
        tn_buf_fini(&clean);
    c->failed = c->failed || !ok;
}

static void add_candidate(void *to, const char *candidate)
{
    add_text(to, candidate, strlen(candidate));
}

/* ---- file names ---- */

struct file_word {
    struct tn_candidates *c;
    const char *dir; /* n_dir bytes of the word, through its last separator */
    size_t n_dir;
    const char *base; /* n_base bytes: prefix of the name */
    size_t n_base;
};

/* Adds a name that starts with the prefix; a folder's name ends with a separator. */
static bool add_file(void *arg, const char *name)
{
    const struct file_word *word = arg;
    const bool is_hidden = name[0] == '.' && !(word->n_base > 0 && word->base[0] == '.');
    if (is_hidden || strlen(name) < word->n_base || memcmp(name, word->base, word->n_base) != 0)
        return true;
    struct tn_buf path = {0};
    tn_buf_append(&path, word->dir, word->n_dir);
    tn_buf_append_text(&path, name);
    char *real = tn_path_typed(tn_buf_text(&path));
    if (real && tn_path_kind(real) == TN_PATH_DIR)
        tn_buf_append_text(&path, "/");
    tn_free(real);
    if (!path.failed)
        add_text(word->c, path.data, path.n_bytes);
    tn_buf_fini(&path);
    return true;
}

static bool is_separator(char c)
{
#if defined(_WIN32)
    return c == '/' || c == '\\' || c == ':';
#else
    return c == '/';
#endif
}

static void add_files(struct tn_candidates *c, const char *word, size_t n)
{
    size_t n_dir = n;
    while (n_dir > 0 && !is_separator(word[n_dir - 1]))
        n_dir--;
    struct file_word files = {c, word, n_dir, word + n_dir, n - n_dir};
    struct tn_buf dir = {0};
    tn_buf_append(&dir, n_dir ? word : ".", n_dir ? n_dir : 1);
    char *real = tn_path_typed(tn_buf_text(&dir));
    if (real)
        (void)tn_dir_walk(real, add_file, &files);
    tn_free(real);
    tn_buf_fini(&dir);
}

/* ---- the list ---- */

static void sort_out(struct tn_candidates *c)
{
    size_t n = 0;
    if (c->n_texts > 1)
        qsort(c->texts, c->n_texts, sizeof *c->texts, tn_text_compare);
    for (size_t i = 0; i < c->n_texts; i++) {
        if (n > 0 && strcmp(c->texts[n - 1], c->texts[i]) == 0)
            tn_free(c->texts[i]);
        else
            c->texts[n++] = c->texts[i];
    }
    c->n_texts = n;
}

void tn_candidates_collect(struct tn_candidates *c, const struct tn_completer *completer,
                           const char *line, size_t cursor)
{
    bool wants_file = false;
    c->start = cursor;
    completer->complete(completer->arg, line, cursor, &c->start, &wants_file, add_candidate, c);
    if (wants_file)
        add_files(c, line + c->start, cursor - c->start);
    sort_out(c);
}

size_t tn_candidates_common(const struct tn_candidates *c)
{
    const char *first = c->texts[0];
    size_t n = strlen(first);
    for (size_t i = 1; i < c->n_texts; i++) {
        size_t same = 0;
        while (same < n && first[same] == c->texts[i][same])
            same++;
        n = same;
    }
    const size_t n_first = strlen(first);
    return tn_grapheme_snap(first, n_first, n) == n ? n : tn_grapheme_previous(first, n_first, n);
}

/* Only the last component of a path is shown. */
static const char *shown_part(const char *text)
{
    const char *part = text;
    for (const char *at = text; *at; at++)
        if (is_separator(*at) && at[1])
            part = at + 1;
    return text[0] == '/' && part == text + 1 && !strchr(part, '/') ? text : part;
}

bool tn_candidates_show(const struct tn_candidates *c, struct tn_buf *out, uint32_t columns,
                        uint32_t max_rows)
{
    uint32_t width = 1;
    for (size_t i = 0; i < c->n_texts; i++) {
        const char *part = shown_part(c->texts[i]);
        width = TN_MAX(width, tn_text_width(part, strlen(part)) + 2);
    }
    const size_t n_per_row = TN_MAX((columns - 1) / width, 1u);
    const size_t n_rows = (c->n_texts + n_per_row - 1) / n_per_row;
    const size_t n_shown = TN_MIN(n_rows, (size_t)max_rows);
    for (size_t row = 0; row < n_shown; row++) {
        for (size_t i = row; i < c->n_texts; i += n_rows) {
            const char *part = shown_part(c->texts[i]);
            const uint32_t used = tn_text_width(part, strlen(part));
            tn_buf_append_text(out, part);
            if (i + n_rows < c->n_texts)
                tn_buf_printf(out, "%*s", (int)(width - used), "");
        }
        tn_buf_append_text(out, "\n");
    }
    if (n_shown < n_rows)
        tn_buf_printf(out, "... %zu in all\n", c->n_texts);
    return !out->failed;
}
