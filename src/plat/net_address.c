/* SPDX-License-Identifier: MIT
 *
 * Numeric socket addresses, IPv4 and IPv6, from texts.  Names are never resolved: the server
 * listens only at addresses that the user typed.
 */
#include "plat/net_address.h"

#include <string.h>

#include "plat/net.h"

socklen_t tn_net_make_address(union tn_net_address *out, const char *host, uint16_t port)
{
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, host, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        return sizeof out->v4;
    }
    if (inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port);
        return sizeof out->v6;
    }
    return 0;
}

bool tn_net_is_address(const char *host, bool *is_loopback)
{
    union tn_net_address address;
    *is_loopback = false;
    if (tn_net_make_address(&address, host, 0) == 0)
        return false;
    if (address.any.sa_family == AF_INET)
        *is_loopback = ntohl(address.v4.sin_addr.s_addr) >> 24 == 127;
    else
        *is_loopback = IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
    return true;
}
