/* SPDX-License-Identifier: MIT
 *
 * The operating system for the rest of the program: files, mapped memory, threads, clock, console,
 * signals.  posix_*.c and win32_*.c implement the same functions; only they and sysinfo/ include OS
 * headers.
 *
 * Paths and arguments are UTF-8 on every system.  Functions that can fail fill `err` with the path
 * and the system's message for the reason; the status is TERN_INPUT for reading, TERN_OUTPUT for
 * writing, TERN_MEMORY for memory.
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
    bool has_huge_pages; /* huge pages were requested, and the system reads ahead in their size */
    int fd;              /* POSIX: the mapped file */
    void *os_file;       /* the same on Windows */
    bool has_writer;     /* Windows: another process had it open for writing already */
    uint64_t modified_ns; /* Windows: and its last write time, read before mapping */
};

/* Maps a whole regular file, in huge pages if the system has them for files.  Directories, devices,
 * empty files and unreadable files are TERN_INPUT.  If the address space is too small (RLIMIT_AS):
 * TERN_MEMORY with numbers. */
tern_status tn_map_open(struct tn_map *out, const char *path, struct tern_error *err);
void tn_map_close(struct tn_map *map);
/* False if the file was written to since it was mapped: its contents may no longer be those that
 * were checked.  (A new file of the same name does not matter.)  On Windows nobody can open it for
 * writing while it is mapped; for processes that had it open before only the size is compared,
 * because the write time may not be updated until they close it. */
bool tn_map_is_unchanged(const struct tn_map *map);

enum tn_advice {
    TN_ADVICE_WILLNEED, /* read ahead */
    TN_ADVICE_DONTNEED, /* drop the pages from this process */
};
/* From now on the system reads only the pages of the mapping that are touched or advised: disables
 * huge pages and read-ahead. */
void tn_map_read_sparsely(struct tn_map *map);
/* A hint about [data + offset, + n_bytes); never fails visibly. */
void tn_map_advise(const struct tn_map *map, size_t offset, size_t n_bytes, enum tn_advice advice);

/* A read error inside a mapping (file truncated, drive removed) calls `handler`, at most once per
 * process, on the thread that faulted.  It must not return and may use only async-signal-safe calls
 * and tn_exit_now.  Install from the main thread.  NULL restores the default. */
void tn_map_set_fault_handler(void (*handler)(void));
/* Ends the process immediately, without atexit handlers; safe in a signal handler. */
_Noreturn void tn_exit_now(int exit_code);

/* ---- anonymous memory ---- */

/* Reserves address space; nothing may be touched before tn_pages_commit. NULL on failure. */
void *tn_pages_reserve(size_t n_bytes);
/* Makes [p, p + n_bytes) readable and writable, zero-filled; p page-aligned. */
bool tn_pages_commit(void *p, size_t n_bytes);
void tn_pages_release(void *p, size_t n_bytes);
/* Hints that large pages help here. */
void tn_pages_advise_huge(void *p, size_t n_bytes);
size_t tn_page_bytes(void);
/* Number of tn_pages_commit calls so far, for the no-allocation test. */
uint64_t tn_pages_n_commits(void);

/* ---- files ---- */

struct tn_file; /* an open file */

tern_status tn_file_open_read(struct tn_file **out, const char *path, struct tern_error *err);
/* Creates or truncates a file for writing. */
tern_status tn_file_create(struct tn_file **out, const char *path, struct tern_error *err);
/* Creates a file, or opens an existing one for appending at its current end: others may append to
 * it too, or truncate it. */
tern_status tn_file_open_append(struct tn_file **out, const char *path, struct tern_error *err);
/* Creates a file that only this process writes.  Removes a file that a dead process left at `path`,
 * never follows a link, and fails with TERN_OUTPUT while another process has such a file there.
 * One of the next two calls ends it. */
tern_status tn_file_create_part(struct tn_file **out, const char *path, struct tern_error *err);
/* The same, readable only by its owner.  (Windows: the folder's access rights apply.) */
tern_status tn_file_create_private_part(struct tn_file **out, const char *path,
                                        struct tern_error *err);
/* Closes the part file and renames it to `to`, like tn_file_replace; removes it on failure. */
tern_status tn_file_finish_part(struct tn_file *file, const char *to, struct tern_error *err);
/* Closes and removes the part file. NULL is allowed. */
void tn_file_abort_part(struct tn_file *file);
uint64_t tn_file_size(const struct tn_file *file);
/* Time of the last write, in ns since a fixed moment; 0 if unknown. */
uint64_t tn_file_modified_ns(const struct tn_file *file);
/* Reads exactly n_bytes at offset; a shorter file is TERN_INPUT. Interrupted and short reads are
 * continued. */
tern_status tn_file_read_at(struct tn_file *file, uint64_t offset, void *dst, size_t n_bytes,
                            struct tern_error *err);
tern_status tn_file_write_at(struct tn_file *file, uint64_t offset, const void *src,
                             size_t n_bytes, struct tern_error *err);
