/* SPDX-License-Identifier: MIT
 *
 * Windows: the sockets of net.h, with WSAPoll to wait and a datagram socket to wake it.  Only the
 * server links this file.
 */
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "plat/net.h"
#include "plat/net_address.h"

tern_status tn_net_init(struct tern_error *err)
{
    WSADATA data;
    int why = WSAStartup(MAKEWORD(2, 2), &data);
    return why == 0 ? tn_ok(err)
                    : tn_fail(err, TERN_OUTPUT, "Windows sockets are not available: error %d", why);
}

/* ---- listening ---- */

static bool prepare(SOCKET s)
{
    u_long on = 1;
    (void)SetHandleInformation((HANDLE)s, HANDLE_FLAG_INHERIT, 0);
    return ioctlsocket(s, FIONBIO, &on) == 0;
}

static bool bind_and_listen(SOCKET s, const union tn_net_address *address, int n, uint16_t *bound)
{
    BOOL on = TRUE;
    union tn_net_address got;
    int n_got = sizeof got;
    /* By default Windows lets another program take a port that is in use. */
    (void)setsockopt(s, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&on, sizeof on);
    if (address->any.sa_family == AF_INET6)
        (void)setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, (const char *)&on, sizeof on);
    if (!prepare(s) || bind(s, &address->any, n) != 0 || listen(s, 128) != 0 ||
        getsockname(s, &got.any, &n_got) != 0)
        return false;
    *bound = ntohs(got.any.sa_family == AF_INET ? got.v4.sin_port : got.v6.sin6_port);
    return true;
}

tern_status tn_net_listen(tn_socket *out, const char *host, uint16_t port, uint16_t *bound,
                          bool *in_use, bool *no_family, struct tern_error *err)
{
    union tn_net_address address;
    int n = tn_net_make_address(&address, host, port);
    *out = TN_NO_SOCKET;
    *bound = 0;
    if (n == 0)
        return tn_fail(err, TERN_USAGE, "\"%s\" is not a numeric address", host);
    SOCKET s = socket(address.any.sa_family, SOCK_STREAM, 0);
    if (s != INVALID_SOCKET && bind_and_listen(s, &address, n, bound)) {
        *out = (tn_socket)s;
        return tn_ok(err);
    }
    int why = WSAGetLastError();
    if (s != INVALID_SOCKET)
        (void)closesocket(s);
    if (in_use)
        *in_use = why == WSAEADDRINUSE || why == WSAEACCES;
    if (no_family)
        *no_family = why == WSAEAFNOSUPPORT || why == WSAEADDRNOTAVAIL;
    return tn_fail(err, TERN_OUTPUT, "cannot listen at %s port %u: %s (error %d)", host, port,
                   why == WSAEADDRINUSE ? "the port is in use; --port 0 selects a free one"
                                        : "Windows refuses",
                   why);
}

tn_socket tn_net_accept(tn_socket listener, bool *is_full)
{
    BOOL on = TRUE;
    SOCKET s = accept((SOCKET)listener, NULL, NULL);
    const int why = s == INVALID_SOCKET ? WSAGetLastError() : 0;
    *is_full = why == WSAEMFILE || why == WSAENOBUFS;
    if (s == INVALID_SOCKET)
        return TN_NO_SOCKET;
    if (!prepare(s)) {
        (void)closesocket(s);
        return TN_NO_SOCKET;
    }
    /* Tokens are small, and each should arrive immediately. */
    (void)setsockopt(s, IPPROTO_TCP, TCP_NODELAY, (const char *)&on, sizeof on);
    return (tn_socket)s;
}

void tn_net_shutdown(tn_socket socket)
{
    (void)shutdown((SOCKET)socket, SD_SEND);
}

void tn_net_close(tn_socket socket)
{
    if (socket != TN_NO_SOCKET)
        (void)closesocket((SOCKET)socket);
}

/* ---- bytes ---- */

static int64_t result(int n)
{
    if (n >= 0)
        return n;
    return WSAGetLastError() == WSAEWOULDBLOCK ? TN_NET_AGAIN : TN_NET_GONE;
}

int64_t tn_net_read(tn_socket socket, void *dst, size_t n_bytes)
{
    return result(recv((SOCKET)socket, dst, (int)TN_MIN(n_bytes, (size_t)1 << 30), 0));
}

int64_t tn_net_write(tn_socket socket, const void *src, size_t n_bytes)
{
    return result(send((SOCKET)socket, src, (int)TN_MIN(n_bytes, (size_t)1 << 30), 0));
}

/* ---- waiting ---- */

/* A datagram socket that sends to itself, because WSAPoll accepts only sockets. */
static SOCKET wake_socket = INVALID_SOCKET;

tern_status tn_net_wake_init(struct tern_error *err)
{
    union tn_net_address address;
    int n = tn_net_make_address(&address, "127.0.0.1", 0), n_got = sizeof address;
    if (wake_socket != INVALID_SOCKET)
        return tn_ok(err);
    SOCKET s = socket(AF_INET, SOCK_DGRAM, 0);
    if (s == INVALID_SOCKET || !prepare(s) || bind(s, &address.any, n) != 0 ||
        getsockname(s, &address.any, &n_got) != 0 || connect(s, &address.any, n_got) != 0) {
        int why = WSAGetLastError();
        if (s != INVALID_SOCKET)
            (void)closesocket(s);
        return tn_fail(err, TERN_OUTPUT, "cannot make a socket: error %d", why);
    }
    wake_socket = s;
    return tn_ok(err);
}

void tn_net_wake(void)
{
    if (wake_socket != INVALID_SOCKET)
        (void)send(wake_socket, "", 1, 0);
}

void tn_net_wait(struct tn_net_item *items, size_t n_items, uint32_t timeout_ms)
{
    WSAPOLLFD fds[TN_NET_MAX_ITEMS + 1];
    char scratch[16];
    for (size_t i = 0; i < n_items; i++) {
        /* WSAPoll keeps reporting POLLHUP after the other side's end: only a write reveals more. */
        const bool is_idle = items[i].has_ended && !items[i].wants_write;
        fds[i].fd = is_idle ? INVALID_SOCKET : (SOCKET)items[i].socket;
        fds[i].events = (short)((items[i].wants_read ? POLLRDNORM : 0) |
                                (items[i].wants_write ? POLLWRNORM : 0));
        fds[i].revents = 0;
    }
    fds[n_items] = (WSAPOLLFD){.fd = wake_socket, .events = POLLRDNORM};
    int n = WSAPoll(fds, (ULONG)(n_items + 1), (INT)timeout_ms);
    for (size_t i = 0; i < n_items; i++) {
        /* An ignored entry gets POLLNVAL. */
        int happened = n > 0 && fds[i].fd != INVALID_SOCKET ? fds[i].revents : 0;
        const int ends = POLLERR | POLLNVAL | (items[i].has_ended ? 0 : POLLRDNORM | POLLHUP);
        items[i].can_read = happened & ends;
        items[i].can_write = happened & (POLLWRNORM | POLLERR);
        items[i].has_failed = happened & (POLLERR | POLLNVAL);
    }
    if (n > 0 && fds[n_items].revents)
        while (recv(wake_socket, scratch, sizeof scratch, 0) > 0)
            ;
}
