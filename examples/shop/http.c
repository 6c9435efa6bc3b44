/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the server and carries out the switches. Knows no order and no payment.
 *
 *     target_seen -> body_seen … -> request_answer -> reply_send | close | reset -> request_done
 *
 * Invariant: an effect is committed before any byte of its answer is sent, and a request that the
 * shop's end interrupted while it waited has no effect.
 */
#include "http.h"

#include "arrivals.h"
#include "reply.h"
#include "request.h"
#include "routes.h"
#include "switches.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

enum {
    CONNECTION_MEMORY_BYTES = 128 * 1024,
    THREAD_STACK_BYTES = 512 * 1024,
    CHUNK_BYTES = 16 * 1024,
};

/* How a request ends. */
enum ending { ENDING_ANSWER, ENDING_CLOSE, ENDING_RESET };

static int64_t clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int connection_socket(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info == NULL ? -1 : info->connect_fd;
}

/* Waits; false if the shop is to end first. The other side's leaving changes nothing: a real shop
 * would go on working too. */
static bool wait_ms(const struct shop *shop, json_int_t delay_ms)
{
    struct pollfd stop = {.fd = shop->stop_fd, .events = POLLIN};
    int64_t until_ms;

    if (delay_ms == 0) {
        return true;
    }
    until_ms = clock_ms() + delay_ms;
    for (;;) {
        int64_t left_ms = until_ms - clock_ms();

        if (left_ms <= 0) {
            return true;
        }
        if (poll(&stop, 1, (int)left_ms) > 0) {
            return false;
        }
    }
}

/* Takes one of the --workers; false if the shop is to end first. */
static bool worker_take(const struct shop *shop)
{
    struct pollfd either[2] = {
        {.fd = shop->stop_fd, .events = POLLIN},
        {.fd = shop->workers_fd, .events = POLLIN},
    };
    eventfd_t taken;

    while (eventfd_read(shop->workers_fd, &taken) != 0) {
        (void)poll(either, 2, -1);
        if (either[0].revents != 0) {
            return false;
        }
    }
    return true;
}

static void worker_give(const struct shop *shop)
{
    (void)eventfd_write(shop->workers_fd, 1);
}

/* Keeps silent until the other side leaves or the shop is to end. */
static void hang(const struct shop *shop, const struct shop_request *request)
{
    struct pollfd either[2] = {
        {.fd = shop->stop_fd, .events = POLLIN},
        {.fd = connection_socket(request->connection), .events = POLLRDHUP},
    };

    while (poll(either, 2, -1) < 0 && errno == EINTR) {
    }
}

/* Makes the system send a TCP RST now, before the server library can send a FIN. */
static void connection_reset(struct MHD_Connection *connection)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    int fd = connection_socket(connection);

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    (void)connect(fd, &nowhere, sizeof(nowhere));
}

/* Carries out the failures that come instead of the effect. False if there is none. */
static bool fail_before(enum shop_fail fail, struct shop_reply *reply, enum ending *ending)
{
    unsigned int status = fail == SHOP_FAIL_500   ? 500
                          : fail == SHOP_FAIL_502 ? 502
                          : fail == SHOP_FAIL_503 ? 503
                                                  : 0;

    if (status != 0) {
        shop_reply_error(reply, status, "the shop was told to fail; nothing was done");
        *ending = ENDING_ANSWER;
        return true;
    }
    *ending = ENDING_RESET;
    return fail == SHOP_FAIL_RESET_BEFORE;
}

/* Carries out the failures that come after the effect. */
static enum ending fail_after(const struct shop *shop, const struct shop_request *request,
                              enum shop_fail fail)
{
    if (fail == SHOP_FAIL_RESET_AFTER_EFFECT) {
        return ENDING_RESET;
    }
    if (fail == SHOP_FAIL_CLOSE_AFTER_EFFECT) {
        return ENDING_CLOSE;
    }
    if (fail == SHOP_FAIL_HANG_AFTER_EFFECT) {
        hang(shop, request);
        return ENDING_CLOSE;
    }
    return ENDING_ANSWER;
}

/* Works on a request the switches apply to: the line drawn in switches.h. */
static enum ending request_work(struct shop *shop, const struct shop_request *request,
                                shop_handler *handler, const struct shop_mischief *mischief,
                                struct shop_reply *reply)
{
    enum ending ending;

    if (!wait_ms(shop, mischief->delay_ms)) {
        return ENDING_CLOSE;
    }
    if (fail_before(mischief->fail, reply, &ending)) {
        return ending;
    }
    handler(shop, request, reply);
    if (!wait_ms(shop, mischief->delay_after_ms)) {
        return ENDING_CLOSE;
    }
    if (mischief->status != 0) {
        reply->status = (unsigned int)mischief->status;
    }
    if (mischief->body_bytes != 0) {
        shop_reply_pad(reply, (size_t)mischief->body_bytes);
    }
    return fail_after(shop, request, mischief->fail);
}

static enum ending request_answer(struct shop *shop, struct shop_request *request,
                                  struct shop_reply *reply, struct shop_mischief *mischief)
{
    const struct shop_route *route = shop_route_find(request, reply);
    enum ending ending;

    if (route == NULL) {
        return ENDING_ANSWER;
    }
    if (route->has_effect && !shop_arrivals_note(shop->arrivals, request)) {
        return ENDING_CLOSE;
    }
    if (!route->switchable) {
        route->handler(shop, request, reply);
        return ENDING_ANSWER;
    }
    if (!shop_switches_take(shop->switches, request, mischief, reply)) {
        return ENDING_ANSWER;
    }
    if (!worker_take(shop)) {
        return ENDING_CLOSE;
    }
    ending = request_work(shop, request, route->handler, mischief, reply);
    worker_give(shop);
    return ending;
}

