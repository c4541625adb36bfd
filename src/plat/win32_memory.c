/* SPDX-License-Identifier: MIT
 *
 * Windows: mapped files, read errors inside them, anonymous pages.
 */
#include "plat/win32.h"

#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "plat/plat.h"
#include "plat/plat_os.h"

/* ---- mapped files ---- */

tern_status tn_map_open(struct tn_map *out, const char *path, struct tern_error *err)
{
    *out = (struct tn_map){0};
    HANDLE file, mapping = NULL;
    uint64_t n_bytes;
    tern_status status = tn_win32_open_regular(&file, &n_bytes, path, err);
    if (status)
        return status;
    const void *data = NULL;
    if (n_bytes == 0) {
        status = tn_fail(err, TERN_INPUT, "%s: is empty (0 bytes)", path);
    } else {
        mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
        data = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : NULL;
        DWORD code = GetLastError();
        if (!data && (code == ERROR_NOT_ENOUGH_MEMORY || code == ERROR_COMMITMENT_LIMIT))
            status = tn_fail(err, TERN_MEMORY, "%s: no address space to map %llu bytes", path,
                             (unsigned long long)n_bytes);
        else if (!data)
            status = tn_os_fail(err, TERN_INPUT, path, "cannot be mapped", code);
    }
    CloseHandle(file); /* the mapping keeps it open */
    if (status) {
        if (mapping)
            CloseHandle(mapping);
        return status;
    }
    tn_os_regions_add(data, (size_t)n_bytes);
    *out = (struct tn_map){.data = data, .n_bytes = (size_t)n_bytes, .os = mapping};
    return TERN_OK;
}

void tn_map_close(struct tn_map *map)
{
    if (!map->os)
        return;
    tn_os_regions_remove(map->data);
    UnmapViewOfFile(map->data);
    CloseHandle(map->os);
    *map = (struct tn_map){0};
}

bool tn_map_is_unchanged(const struct tn_map *map)
{
    (void)map;
    return true;
}

/* Windows 8 and later. */
struct memory_range {
    void *address;
    SIZE_T n_bytes;
};
typedef BOOL WINAPI prefetch_fn(HANDLE process, ULONG_PTR n, struct memory_range *list,
                                ULONG flags);

void tn_map_advise(const struct tn_map *map, size_t offset, size_t n_bytes, enum tn_advice advice)
{
    if (offset >= map->n_bytes)
        return;
    unsigned char *begin = (unsigned char *)(uintptr_t)map->data + offset;
    n_bytes = TN_MIN(n_bytes, map->n_bytes - offset);
    if (advice == TN_ADVICE_WILLNEED) {
        prefetch_fn *prefetch =
            (prefetch_fn *)tn_win32_function(L"kernel32.dll", "PrefetchVirtualMemory");
        struct memory_range range = {begin, n_bytes};
        if (prefetch)
            (void)prefetch(GetCurrentProcess(), 1, &range, 0);
    } else if (advice == TN_ADVICE_DONTNEED) {
        /* Unlocking pages that are not locked takes them out of the working set. */
        uintptr_t page = tn_page_bytes();
        uintptr_t from = ((uintptr_t)begin + page - 1) & ~(page - 1);
        uintptr_t to = (uintptr_t)begin + n_bytes;
        if (to != (uintptr_t)map->data + map->n_bytes)
            to &= ~(page - 1);
        if (from < to)
            (void)VirtualUnlock((void *)from, to - from);
    }
}

/* ---- read errors inside a mapping ---- */

static void (*_Atomic fault_handler)(void);
static _Atomic uint32_t n_faulting;

/* The exception's second parameter is the address. */
static LONG CALLBACK on_exception(EXCEPTION_POINTERS *pointers)
{
    const EXCEPTION_RECORD *record = pointers->ExceptionRecord;
    void (*handler)(void) = atomic_load(&fault_handler);
    if (record->ExceptionCode != (DWORD)EXCEPTION_IN_PAGE_ERROR || record->NumberParameters < 2 ||
        !handler || !tn_os_regions_hold((const void *)record->ExceptionInformation[1]))
        return EXCEPTION_CONTINUE_SEARCH;
    if (atomic_fetch_add(&n_faulting, 1) == 0)
        handler();
    for (;;) /* another thread is already ending the process */
        Sleep(INFINITE);
}

void tn_map_set_fault_handler(void (*handler)(void))
{
    static _Atomic uint32_t is_installed;
    atomic_store(&fault_handler, handler);
    if (handler && atomic_exchange(&is_installed, 1) == 0)
        (void)AddVectoredExceptionHandler(1, on_exception);
}

void tn_exit_now(int exit_code)
{
    tn_win32_restore_console();
    TerminateProcess(GetCurrentProcess(), (UINT)exit_code);
    for (;;)
        Sleep(INFINITE);
}

/* ---- anonymous memory ---- */

static _Atomic uint64_t n_commits;

void *tn_pages_reserve(size_t n_bytes)
{
    return VirtualAlloc(NULL, n_bytes, MEM_RESERVE, PAGE_NOACCESS);
}

bool tn_pages_commit(void *p, size_t n_bytes)
{
    atomic_fetch_add(&n_commits, 1);
    return VirtualAlloc(p, n_bytes, MEM_COMMIT, PAGE_READWRITE) != NULL;
}

void tn_pages_release(void *p, size_t n_bytes)
{
    (void)n_bytes; /* all of it, says the system */
    if (p)
        (void)VirtualFree(p, 0, MEM_RELEASE);
}

void tn_pages_advise_huge(void *p, size_t n_bytes)
{
    (void)p, (void)n_bytes; /* large pages need a privilege that users do not have */
}

size_t tn_page_bytes(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

uint64_t tn_pages_n_commits(void)
{
    return atomic_load(&n_commits);
}
