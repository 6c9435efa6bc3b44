/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of the shop. Owns its wording; opens nothing.
 */
#ifndef SHOP_OPTIONS_H
#define SHOP_OPTIONS_H

#include "shop.h"

#include <netinet/in.h>
#include <stdbool.h>

struct shop_options {
    struct sockaddr_in listen;
    const char *listen_text; /* As given. Borrowed from argv, like db. */
    const char *db;
    unsigned int workers; /* How many requests are worked on at once. */
    bool help;
};

/* Reads the command line. False after a message on stderr. With help, the usage went to stdout. */
bool shop_options_read(int argc, char **argv, struct shop_options *options) SHOP_MUST_CHECK;

#endif
