/* SPDX-License-Identifier: MIT
 *
 * Socket addresses from numeric texts: the same on POSIX and Windows except for the headers.  For
 * posix_net.c and win32_net.c.
 */
#ifndef TN_NET_ADDRESS_H
#define TN_NET_ADDRESS_H

#ifdef _WIN32
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#endif
#include <stdint.h>

union tn_net_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Length of the address; 0: the text is not an address. */
socklen_t tn_net_make_address(union tn_net_address *out, const char *host, uint16_t port);

#endif
