/* SPDX-License-Identifier: MIT
 *
 * POSIX: the sockets of net.h, with poll to wait and a pipe to wake it.  Only the server links this
 * file.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "plat/net.h"
#include "plat/net_address.h"

tern_status tn_net_init(struct tern_error *err)
{
    return tn_ok(err);
}

/* Size of the kernel's send buffer for a client that reads slowly; the default is several
 * megabytes. */
#define SEND_BYTES (256 << 10)

/* ---- listening ---- */

static bool prepare(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return false;
#if defined(SO_NOSIGPIPE)
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    return true;
}

static bool bind_and_listen(int fd, const union tn_net_address *address, socklen_t n,
                            uint16_t *bound)
{
    int on = 1;
    union tn_net_address got;
    socklen_t n_got = sizeof got;
    /* Without it the port of a server stays in use for a minute after it exits. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->any.sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (!prepare(fd) || bind(fd, &address->any, n) != 0 || listen(fd, 128) != 0 ||
        getsockname(fd, &got.any, &n_got) != 0)
        return false;
    *bound = ntohs(got.any.sa_family == AF_INET ? got.v4.sin_port : got.v6.sin6_port);
    return true;
}

tern_status tn_net_listen(tn_socket *out, const char *host, uint16_t port, uint16_t *bound,
                          bool *in_use, bool *no_family, struct tern_error *err)
{
    union tn_net_address address;
    socklen_t n = tn_net_make_address(&address, host, port);
    *out = TN_NO_SOCKET;
    *bound = 0;
    if (n == 0)
        return tn_fail(err, TERN_USAGE, "\"%s\" is not a numeric address", host);
    int fd = socket(address.any.sa_family, SOCK_STREAM, 0);
    if (fd >= 0 && bind_and_listen(fd, &address, n, bound)) {
        *out = fd;
        return tn_ok(err);
    }
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    if (in_use)
        *in_use = why == EADDRINUSE;
    if (no_family)
        *no_family = why == EAFNOSUPPORT || why == EADDRNOTAVAIL;
    return tn_fail(err, TERN_OUTPUT, "cannot listen at %s port %u: %s%s", host, port, strerror(why),
                   why == EADDRINUSE ? "; --port 0 selects a free one" : "");
}

tn_socket tn_net_accept(tn_socket listener, bool *is_full)
{
    int on = 1, n_send = SEND_BYTES;
    int fd = accept((int)listener, NULL, NULL);
    *is_full = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS);
    if (fd < 0)
        return TN_NO_SOCKET;
    if (!prepare(fd)) {
        (void)close(fd);
        return TN_NO_SOCKET;
    }
    /* Tokens are small, and each should arrive immediately. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n_send, sizeof n_send);
    return fd;
}

void tn_net_shutdown(tn_socket socket)
{
    (void)shutdown((int)socket, SHUT_WR);
}

void tn_net_close(tn_socket socket)
{
    if (socket != TN_NO_SOCKET)
        (void)close((int)socket);
}

/* ---- bytes ---- */

static int64_t result(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? TN_NET_AGAIN : TN_NET_GONE;
}

int64_t tn_net_read(tn_socket socket, void *dst, size_t n_bytes)
{
    return result(recv((int)socket, dst, n_bytes, 0));
}

int64_t tn_net_write(tn_socket socket, const void *src, size_t n_bytes)
{
#if defined(MSG_NOSIGNAL)
    return result(send((int)socket, src, n_bytes, MSG_NOSIGNAL));
#else
    return result(send((int)socket, src, n_bytes, 0));
#endif
}

/* ---- waiting ---- */

static int wake_pipe[2] = {-1, -1};

tern_status tn_net_wake_init(struct tern_error *err)
{
    if (wake_pipe[0] >= 0)
        return tn_ok(err);
    if (pipe(wake_pipe) != 0 || !prepare(wake_pipe[0]) || !prepare(wake_pipe[1]))
        return tn_fail(err, TERN_OUTPUT, "cannot make a pipe: %s", strerror(errno));
    return tn_ok(err);
}

void tn_net_wake(void)
{
    /* A full pipe also wakes the waiting thread. */
    if (wake_pipe[1] >= 0)
        (void)!write(wake_pipe[1], "", 1);
}

void tn_net_wait(struct tn_net_item *items, size_t n_items, uint32_t timeout_ms)
{
    struct pollfd fds[TN_NET_MAX_ITEMS + 1];
    char scratch[256];
    for (size_t i = 0; i < n_items; i++) {
        fds[i].fd = (int)items[i].socket;
        fds[i].events =
            (short)((items[i].wants_read ? POLLIN : 0) | (items[i].wants_write ? POLLOUT : 0));
        fds[i].revents = 0;
    }
    fds[n_items] = (struct pollfd){.fd = wake_pipe[0], .events = POLLIN};
    int n = poll(fds, (nfds_t)(n_items + 1), (int)timeout_ms);
    for (size_t i = 0; i < n_items; i++) {
        int happened = n > 0 ? fds[i].revents : 0;
        items[i].can_read = happened & (POLLIN | POLLHUP | POLLERR | POLLNVAL);
        items[i].can_write = happened & (POLLOUT | POLLERR);
        items[i].has_failed = happened & (POLLERR | POLLNVAL);
    }
    if (n > 0 && fds[n_items].revents)
        while (read(wake_pipe[0], scratch, sizeof scratch) == sizeof scratch)
            ;
}
