/* SPDX-License-Identifier: MIT
 *
 * The texts and exit codes of tern/status.h, expanded from the list in that header, so that a code
 * has one text everywhere.
 */
#include "tern/status.h"

static const struct {
    const char *text;
    int exit_code;
} status_list[] = {
#define STATUS_ROW(name, exit_code, text) {text, exit_code},
    TERN_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

const char *tern_status_text(tern_status status)
{
    return (unsigned)status < TERN_STATUS_COUNT ? status_list[status].text : "unknown status";
}

int tern_status_exit_code(tern_status status)
{
    return (unsigned)status < TERN_STATUS_COUNT ? status_list[status].exit_code : 1;
}
