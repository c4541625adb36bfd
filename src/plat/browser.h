/* SPDX-License-Identifier: MIT
 *
 * Opens a page in the user's browser.  posix_browser.c and win32_browser.c belong to the command:
 * the library starts no programs.
 */
#ifndef TN_BROWSER_H
#define TN_BROWSER_H

#include "tern/status.h"

/* Passes `url` to the system's opener (xdg-open, open, the shell of Windows), which runs
 * independently: it shares no file and no socket with this process.  TERN_UNSUPPORTED: there is no
 * display, or no opener. */
tern_status tn_browser_open(const char *url, struct tern_error *err);

#endif
