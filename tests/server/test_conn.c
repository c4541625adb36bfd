/* SPDX-License-Identifier: MIT
 *
 * Connections whose client reads its answer slowly, or not at all: the memory they hold is counted,
 * they time out, and their slots are reused under load.  The test has both ends of a connection and
 * controls the clock.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "plat/plat.h"
#include "server/conn.h"
#include "server/conn_limits.h"
#include "server/loop.h"

#define MIB ((size_t)1 << 20)

static char body[3 * MIB];
static size_t n_body;
static int n_done, status_done;
static struct tn_budget budget;

static bool on_head(void *arg, struct tn_conn *conn)
{
    (void)arg;
    (void)conn;
    return true;
}

static void on_request(void *arg, struct tn_conn *conn)
{
    (void)arg;
    tn_reply(conn, 200, "text/plain", NULL, body, n_body);
}

static void on_done(void *arg, const struct tn_conn *conn, int status)
{
    (void)arg;
    (void)conn;
    n_done++;
    status_done = status;
}

static void append_error(void *arg, const struct tn_conn *conn, int status, const char *why,
                         struct tn_buf *out)
{
    (void)arg;
    tn_buf_printf(out, "[%d, \"%.*s\", \"%s\"]", status, (int)conn->request.path.n_bytes,
                  conn->request.path.data, why);
}

static const struct tn_conn_host host = {
    .on_head = on_head, .on_request = on_request, .on_done = on_done,
    .append_error = append_error, .budget = &budget};

struct pair {
    struct tn_conn conn;
    int client;
    uint64_t now_ns;
};

/* The client has requested n bytes and reads nothing yet. */
static void ask(struct pair *p, size_t n, const char *fields)
{
    static char scratch[4096];
    char request[200];
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(fcntl(fds[i], F_SETFL, O_NONBLOCK), 0);
    p->now_ns = 1000ull * TN_SECOND_NS;
    p->client = fds[1];
    n_body = n;
    tn_conn_init(&p->conn, fds[0], &host, p->now_ns);
    int n_request =
        snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    assert_int_equal(write(p->client, request, (size_t)n_request), n_request);
    tn_conn_read(&p->conn, scratch, sizeof scratch, p->now_ns);
    tn_conn_advance(&p->conn, p->now_ns);
}

static char taken[64 << 10]; /* the bytes read last */

static size_t take(struct pair *p, size_t n)
{
    size_t n_taken = 0;
    ssize_t n_now;
    while (n_taken < n &&
           (n_now = read(p->client, taken, TN_MIN(sizeof taken - 1, n - n_taken))) > 0) {
        taken[n_now] = '\0';
        n_taken += (size_t)n_now;
        tn_conn_advance(&p->conn, p->now_ns);
    }
    return n_taken;
}

/* Advances the clock by seconds, in each of which the client reads n bytes. */
static void wait(struct pair *p, int seconds, size_t n)
{
    for (int i = 0; i < seconds && p->conn.state != TN_CONN_DEAD; i++) {
        p->now_ns += TN_SECOND_NS;
        if (n > 0)
            (void)take(p, n);
        tn_conn_tick(&p->conn, p->now_ns);
        tn_conn_advance(&p->conn, p->now_ns);
    }
}

static void end(struct pair *p)
{
    tn_conn_fini(&p->conn);
    close(p->client);
    assert_int_equal(budget.n_held, 0);
}

static int begin_test(void **state)
{
    (void)state;
    memset(body, 'x', sizeof body);
    n_done = status_done = 0;
    budget = (struct tn_budget){.n_bytes = 4 * MIB};
    return 0;
}

static void an_answer_on_its_way_is_held(void **state)
{
    struct pair one, two, three;
    (void)state;
    ask(&one, 3 * MIB, "");
    assert_int_equal(status_done, 200);
    assert_in_range(budget.n_held, 3 * MIB - TN_CONN_MAX_UNSENT, 3 * MIB);
    ask(&two, 3 * MIB, ""); /* no memory is left for another one */
    assert_int_equal(status_done, 503);
    assert_in_range(take(&two, MIB), 1, 1000);
    assert_non_null(strstr(taken, "\r\n\r\n[503, \"/\", \"no memory for the answer: "));
    ask(&three, TN_CONN_MAX_UNSENT / 2, ""); /* a small one takes none of the budget */
    assert_int_equal(status_done, 200);
    while (take(&one, MIB) > 0)
        ;
    assert_int_equal(budget.n_held, 0);
    end(&three);
    end(&two);
    end(&one);
}

