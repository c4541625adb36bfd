/* SPDX-License-Identifier: MIT
 *
 * Windows: opens a page in the browser through the shell, which finds the program registered for
 * addresses.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "plat/browser.h"
#include "plat/win32.h"

#include <shellapi.h>

tern_status tn_browser_open(const char *url, struct tern_error *err)
{
    wchar_t *wide = tn_win32_wide(url);
    if (!wide)
        return tn_fail(err, TERN_MEMORY, "no memory for an address");
    /* Above 32 means success; other values are old error codes. */
    INT_PTR result = (INT_PTR)ShellExecuteW(NULL, L"open", wide, NULL, NULL, SW_SHOWNORMAL);
    tn_free(wide);
    return result > 32 ? tn_ok(err)
                       : tn_fail(err, TERN_UNSUPPORTED, "nothing opens pages here (error %d)",
                                 (int)result);
}
