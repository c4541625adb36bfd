/* SPDX-License-Identifier: MIT
 *
 * Enters the sandbox for a command, unless --no-sandbox is given, and reports which rights were
 * dropped.
 */
#include "close_off.h"

#include "output.h"
#include "plat/sandbox.h"

static const char *describe(uint32_t purposes)
{
    if (purposes & TN_SANDBOX_SOCKETS)
        return "no more files, programs or connections to others";
    return purposes & TN_SANDBOX_FILES ? "no more programs or sockets"
                                       : "no more files, programs or sockets";
}

void tn_close_off(const struct tn_options *o, uint32_t purposes, int level)
{
    const char *why = "--no-sandbox";
    const bool is_in = !o->no_sandbox && tn_sandbox_enter(purposes, &why);
    if (tn_message_level() >= level)
        tn_info_say(is_in ? "sandbox: %s" : "no sandbox: %s", is_in ? describe(purposes) : why);
}
