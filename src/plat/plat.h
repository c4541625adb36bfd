/* SPDX-License-Identifier: MIT
 *
 * The operating system, seen by the rest of the program: files, mapped memory,
 * threads, clock, console, signals.  posix_*.c and win32_*.c implement
 * the same functions; OS headers are included nowhere else (but in sysinfo/).
 *
 * Paths and arguments are UTF-8 on every system.  Functions that can fail fill
 * `err` with the path and the system's words for the reason; the status is
 * TERN_INPUT for reading, TERN_OUTPUT for writing, TERN_MEMORY for memory.
 */
#ifndef TN_PLAT_H
#define TN_PLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tern/status.h"

/* ---- mapped files ---- */

struct tn_map {
    const unsigned char *data; /* n_bytes bytes, read-only, page-aligned */
    size_t n_bytes;
    void *os; /* handle of the mapping (Windows), else NULL */
    bool has_huge_pages; /* the system was asked for them, and reads ahead in their size */
    int fd;              /* POSIX: the mapped file */
    void *os_file;       /* the same on Windows */
    bool has_writer;     /* Windows: somebody had it open for writing already */
    uint64_t modified_ns; /* and when it was written last, before it was mapped */
};

/* Maps a whole regular file, in huge pages where the system has them for files. Directories,
 * devices, empty files and files that cannot be read are TERN_INPUT. When the address space is
 * short (RLIMIT_AS): TERN_MEMORY with numbers. */
tern_status tn_map_open(struct tn_map *out, const char *path, struct tern_error *err);
void tn_map_close(struct tn_map *map);
/* False when somebody has written to the file since: what was checked then may be something else
 * now. (A new file of the same name is none of our business.) On Windows nobody can open it for
 * writing while it is mapped; of who had it open before only the size is compared, because the time
 * may be noted as late as when they close it. */
bool tn_map_is_unchanged(const struct tn_map *map);

enum tn_advice {
    TN_ADVICE_WILLNEED, /* read ahead */
    TN_ADVICE_DONTNEED, /* drop the pages from this process */
};
/* From now on the system reads no more of the mapping than is touched or advised: huge pages and
 * read-ahead are off. */
void tn_map_read_sparsely(struct tn_map *map);
/* A hint about [data + offset, + n_bytes); never fails visibly. */
void tn_map_advise(const struct tn_map *map, size_t offset, size_t n_bytes, enum tn_advice advice);

/* A read error inside a mapping (file truncated, drive removed) ends in `handler`, called once in
 * the life of the process, on the thread that faulted; it must not return: it may only use
 * async-signal-safe calls and tn_exit_now. Install from the main thread. NULL restores the
 * default. */
void tn_map_set_fault_handler(void (*handler)(void));
/* Ends the process at once, without atexit handlers; safe in a signal handler. */
_Noreturn void tn_exit_now(int exit_code);

/* ---- anonymous memory ---- */

/* Reserves address space; nothing may be touched before tn_pages_commit. NULL on failure. */
void *tn_pages_reserve(size_t n_bytes);
/* Makes [p, p + n_bytes) readable and writable, zero-filled; p page-aligned. */
bool tn_pages_commit(void *p, size_t n_bytes);
void tn_pages_release(void *p, size_t n_bytes);
/* Hint that large pages help here. */
void tn_pages_advise_huge(void *p, size_t n_bytes);
size_t tn_page_bytes(void);
/* Calls of tn_pages_commit so far, for the no-allocation test. */
uint64_t tn_pages_n_commits(void);

/* ---- files ---- */

struct tn_file; /* an open file */

tern_status tn_file_open_read(struct tn_file **out, const char *path, struct tern_error *err);
/* Creates or truncates. */
tern_status tn_file_create(struct tn_file **out, const char *path, struct tern_error *err);
/* Creates it, or opens what is there to write behind its end, wherever that is then: others may
 * write there too, or cut the file. */
tern_status tn_file_open_append(struct tn_file **out, const char *path, struct tern_error *err);
/* Creates a file that only this process writes. What a dead process left at `path` is removed, a
 * link is never followed, and while another process has such a file there: TERN_OUTPUT. One of the
 * next two calls ends it. */
tern_status tn_file_create_part(struct tn_file **out, const char *path, struct tern_error *err);
/* The same; only its owner may read it. (Windows: who may read the folder's files.) */
tern_status tn_file_create_private_part(struct tn_file **out, const char *path,
                                        struct tern_error *err);
/* Closes the part file and gives it the name `to`, as tn_file_replace; it is gone on failure. */
tern_status tn_file_finish_part(struct tn_file *file, const char *to, struct tern_error *err);
/* Closes and removes the part file. NULL is allowed. */
void tn_file_abort_part(struct tn_file *file);
uint64_t tn_file_size(const struct tn_file *file);
/* When it was written last, in ns since some moment; 0 if unknown. */
uint64_t tn_file_modified_ns(const struct tn_file *file);
/* Reads exactly n_bytes at offset; a shorter file is TERN_INPUT. Interrupted and short reads are
 * continued. */
