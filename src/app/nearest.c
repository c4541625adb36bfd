/* SPDX-License-Identifier: MIT
 *
 * Edit distance of short names: insertions, deletions, replacements, and swaps of neighbours.  Also
 * accepts a prefix of a name.
 */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

#define MAX_NAME 40u

void tn_nearest_init(struct tn_nearest *nearest, const char *typed, size_t n_typed)
{
    /* A third of the letters may be wrong; one of two. */
    const size_t n_wrong = TN_MAX(n_typed / 3, n_typed / 2 > 0);
    *nearest = (struct tn_nearest){
        .typed = typed, .n_typed = n_typed, .distance = (uint32_t)n_wrong + 1};
}

static uint32_t edit_distance(const char *a, uint32_t n_a, const char *b, uint32_t n_b)
{
    uint32_t rows[3][MAX_NAME + 1]; /* distances of a[..i-2], a[..i-1], a[..i] to every b[..j] */
    uint32_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (uint32_t j = 0; j <= n_b; j++)
        last[j] = j;
    for (uint32_t i = 1; i <= n_a; i++) {
        now[0] = i;
        for (uint32_t j = 1; j <= n_b; j++) {
            uint32_t d = last[j - 1] + (a[i - 1] != b[j - 1]);
            d = TN_MIN(d, last[j] + 1);
            d = TN_MIN(d, now[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = TN_MIN(d, before[j - 2] + 1);
            now[j] = d;
        }
        uint32_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[n_b];
}

void tn_nearest_try(struct tn_nearest *nearest, const char *prefix, const char *name)
{
    char full[MAX_NAME + 1];
    int n = snprintf(full, sizeof full, "%s%s", prefix, name);
    if (n <= 0 || (size_t)n >= sizeof full || nearest->n_typed > MAX_NAME)
        return;
    uint32_t d = edit_distance(nearest->typed, (uint32_t)nearest->n_typed, full, (uint32_t)n);
    /* A prefix of a name counts like one wrong letter. */
    if (nearest->n_typed >= 2 + strlen(prefix) && nearest->n_typed < (size_t)n &&
        memcmp(full, nearest->typed, nearest->n_typed) == 0)
        d = 1;
    if (d < nearest->distance) {
        nearest->distance = d;
        nearest->best = name;
    }
}
