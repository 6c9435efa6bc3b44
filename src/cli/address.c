/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: to listen on, and of the backend. See serve.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/serve.h"

#define HOST_BYTES 256

/* A port from 1 to 65535, written without anything else. */
static bool port_valid(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits] != '\0') {
        return false;
    }
    long port = strtol(text, NULL, 10);
    return port >= 1 && port <= 65535;
}

/* Splits "host:port" or "[v6]:port"; port is NULL where there is none. False: not of that form. */
static bool split(const char *text, char host[HOST_BYTES], const char **port)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : strrchr(text, ':');
    if (text[0] == '[' && end == NULL) {
        return false;
    }
    if (text[0] == '[') {
        end++;
    }
    end = end != NULL ? end : text + strlen(text);
    size_t len = (size_t)(end - text);
    if (len == 0 || len >= HOST_BYTES || (*end != '\0' && *end != ':')) {
        return false;
    }
    memcpy(host, text, len);
    host[len] = '\0';
    *port = *end == ':' ? end + 1 : NULL;
    return true;
}

static bool ipv6_valid(const char *host)
{
    char inner[HOST_BYTES];
    struct in6_addr address;
    size_t len = strlen(host);
    if (len < 3 || host[0] != '[' || host[len - 1] != ']') {
        return false;
    }
    memcpy(inner, host + 1, len - 2);
    inner[len - 2] = '\0';
    return inet_pton(AF_INET6, inner, &address) == 1;
}

static bool ipv4_valid(const char *host)
{
    struct in_addr address;
    return inet_pton(AF_INET, host, &address) == 1;
}

static bool name_valid(const char *host)
{
    for (const char *at = host; *at != '\0'; at++) {
        bool alnum =
            (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
        if (!alnum && *at != '-' && *at != '.' && *at != '_') {
            return false;
        }
    }
    return host[0] != '-' && host[0] != '.' && host[0] != '\0';
}

bool cfoil_address_read(const char *option, const char *text, char out[CFOIL_ADDRESS_BYTES])
{
    char host[HOST_BYTES];
    const char *port = NULL;
    bool good = split(text, host, &port) && port != NULL && port_valid(port) &&
                (ipv4_valid(host) || ipv6_valid(host) || strcmp(host, "localhost") == 0);
    if (!good) {
        cfoil_complain("%s %s is not an address to listen on; write ADDR:PORT with a numeric "
                       "address and a port from 1 to 65535, as in 127.0.0.1:8080 or [::1]:8080",
                       option, text);
        return false;
    }
    (void)snprintf(out, CFOIL_ADDRESS_BYTES, "%s:%ld",
                   strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, strtol(port, NULL, 10));
    return true;
}

static bool complain_upstream(const char *text, const char *what)
{
    cfoil_complain("--upstream %s: %s; write http://HOST or http://HOST:PORT, as in "
                   "http://127.0.0.1:3000",
                   text, what);
    return false;
}

bool cfoil_upstream_read(const char *text, char out[CFOIL_ADDRESS_BYTES])
{
    if (strncmp(text, "https://", 8) == 0) {
        return complain_upstream(text, "https to the backend is not available in this version");
    }
    if (strncmp(text, "http://", 7) != 0) {
        return complain_upstream(text, "this is not an http URL");
    }

    char authority[HOST_BYTES];
    char host[HOST_BYTES];
    const char *port = NULL;
    size_t len = strcspn(text + 7, "/?#");
    const char *rest = text + 7 + len;
    if (strcmp(rest, "") != 0 && strcmp(rest, "/") != 0) {
        return complain_upstream(text, "a path is not available in this version; requests keep "
                                       "their own");
    }
    if (len == 0 || len >= sizeof(authority)) {
        return complain_upstream(text, "it has no host");
    }
    memcpy(authority, text + 7, len);
    authority[len] = '\0';
    if (strchr(authority, '@') != NULL) {
        return complain_upstream(text, "a user name does not belong into it");
    }
    if (!split(authority, host, &port) || !(ipv6_valid(host) || name_valid(host))) {
        return complain_upstream(text, "its host is not valid");
    }
    if (port != NULL && !port_valid(port)) {
        return complain_upstream(text, "its port is not one from 1 to 65535");
    }
    (void)snprintf(out, CFOIL_ADDRESS_BYTES, "%s:%ld", host,
                   port != NULL ? strtol(port, NULL, 10) : 80L);
    return true;
}

/* getaddrinfo over "host:port". Returns its status; the list is the caller's. */
static int resolve(const char *address, struct addrinfo **list)
{
    char host[HOST_BYTES];
    const char *port = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    *list = NULL;
    if (!split(address, host, &port)) {
        return EAI_NONAME;
    }
    size_t len = strlen(host);
    if (host[0] == '[') {
        host[len - 1] = '\0';
        return getaddrinfo(host + 1, port, &hints, list);
    }
    return getaddrinfo(host, port, &hints, list);
}

bool cfoil_upstream_resolves(const char *upstream)
{
    struct addrinfo *list;
    int status = resolve(upstream, &list);
    if (status != 0) {
        cfoil_complain("--upstream: the address of %s cannot be found: %s; check the name",
                       upstream, gai_strerror(status));
        return false;
    }
    freeaddrinfo(list);
    return true;
}

bool cfoil_address_free(const char *option, const char *address)
{
    struct addrinfo *list;
    if (resolve(address, &list) != 0) {
        return true; /* nginx will say what it thinks of it */
    }
    int why = 0;
    int reuse = 1;
    int probe = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe >= 0) {
        (void)setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
        why = bind(probe, list->ai_addr, list->ai_addrlen) != 0 ? errno : 0;
        (void)close(probe);
    }
    freeaddrinfo(list);
    if (why == 0) {
        return true;
    }
    cfoil_complain("%s %s cannot be used: %s; choose another address or port", option, address,
                   strerror(why));
    return false;
}
