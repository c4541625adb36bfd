/* SPDX-License-Identifier: MIT
 *
 * The event loop over all connections: accepting, slots, and one wait for all sockets.
 *
 * Nothing here parses or answers requests; conn.c and the host's callbacks do.
 */
#include "server/loop.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "plat/plat.h"
#include "server/conn_limits.h"

#define READ_BYTES ((size_t)64 << 10)
#define ACCEPTS_PER_TURN 32
#define TRIES_FOR_A_PORT 16
#define MAX_LISTENERS 2u
#define MAX_REFUSED 256u

static_assert(TN_CONN_MAX + MAX_LISTENERS <= TN_NET_MAX_ITEMS, "one wait for all");

/* A socket whose 503 is sent and whose connection struct was reused.  It lingers: closing it with
 * unread input would discard the answer. */
struct refused {
    tn_socket socket;
    uint64_t at_ns;
};

struct tn_loop {
    tn_socket listeners[MAX_LISTENERS];
    uint32_t n_listeners;
    uint16_t port;
    const struct tn_conn_host *host;
    struct tn_conn *conns[TN_CONN_MAX]; /* pointers, because users keep them */
    uint32_t n_conns;
    struct refused refused[MAX_REFUSED]; /* oldest first */
    uint32_t n_refused;
    struct tn_conn spare; /* used by refuse_connection */
    bool is_stopping;
    bool is_full; /* the process may open no more files: clients wait until the next tick */
    uint64_t ticked_ns;
    char scratch[READ_BYTES];
};

/* ---- listening ---- */

/* Listens on both loopback addresses; one suffices on systems without IPv6.  A port that is free on
 * one may be taken on the other: *again. */
static tern_status listen_local(struct tn_loop *loop, uint16_t port, bool *again,
                                struct tern_error *err)
{
    bool in_use = false, no_family = false;
    uint16_t bound;
    *again = false;
    tern_status status =
        tn_net_listen(&loop->listeners[0], "127.0.0.1", port, &loop->port, NULL, NULL, err);
    if (status != TERN_OK)
        return status;
    loop->n_listeners = 1;
    status = tn_net_listen(&loop->listeners[1], "::1", loop->port, &bound, &in_use, &no_family,
                           err);
    if (status == TERN_OK)
        loop->n_listeners = 2;
    else if (no_family)
        return tn_ok(err);
    *again = in_use && port == 0;
    return status;
}

static void close_listeners(struct tn_loop *loop)
{
    for (uint32_t i = 0; i < loop->n_listeners; i++)
        tn_net_close(loop->listeners[i]);
    loop->n_listeners = 0;
}

static tern_status listen_at(struct tn_loop *loop, const char *host, uint16_t port,
                             struct tern_error *err)
{
    bool again = true;
    tern_status status = TERN_OK;
    if (strcmp(host, "localhost") != 0) {
        status = tn_net_listen(&loop->listeners[0], host, port, &loop->port, NULL, NULL, err);
        loop->n_listeners = status == TERN_OK;
        return status;
    }
    for (int i = 0; i < TRIES_FOR_A_PORT && again; i++) {
        status = listen_local(loop, port, &again, err);
        if (status != TERN_OK)
            close_listeners(loop);
    }
    return status;
}

tern_status tn_loop_open(struct tn_loop **out, const char *host, uint16_t port,
                         const struct tn_conn_host *conn_host, struct tern_error *err)
{
    struct tn_loop *loop = tn_alloc_zeroed(1, sizeof *loop);
    *out = NULL;
    if (!loop)
        return tn_fail(err, TERN_MEMORY, "no memory for the server");
    loop->host = conn_host;
    tern_status status = tn_net_init(err);
    if (status == TERN_OK)
        status = tn_net_wake_init(err);
    if (status == TERN_OK)
        status = listen_at(loop, host, port, err);
    if (status != TERN_OK) {
        tn_free(loop);
        return status;
    }
    *out = loop;
    return TERN_OK;
}

static void remove_conn(struct tn_loop *loop, uint32_t i)
{
    struct tn_conn *conn = loop->conns[i];
    tn_conn_fini(conn);
    tn_free(conn);
    loop->conns[i] = loop->conns[--loop->n_conns];
}

/* Closes the n oldest. */
static void close_refused(struct tn_loop *loop, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        (void)tn_net_read(loop->refused[i].socket, loop->scratch, sizeof loop->scratch);
        tn_net_close(loop->refused[i].socket);
    }
    loop->n_refused -= n;
    memmove(loop->refused, loop->refused + n, loop->n_refused * sizeof *loop->refused);
}

void tn_loop_close(struct tn_loop *loop)
{
    if (!loop)
        return;
    close_listeners(loop);
    close_refused(loop, loop->n_refused);
    while (loop->n_conns > 0)
        remove_conn(loop, loop->n_conns - 1);
    tn_free(loop);
}