static void memory_is_released_when_a_client_disconnects(void **state)
{
    struct pair p;
    (void)state;
    ask(&p, 3 * MIB, "");
    assert_true(budget.n_held > 2 * MIB);
    end(&p);
}

static void readers_are_not_dropped_for_others(void **state)
{
    struct pair p;
    (void)state;
    for (int keeps = 0; keeps < 2; keeps++) {
        ask(&p, 3 * MIB, keeps ? "" : "Connection: close\r\n");
        assert_int_equal(p.conn.state, keeps ? TN_CONN_READING : TN_CONN_CLOSING);
        assert_true(tn_conn_wants_write(&p.conn));
        assert_false(tn_conn_is_incomplete(&p.conn));
        while (take(&p, MIB) > 0)
            ;
        assert_true(tn_conn_is_incomplete(&p.conn)); /* it is sent completely */
        end(&p);
    }
}

/* A client that shuts down its sending side still receives. */
static void a_half_close_gets_its_answer(void **state)
{
    static char scratch[4096];
    struct pair p;
    (void)state;
    ask(&p, 3 * MIB, "");
    assert_int_equal(write(p.client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27), 27);
    assert_int_equal(shutdown(p.client, SHUT_WR), 0);
    size_t n = take(&p, MIB);
    assert_true(n >= MIB);
    for (int i = 0; i < 1000 && p.conn.state != TN_CONN_DEAD; i++) {
        if (tn_conn_wants_read(&p.conn))
            tn_conn_read(&p.conn, scratch, sizeof scratch, p.now_ns);
        tn_conn_advance(&p.conn, p.now_ns);
        n += take(&p, MIB);
    }
    assert_int_equal(p.conn.state, TN_CONN_DEAD);
    assert_int_equal(n_done, 2);
    assert_true(n > 6 * MIB);
    end(&p);
}

static void slow_readers_end(void **state)
{
    struct pair p;
    (void)state;
    ask(&p, 3 * MIB, "");
    wait(&p, 32, 0); /* reads nothing */
    assert_int_equal(p.conn.state, TN_CONN_DEAD);
    end(&p);
    ask(&p, 3 * MIB, "");
    wait(&p, 64, 100); /* reads a little each second */
    assert_int_equal(p.conn.state, TN_CONN_DEAD);
    end(&p);
    ask(&p, 3 * MIB, "");
    wait(&p, 100, 20000); /* reads slowly, but everything in the end */
    assert_int_not_equal(p.conn.state, TN_CONN_DEAD);
    end(&p);
}

static void only_clients_that_received_all_are_idle(void **state)
{
    const int idle_s = TN_CONN_IDLE_NS / TN_SECOND_NS;
    struct pair p;
    (void)state;
    ask(&p, 3 * MIB, "");
    wait(&p, idle_s + 10, 20000);
    assert_int_equal(p.conn.state, TN_CONN_READING);
    assert_true(tn_conn_wants_write(&p.conn));
    while (take(&p, MIB) > 0)
        ;
    assert_false(tn_conn_wants_write(&p.conn));
    wait(&p, idle_s - 2, 0);
    assert_int_equal(p.conn.state, TN_CONN_READING);
    wait(&p, 4, 0);
    assert_int_equal(p.conn.state, TN_CONN_DEAD);
    end(&p);
}