/* For tn_file_open_append.  Written in one piece, as far as the system guarantees that. */
tern_status tn_file_append(struct tn_file *file, const void *src, size_t n_bytes,
                           struct tern_error *err);
/* Hints that these bytes will not be read again (keeps the page cache for others). */
void tn_file_drop_cache(struct tn_file *file, uint64_t offset, uint64_t n_bytes);
/* Waits until the file is on the disk (F_FULLFSYNC on macOS). */
tern_status tn_file_sync(struct tn_file *file, struct tern_error *err);
void tn_file_close(struct tn_file *file);

/* Reads a whole file into memory, at most max_bytes (more: TERN_INPUT with both numbers).  *data is
 * NUL-terminated after *n_bytes; free with tn_free.  "-" is not special. */
tern_status tn_file_read_all(char **data, size_t *n_bytes, const char *path, size_t max_bytes,
                             struct tern_error *err);
/* The same for a regular file, also when the process has been asked to end: that is when files are
 * saved that may already exist, and downloads are removed unless a file says that they are kept. */
tern_status tn_file_read_regular(char **data, size_t *n_bytes, const char *path, size_t max_bytes,
                                 struct tern_error *err);
/* The same as tn_file_read_all for standard input. */
tern_status tn_stdin_read_all(char **data, size_t *n_bytes, size_t max_bytes,
                              struct tern_error *err);

/* Writes a whole file that only its owner may read, through PATH.part and renaming: `path` is then
 * the complete new file, or unchanged on failure.  Follows a link. */
tern_status tn_file_write_private(const char *path, const void *data, size_t n_bytes,
                                  struct tern_error *err);
/* Whether tn_file_write_private could write: creates the part file and removes it.  The same
 * errors. */
tern_status tn_file_try_private(const char *path, struct tern_error *err);

/* Renames over `to` atomically, then syncs the directory. */
tern_status tn_file_replace(const char *from, const char *to, struct tern_error *err);
/* Removes a file; an absent one is not an error. */
void tn_file_remove(const char *path);
/* Broken: a link to a missing file, which should exist. */
enum tn_path_kind { TN_PATH_ABSENT, TN_PATH_FILE, TN_PATH_DIR, TN_PATH_OTHER, TN_PATH_BROKEN };
enum tn_path_kind tn_path_kind(const char *path);
/* True when both name the same existing file. */
bool tn_path_same(const char *a, const char *b);
/* Absolute, links resolved; new memory (tn_free) or NULL. */
char *tn_path_resolve(const char *path);
/* The name to which a new file for `path` should be renamed, so that a link is preserved: the
 * link's target, else `path`.  New memory, or NULL. */
char *tn_path_target(const char *path);
/* Whether a new file may replace the one at `path`.  Not if standard output or standard error write
 * to it, because they would continue with the old one, nor if it has no name (such as /dev/fd/N).
 * True if nothing is there. */
bool tn_path_is_replaceable(const char *path);
/* The part of `path` after its last / or \\. */
const char *tn_path_name(const char *path);
/* The same without `suffix`, if it ends with that and has more; new memory (tn_free) or NULL. */
char *tn_path_stem(const char *path, const char *suffix);
/* dir + separator + name in new memory (tn_free), or NULL. */
char *tn_path_join(const char *dir, const char *name);
/* "PATH.part", the name of an unfinished file, in new memory (tn_free), or NULL. */
char *tn_path_part(const char *path);
/* The folder of the running executable; new memory or NULL. */
char *tn_path_of_executable_dir(void);
/* The user's home; new memory or NULL. */
char *tn_path_of_home_dir(void);
/* A path as users type it: ~ and ~/NAME refer to their home; new memory or NULL. */
char *tn_path_typed(const char *path);
/* The user's cache directory for tern (XDG_CACHE_HOME, ~/Library/Caches, LOCALAPPDATA), created
 * if needed; new memory or NULL. */
char *tn_path_of_cache_dir(void);
/* The user's data directory for tern (XDG_DATA_HOME or ~/.local/share, ~/Library/Application
 * Support, LOCALAPPDATA), which need not exist; new memory or NULL. */
char *tn_path_of_data_dir(void);
/* Visits the names in a folder, in any order, until `visit` returns false.  False: the folder
 * cannot be read. */
bool tn_dir_walk(const char *path, bool (*visit)(void *arg, const char *name), void *arg);
/* Creates the folder and its missing parents; an existing one is not an error.  TERN_OUTPUT:
 * names the one that cannot be made. */
tern_status tn_dir_make(const char *path, struct tern_error *err);
/* Removes an empty folder; false: it is not empty or does not exist. */
bool tn_dir_remove(const char *path);
/* Free bytes for this user on the file system of `path`'s directory; UINT64_MAX if unknown. */
uint64_t tn_disk_free_bytes(const char *path);

/* ---- threads ---- */

/* The maximum size of the main thread's stack (RLIMIT_STACK); UINT64_MAX: no known limit. */
uint64_t tn_stack_limit_bytes(void);
/* The part of it in use when the main thread calls this: arguments and environment, which are at
 * its beginning, and the frames of the callers.  0 without a limit. */
