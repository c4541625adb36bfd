/* SPDX-License-Identifier: MIT
 *
 * Windows: runs the user's editor as a process and waits for it.  The command line is built here,
 * because Windows passes it as one string.
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "plat/external_editor.h"
#include "plat/plat_os.h"
#include "plat/win32.h"

/* EDITOR "PATH": file names cannot contain quotes on Windows. */
static wchar_t *make_command(const char *path)
{
    struct tn_buf text = {0};
    tn_buf_printf(&text, "%s \"%s\"", tn_os_editor(), path);
    wchar_t *wide = text.failed ? NULL : tn_win32_wide(tn_buf_text(&text));
    tn_buf_fini(&text);
    return wide;
}

void tn_external_editor_prepare(void)
{
}

void tn_external_editor_end(void)
{
}

tern_status tn_external_editor_run(const char *path, struct tern_error *err)
{
    STARTUPINFOW startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    DWORD code = 0;
    wchar_t *line = make_command(path);
    if (!line)
        return tn_fail(err, TERN_MEMORY, "no memory to start an editor");
    const BOOL is_started =
        CreateProcessW(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &process);
    tn_free(line);
    if (!is_started)
        return tn_fail(err, TERN_UNSUPPORTED, "%s: cannot be started; set EDITOR", tn_os_editor());
    (void)WaitForSingleObject(process.hProcess, INFINITE);
    (void)GetExitCodeProcess(process.hProcess, &code);
    (void)CloseHandle(process.hProcess);
    (void)CloseHandle(process.hThread);
    return code == 0 ? tn_ok(err)
                     : tn_fail(err, TERN_INTERNAL,
                               "%s: exited with an error; the text is unchanged", tn_os_editor());
}