/* Pipelined requests neither delay other clients nor fill memory. */
static void pipelined_requests_are_taken_in_turns(void **state)
{
    enum { N = 60, SIZE = 64 << 10 };
    struct pair p;
    static char scratch[4096];
    size_t n_taken = 0, n_now;
    (void)state;
    ask(&p, SIZE, "");
    for (int i = 1; i < N; i++)
        assert_int_equal(write(p.client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27), 27);
    tn_conn_read(&p.conn, scratch, sizeof scratch, p.now_ns);
    tn_conn_advance(&p.conn, p.now_ns);
    assert_in_range(n_done, 2, 2 + TN_CONN_ANSWERS_PER_TURN);
    for (int i = 0; i < N; i++)
        tn_conn_advance(&p.conn, p.now_ns);
    assert_false(tn_conn_is_due(&p.conn)); /* before the client has read some */
    assert_false(tn_conn_wants_read(&p.conn));
    assert_in_range(p.conn.out.n_bytes - p.conn.n_sent, SIZE, TN_CONN_MAX_UNSENT + SIZE + 1000);
    while ((n_now = take(&p, 1000)) > 0) { /* never everything that is pending */
        n_taken += n_now;
        assert_true(budget.n_held < MIB);
    }
    assert_int_equal(n_done, N);
    assert_true(n_taken > N * (size_t)SIZE);
    assert_int_equal(p.conn.state, TN_CONN_READING);
    end(&p);
}

/* Its request is counted and logged, although no byte of the answer could be sent. */
static void a_client_that_does_not_wait_is_reported(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    static char scratch[4096];
    struct tn_conn conn;
    int fds[2];
    (void)state;
    n_body = 10;
    status_done = -1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    tn_conn_init(&conn, fds[0], &host, TN_SECOND_NS);
    assert_int_equal(write(fds[1], request, sizeof request - 1), sizeof request - 1);
    close(fds[1]);
    tn_conn_read(&conn, scratch, sizeof scratch, TN_SECOND_NS);
    tn_conn_advance(&conn, TN_SECOND_NS);
    assert_int_equal(conn.state, TN_CONN_DEAD);
    assert_int_equal(n_done, 1);
    assert_int_equal(status_done, 0);
    tn_conn_fini(&conn);
}

/* ---- the loop's clock ---- */

static uint64_t requested_ns, first_tick_ns;

static void note_tick(void *arg, uint64_t now_ns)
{
    (void)arg;
    if (!first_tick_ns)
        first_tick_ns = now_ns;
}

static void ignore(void *arg)
{
    (void)arg;
}

static void hold_request(void *arg, struct tn_conn *conn)
{
    (void)arg;
    requested_ns = tn_now_ns();
    tn_conn_hold(conn, &(struct tn_conn_user){.on_gone = ignore, .on_tick = note_tick});
}

/* The turn that reads a request may also be the one that calls on_tick, once a second: the request
 * must not look as if it had waited for ages. */
static void ticks_do_not_precede_their_request(void **state)
{
    const struct tn_conn_host holding = {.on_head = on_head, .on_request = hold_request,
                                         .on_done = on_done, .append_error = append_error};
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    struct tn_loop *loop;
    struct tern_error err;
    (void)state;
    assert_int_equal(tn_loop_open(&loop, "127.0.0.1", 0, &holding, &err), TERN_OK);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(tn_loop_port(loop)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(client, (const struct sockaddr *)(const void *)&address,
                             sizeof address), 0);
    while (tn_loop_n_connections(loop) == 0)
        tn_loop_turn(loop, 10);
    usleep(1100000); /* the next turn ticks */
    assert_int_equal(write(client, request, sizeof request - 1), sizeof request - 1);
    requested_ns = first_tick_ns = 0;
    while (!first_tick_ns)
        tn_loop_turn(loop, 10);
    assert_true(first_tick_ns >= requested_ns);
    close(client);
    tn_loop_close(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_answer_on_its_way_is_held, begin_test),
        cmocka_unit_test_setup(memory_is_released_when_a_client_disconnects, begin_test),
        cmocka_unit_test_setup(readers_are_not_dropped_for_others, begin_test),
        cmocka_unit_test_setup(a_half_close_gets_its_answer, begin_test),
        cmocka_unit_test_setup(slow_readers_end, begin_test),
        cmocka_unit_test_setup(only_clients_that_received_all_are_idle, begin_test),
        cmocka_unit_test_setup(pipelined_requests_are_taken_in_turns, begin_test),
        cmocka_unit_test_setup(a_client_that_does_not_wait_is_reported, begin_test),
        cmocka_unit_test_setup(ticks_do_not_precede_their_request, begin_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