uint16_t tn_loop_port(const struct tn_loop *loop)
{
    return loop->port;
}

uint32_t tn_loop_n_connections(const struct tn_loop *loop)
{
    return loop->n_conns;
}

bool tn_loop_is_busy(const struct tn_loop *loop)
{
    for (uint32_t i = 0; i < loop->n_conns; i++)
        if (loop->conns[i]->state == TN_CONN_BUSY || tn_conn_wants_write(loop->conns[i]))
            return true;
    return false;
}

void tn_loop_stop_listening(struct tn_loop *loop)
{
    close_listeners(loop);
    loop->is_stopping = true;
}

/* ---- accepting ---- */

/* The longest-waiting connection for which is(conn) holds; n_conns: none. */
static uint32_t find_oldest(const struct tn_loop *loop, bool (*is)(const struct tn_conn *conn))
{
    uint32_t oldest = loop->n_conns;
    for (uint32_t i = 0; i < loop->n_conns; i++)
        if (is(loop->conns[i]) &&
            (oldest == loop->n_conns ||
             loop->conns[i]->reading_since_ns < loop->conns[oldest]->reading_since_ns))
            oldest = i;
    return oldest;
}

/* A kept-alive connection is closed silently, as clients expect; others get 503. */
static void end_waiting(struct tn_conn *conn, uint64_t now_ns)
{
    if (conn->was_answered && conn->request.head.n_bytes == 0)
        tn_conn_drop(conn);
    else
        tn_conn_tell_busy(conn, now_ns);
}

/* Takes the socket of a connection whose 503 is sent, and closes it later. */
static void take_refused(struct tn_loop *loop, struct tn_conn *conn, uint64_t now_ns)
{
    if (!conn->is_shut || conn->state != TN_CONN_CLOSING)
        return;
    if (loop->n_refused == MAX_REFUSED)
        close_refused(loop, 1);
    loop->refused[loop->n_refused++] = (struct refused){conn->socket, now_ns};
    conn->socket = TN_NO_SOCKET;
}

/* Drops the longest-waiting connection.  false: all have a slot, or are receiving answers. */
static bool make_room(struct tn_loop *loop, uint64_t now_ns)
{
    const uint32_t oldest = find_oldest(loop, tn_conn_is_incomplete);
    if (oldest == loop->n_conns)
        return false;
    if (!loop->conns[oldest]->is_shut)
        end_waiting(loop->conns[oldest], now_ns);
    take_refused(loop, loop->conns[oldest], now_ns);
    remove_conn(loop, oldest);
    return true;
}

/* Drops connections beyond the slots whose patience is over, oldest first. */
static void shed(struct tn_loop *loop, uint64_t now_ns)
{
    uint32_t n_open = 0;
    for (uint32_t i = 0; i < loop->n_conns; i++)
        n_open += !loop->conns[i]->is_shut;
    for (; n_open > TN_CONN_SLOTS; n_open--) {
        const uint32_t oldest = find_oldest(loop, tn_conn_is_waiting);
        if (oldest == loop->n_conns ||
            now_ns - loop->conns[oldest]->reading_since_ns < TN_CONN_PATIENCE_NS)
            return;
        end_waiting(loop->conns[oldest], now_ns);
    }
}

bool tn_loop_take_slot(struct tn_loop *loop, struct tn_conn *conn)
{
    const uint64_t now_ns = tn_now_ns();
    uint32_t n_slots = 0;
    struct tn_conn *late = NULL;
    for (uint32_t i = 0; i < loop->n_conns; i++) {
        struct tn_conn *other = loop->conns[i];
        n_slots += other->has_slot;
        if (other != conn && tn_conn_is_late(other, now_ns) &&
            (!late || other->reading_since_ns < late->reading_since_ns))
            late = other;
    }
    conn->has_slot = conn->has_slot || n_slots < TN_CONN_SLOTS || late;
    if (n_slots >= TN_CONN_SLOTS && late)
        tn_conn_tell_busy(late, now_ns);
    return conn->has_slot;
}

/* Refuses a client when all connections are in use, with a single shared struct. */
static void refuse_connection(struct tn_loop *loop, tn_socket socket, uint64_t now_ns)
{
    tn_conn_init(&loop->spare, socket, loop->host, now_ns);
    tn_conn_tell_busy(&loop->spare, now_ns);
    take_refused(loop, &loop->spare, now_ns);
    tn_conn_fini(&loop->spare);
}

