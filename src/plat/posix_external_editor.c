/* SPDX-License-Identifier: MIT
 *
 * POSIX: the user's editor, as a child that this process waits for.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plat/external_editor.h"
#include "plat/plat_os.h"

#define MAX_WORDS 16
#define CANNOT_START 127

static const char *command_line(void)
{
    static const char *const variables[] = {"VISUAL", "EDITOR"};
    for (size_t i = 0; i < 2; i++) {
        const char *value = getenv(variables[i]);
        if (value && value[strspn(value, " ")])
            return value;
    }
    return "vi";
}

/* Cuts `line` at its blanks; the path comes last. */
static void split(char **words, char *line, const char *path)
{
    int n = 0;
    for (char *word = strtok(line, " "); word && n < MAX_WORDS; word = strtok(NULL, " "))
        words[n++] = word;
    words[n++] = (char *)path;
    words[n] = NULL;
}

/* The editor has the keys to itself: a Ctrl-C in it is none of this process. */
static pid_t start(char **words)
{
    const pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGINT, SIG_DFL);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)execvp(words[0], words);
        _exit(CANNOT_START);
    }
    return pid;
}

tern_status tn_external_editor_run(const char *path, struct tern_error *err)
{
    char *words[MAX_WORDS + 2], *line = tn_os_copy_text(command_line());
    int state = 0;
    if (!line)
        return tn_fail(err, TERN_MEMORY, "no memory to start an editor");
    split(words, line, path);
    const pid_t pid = start(words);
    const int why = errno;
    while (pid > 0 && waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    tern_status status = TERN_OK;
    if (pid < 0)
        status = tn_fail(err, TERN_UNSUPPORTED, "%s: %s", words[0], strerror(why));
    else if (WIFEXITED(state) && WEXITSTATUS(state) == CANNOT_START)
        status = tn_fail(err, TERN_UNSUPPORTED, "%s: cannot be started; set $EDITOR", words[0]);
    else if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
        status = tn_fail(err, TERN_INTERNAL, "%s: ended with an error; the text is not taken",
                         words[0]);
    tn_free(line);
    return status == TERN_OK ? tn_ok(err) : status;
}
