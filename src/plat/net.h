/* SPDX-License-Identifier: MIT
 *
 * Stream sockets, for the server only: posix_net.c and win32_net.c implement the same functions.
 * They belong to the server's library; the library of the engine has no sockets.
 *
 * All sockets are non-blocking, not inherited by other programs, and used by one thread, but for
 * tn_net_wake, which any thread may call.
 */
#ifndef TN_NET_H
#define TN_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

typedef intptr_t tn_socket;
#define TN_NO_SOCKET ((tn_socket)-1)

/* Before all others; Windows loads its library. */
tern_status tn_net_init(struct tern_error *err);

/* Is this a numeric IPv4 or IPv6 address ("127.0.0.1", "::1"), and one of this machine only? */
bool tn_net_is_address(const char *host, bool *is_loopback);

/* Listens at a numeric address; port 0 takes a free one.  *bound is the port.  TERN_OUTPUT with
 * address, port and the system's words; *in_use, *no_family (may be NULL): the port is taken, the
 * system has no such addresses. */
tern_status tn_net_listen(tn_socket *out, const char *host, uint16_t port, uint16_t *bound,
                          bool *in_use, bool *no_family, struct tern_error *err);
/* TN_NO_SOCKET when nobody waits, or when the system refuses. */
tn_socket tn_net_accept(tn_socket listener);
/* Ends what this side sends; the other side reads the end. */
void tn_net_shutdown(tn_socket socket);
void tn_net_close(tn_socket socket);

#define TN_NET_AGAIN (-1) /* nothing now */
#define TN_NET_GONE (-2)  /* the other side is gone */
/* Bytes read, 0 at the end of what the other side sends, or one of these two. */
int64_t tn_net_read(tn_socket socket, void *dst, size_t n_bytes);
/* Bytes written, or one of these two. */
int64_t tn_net_write(tn_socket socket, const void *src, size_t n_bytes);

struct tn_net_item {
    tn_socket socket;
    bool wants_read, wants_write;
    bool has_ended;           /* the other side's end was read: only its reset is news */
    bool can_read, can_write; /* also when reading or writing would fail at once */
};
#define TN_NET_MAX_ITEMS 256
/* Waits until something can be done, a signal came, somebody called tn_net_wake, or the time is
 * over; n_items <= TN_NET_MAX_ITEMS. */
void tn_net_wait(struct tn_net_item *items, size_t n_items, uint32_t timeout_ms);

/* Makes the tn_net_wait that runs, or the next one, return.  Before tn_net_wake_init there is
 * nothing to wake. */
tern_status tn_net_wake_init(struct tern_error *err);
void tn_net_wake(void);

#endif
