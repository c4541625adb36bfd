/* SPDX-License-Identifier: MIT
 *
 * Measures `tern serve` from its clients: one for each PROMPT, all at the same time, each a stream
 * of /v1/completions over a separate connection.
 *
 *   bench_server PORT TOKENS SEED PROMPT...
 *
 * One thread waits for all of them, so that it takes almost no time from the server.  Prints, in
 * one line of JSON: ms until the first text of each; tokens per second of all together, from when
 * each has its first text until the last one ends; the number of cached ids of the prompts. A token
 * may end inside a character, whose text comes with a later one: the tokens of an interval are
 * counted by events and scaled by the usage of the answer.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "plat/plat.h"

#define MOST 64

struct client {
    int fd;
    uint64_t start_ns, first_ns;
    struct tn_buf line;   /* the current incomplete line */
    uint32_t n_events;    /* with text */
    uint32_t n_before;    /* of these, those before the last client had its first */
    uint32_t n_tokens, n_prompt, n_cached;
    bool is_done;
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "bench_server: %s %.300s\n", what, detail);
    exit(1);
}

/* ---- the request ---- */

static void append_json(struct tn_buf *out, const char *text)
{
    tn_buf_append_text(out, "\"");
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ')
            die("a prompt is one line:", text);
        tn_buf_append(out, "\\", *c == '"' || *c == '\\');
        tn_buf_append(out, c, 1);
    }
    tn_buf_append_text(out, "\"");
}

static void make_request(struct tn_buf *out, const char *prompt, const char *n_tokens,
                         const char *seed)
{
    struct tn_buf body = {0};
    tn_buf_append_text(&body, "{\"prompt\":");
    append_json(&body, prompt);
    tn_buf_printf(&body,
                  ",\"max_tokens\":%s,\"seed\":%s,\"ignore_eos\":true,\"stream\":true,"
                  "\"stream_options\":{\"include_usage\":true}}",
                  n_tokens, seed);
    tn_buf_printf(out,
                  "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                  body.n_bytes);
    tn_buf_append(out, body.data, body.n_bytes);
    if (body.failed || out->failed)
        die("no memory", "");
    tn_buf_fini(&body);
}

static void start(struct client *c, uint16_t port, const char *prompt, const char *n_tokens,
                  const char *seed)
{
    struct tn_buf request = {0};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    make_request(&request, prompt, n_tokens, seed);
    c->start_ns = tn_now_ns();
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)(void *)&address, sizeof address) != 0)
        die("cannot connect", "");
    for (size_t n_sent = 0; n_sent < request.n_bytes;) {
        const ssize_t n = send(c->fd, request.data + n_sent, request.n_bytes - n_sent, 0);
        if (n <= 0)
            die("cannot send", "");
        n_sent += (size_t)n;
    }
    tn_buf_fini(&request);
}

/* ---- the answer ---- */

static uint32_t count_of(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? (uint32_t)atoi(at + strlen(key)) : 0;
}

static void take_line(struct client *c, const char *line, uint64_t now_ns)
{
    if (strncmp(line, "HTTP/", 5) == 0 && !strstr(line, " 200 "))
        die("the server says", line);
    if (strncmp(line, "data: ", 6) != 0)
        return;
    if (strncmp(line + 6, "{\"error\"", 8) == 0)
        die("the server says", line + 6);
    if (strcmp(line + 6, "[DONE]") == 0)
        c->is_done = true;
    else if (strstr(line, "\"completion_tokens\":")) {
        c->n_tokens = count_of(line, "\"completion_tokens\":");
        c->n_prompt = count_of(line, "\"prompt_tokens\":");
        c->n_cached = count_of(line, "\"cached_tokens\":");
    } else if (strstr(line, "\"text\":\"") && !strstr(line, "\"text\":\"\"")) {
        c->n_events++;
        c->first_ns = c->first_ns ? c->first_ns : now_ns;
    }
}

static void receive(struct client *c)
{
    char bytes[16384];
    const ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
    const uint64_t now_ns = tn_now_ns();
    if (n <= 0)
        die("the answer is not complete:", tn_buf_text(&c->line));
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] != '\n') {
            tn_buf_append(&c->line, &bytes[i], 1);
            continue;
        }
        take_line(c, tn_buf_text(&c->line), now_ns);
        tn_buf_clear(&c->line);
    }
}

/* Runs until all have ended; returns the time at which the last one had its first text. */
static uint64_t run(struct client *clients, uint32_t n)
{
    struct pollfd fds[MOST];
    uint64_t all_ns = 0;
    for (uint32_t n_open = n; n_open > 0;) {
        uint32_t n_first = 0;
        for (uint32_t i = 0; i < n; i++)
            fds[i] = (struct pollfd){.fd = clients[i].is_done ? -1 : clients[i].fd,
                                     .events = POLLIN};
        if (poll(fds, n, -1) < 0)
            die("cannot wait", "");
        for (uint32_t i = 0; i < n; i++)
            if (fds[i].revents) {
                receive(&clients[i]);
                n_open -= clients[i].is_done;
            }
        for (uint32_t i = 0; i < n; i++)
            n_first += clients[i].first_ns != 0;
        if (n_first < n || all_ns)
            continue;
        all_ns = tn_now_ns();
        for (uint32_t i = 0; i < n; i++)
            clients[i].n_before = clients[i].n_events;
    }
    return all_ns;
}

static void print(const struct client *clients, uint32_t n, double seconds)
{
    double n_tokens = 0;
    printf("{\"first_ms\":[");
    for (uint32_t i = 0; i < n; i++) {
        const struct client *c = &clients[i];
        printf("%s%.3f", i ? "," : "", 1e-6 * (double)(c->first_ns - c->start_ns));
        n_tokens += (double)c->n_tokens * (c->n_events - c->n_before) / c->n_events;
    }
    printf("],\"tok_s\":%.3f,\"tokens\":%u,\"prompt_tokens\":%u,\"cached_tokens\":%u}\n",
           n_tokens / seconds, clients[n - 1].n_tokens, clients[n - 1].n_prompt,
           clients[n - 1].n_cached);
}

int main(int argc, char **argv)
{
    static struct client clients[MOST];
    const uint32_t n = (uint32_t)(argc - 4);
    if (argc < 5 || n > MOST) {
        fprintf(stderr, "usage: bench_server PORT TOKENS SEED PROMPT...\n");
        return 2;
    }
    for (uint32_t i = 0; i < n; i++)
        start(&clients[i], (uint16_t)atoi(argv[1]), argv[4 + i], argv[2], argv[3]);
    const uint64_t all_ns = run(clients, n);
    print(clients, n, tn_seconds_since(all_ns));
    for (uint32_t i = 0; i < n; i++) {
        (void)close(clients[i].fd);
        tn_buf_fini(&clients[i].line);
    }
    return 0;
}
