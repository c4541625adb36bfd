/* SPDX-License-Identifier: MIT
 *
 * The sandbox of systems for which tern has none: always refuses, with the reason for the warning
 * of the command.
 */
#include "plat/sandbox.h"

bool tn_sandbox_exists(void)
{
    return false;
}

bool tn_sandbox_enter(uint32_t purposes, const char **why)
{
    (void)purposes;
    *why = "there is none for this system";
    return false;
}

bool tn_sandbox_is_active(void)
{
    return false;
}