/* A body that is sent in chunks. */
struct chunked_body {
    char *bytes;
    size_t byte_count;
};

static ssize_t chunk_read(void *closure, uint64_t position, char *out, size_t bytes_max)
{
    const struct chunked_body *body = closure;
    size_t left = body->byte_count - (size_t)position;
    size_t taken = left < bytes_max ? left : bytes_max;

    if (left == 0) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    memcpy(out, body->bytes + position, taken);
    return (ssize_t)taken;
}

static void chunk_free(void *closure)
{
    struct chunked_body *body = closure;

    free(body->bytes);
    free(body);
}

/* Makes the library's response; it takes the reply's body over if it succeeds. */
static struct MHD_Response *response_make(struct shop_reply *reply, bool chunked)
{
    struct MHD_Response *response;
    struct chunked_body *body;

    if (reply->body == NULL) {
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }
    if (!chunked) {
        response =
            MHD_create_response_from_buffer(reply->body_bytes, reply->body, MHD_RESPMEM_MUST_FREE);
        reply->body = response == NULL ? reply->body : NULL;
        return response;
    }
    body = malloc(sizeof(*body));
    if (body == NULL) {
        return NULL;
    }
    body->bytes = reply->body;
    body->byte_count = reply->body_bytes;
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CHUNK_BYTES, chunk_read, body,
                                                 chunk_free);
    if (response == NULL) {
        free(body);
        return NULL;
    }
    reply->body = NULL;
    return response;
}

static bool headers_send(struct MHD_Response *response, const struct shop_reply *reply)
{
    if (reply->content_type != NULL &&
        MHD_add_response_header(response, "Content-Type", reply->content_type) != MHD_YES) {
        return false;
    }
    for (size_t i = 0; i < reply->header_count; i++) {
        if (MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value) !=
            MHD_YES) {
            return false;
        }
    }
    return true;
}

static enum MHD_Result reply_send(struct MHD_Connection *connection, struct shop_reply *reply,
                                  bool chunked)
{
    enum MHD_Result result = MHD_NO;
    struct MHD_Response *response;

    if (reply->broken) {
        return MHD_NO;
    }
    if (reply->status == 204 || reply->status == 304) {
        free(reply->body);
        reply->body = NULL;
        reply->content_type = NULL;
    }
    response = response_make(reply, chunked);
    if (response == NULL) {
        return MHD_NO;
    }
    if (headers_send(response, reply)) {
        result = MHD_queue_response(connection, reply->status, response);
    }
    MHD_destroy_response(response);
    return result;
}

/* The whole request is here: answers it. MHD_NO closes the connection without an answer. */
static enum MHD_Result request_finish(struct shop *shop, struct shop_request *request,
                                      const char *method)
{
    struct shop_mischief mischief = {0};
    struct shop_reply reply = {0};
    enum ending ending = ENDING_ANSWER;
    enum MHD_Result result = MHD_NO;

    if (!shop_request_complete(request, method)) {
        return MHD_NO;
    }
    if (request->body_too_long) {
        shop_reply_error(&reply, 413, "the body is longer than %d bytes", SHOP_BODY_BYTES_MAX);
    } else {
        ending = request_answer(shop, request, &reply, &mischief);
    }
    if (ending == ENDING_ANSWER) {
        result = reply_send(request->connection, &reply, mischief.chunked);
    }
    if (ending == ENDING_RESET) {
        connection_reset(request->connection);
    }
    shop_reply_clear(&reply);
    return result;
}

static void *target_seen(void *closure, const char *target, struct MHD_Connection *connection)
{
    (void)closure;
    return shop_request_new(target, connection);
}

static enum MHD_Result body_seen(void *closure, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload_data,
                                 size_t *upload_data_size, void **request_slot)
{
    struct shop_request *request = *request_slot;

    (void)connection;
    (void)url;
    (void)version;
    if (request == NULL) {
        return MHD_NO;
    }
    if (!request->started) {
        request->started = true;
        return MHD_YES;
    }
    if (*upload_data_size > 0) {
        bool kept = shop_request_append(request, upload_data, *upload_data_size);

        *upload_data_size = 0;
        return kept ? MHD_YES : MHD_NO;
    }
    return request_finish(closure, request, method);
}

static void request_done(void *closure, struct MHD_Connection *connection, void **request_slot,
                         enum MHD_RequestTerminationCode code)
{
    (void)closure;
    (void)connection;
    (void)code;
    shop_request_free(*request_slot);
    *request_slot = NULL;
}

struct MHD_Daemon *shop_http_start(struct shop *shop, int listen_socket,
                                   unsigned int connections_max)
{
    unsigned int flags =
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;

    return MHD_start_daemon(
        flags, 0, NULL, NULL, body_seen, shop, MHD_OPTION_LISTEN_SOCKET, listen_socket,
        MHD_OPTION_URI_LOG_CALLBACK, target_seen, NULL, MHD_OPTION_NOTIFY_COMPLETED, request_done,
        NULL, MHD_OPTION_CONNECTION_LIMIT, connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_THREAD_STACK_SIZE, (size_t)THREAD_STACK_BYTES,
        MHD_OPTION_END);
}

void shop_http_stop(struct MHD_Daemon *daemon)
{
    MHD_stop_daemon(daemon);
}