static void accept_all(struct tn_loop *loop, tn_socket listener, uint64_t now_ns)
{
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        tn_socket socket = tn_net_accept(listener, &loop->is_full);
        if (socket == TN_NO_SOCKET)
            return;
        bool has_room = loop->n_conns < TN_CONN_MAX || make_room(loop, now_ns);
        struct tn_conn *conn = has_room ? tn_alloc(sizeof *conn) : NULL;
        if (!conn) {
            refuse_connection(loop, socket, now_ns);
            continue;
        }
        tn_conn_init(conn, socket, loop->host, now_ns);
        loop->conns[loop->n_conns++] = conn;
        /* Read pending input first, before the connection may be dropped for another. */
        tn_conn_read(conn, loop->scratch, sizeof loop->scratch, now_ns);
    }
}

/* ---- one turn ---- */

static void remove_dead(struct tn_loop *loop)
{
    for (uint32_t i = loop->n_conns; i-- > 0;) {
        const struct tn_conn *conn = loop->conns[i];
        if (conn->state == TN_CONN_DEAD ||
            (loop->is_stopping && conn->state != TN_CONN_BUSY && !tn_conn_wants_write(conn)))
            remove_conn(loop, i);
    }
}

void tn_loop_flush(struct tn_loop *loop)
{
    uint64_t now_ns = tn_now_ns();
    for (uint32_t i = 0; i < loop->n_conns; i++)
        tn_conn_advance(loop->conns[i], now_ns);
    remove_dead(loop);
}

void tn_loop_end_answers(struct tn_loop *loop)
{
    for (uint32_t i = 0; i < loop->n_conns; i++) {
        struct tn_conn *conn = loop->conns[i];
        if (conn->state == TN_CONN_BUSY && !conn->is_answered && conn->user.on_stop)
            conn->user.on_stop(conn->user.arg);
    }
    tn_loop_flush(loop);
}

static size_t collect(const struct tn_loop *loop, struct tn_net_item *items)
{
    size_t n = 0;
    for (uint32_t i = 0; i < loop->n_conns; i++)
        items[n++] = (struct tn_net_item){.socket = loop->conns[i]->socket,
                                          .wants_read = tn_conn_wants_read(loop->conns[i]),
                                          .wants_write = tn_conn_wants_write(loop->conns[i]),
                                          .has_ended = loop->conns[i]->has_ended};
    for (uint32_t i = 0; i < loop->n_listeners; i++)
        items[n++] = (struct tn_net_item){.socket = loop->listeners[i],
                                          .wants_read = !loop->is_full};
    return n;
}

static bool is_due(const struct tn_loop *loop)
{
    for (uint32_t i = 0; i < loop->n_conns; i++)
        if (tn_conn_is_due(loop->conns[i]))
            return true;
    return false;
}

static void serve(struct tn_loop *loop, struct tn_conn *conn, const struct tn_net_item *item,
                  uint64_t now_ns)
{
    if (item->can_write)
        tn_conn_write(conn, now_ns);
    /* A read may report a reset as the end of the data (wine), which would not stop the answer. */
    if (item->has_failed || (item->can_read && !item->wants_read)) /* or both sides are closed */
        tn_conn_drop(conn);
    else if (item->can_read && conn->state != TN_CONN_DEAD)
        tn_conn_read(conn, loop->scratch, sizeof loop->scratch, now_ns);
    if (conn->state != TN_CONN_DEAD)
        tn_conn_advance(conn, now_ns);
}

static void tick(struct tn_loop *loop, uint64_t now_ns)
{
    if (now_ns - loop->ticked_ns < TN_SECOND_NS)
        return;
    loop->ticked_ns = now_ns;
    loop->is_full = false;
    uint32_t n_old = 0;
    while (n_old < loop->n_refused && now_ns - loop->refused[n_old].at_ns > TN_CONN_LINGER_NS)
        n_old++;
    close_refused(loop, n_old);
    for (uint32_t i = 0; i < loop->n_conns; i++) {
        tn_conn_tick(loop->conns[i], now_ns);
        tn_conn_advance(loop->conns[i], now_ns);
    }
}

void tn_loop_turn(struct tn_loop *loop, uint32_t timeout_ms)
{
    struct tn_net_item items[TN_NET_MAX_ITEMS];
    uint32_t n_conns = loop->n_conns;
    size_t n = collect(loop, items);
    tn_net_wait(items, n, is_due(loop) ? 0 : timeout_ms);
    uint64_t now_ns = tn_now_ns();
    for (uint32_t i = 0; i < n_conns; i++)
        if (items[i].can_read || items[i].can_write)
            serve(loop, loop->conns[i], &items[i], now_ns);
    now_ns = tn_now_ns(); /* not before the start of a request that was read above */
    tick(loop, now_ns);
    shed(loop, now_ns);
    remove_dead(loop);
    for (size_t i = n_conns; i < n; i++)
        if (items[i].can_read)
            accept_all(loop, items[i].socket, now_ns);
}
