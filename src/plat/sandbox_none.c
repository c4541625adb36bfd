/* SPDX-License-Identifier: MIT
 *
 * Systems without a sandbox of ours.
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
