/* SPDX-License-Identifier: MIT
 *
 * Windows: the programs of process.h, with CreateProcess and anonymous pipes.  The command starts
 * curl with it; the library starts no programs.
 */
#include "plat/win32.h"

#include <string.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "plat/plat.h"
#include "plat/process.h"

#define PIPE_BYTES (1u << 20)
#define POLL_MS 5

size_t tn_system_program_dirs(char **dirs, size_t capacity)
{
    wchar_t wide[MAX_PATH + 1];
    const UINT n = GetSystemDirectoryW(wide, MAX_PATH + 1);
    if (capacity == 0 || n == 0 || n > MAX_PATH)
        return 0;
    dirs[0] = tn_win32_utf8(wide);
    return dirs[0] != NULL;
}

struct tn_process {
    HANDLE process, output, errors;
};

struct pipes {
    HANDLE ours[3];   /* write end of its input, read ends of its output and errors */
    HANDLE theirs[3]; /* the ends that it inherits */
};

static bool make_pipes(struct pipes *pipes)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    for (int i = 0; i < 3; i++) {
        HANDLE *read_end = i == 0 ? &pipes->theirs[i] : &pipes->ours[i];
        HANDLE *write_end = i == 0 ? &pipes->ours[i] : &pipes->theirs[i];
        if (!CreatePipe(read_end, write_end, &inherited, PIPE_BYTES) ||
            !SetHandleInformation(pipes->ours[i], HANDLE_FLAG_INHERIT, 0))
            return false;
    }
    return true;
}

static void close_handles(HANDLE *handles, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (handles[i])
            (void)CloseHandle(handles[i]);
}

/* The command line: a path in quotes, which paths cannot contain, and plain words. */
static wchar_t *command_line(const char *path, const char *const *arguments)
{
    struct tn_buf text = {0};
    tn_buf_printf(&text, "\"%s\"", path);
    for (size_t i = 0; arguments[i]; i++)
        tn_buf_printf(&text, " %s", arguments[i]);
    wchar_t *wide = text.failed ? NULL : tn_win32_wide(tn_buf_text(&text));
    tn_buf_fini(&text);
    return wide;
}

/* The new process inherits only the listed handles. */
static bool create(PROCESS_INFORMATION *out, const wchar_t *program, wchar_t *line,
                   struct pipes *pipes)
{
    STARTUPINFOEXW startup = {0};
    SIZE_T n_list = 0;
    startup.StartupInfo.cb = sizeof startup;
    startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    startup.StartupInfo.hStdInput = pipes->theirs[0];
    startup.StartupInfo.hStdOutput = pipes->theirs[1];
    startup.StartupInfo.hStdError = pipes->theirs[2];
    (void)InitializeProcThreadAttributeList(NULL, 1, 0, &n_list);
    startup.lpAttributeList = tn_alloc(n_list);
    if (!startup.lpAttributeList ||
        !InitializeProcThreadAttributeList(startup.lpAttributeList, 1, 0, &n_list)) {
        tn_free(startup.lpAttributeList);
        return false;
    }
    const bool created =
        UpdateProcThreadAttribute(startup.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
                                  pipes->theirs, sizeof pipes->theirs, NULL, NULL) &&
        CreateProcessW(program, line, NULL, NULL, TRUE,
                       EXTENDED_STARTUPINFO_PRESENT | CREATE_NO_WINDOW, NULL, NULL,
                       &startup.StartupInfo, out);
    DeleteProcThreadAttributeList(startup.lpAttributeList);
    tn_free(startup.lpAttributeList);
    return created;
}

static bool start(struct tn_process *process, struct pipes *pipes, const char *path,
                  const char *const *arguments, const char *input, size_t n_input)
{
    PROCESS_INFORMATION info = {0};
    DWORD n_written;
    wchar_t *program = tn_win32_wide(path), *line = command_line(path, arguments);
    const bool created =
        program && line && make_pipes(pipes) && create(&info, program, line, pipes);
    tn_free(program);
    tn_free(line);
    if (!created)
        return false;
    (void)CloseHandle(info.hThread);
    (void)WriteFile(pipes->ours[0], input, (DWORD)n_input, &n_written, NULL);
    *process = (struct tn_process){info.hProcess, pipes->ours[1], pipes->ours[2]};
    pipes->ours[1] = pipes->ours[2] = NULL;
    return true;
}

tern_status tn_process_start(struct tn_process **out, const char *path,
                             const char *const *arguments, const char *input, size_t n_input,
                             struct tern_error *err)
{
    struct pipes pipes = {0};
    *out = NULL;
    struct tn_process *process = tn_alloc(sizeof *process);
    if (!process)
        return tn_fail(err, TERN_MEMORY, "no memory to start %s", path);
    const bool started = start(process, &pipes, path, arguments, input, n_input);
    const DWORD code = GetLastError();
    close_handles(pipes.theirs, 3);
    close_handles(pipes.ours, 3);
    if (!started) {
        tn_free(process);
        return tn_fail(err, TERN_INTERNAL, "%s: cannot be started (error %lu)", path,
                       (unsigned long)code);
    }
    *out = process;
    return tn_ok(err);
}

static size_t read_some(HANDLE pipe, void *dst, size_t n)
{
    DWORD n_read = 0;
    const DWORD n_wanted = n > (1u << 20) ? 1u << 20 : (DWORD)n;
    return ReadFile(pipe, dst, n_wanted, &n_read, NULL) ? n_read : 0;
}

/* A read of an anonymous pipe cannot be interrupted, so it starts only when bytes are available. */
size_t tn_process_read(struct tn_process *process, void *dst, size_t n)
{
    DWORD n_available = 0;
    while (!tn_stop_requested() &&
           PeekNamedPipe(process->output, NULL, 0, NULL, &n_available, NULL)) {
        if (n_available > 0)
            return read_some(process->output, dst, n);
        Sleep(POLL_MS);
    }
    return 0;
}

static int wait_and_free(struct tn_process *process)
{
    DWORD code = 0;
    (void)WaitForSingleObject(process->process, INFINITE);
    const bool known = GetExitCodeProcess(process->process, &code);
    close_handles((HANDLE[]){process->process, process->output, process->errors}, 3);
    tn_free(process);
    return known && code <= INT32_MAX ? (int)code : -1;
}

void tn_process_kill(struct tn_process *process)
{
    if (!process)
        return;
    (void)TerminateProcess(process->process, 1);
    (void)wait_and_free(process);
}

int tn_process_wait(struct tn_process *process, char *errors, size_t n_errors)
{
    size_t n = 0, n_read;
    while (n < n_errors - 1 &&
           (n_read = read_some(process->errors, errors + n, n_errors - 1 - n)) > 0)
        n += n_read;
    errors[n] = '\0';
    errors[strcspn(errors, "\r\n")] = '\0';
    return wait_and_free(process);
}
