/* SPDX-License-Identifier: MIT
 *
 * A replacement of curl on Windows, for tests under an emulator without it: reads the options that
 * tern writes (hub/curl.c), sends a request to a server on this computer, and copies the response,
 * head and body, to standard output.  http only, one request, until the server closes or the length
 * is reached.
 */
#define WIN32_LEAN_AND_MEAN
#include <winsock2.h>
#include <ws2tcpip.h>

#include <fcntl.h>
#include <io.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COULD_NOT_CONNECT 7 /* exit codes of curl */
#define PARTIAL_FILE 18

struct options {
    char host[256], port[16], path[4096], range[64], header[4096];
};

/* The value of `name = "value"`; false: another option. */
static bool read_option(char *dst, size_t n_dst, const char *line, const char *name)
{
    const size_t n_name = strlen(name);
    const char *end = strrchr(line, '"');
    if (strncmp(line, name, n_name) != 0 || strncmp(line + n_name, " = \"", 4) != 0)
        return false;
    snprintf(dst, n_dst, "%.*s", (int)(end - line - (int)n_name - 4), line + n_name + 4);
    return true;
}

static bool read_options(struct options *out)
{
    char line[8192], url[4096] = "";
    while (fgets(line, sizeof line, stdin))
        if (!read_option(url, sizeof url, line, "url") &&
            !read_option(out->range, sizeof out->range, line, "range"))
            (void)read_option(out->header, sizeof out->header, line, "header");
    strcpy(out->port, "80");
    strcpy(out->path, "/");
    return sscanf(url, "http://%255[^:/]:%15[0-9]%4095s", out->host, out->port, out->path) >= 1;
}

static SOCKET connect_to(const struct options *o)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(o->host, o->port, &hints, &found) != 0)
        return INVALID_SOCKET;
    SOCKET s = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
    if (s != INVALID_SOCKET && connect(s, found->ai_addr, (int)found->ai_addrlen) != 0) {
        closesocket(s);
        s = INVALID_SOCKET;
    }
    freeaddrinfo(found);
    return s;
}

static void send_request(SOCKET s, const struct options *o)
{
    char text[16384];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n",
                     o->path, o->host, o->port);
    if (o->range[0])
        n += snprintf(text + n, sizeof text - (size_t)n, "Range: bytes=%s\r\n", o->range);
    if (o->header[0])
        n += snprintf(text + n, sizeof text - (size_t)n, "%s\r\n", o->header);
    n += snprintf(text + n, sizeof text - (size_t)n, "\r\n");
    send(s, text, n, 0);
}

/* Bytes of the response including its head; -1: no length in the head, or the head is incomplete.
 */
static long long expected_bytes(const char *bytes, size_t n)
{
    for (size_t i = 0; i + 4 <= n; i++)
        if (memcmp(bytes + i, "\r\n\r\n", 4) == 0) {
            const char *length = strstr(bytes, "Content-Length: ");
            return length && length < bytes + i ? atoll(length + 16) + (long long)i + 4 : -1;
        }
    return -1;
}

int main(void)
{
    static char bytes[65536];
    struct options o = {{0}, {0}, {0}, {0}, {0}};
    WSADATA data;
    _setmode(_fileno(stdout), _O_BINARY);
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0 || !read_options(&o))
        return 2;
    SOCKET s = connect_to(&o);
    if (s == INVALID_SOCKET) {
        fprintf(stderr, "curl: (7) Failed to connect to %s port %s\n", o.host, o.port);
        return COULD_NOT_CONNECT;
    }
    send_request(s, &o);
    long long n_done = 0, n_expected = -1;
    for (int n; (n = recv(s, bytes, sizeof bytes - 1, 0)) > 0;) {
        bytes[n] = '\0';
        if (n_done == 0)
            n_expected = expected_bytes(bytes, (size_t)n);
        n_done += n;
        if (fwrite(bytes, 1, (size_t)n, stdout) != (size_t)n || fflush(stdout) != 0)
            return 23;
    }
    closesocket(s);
    return n_expected < 0 || n_done == n_expected ? 0 : PARTIAL_FILE;
}
