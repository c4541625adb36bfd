/* SPDX-License-Identifier: MIT
 *
 * Checks names of repositories and files (repository_names.h) and classifies the files of a
 * repository by their names.
 */
#include "hub/repository_names.h"

#include <ctype.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/text_match.h"
#include "base/utf8.h"

/* ---- repositories ---- */

static bool is_repository_part(const char *text, size_t n)
{
    if (n == 0 || n > 96 || text[0] == '.' || text[0] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && (!text[i] || !strchr("-_.", text[i])))
            return false;
    return tn_text_find(text, n, 0, "..") == n;
}

tern_status tn_repository_name_parse(struct tn_repository_name *out, const char *typed,
                                     struct tern_error *err)
{
    const size_t n_repository = strcspn(typed, ":"), n_owner = strcspn(typed, "/:");
    const char *file = typed[n_repository] == ':' ? typed + n_repository + 1 : "";
    *out = (struct tn_repository_name){{0}, {0}};
    if (n_owner >= n_repository || !is_repository_part(typed, n_owner) ||
        !is_repository_part(typed + n_owner + 1, n_repository - n_owner - 1))
        return tn_fail(err, TERN_USAGE,
                       "\"%.200s\" is not a repository: OWNER/REPO or OWNER/REPO:FILE, of letters, "
                       "digits, '-', '_' and '.'",
                       typed);
    if (typed[n_repository] == ':' &&
        (!tn_file_name_is_harmless(file) || tn_hub_file_kind(file) != TN_HUB_GGUF))
        return tn_fail(err, TERN_USAGE,
                       "\"%.200s\" is not the name of a .gguf file in the repository", file);
    memcpy(out->repository, typed, n_repository);
    memcpy(out->file, file, strlen(file));
    return tn_ok(err);
}

static bool ends_with(const char *text, size_t n, const char *ending)
{
    const size_t n_ending = strlen(ending);
    return n >= n_ending && memcmp(text + n - n_ending, ending, n_ending) == 0;
}

/* `word` is in lower case. */
static bool is_word(const char *text, size_t n, const char *word)
{
    if (strlen(word) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)text[i]) != word[i])
            return false;
    return true;
}

void tn_repository_local_name(char out[TN_MAX_REPOSITORY_BYTES + 1], const char *repository)
{
    const char *name = strchr(repository, '/') + 1;
    size_t n = strlen(name);
    if (n > 5 && strchr("-_", name[n - 5]) && is_word(name + n - 4, 4, "gguf"))
        n -= 5;
    memcpy(out, name, n);
    out[n] = '\0';
}

/* ---- files ---- */

/* CON, PRN, AUX, NUL, COM0 ... LPT9, with any extension, in any case. */
static bool is_device(const char *name)
{
    static const char *const devices[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
    const size_t n = strcspn(name, ".");
    for (size_t i = 0; i < TN_COUNT_OF(devices); i++)
        if (is_word(name, n, devices[i]))
            return true;
    return n == 4 && isdigit((unsigned char)name[3]) &&
           (is_word(name, 3, "com") || is_word(name, 3, "lpt"));
}

bool tn_file_name_is_harmless(const char *name)
{
    const size_t n = strlen(name);
    return n > 0 && n <= TN_MAX_FILE_NAME_BYTES && tn_utf8_find_bad(name, n, true) == n &&
           strpbrk(name, "/\\:*?\"<>|") == NULL && strstr(name, "..") == NULL &&
           name[n - 1] != '.' && name[n - 1] != ' ' && name[0] != ' ' && !is_device(name);
}

/* Five digits as a number; 0: another character occurs. */
static uint32_t five_digits(const char *text)
{
    uint32_t number = 0;
    for (size_t i = 0; i < 5; i++) {
        if (!isdigit((unsigned char)text[i]))
            return 0;
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    return number;
}

/* The part's number of "model-00002-of-00003.safetensors" and similar names; 0: not a part. */
static uint32_t part_number(const char *name, const char *ending, uint32_t *n_parts)
{
    const size_t n = strlen(name), n_tail = sizeof "-00002-of-00003" - 1 + strlen(ending);
    if (n <= n_tail || !ends_with(name, n, ending))
        return 0;
    const char *tail = name + n - n_tail;
    if (tail[0] != '-' || memcmp(tail + 6, "-of-", 4) != 0)
        return 0;
    const uint32_t part = five_digits(tail + 1);
    *n_parts = five_digits(tail + 10);
    return part <= *n_parts ? part : 0;
}

uint32_t tn_gguf_part(const char *name, uint32_t *n_parts)
{
    return part_number(name, ".gguf", n_parts);
}

bool tn_gguf_is_same_model(const char *a, const char *b)
{
    uint32_t n_a, n_b;
    const size_t n = strlen(a);
    if (strcmp(a, b) == 0)
        return true;
    return strlen(b) == n && tn_gguf_part(a, &n_a) && tn_gguf_part(b, &n_b) && n_a == n_b &&
           memcmp(a, b, n - sizeof "-00002-of-00003.gguf" + 1) == 0;
}

enum tn_hub_file tn_hub_file_kind(const char *name)
{
    static const char *const small[] = {"generation_config.json", "tokenizer.json",
                                        "tokenizer_config.json", "chat_template.jinja",
                                        "chat_template.json", "model.safetensors.index.json"};
    static const char *const vocabulary[] = {"vocab.json", "merges.txt", "special_tokens_map.json",
                                             "added_tokens.json"};
    uint32_t n_parts;
    if (strcmp(name, "config.json") == 0)
        return TN_HUB_CONFIG;
    if (tn_text_is_one_of(name, small, TN_COUNT_OF(small)))
        return TN_HUB_SMALL;
    if (tn_text_is_one_of(name, vocabulary, TN_COUNT_OF(vocabulary)))
        return TN_HUB_VOCABULARY;
    if (strcmp(name, "model.safetensors") == 0 ||
        (strncmp(name, "model-", 6) == 0 && part_number(name, ".safetensors", &n_parts)))
        return TN_HUB_SAFETENSORS;
    /* mmproj files are the vision part of a model. */
    return ends_with(name, strlen(name), ".gguf") && strncmp(name, "mmproj", 6) != 0 ? TN_HUB_GGUF
                                                                                     : TN_HUB_OTHER;
}
