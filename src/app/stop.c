/* SPDX-License-Identifier: MIT
 *
 * Detects requests to stop a command (Ctrl-C, SIGTERM, SIGHUP), in the callbacks of long tasks.
 */
#include "app.h"
#include "plat/plat.h"
#include "progress.h"

bool tn_stop_callback(void *arg)
{
    (void)arg;
    return tn_stop_requested();
}

bool tn_should_stop(void *arg)
{
    (void)arg;
    tn_progress_tick();
    return tn_stop_requested();
}

bool tn_progress_callback(void *arg, uint64_t n_done, uint64_t n_total)
{
    (void)arg;
    tn_progress_update(n_done, n_total);
    return !tn_stop_requested();
}