uint64_t tn_stack_used_bytes(void);

struct tn_thread;
/* Starts a thread with a stack of 256 KiB.  NULL if the system refuses. */
struct tn_thread *tn_thread_start(void (*run)(void *arg), void *arg);
void tn_thread_join(struct tn_thread *thread); /* and frees it */
/* Sleeps while *word == expected, until tn_wake_all or spuriously; timeout_ns 0: no limit. */
void tn_wait_on(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void tn_wake_all(_Atomic uint32_t *word);
void tn_cpu_relax(void); /* pause instruction */
void tn_thread_yield(void);
/* Logical CPUs that this process may run on; at least 1. */
uint32_t tn_cpu_count(void);
/* Binds the calling thread to one logical CPU (OS index); false if unsupported. */
bool tn_thread_bind(uint32_t os_cpu);
/* The CPUs that a thread may run on, in the system's representation; unused words are 0. */
#define TN_AFFINITY_WORDS 128 /* 8192 CPUs */
struct tn_affinity {
    uint64_t words[TN_AFFINITY_WORDS];
};
/* For the calling thread; false if threads cannot be bound. */
bool tn_thread_get_affinity(struct tn_affinity *out);
bool tn_thread_set_affinity(const struct tn_affinity *affinity);
/* For this process: `eco` requests efficient cores and speeds (EcoQoS, QoS utility), otherwise
 * requests not to be throttled in the background.  No effect where the system has no such
 * setting. */
void tn_process_set_eco(bool eco);

/* ---- time and resources ---- */

uint64_t tn_now_ns(void); /* monotonic */
/* The local date and time, in the time zone that the process had at its first call (or at tzset);
 * false: the system does not know. */
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

/* Processor time since a fixed moment. */
struct tn_cpu_time {
    uint64_t total_ns; /* all processors of the machine */
    uint64_t busy_ns;  /* the busy part of it, including the hypervisor's other guests */
    uint64_t own_ns;   /* for this process */
};
/* False, and zeros, if the system does not provide it. */
bool tn_cpu_time_now(struct tn_cpu_time *out);

/* ---- console and process ---- */

/* Call once, first in main: UTF-8 arguments, console code page, binary stdin and stdout, SIGPIPE
 * and SIGXFSZ ignored.  Changes argc and argv if the system's are not UTF-8. */
void tn_process_init(int *argc, char ***argv);
enum tn_stream { TN_STDIN, TN_STDOUT, TN_STDERR };
/* The key that ends the input of a terminal. */
#if defined(_WIN32)
#define TN_KEY_OF_END "Ctrl-Z Enter"
#else
#define TN_KEY_OF_END "Ctrl-D"
#endif
bool tn_is_terminal(enum tn_stream stream);
/* Whether the terminal's window was opened for this program alone and closes with it, as when a
 * console program of Windows is started by a double click. */
bool tn_console_is_own(void);
/* Waits for a key press in that window. */
void tn_console_wait_for_key(void);
/* Whether the terminal displays UTF-8.  True unless the locale's name says otherwise. */
bool tn_terminal_is_utf8(void);
/* Columns of the terminal, 80 if unknown. */
uint32_t tn_terminal_columns(void);
/* Writes all bytes.  A Windows console gets UTF-16.  Result: 0; 1 if the reader has closed the
 * stream (as EPIPE); 2 for other errors. */
int tn_write_stream(enum tn_stream stream, const void *bytes, size_t n_bytes);
/* Reads one line from stdin without its \n or \r\n and appends it to a caller's buffer through
 * `append`; false at the end of input, and on a read error: then err->status is not TERN_OK.  If
 * interrupted (Ctrl-C, SIGTERM, SIGHUP, also before the call and not cleared): sets *interrupted
 * and returns true with the bytes read so far. */
bool tn_read_line(void (*append)(void *arg, const char *bytes, size_t n), void *arg,
                  bool *interrupted, struct tern_error *err);
/* True if the next tn_read_line finds a whole line in its buffer and does not wait. */
bool tn_has_line(void);

/* Installs handlers: Ctrl-C, SIGTERM, SIGHUP only set flags.  tn_interrupt_count: number of Ctrl-C
 * since the last tn_interrupt_clear. */
void tn_interrupt_install(void);
uint32_t tn_interrupt_count(void);
void tn_interrupt_clear(void);
/* Time of the last Ctrl-C that arrived as a signal (tn_now_ns), cleared or not; 0: none. */
uint64_t tn_interrupt_last_ns(void);
/* Signal number of a SIGTERM or SIGHUP that arrived, else 0. */
int tn_terminate_requested(void);
/* Whether Ctrl-C, SIGTERM or SIGHUP arrived and is not cleared. */
bool tn_stop_requested(void);
/* Ends the process as the signal would have (130 and so on for the shell). */
_Noreturn void tn_exit_by_signal(int signal_number);

#endif
