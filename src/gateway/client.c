/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that ends its half of the connection, or its stream, while it is being answered. nginx
 * takes the one for a client that has gone; it may as well be one that has said all it will say,
 * and is waiting. Of the other it hears nothing while it does not abort the backend for it (R4),
 * and the backend would wait for a client that is gone.
 */
#include "gateway/gateway.h"


/* Whether the client is a stream of HTTP/2. */

#if (NGX_HTTP_V2)


static ngx_flag_t
ngx_http_counterfoil_is_h2(ngx_http_request_t *r)
{
    return r->stream != NULL;
}


#else


static ngx_flag_t
ngx_http_counterfoil_is_h2(ngx_http_request_t *r)
{
    return 0;
}


#endif


/*
 * While the rest of an answer waits to be written nginx looks for the client's end. It is not told
 * of it any more until the answer is out; a client that is really gone is found by the next write.
 */
void
ngx_http_counterfoil_stay(ngx_http_request_t *r)
{
    ngx_event_t  *rev;

    rev = r->connection->read;

    if (!ngx_http_counterfoil_is_h2(r) && rev->active) {
        (void) ngx_del_event(rev, NGX_READ_EVENT, 0);
    }
}


static void
ngx_http_counterfoil_stream_handler(ngx_http_request_t *r)
{
    ngx_connection_t            *c;
    ngx_http_counterfoil_ctx_t  *ctx;

    c = r->connection;

    if (!c->error) {
        return;
    }

    /* what waited for the stream's window is written to nobody */

    ctx = ngx_http_counterfoil_get_ctx(r);
    ctx->client_failed = 1;

    c->write->ready = 1;
    c->write->delayed = 0;

    r->write_event_handler(r);
}


/* While a response is passed on: a stream's end is told as something to read. */
void
ngx_http_counterfoil_watch_stream(ngx_http_request_t *r)
{
    if (ngx_http_counterfoil_is_h2(r)) {
        r->read_event_handler = ngx_http_counterfoil_stream_handler;
    }
}
