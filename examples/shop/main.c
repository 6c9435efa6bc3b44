/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the life of the shop's process: options, signals, listening socket, database, server, end.
 *
 *     options -> signals blocked -> database -> socket -> server -> "shop listening on …"
 *     SIGTERM or SIGINT -> stop_fd readable -> server stopped -> database closed -> exit 0
 *
 * Invariant: signals are blocked before the first thread exists, so only main waits for them.
 */
#include "arrivals.h"
#include "db.h"
#include "http.h"
#include "options.h"
#include "shop.h"
#include "switches.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_BACKLOG = 1024, OTHER_FILES = 64, CONNECTIONS_MIN = 64, CONNECTIONS_MAX = 8192 };

static void block_signals(sigset_t *awaited)
{
    (void)sigemptyset(awaited);
    (void)sigaddset(awaited, SIGTERM);
    (void)sigaddset(awaited, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, awaited, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

/* How many connections to take: every one is an open file, and the usual soft limit is low. */
static unsigned int connections_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return CONNECTIONS_MIN;
    }
    if (limit.rlim_cur < CONNECTIONS_MAX + OTHER_FILES) {
        limit.rlim_cur = limit.rlim_max < CONNECTIONS_MAX + OTHER_FILES
                             ? limit.rlim_max
                             : CONNECTIONS_MAX + OTHER_FILES;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= CONNECTIONS_MAX + OTHER_FILES) {
        return CONNECTIONS_MAX;
    }
    return limit.rlim_cur < CONNECTIONS_MIN + OTHER_FILES
               ? CONNECTIONS_MIN
               : (unsigned int)(limit.rlim_cur - OTHER_FILES);
}

/* Binds and listens, and reads the actual port back into address. -1 after a message. */
static int listen_open(struct sockaddr_in *address, const char *text)
{
    socklen_t address_bytes = sizeof(*address);
    const struct sockaddr *generic = (const struct sockaddr *)(const void *)address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(fd, generic, address_bytes) != 0 || listen(fd, LISTEN_BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)address, &address_bytes) != 0) {
        (void)fprintf(stderr,
                      "shop: --listen %s: %s; stop what uses the port, or choose another one, or "
                      "port 0 for any free one\n",
                      text, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    return fd;
}

static void announce(const struct sockaddr_in *address)
{
    char text[INET_ADDRSTRLEN] = "";

    (void)inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
    (void)printf("shop listening on %s:%u\n", text, (unsigned int)ntohs(address->sin_port));
    (void)fflush(stdout);
}

/* Serves until a signal asks for the end. The parts of the shop are open. */
static int serve(struct shop *shop, struct shop_options *options, const sigset_t *awaited)
{
    struct MHD_Daemon *daemon;
    int number = 0;
    int listen_socket = listen_open(&options->listen, options->listen_text);

    if (listen_socket < 0) {
        return EXIT_FAILURE;
    }
    daemon = shop_http_start(shop, listen_socket, connections_limit());
    if (daemon == NULL) {
        (void)fprintf(
            stderr,
            "shop: the HTTP server does not start: %s; look at the limits of threads and open "
            "files (ulimit -a)\n",
            strerror(errno));
        (void)close(listen_socket);
        return EXIT_FAILURE;
    }
    announce(&options->listen);
    (void)sigwait(awaited, &number);
    (void)eventfd_write(shop->stop_fd, 1);
    shop_http_stop(daemon);
    return EXIT_SUCCESS;
}

static bool parts_open(struct shop *shop, const struct shop_options *options)
{
    char error[512] = "";

    shop->stop_fd = eventfd(0, EFD_CLOEXEC);
    shop->workers_fd = eventfd(options->workers, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    shop->switches = shop_switches_new();
    shop->arrivals = shop_arrivals_new();
    if (shop->stop_fd < 0 || shop->workers_fd < 0 || shop->switches == NULL ||
        shop->arrivals == NULL) {
        (void)fputs("shop: no memory or no open file left; free some and start again\n", stderr);
        return false;
    }
    shop->db = shop_db_open(options->db, error, sizeof(error));
    if (shop->db == NULL) {
        (void)fprintf(stderr, "shop: --db %s: %s\n", options->db, error);
        return false;
    }
    return true;
}

static void parts_close(struct shop *shop)
{
    shop_db_close(shop->db);
    shop_arrivals_free(shop->arrivals);
    shop_switches_free(shop->switches);
    if (shop->stop_fd >= 0) {
        (void)close(shop->stop_fd);
    }
    if (shop->workers_fd >= 0) {
        (void)close(shop->workers_fd);
    }
}

int main(int argc, char **argv)
{
    struct shop_options options;
    struct shop shop = {.stop_fd = -1, .workers_fd = -1};
    sigset_t awaited;
    int status = EXIT_FAILURE;

    if (!shop_options_read(argc, argv, &options)) {
        return 2;
    }
    if (options.help) {
        return EXIT_SUCCESS;
    }
    block_signals(&awaited);
    if (parts_open(&shop, &options)) {
        status = serve(&shop, &options, &awaited);
    }
    parts_close(&shop);
    return status;
}
