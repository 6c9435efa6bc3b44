/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switchable slowness and failure: per process (POST /control) and per request (X-Shop-… headers,
 * which win). Owns the switches' state and their wording; http.c carries them out.
 *
 *     request read -> delay -> fail? -> effect -> delay_after -> status, padding -> fail? -> answer
 *                              500 502 503 reset_before        reset_ close_ hang_after_effect
 *
 * Invariant: a switch with a count applies to exactly that many matching requests.
 */
#ifndef SHOP_SWITCHES_H
#define SHOP_SWITCHES_H

#include "reply.h"
#include "request.h"
#include "shop.h"

#include <stdbool.h>
#include <stdint.h>

enum shop_fail {
    SHOP_FAIL_NONE,
    SHOP_FAIL_500,
    SHOP_FAIL_502,
    SHOP_FAIL_503,
    SHOP_FAIL_RESET_BEFORE,
    SHOP_FAIL_RESET_AFTER_EFFECT,
    SHOP_FAIL_CLOSE_AFTER_EFFECT,
    SHOP_FAIL_HANG_AFTER_EFFECT,
};

/* What is to happen to one request. */
struct shop_mischief {
    json_int_t delay_ms;
    json_int_t delay_after_ms;
    enum shop_fail fail;
    json_int_t status;     /* 0: the handler's. */
    json_int_t body_bytes; /* 0: the handler's. */
    bool chunked;
};

/* NULL when memory is short. */
struct shop_switches *shop_switches_new(void) SHOP_MUST_CHECK;

/* NULL is allowed. */
void shop_switches_free(struct shop_switches *switches);

/* Decides what happens to this request and uses up one of the count if the switch matches. False if
 * a header makes no sense; the reply is then a 400 that names it. Any thread. */
bool shop_switches_take(struct shop_switches *switches, const struct shop_request *request,
                        struct shop_mischief *mischief, struct shop_reply *reply) SHOP_MUST_CHECK;

#endif
