/* SPDX-License-Identifier: MIT
 *
 * Status codes and error details.
 *
 * Every function that can fail returns a `tern_status` and, where it takes a
 * `struct tern_error *`, fills in the reason: what failed, the value, the limit, what to do next,
 * in one line without a newline.  The pointer may always be NULL. The library never prints, exits
 * or aborts.
 */
#ifndef TERN_STATUS_H
#define TERN_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, exit code of the command, text).  The order is the enum's order.  The command exits with
 * MAPPED_IO from src/app/open.c, when a page of the mapped model can no longer be read. */
#define TERN_STATUS_LIST(X)                                                                        \
    X(OK, 0, "ok")                                                                                 \
    X(INTERNAL, 1, "internal error")                                                               \
    X(USAGE, 2, "invalid argument")                                                                \
    X(MEMORY, 3, "not enough memory")                                                              \
    X(LIMIT, 3, "limit exceeded")                                                                  \
    X(OUTPUT, 4, "cannot write output")                                                            \
    X(INPUT, 5, "cannot use input")                                                                \
    X(UNSUPPORTED, 6, "not supported")                                                             \
    X(MAPPED_IO, 74, "file changed while in use")                                                  \
    X(INTERRUPTED, 130, "interrupted")                                                             \
    X(BUSY, 3, "busy")                                                                             \
    X(NETWORK, 7, "cannot fetch")

typedef enum tern_status {
#define TERN_STATUS_ENUM(name, exit_code, text) TERN_##name,
    TERN_STATUS_LIST(TERN_STATUS_ENUM)
#undef TERN_STATUS_ENUM
        TERN_STATUS_COUNT
} tern_status;

/* Owned by the caller; valid until the next call that receives it.  `detail` is UTF-8, cut at a
 * character boundary, always NUL-terminated, "" if status is TERN_OK. */
struct tern_error {
    tern_status status;
    char detail[508];
};

/* "not enough memory" and so on; a constant string, never NULL. */
const char *tern_status_text(tern_status status);

/* The exit code that the command uses for this status: 0, 1, 2, 3, 4, 5, 6, 7, 74 or 130. */
int tern_status_exit_code(tern_status status);

#ifdef __cplusplus
}
#endif
#endif