tern_status tn_file_read_at(struct tn_file *file, uint64_t offset, void *dst, size_t n_bytes,
                            struct tern_error *err);
tern_status tn_file_write_at(struct tn_file *file, uint64_t offset, const void *src,
                             size_t n_bytes, struct tern_error *err);
/* Of tn_file_open_append. In one piece, as far as the system has it so. */
tern_status tn_file_append(struct tn_file *file, const void *src, size_t n_bytes,
                           struct tern_error *err);
/* Hint: these bytes will not be read again (keeps the page cache for others). */
void tn_file_drop_cache(struct tn_file *file, uint64_t offset, uint64_t n_bytes);
/* Waits until the file is on the disk (F_FULLFSYNC on macOS). */
tern_status tn_file_sync(struct tn_file *file, struct tern_error *err);
void tn_file_close(struct tn_file *file);

/* Whole file into memory, at most max_bytes (more: TERN_INPUT with both numbers). *data is
 * NUL-terminated beyond *n_bytes; free with tn_free. "-" is not special. */
tern_status tn_file_read_all(char **data, size_t *n_bytes, const char *path, size_t max_bytes,
                             struct tern_error *err);
/* The same from standard input. */
tern_status tn_stdin_read_all(char **data, size_t *n_bytes, size_t max_bytes,
                              struct tern_error *err);

/* Writes a whole file that only its owner may read, by PATH.part and renaming: afterwards `path` is
 * the complete new file, or on failure what it was. A link is followed. */
tern_status tn_file_write_private(const char *path, const void *data, size_t n_bytes,
                                  struct tern_error *err);
/* Would it find a folder to write to? Creates the part file and removes it. Errors as above. */
tern_status tn_file_try_private(const char *path, struct tern_error *err);

/* Renames over `to` atomically, then syncs the directory. */
tern_status tn_file_replace(const char *from, const char *to, struct tern_error *err);
/* Removes a file; absent is fine. */
void tn_file_remove(const char *path);
/* Broken: a link that leads nowhere, which says that a file should be there. */
enum tn_path_kind { TN_PATH_ABSENT, TN_PATH_FILE, TN_PATH_DIR, TN_PATH_OTHER, TN_PATH_BROKEN };
enum tn_path_kind tn_path_kind(const char *path);
/* True when both name the same existing file. */
bool tn_path_same(const char *a, const char *b);
/* Absolute, links resolved; new memory (tn_free) or NULL. */
char *tn_path_resolve(const char *path);
/* What a new file in place of `path` is to be renamed to, so that a link stays: what it
 * leads to, else `path`. New memory, or NULL. */
char *tn_path_target(const char *path);
/* May a new file take the place of what is at `path`? Not of what standard output or standard error
 * write to, which would go on with the old one, nor of a file without a name (/dev/fd/N may be
 * one). True where nothing is. */
bool tn_path_is_replaceable(const char *path);
/* dir + separator + name in new memory (tn_free), or NULL. */
char *tn_path_join(const char *dir, const char *name);
/* The folder of the running executable; new memory or NULL. */
char *tn_path_of_executable_dir(void);
/* The user's home; new memory or NULL. */
char *tn_path_of_home_dir(void);
/* A path as people type it: ~ and ~/NAME are in their home; new memory or NULL. */
char *tn_path_typed(const char *path);
/* The user's cache directory for tern (XDG_CACHE_HOME, ~/Library/Caches, LOCALAPPDATA), created
 * if needed; new memory or NULL. */
char *tn_path_of_cache_dir(void);
/* The user's data directory for tern (XDG_DATA_HOME or ~/.local/share, ~/Library/Application
 * Support, LOCALAPPDATA), which need not exist; new memory or NULL. */
char *tn_path_of_data_dir(void);
/* The names in a folder, in any order, until `visit` returns false. False: it cannot be read. */
bool tn_dir_walk(const char *path, bool (*visit)(void *arg, const char *name), void *arg);
/* Makes the folder and those above it that are missing; one that exists is fine.  TERN_OUTPUT. */
tern_status tn_dir_make(const char *path, struct tern_error *err);
/* Removes an empty folder; false: it is not empty, or not there. */
bool tn_dir_remove(const char *path);
/* Free bytes for this user on the file system of `path`'s directory; UINT64_MAX if unknown. */
uint64_t tn_disk_free_bytes(const char *path);

/* ---- threads ---- */

/* What the main thread's stack may grow to (RLIMIT_STACK); UINT64_MAX: no limit that we know. */
uint64_t tn_stack_limit_bytes(void);
/* What of that is in use when the main thread calls this: arguments and environment, which lie at
 * its beginning, and the frames of the callers. 0 without a limit. */
uint64_t tn_stack_used_bytes(void);

