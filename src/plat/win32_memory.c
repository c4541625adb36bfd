/* SPDX-License-Identifier: MIT
 *
 * Windows: mapped files, read errors inside them, anonymous pages.
 *
 * A page of a mapped file that cannot be read raises EXCEPTION_IN_PAGE_ERROR, which a vectored
 * handler catches, like SIGBUS in posix_memory.c.
 */
#include "plat/win32.h"

#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "plat/plat.h"
#include "plat/plat_os.h"
#include "plat/terminal.h"

/* ---- mapped files ---- */

/* Size and time of the last write; false if the system does not provide them. */
static bool last_write(uint64_t *ns, uint64_t *n_bytes, HANDLE file)
{
    BY_HANDLE_FILE_INFORMATION info;
    if (!GetFileInformationByHandle(file, &info))
        return false;
    *ns = tn_win32_ns(&info.ftLastWriteTime);
    *n_bytes = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
    return true;
}

tern_status tn_map_open(struct tn_map *out, const char *path, struct tern_error *err)
{
    *out = (struct tn_map){0};
    HANDLE file, mapping = NULL;
    bool has_writer;
    uint64_t n_bytes, modified_ns = 0;
    tern_status status = tn_win32_open_to_map(&file, &n_bytes, &has_writer, path, err);
    if (status)
        return status;
    (void)last_write(&modified_ns, &n_bytes, file);
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
    if (status) {
        if (mapping)
            CloseHandle(mapping);
        CloseHandle(file);
        return status;
    }
    tn_os_regions_add(data, (size_t)n_bytes);
    /* The file stays open: a mapping alone does not exclude writers. */
    *out = (struct tn_map){.data = data, .n_bytes = (size_t)n_bytes, .os = mapping,
                           .os_file = file, .has_writer = has_writer, .modified_ns = modified_ns};
    return TERN_OK;
}

void tn_map_close(struct tn_map *map)
{
    if (!map->os)
        return;
    tn_os_regions_remove(map->data);
    UnmapViewOfFile(map->data);
    CloseHandle(map->os);
    CloseHandle(map->os_file);
    *map = (struct tn_map){0};
}

bool tn_map_is_unchanged(const struct tn_map *map)
{
    uint64_t modified_ns, n_bytes;
    return !last_write(&modified_ns, &n_bytes, map->os_file) ||
           (n_bytes == map->n_bytes && (map->has_writer || modified_ns == map->modified_ns));
}

/* Windows reads few pages around a touched one, and makes no huge pages for files. */
void tn_map_read_sparsely(struct tn_map *map)
{
    (void)map;
}

/* Exists on Windows 8 and later. */
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
        /* Unlocking pages that are not locked removes them from the working set. */
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
    tn_terminal_restore_for_end();
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
    (void)n_bytes; /* the system frees the whole reservation */
    if (p)
        (void)VirtualFree(p, 0, MEM_RELEASE);
}

void tn_pages_advise_huge(void *p, size_t n_bytes)
{
    (void)p, (void)n_bytes; /* large pages need a privilege that users do not have */
}

uint64_t tn_stack_limit_bytes(void)
{
    return UINT64_MAX; /* the limit is in the program's file */
}

uint64_t tn_stack_used_bytes(void)
{
    return 0;
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
