/* SPDX-License-Identifier: MIT
 *
 * Draws the progress line (progress.h): percentage, rate and remaining time, from the updates of
 * the current task.
 */
#include "progress.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "output.h"
#include "plat/plat.h"

#define SHOW_AFTER_NS 500000000u
#define REDRAW_NS 100000000u

static struct progress {
    const char *what; /* NULL: no task */
    enum tn_progress_unit unit;
    bool lines;
    uint64_t n_before; /* done before the task began */
    char step[96];
    uint64_t start_ns;
    uint64_t drawn_ns;
    uint64_t n_done, n_total;
    bool is_drawn; /* since the last update */
    size_t n_shown; /* length of the line on the screen; it is ASCII */
    uint64_t n_tenths;
} progress;

void tn_progress_start(const char *what, enum tn_progress_unit unit, bool lines)
{
    uint64_t now = tn_now_ns();
    tn_message_set_before(tn_progress_hide);
    progress = (struct progress){
        .what = what, .unit = unit, .lines = lines, .start_ns = now, .drawn_ns = now};
}

void tn_progress_name_step(const char *text)
{
    snprintf(progress.step, sizeof progress.step, "%s", text);
}

void tn_progress_set_before(uint64_t n_before)
{
    progress.n_before = n_before;
}

void tn_progress_hide(void)
{
    char blank[128];
    if (progress.n_shown == 0)
        return;
    memset(blank, ' ', sizeof blank);
    blank[0] = '\r';
    size_t n = TN_MIN(progress.n_shown, sizeof blank - 2);
    blank[n + 1] = '\r';
    (void)tn_write_stream(TN_STDERR, blank, n + 2);
    progress.n_shown = 0;
}

static void format_time_left(char *text, size_t n_text, double seconds)
{
    if (seconds < 120)
        snprintf(text, n_text, ", %.0f s left", seconds);
    else if (seconds < 7200)
        snprintf(text, n_text, ", %.0f min left", seconds / 60);
    else
        snprintf(text, n_text, ", %.1f h left", TN_MIN(seconds / 3600, 9999.0));
}

static void format_line(char *line, size_t n_line, uint64_t n_done, uint64_t n_total, double s)
{
    double rate = s > 0 ? (double)(n_done - TN_MIN(progress.n_before, n_done)) / s : 0;
    char left[32] = "";
    if (rate > 0)
        format_time_left(left, sizeof left, (double)(n_total - n_done) / rate);
    unsigned percent = n_total ? (unsigned)((double)n_done / (double)n_total * 100.0) : 0;
    if (progress.unit == TN_PROGRESS_BYTES)
        snprintf(line, n_line, "%s: %u %%, %s of %s, %s/s%s", progress.what, percent,
                 tn_size_decimal((double)n_done).text, tn_size_decimal((double)n_total).text,
                 tn_size_decimal(rate).text, left);
    else if (progress.unit == TN_PROGRESS_STEPS)
        snprintf(line, n_line, "%s: %u %%, %s", progress.what, percent, progress.step);
    else
        snprintf(line, n_line, "%s: %u %%, %llu of %llu %s, %.1f/s%s", progress.what, percent,
                 (unsigned long long)n_done, (unsigned long long)n_total,
                 progress.unit == TN_PROGRESS_TEXTS ? "texts" : "tokens", rate, left);
}

static void print_tenth(uint64_t n_done, uint64_t n_total)
{
    uint64_t n_tenths = n_total ? (uint64_t)((double)n_done / (double)n_total * 10.0) : 0;
    if (n_tenths <= progress.n_tenths)
        return;
    progress.n_tenths = n_tenths;
    tn_info_say("%s: %u %%", progress.what, (unsigned)n_tenths * 10);
}

static void draw(uint64_t now)
{
    char line[256];
    format_line(line, sizeof line, progress.n_done, progress.n_total,
                (double)(now - progress.start_ns) * 1e-9);
    size_t n_columns = tn_terminal_columns();
    size_t n = TN_MIN(strlen(line), n_columns > 1 ? n_columns - 1 : 1);
    tn_progress_hide();
    (void)tn_write_stream(TN_STDERR, line, n);
    progress.n_shown = n;
    progress.drawn_ns = now;
    progress.is_drawn = true;
}

/* Whether a line is due.  Without a terminal, a line per 10 % is. */
static bool is_due(uint64_t now)
{
    if (!progress.what || tn_message_level() < 0 || now - progress.start_ns < SHOW_AFTER_NS)
        return false;
    if (tn_is_terminal(TN_STDERR))
        return now - progress.drawn_ns >= REDRAW_NS;
    if (progress.lines)
        print_tenth(progress.n_done, progress.n_total);
    return false;
}

void tn_progress_update(uint64_t n_done, uint64_t n_total)
{
    const uint64_t now = tn_now_ns();
    progress.n_done = n_done;
    progress.n_total = n_total;
    progress.is_drawn = false;
    if (is_due(now))
        draw(now);
}

void tn_progress_tick(void)
{
    if (progress.what && !progress.is_drawn && progress.n_total > 0 && is_due(tn_now_ns()))
        draw(tn_now_ns());
}

void tn_progress_end(void)
{
    tn_progress_hide();
    progress.what = NULL;
}
