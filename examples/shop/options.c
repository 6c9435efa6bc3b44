/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the reading of options. Invariant: what it accepts, main.c can use without further checks.
 */
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_DEFAULT = 1024, WORKERS_MAX = 16384 };

static const char USAGE[] =
    "usage: %s --listen ADDRESS:PORT --db FILE [--workers N]\n"
    "\n"
    "A demo shop: orders, payments, coupons, its own books, and switches to make it slow or fail.\n"
    "\n"
    "  --listen ADDRESS:PORT  IPv4 address and port; port 0 takes a free one and prints it\n"
    "  --db FILE              SQLite database; made if it is missing\n"
    "  --workers N            threads that work on requests at once; further requests wait, idle\n"
    "                         connections do not count (default 1024)\n"
    "  --help                 this text\n";

/* A whole number from text, or -1. */
static long number_of(const char *text, long minimum, long maximum)
{
    char *end = NULL;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < minimum || number > maximum) {
        return -1;
    }
    return number;
}

static bool read_listen(const char *text, struct shop_options *options)
{
    char address[INET_ADDRSTRLEN];
    const char *colon = strrchr(text, ':');
    size_t address_bytes = colon == NULL ? 0 : (size_t)(colon - text);
    long port = colon == NULL ? -1 : number_of(colon + 1, 0, 65535);

    if (port >= 0 && address_bytes < sizeof(address)) {
        memcpy(address, text, address_bytes);
        address[address_bytes] = '\0';
        options->listen.sin_family = AF_INET;
        options->listen.sin_port = htons((uint16_t)port);
        options->listen_text = text;
        if (inet_pton(AF_INET, address, &options->listen.sin_addr) == 1) {
            return true;
        }
    }
    (void)fprintf(stderr,
                  "shop: --listen %s: not an IPv4 address and port; write it as 127.0.0.1:9000, or "
                  "127.0.0.1:0 for any free port\n",
                  text);
    return false;
}

static bool read_workers(const char *text, struct shop_options *options)
{
    long workers = number_of(text, 1, WORKERS_MAX);

    if (workers < 0) {
        (void)fprintf(stderr, "shop: --workers %s: must be a whole number between 1 and %d\n", text,
                      WORKERS_MAX);
        return false;
    }
    options->workers = (unsigned int)workers;
    return true;
}

static bool check_complete(int argc, char **argv, const struct shop_options *options)
{
    if (optind < argc) {
        (void)fprintf(stderr, "shop: %s: not an option; --help lists the options\n", argv[optind]);
        return false;
    }
    if (options->listen_text == NULL) {
        (void)fputs("shop: --listen is missing; add, for example, --listen 127.0.0.1:9000\n",
                    stderr);
        return false;
    }
    if (options->db == NULL) {
        (void)fputs("shop: --db is missing; add the file for the books, for example --db shop.db\n",
                    stderr);
        return false;
    }
    return true;
}

bool shop_options_read(int argc, char **argv, struct shop_options *options)
{
    static const struct option names[] = {
        {"listen", required_argument, NULL, 'l'},
        {"db", required_argument, NULL, 'd'},
        {"workers", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int name;

    memset(options, 0, sizeof(*options));
    options->workers = WORKERS_DEFAULT;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (name) {
        case 'l':
            if (!read_listen(optarg, options)) {
                return false;
            }
            break;
        case 'd':
            options->db = optarg;
            break;
        case 'w':
            if (!read_workers(optarg, options)) {
                return false;
            }
            break;
        case 'h':
            options->help = true;
            (void)printf(USAGE, program_invocation_short_name);
            return true;
        default:
            (void)fputs("shop: --help lists the options\n", stderr);
            return false;
        }
    }
    return check_complete(argc, argv, options);
}
