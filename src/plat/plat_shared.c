/* SPDX-License-Identifier: MIT
 *
 * Code that the systems' files share: texts and paths, interruption flags, local time.  Needs none
 * of their functions except the clock.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text_match.h"
#include "plat/plat.h"
#include "plat/plat_os.h"

/* ---- paths and texts ---- */

const char *tn_path_name(const char *path)
{
    const char *name = path;
    for (const char *c = path; *c; c++)
        if (*c == '/' || *c == '\\')
            name = c + 1;
    return name;
}

char *tn_path_stem(const char *path, const char *suffix)
{
    char *name = tn_copy_text(tn_path_name(path));
    const size_t n_stem = name ? tn_text_n_stem(name, suffix) : 0;
    if (n_stem)
        name[n_stem] = '\0';
    return name;
}

const char *tn_os_editor(void)
{
    static const char *const variables[] = {"VISUAL", "EDITOR"};
    for (size_t i = 0; i < 2; i++) {
        const char *value = getenv(variables[i]);
        if (value && value[strspn(value, " ")])
            return value;
    }
    return TN_OS_EDITOR;
}

char *tn_path_join(const char *dir, const char *name)
{
    size_t n_dir = strlen(dir);
    size_t n_name = strlen(name);
    bool needs_separator = n_dir > 0 && !strchr(TN_OS_SEPARATORS, dir[n_dir - 1]);
    char *path = tn_alloc(n_dir + needs_separator + n_name + 1);
    if (!path)
        return NULL;
    memcpy(path, dir, n_dir);
    if (needs_separator)
        path[n_dir++] = TN_OS_SEPARATORS[0];
    memcpy(path + n_dir, name, n_name + 1);
    return path;
}

char *tn_path_part(const char *path)
{
    static const char suffix[] = ".part";
    const size_t n = strlen(path);
    char *part = tn_alloc(n + sizeof suffix);
    if (!part)
        return NULL;
    memcpy(part, path, n);
    memcpy(part + n, suffix, sizeof suffix);
    return part;
}

/* ---- Ctrl-C and termination ---- */

#define END_WITHIN_NS 2000000000u

static _Atomic uint32_t n_interrupts; /* since the last clear */
static _Atomic bool is_interrupt_unread;
static _Atomic uint64_t interrupt_ns; /* when the last one came */
static _Atomic int terminate_signal;

bool tn_os_note_interrupt(void)
{
    uint64_t now = tn_now_ns();
    bool unread = atomic_exchange(&is_interrupt_unread, true);
    if (unread && now - atomic_load(&interrupt_ns) < END_WITHIN_NS)
        return true;
    atomic_store(&interrupt_ns, now);
    atomic_fetch_add(&n_interrupts, 1);
    return false;
}

void tn_os_note_termination(int signal_number)
{
    atomic_store(&terminate_signal, signal_number);
}

bool tn_stop_requested(void)
{
    return tn_interrupt_count() > 0 || tn_terminate_requested();
}

uint32_t tn_interrupt_count(void)
{
    uint32_t n = atomic_load(&n_interrupts);
    if (n > 0)
        atomic_store(&is_interrupt_unread, false);
    return n;
}

void tn_interrupt_clear(void)
{
    atomic_store(&n_interrupts, 0);
    atomic_store(&is_interrupt_unread, false);
}

uint64_t tn_interrupt_last_ns(void)
{
    return atomic_load(&interrupt_ns);
}

int tn_terminate_requested(void)
{
    return atomic_load(&terminate_signal);
}

bool tn_local_time(struct tm *out)
{
    const time_t now = time(NULL);
#if defined(_WIN32)
    return localtime_s(out, &now) == 0;
#else
    return localtime_r(&now, out) != NULL; /* unlike localtime it does not read the time zone
                                            * again */
#endif
}
