/* SPDX-License-Identifier: MIT
 *
 * Stream sockets, for the server only: posix_net.c and win32_net.c implement the same functions.
 * They belong to the server's library; the library of the engine has no sockets.
 *
 * All sockets are non-blocking, not inherited by other programs, and used by one thread.  Only
 * tn_net_wake may be called from any thread.
 */
#ifndef TN_NET_H
#define TN_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

typedef intptr_t tn_socket;
#define TN_NO_SOCKET ((tn_socket)-1)

/* Call before all others; Windows loads its library. */
tern_status tn_net_init(struct tern_error *err);

/* Whether this is a numeric IPv4 or IPv6 address ("127.0.0.1", "::1"), and whether it is local to
 * this machine. */
bool tn_net_is_address(const char *host, bool *is_loopback);

/* Listens at a numeric address; port 0 selects a free one.  *bound is the port.  TERN_OUTPUT with
 * address, port and the system's message; *in_use, *no_family (may be NULL): the port is in use,
 * the system has no such addresses. */
tern_status tn_net_listen(tn_socket *out, const char *host, uint16_t port, uint16_t *bound,
                          bool *in_use, bool *no_family, struct tern_error *err);
/* TN_NO_SOCKET if no connection is waiting, or (*is_full) the process may open no more files: then
 * the connection keeps waiting. */
tn_socket tn_net_accept(tn_socket listener, bool *is_full);
/* Ends the data that this side sends; the other side reads the end. */
void tn_net_shutdown(tn_socket socket);
void tn_net_close(tn_socket socket);

#define TN_NET_AGAIN (-1) /* nothing to transfer now */
#define TN_NET_GONE (-2)  /* the other side has closed the connection */
/* Bytes read, 0 at the end of the other side's data, or one of these two. */
int64_t tn_net_read(tn_socket socket, void *dst, size_t n_bytes);
/* Bytes written, or one of these two. */
int64_t tn_net_write(tn_socket socket, const void *src, size_t n_bytes);

struct tn_net_item {
    tn_socket socket;
    bool wants_read, wants_write;
    bool has_ended;           /* the end was read: only a reset is reported from now on */
    bool can_read, can_write; /* also if reading or writing would fail immediately */
    bool has_failed;          /* the other side has reset the connection */
};
#define TN_NET_MAX_ITEMS 256
/* Waits until an item is ready, a signal arrives, tn_net_wake is called, or the time is over;
 * n_items <= TN_NET_MAX_ITEMS. */
void tn_net_wait(struct tn_net_item *items, size_t n_items, uint32_t timeout_ms);

/* Makes the current or the next tn_net_wait return.  No effect before tn_net_wake_init. */
tern_status tn_net_wake_init(struct tern_error *err);
void tn_net_wake(void);

#endif
