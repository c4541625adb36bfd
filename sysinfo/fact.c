/* SPDX-License-Identifier: MIT
 *
 * Parses the numbers in the small texts of /proc and /sys, digit by digit with overflow checks.  A
 * text that is not understood is reported as unreadable, never guessed.
 */
#include "sysinfo_private.h"

#include <string.h>

bool tn_fact_parse_u64(const char **text, uint64_t *out)
{
    const char *p = *text;
    p += strspn(p, " \t");
    if (*p < '0' || *p > '9')
        return false;
    uint64_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return false;
    *out = value;
    *text = p;
    return true;
}

bool tn_fact_whole_u64(const char *text, uint64_t *out)
{
    uint64_t value;
    text += strspn(text, " \t\r\n");
    if (!tn_fact_parse_u64(&text, &value) || text[strspn(text, " \t\r\n")] != '\0')
        return false;
    *out = value;
    return true;
}

bool tn_fact_line_u64(const char *text, const char *key, uint64_t *out, bool *present)
{
    size_t n_key = strlen(key);
    if (present)
        *present = false;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n_key) != 0)
            continue;
        if (present)
            *present = true;
        const char *p = line + n_key;
        return tn_fact_parse_u64(&p, out);
    }
    return false;
}

bool tn_fact_file_u64(const char *root, const char *path, uint64_t *out, uint32_t *unreadable,
                      uint32_t fact)
{
    char text[128];
    if (tn_fact_read(root, path, text, sizeof text) < 0)
        return false;
    if (tn_fact_whole_u64(text, out))
        return true;
    *unreadable |= fact;
    return false;
}

uint64_t tn_fact_minus(uint64_t a, uint64_t b)
{
    if (a == TERN_UNKNOWN)
        return a;
    return a > b ? a - b : 0;
}

uint64_t tn_job_memory_left(const struct tn_job_memory *job)
{
    const uint64_t process = tn_fact_minus(job->process_limit, job->process_used);
    /* A job includes its processes: where the system reports less, this process's use is a lower
     * bound. */
    const uint64_t used =
        job->job_used > job->process_used ? job->job_used : job->process_used;
    const uint64_t all = tn_fact_minus(job->job_limit, used);
    return process < all ? process : all;
}

bool tn_fact_is_word(const char *text, const char *word)
{
    text += strspn(text, " \t\r\n");
    size_t n = strlen(word);
    return strncmp(text, word, n) == 0 && strchr(" \t\r\n", text[n]) != NULL;
}