struct tn_thread;
/* stack 256 KiB. NULL when the system refuses. */
struct tn_thread *tn_thread_start(void (*run)(void *arg), void *arg);
void tn_thread_join(struct tn_thread *thread); /* and frees it */
/* Sleeps while *word == expected, until tn_wake_all or spuriously; timeout_ns 0 = for ever. */
void tn_wait_on(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void tn_wake_all(_Atomic uint32_t *word);
void tn_cpu_relax(void); /* pause instruction */
void tn_thread_yield(void);
/* Logical CPUs that this process may run on; at least 1. */
uint32_t tn_cpu_count(void);
/* Binds the calling thread to one logical CPU (OS index); false where it cannot be done. */
bool tn_thread_bind(uint32_t os_cpu);
/* The CPUs that a thread may run on, as the system writes them; unused words are 0. */
#define TN_AFFINITY_WORDS 128 /* 8192 CPUs */
struct tn_affinity {
    uint64_t words[TN_AFFINITY_WORDS];
};
/* Of the calling thread; false where threads cannot be bound. */
bool tn_thread_get_affinity(struct tn_affinity *out);
bool tn_thread_set_affinity(const struct tn_affinity *affinity);
/* For this process: `eco` asks for efficient cores and speeds (EcoQoS, QoS utility), else asks not
 * to be throttled in the background. No effect where the system has no such thing. */
void tn_process_set_eco(bool eco);

/* ---- time and resources ---- */

uint64_t tn_now_ns(void); /* monotonic */
/* Day and time of the clock on the wall, in the zone that the process found at its first call (or
 * at tzset); false: the system does not know. */
bool tn_local_time(struct tm *out);
static inline double tn_seconds_since(uint64_t start_ns)
{
    return (double)(tn_now_ns() - start_ns) * 1e-9;
}
uint64_t tn_random_seed(void); /* from the system's generator */

struct tn_usage {
    uint64_t peak_rss_bytes;
    uint64_t rss_bytes;
    uint64_t anonymous_bytes; /* now; 0 if unknown */
    uint64_t major_faults;
    uint64_t minor_faults;
};
void tn_usage_now(struct tn_usage *out);

/* Time that processors spent since some moment. */
struct tn_cpu_time {
    uint64_t total_ns; /* all processors of the machine */
    uint64_t busy_ns;  /* of these, at work for anybody, the hypervisor's other guests included */
    uint64_t own_ns;   /* for this process */
};
/* False, and zeros, where the system does not say. */
bool tn_cpu_time_now(struct tn_cpu_time *out);

/* ---- console and process ---- */

/* Once, first thing in main: UTF-8 arguments, console code page, binary stdin and stdout, SIGPIPE
 * ignored, SIGXFSZ ignored. Changes argc and argv where the system's are not UTF-8. */
void tn_process_init(int *argc, char ***argv);
enum tn_stream { TN_STDIN, TN_STDOUT, TN_STDERR };
/* What ends the input of a terminal. */
#if defined(_WIN32)
#define TN_KEY_OF_END "Ctrl-Z Enter"
#else
#define TN_KEY_OF_END "Ctrl-D"
#endif
bool tn_is_terminal(enum tn_stream stream);
/* Was the terminal's window opened for this program alone, and closes with it?  So it is when a
 * console program of Windows is started by a double click. */
bool tn_console_is_own(void);
/* Waits until a key is pressed there. */
void tn_console_wait_for_key(void);
/* Does a terminal here show UTF-8? True unless the locale's name says otherwise. */
bool tn_terminal_is_utf8(void);
/* Columns of the terminal, 80 if unknown. */
uint32_t tn_terminal_columns(void);
/* Writes all bytes. A Windows console gets UTF-16. Result: 0, or EPIPE-like = 1 (the
 * reader is gone), or other error = 2. */
int tn_write_stream(enum tn_stream stream, const void *bytes, size_t n_bytes);
/* One line from stdin without its \n or \r\n, appended to a caller's buffer through `append`; false
 * at the end of input, and when it cannot be read: then err->status is not TERN_OK. Interrupted
 * (Ctrl-C, SIGTERM, SIGHUP, also before the call and not cleared): *interrupted = true, returns
 * true with what came. */
bool tn_read_line(void (*append)(void *arg, const char *bytes, size_t n), void *arg,
                  bool *interrupted, struct tern_error *err);
/* True when the next tn_read_line finds a whole line that was read before, and does not wait. */
bool tn_has_line(void);

/* Ctrl-C, SIGTERM, SIGHUP only set flags. Number of Ctrl-C since the last tn_interrupt_clear. */
void tn_interrupt_install(void);
uint32_t tn_interrupt_count(void);
void tn_interrupt_clear(void);
/* When the last Ctrl-C came as a signal (tn_now_ns), cleared or not; 0: none did. */
uint64_t tn_interrupt_last_ns(void);
/* Signal number of a SIGTERM or SIGHUP that arrived, else 0. */
int tn_terminate_requested(void);
/* Ends the process as the signal would have (130 and so on for the shell). */
_Noreturn void tn_exit_by_signal(int signal_number);

#endif
