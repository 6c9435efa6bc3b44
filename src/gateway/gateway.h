/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway inside nginx: what its files share. It owns a request's way from the PRECONTENT
 * phase to the last byte of its answer; it decides nothing of the protocol (engine/engine.h does).
 *
 *   PRECONTENT handler
 *     | route and key?   no --------------------------> nginx goes on, untouched
 *     v
 *   BODY      the body is read and fingerprinted
 *   BEGIN     the engine is asked, the request is suspended
 *   DECIDED   the verdict stands: PROBE asks the backend and comes back here,
 *     |         WAIT stays for the first one's end and goes back to BEGIN,
 *     |         any other but EXECUTE is ANSWERED by us
 *     v
 *   FORWARD   the content handler runs, guarded; the filters capture its response:
 *               HOLD ---> SETTLING ---> SEND ---> PASS      until the settle is durable (R3)
 *                 '-----> STREAM -----------------'         too long, an event stream, an upgrade
 *               TAP                                         unprotected: passed on and copied
 *
 * Invariant: a context outlives every internal redirect of its request (it is found again through
 * its pool cleanup), claims at most once, and gives its claim back in that cleanup, settled or
 * not.
 */
#ifndef CFOIL_GATEWAY_GATEWAY_H
#define CFOIL_GATEWAY_GATEWAY_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_channel.h>
#include <ngx_http.h>

#include "core/ages.h"
#include "core/outcome.h"
#include "engine/engine.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/redact.h"
#include "policy/arguments.h"
#include "policy/policy.h"


#define NGX_HTTP_COUNTERFOIL_UPSTREAMS       4
#define NGX_HTTP_COUNTERFOIL_READ_BYTES      65536
#define NGX_HTTP_COUNTERFOIL_SECRET_BYTES    32
#define NGX_HTTP_COUNTERFOIL_SECRET_MAX      4096
#define NGX_HTTP_COUNTERFOIL_SWEEP_MS        1000
#define NGX_HTTP_COUNTERFOIL_ENTROPY_BYTES   4096
#define NGX_HTTP_COUNTERFOIL_REQUEST_ID      16
#define NGX_HTTP_COUNTERFOIL_SETTLE_EXIT_MS  30000
#define NGX_HTTP_COUNTERFOIL_WAITERS_MAX     4096
#define NGX_HTTP_COUNTERFOIL_KEY_WAITERS_MAX 1024
#define NGX_HTTP_COUNTERFOIL_LOOK_MS         50    /* between looks at a key */
#define NGX_HTTP_COUNTERFOIL_WAKE_MAX        32    /* in one turn of the loop */
#define NGX_HTTP_COUNTERFOIL_WAIT_BUCKETS    1024

/*
 * The bit in r->buffered that says a response is held. It is the image filter's, which stands
 * behind us and has nothing buffered while we hold.
 */
#define NGX_HTTP_COUNTERFOIL_BUFFERED        0x08


typedef struct {
    struct cfoil_policy  *policy;
    ngx_str_t             policy_file;
    ngx_str_t             store;
    ngx_str_t             secret_file;
    ngx_msec_t            settle_wait;
    ngx_msec_t            settle_exit_max;
    ngx_int_t             waiters_max;      /* of one worker */
    ngx_int_t             key_waiters_max;  /* of one key in it */

    /* where the request id is among nginx's variables */
    ngx_int_t             request_id;

    /* ctx_index of proxy, fastcgi, uwsgi and scgi, as far as they are there */
    ngx_uint_t            upstreams[NGX_HTTP_COUNTERFOIL_UPSTREAMS];
    ngx_uint_t            nupstreams;

    /* at least one location has "counterfoil on" */
    ngx_flag_t            used;
} ngx_http_counterfoil_main_conf_t;


/* nginx takes it out of a response; a snapshot keeps it for nginx, not for the client */
#define NGX_HTTP_COUNTERFOIL_CHARSET   "X-Accel-Charset"

/* a master that was told to stop kills its workers after a second */
#define NGX_HTTP_COUNTERFOIL_LEAVE_MS  500

#define NGX_HTTP_COUNTERFOIL_HEADERS  4    /* that a claim adds to a request */

#define NGX_HTTP_COUNTERFOIL_OFF      0
#define NGX_HTTP_COUNTERFOIL_ON       1
#define NGX_HTTP_COUNTERFOIL_DRY_RUN  2


typedef struct {
    ngx_uint_t            mode;
} ngx_http_counterfoil_loc_conf_t;


/* What a master process found out at its start; inherited by its workers, kept over reloads. */
typedef struct {
    ngx_str_t             store;
    uint8_t               store_id[CFOIL_STORE_ID_BYTES];
    u_char                secret[NGX_HTTP_COUNTERFOIL_SECRET_MAX];
    size_t                secret_len;
} ngx_http_counterfoil_start_t;


/* What a worker process has one of. engine is NULL where it could not be made. */
typedef struct {
    struct cfoil_lane           *lane;
    struct cfoil_engine         *engine;
    struct cfoil_fingerprinter  *fingerprinter;
    struct cfoil_digester       *digester;
    struct cfoil_selector       *selector;
    struct cfoil_redactor       *redactor;
    struct cfoil_hmac_key       *secret;

    ngx_event_t                  flush;
    ngx_event_t                  timer;
    /* who waits for whose end: keys by their ids, and all waiters */
    ngx_queue_t                  awaited[NGX_HTTP_COUNTERFOIL_WAIT_BUCKETS];
    ngx_int_t                    waiters;

    ngx_msec_t                   exit_max;
    ngx_msec_t                   exiting_since;
    ngx_flag_t                   closing;

    /* repeats by age, for each route that had some since the last report */
    const struct cfoil_policy   *policy;
    struct cfoil_ages          **ages;
    ngx_event_t                  report;

    /* random bytes, drawn in one call, used up request by request */
    u_char                       entropy[NGX_HTTP_COUNTERFOIL_ENTROPY_BYTES];
    size_t                       entropy_left;

    /* scratch of one call: a piece of a body file, an endpoint, a probe's path */
    u_char                       buffer[NGX_HTTP_COUNTERFOIL_READ_BYTES];
} ngx_http_counterfoil_worker_t;


typedef enum {
    NGX_HTTP_COUNTERFOIL_BODY,
    NGX_HTTP_COUNTERFOIL_BEGIN,
    NGX_HTTP_COUNTERFOIL_DECIDED,
    NGX_HTTP_COUNTERFOIL_WAIT,
    NGX_HTTP_COUNTERFOIL_PROBE,
    NGX_HTTP_COUNTERFOIL_FORWARD,
    NGX_HTTP_COUNTERFOIL_ANSWERED,
    NGX_HTTP_COUNTERFOIL_DRY
} ngx_http_counterfoil_state_e;


typedef enum {
    NGX_HTTP_COUNTERFOIL_NONE,         /* no response header was seen yet */
    NGX_HTTP_COUNTERFOIL_HOLD,
    NGX_HTTP_COUNTERFOIL_SETTLING,
    NGX_HTTP_COUNTERFOIL_SEND,
    NGX_HTTP_COUNTERFOIL_TAP,
    NGX_HTTP_COUNTERFOIL_STREAM,
    NGX_HTTP_COUNTERFOIL_PASS
} ngx_http_counterfoil_hold_e;


typedef struct {
    u_char                       *data;
    size_t                        len;
    size_t                        capacity;
} ngx_http_counterfoil_body_t;


typedef struct {
    ngx_http_request_t           *request;
    ngx_http_counterfoil_body_t   body;
    ngx_str_t                     content_type;
    ngx_uint_t                    status;
    ngx_event_t                   timer;
    unsigned                      complete:1;
    unsigned                      too_long:1;
    unsigned                      reported:1;
} ngx_http_counterfoil_probe_t;


typedef struct ngx_http_counterfoil_dry_s  ngx_http_counterfoil_dry_t;


/* A key whose end is waited for in this worker: its waiters share one look at a time. */
typedef struct {
    uint8_t                       id[CFOIL_ID_BYTES];
    ngx_queue_t                   link;      /* in its bucket */
    ngx_queue_t                   waiters;
    ngx_int_t                     count;
    ngx_int_t                     to_wake;   /* of them, in steps */
    ngx_event_t                   poll;
    unsigned                      looking:1;
} ngx_http_counterfoil_awaited_t;


typedef struct {
    ngx_http_request_t           *request;
    const struct cfoil_route     *route;
    ngx_http_counterfoil_state_e  state;

    /* what is asked */
    ngx_str_t                     path;
    ngx_str_t                     args;
    ngx_str_t                     endpoint;
    ngx_str_t                     key;
    ngx_str_t                     tenant;
    enum cfoil_tenant_class       tenant_class;
    uint8_t                       id[CFOIL_ID_BYTES];

    /* what was decided; claim is NULL where the engine had none to give */
    struct cfoil_claim           *claim;
    enum cfoil_error              error;
    enum cfoil_verdict            verdict;
    enum cfoil_answer             answer;
    uint32_t                      attempt;
    uint64_t                      fence;
    int64_t                       life_ms;
    int64_t                       retry_after_ms;
    ngx_str_t                     first_request_id;

    /* how it went with the backend */
    ngx_http_handler_pt           content_handler;
    void                        (*finalize_request)(ngx_http_request_t *r,
                                      ngx_int_t rc);
    ngx_int_t                   (*process_header)(ngx_http_request_t *r);
    ngx_int_t                   (*input_filter_init)(void *data);
    ngx_int_t                   (*input_filter)(void *data, ssize_t bytes);
    ngx_event_pipe_input_filter_pt  pipe_filter;
    ngx_http_upstream_headers_in_t *no_headers;
    struct cfoil_exchange         exchange;

    /* the response as it was captured */
    ngx_http_counterfoil_hold_e   hold;
    ngx_http_counterfoil_body_t   body;
    ngx_chain_t                  *passed;           /* bufs not yet written */
    enum cfoil_settle_status      settle_status;

    ngx_http_counterfoil_probe_t *probe;
    ngx_http_counterfoil_dry_t   *dry;

    ngx_uint_t                    method;   /* as claimed; nginx may change it */

    ngx_event_t                   wait;     /* for a begin, or another's end */

    ngx_http_counterfoil_awaited_t *awaited;
    ngx_queue_t                   waiter;       /* its waiters, or those being woken */
    ngx_msec_t                    wait_until;
    enum cfoil_state              outcome;

    unsigned                      blocked:1;        /* r->main->blocked is ours */
    unsigned                      waited:1;         /* wait_until stands */
    unsigned                      woken:1;          /* in the queue of those */
    unsigned                      body_differs:1;
    unsigned                      unprotected:1;    /* let through without the store */
    unsigned                      ended:1;          /* exchange stands */
    unsigned                      accelerated:1;    /* ... and asked for a redirect */
    unsigned                      from_upstream:1;
    unsigned                      truncated:1;
    unsigned                      whole:1;          /* its end was seen */
    unsigned                      too_long:1;       /* body is not all of it */
    unsigned                      settled:1;        /* the engine knows how it ended */
    unsigned                      client_failed:1;
    unsigned                      counted:1;        /* among the repeats */
} ngx_http_counterfoil_ctx_t;


extern ngx_module_t  ngx_http_counterfoil_module;


/* start.c: the master process, and what it keeps */
ngx_int_t ngx_http_counterfoil_init_module(ngx_cycle_t *cycle);
const ngx_http_counterfoil_start_t *ngx_http_counterfoil_started(void);
ngx_flag_t ngx_http_counterfoil_store_is_memory(ngx_str_t *url);

/* worker.c: the engine and nginx's loop */
ngx_int_t ngx_http_counterfoil_init_process(ngx_cycle_t *cycle);
void ngx_http_counterfoil_exit_process(ngx_cycle_t *cycle);
/* The worker's own; NULL where this process has none. */
ngx_http_counterfoil_worker_t *ngx_http_counterfoil_worker(void);
/* To be called after every call that gave the engine something to do. */
void ngx_http_counterfoil_schedule(void);

/* repeats.c: the age at which repeats arrive */
ngx_int_t ngx_http_counterfoil_repeats_init(ngx_cycle_t *cycle,
    ngx_http_counterfoil_worker_t *w, const struct cfoil_policy *policy);
void ngx_http_counterfoil_count_repeat(ngx_http_counterfoil_ctx_t *ctx,
    const struct cfoil_result *result);
void ngx_http_counterfoil_log_repeats(ngx_http_counterfoil_worker_t *w,
    ngx_log_t *log);

/* handler.c: the way of a request. find_route: NGX_DECLINED where the policy has none for it */
ngx_int_t ngx_http_counterfoil_handler(ngx_http_request_t *r);
ngx_http_counterfoil_ctx_t *ngx_http_counterfoil_get_ctx(ngx_http_request_t *r);
ngx_int_t ngx_http_counterfoil_find_route(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t **made);
void ngx_http_counterfoil_take_result(ngx_http_counterfoil_ctx_t *ctx,
    struct cfoil_claim *claim);
void ngx_http_counterfoil_suspend(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_decided(void *data, struct cfoil_claim *claim);

void ngx_http_counterfoil_resume(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_wait_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_counterfoil_begin(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_bound_begin(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);

/* wait.c: duplicates that wait for the first one's end. wait: NGX_DECLINED where it must not */
void ngx_http_counterfoil_wait_init(ngx_http_counterfoil_worker_t *w);
ngx_int_t ngx_http_counterfoil_wait(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_wait_leave(ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_wait_settled(ngx_http_counterfoil_ctx_t *ctx);

/* tenant.c: fills in tenant and class; NGX_ABORT: it is not clear which one is meant */
ngx_int_t ngx_http_counterfoil_tenant(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);

/* request.c: what is asked */
ngx_int_t ngx_http_counterfoil_target(ngx_http_request_t *r, ngx_str_t *path,
    ngx_str_t *args);
ngx_int_t ngx_http_counterfoil_key(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
ngx_int_t ngx_http_counterfoil_scope(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
ngx_int_t ngx_http_counterfoil_request_view(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_request_view *view);
ngx_int_t ngx_http_counterfoil_hash_body(ngx_http_request_t *r,
    struct cfoil_fingerprinter *fingerprinter);
ngx_int_t ngx_http_counterfoil_fingerprint(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_begin_request *request);
ngx_int_t ngx_http_counterfoil_begin_request(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_begin_request *request);

/* headers.c: lists of headers */
typedef ngx_int_t (*ngx_http_counterfoil_drop_pt)(ngx_table_elt_t *h,
    ngx_http_counterfoil_ctx_t *ctx);
ngx_table_elt_t *ngx_http_counterfoil_header_next(ngx_list_part_t **part,
    ngx_uint_t *i);
ngx_flag_t ngx_http_counterfoil_header_same(ngx_table_elt_t *h,
    const char *name);
ngx_int_t ngx_http_counterfoil_header_join(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);
ngx_table_elt_t *ngx_http_counterfoil_header_out(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
ngx_int_t ngx_http_counterfoil_strip_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_counterfoil_forward_headers(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
ngx_int_t ngx_http_counterfoil_probe_headers(ngx_http_request_t *sr,
    ngx_http_counterfoil_ctx_t *ctx);
ngx_int_t ngx_http_counterfoil_mark(ngx_http_request_t *r, const char *name,
    const char *value);

/*
 * snapshot.c: a response as a record keeps it. redact leaves out of a body what the route does not
 * want kept; NGX_DECLINED: it cannot be told what that is, so nothing may be kept.
 */
ngx_int_t ngx_http_counterfoil_redact(ngx_pool_t *pool,
    const struct cfoil_route *route, struct cfoil_bytes *body);
ngx_int_t ngx_http_counterfoil_snapshot_headers(ngx_http_request_t *r,
    const struct cfoil_route *route, struct cfoil_bytes *framed);

/* language.c */
enum cfoil_language ngx_http_counterfoil_language(ngx_http_request_t *r);

/* expose.c: what a script of another origin may read; unexpose once the head is written */
typedef struct {
    ngx_table_elt_t  *header;    /* NULL: nothing was changed */
    ngx_str_t         before;
    ngx_flag_t        added;     /* there was none */
} ngx_http_counterfoil_exposed_t;

ngx_int_t ngx_http_counterfoil_expose(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_http_counterfoil_exposed_t *exposed);
void ngx_http_counterfoil_unexpose(ngx_http_counterfoil_exposed_t *exposed);

/* answer.c: our own answers; build fills r->headers_out and gives the body */
ngx_buf_t *ngx_http_counterfoil_answer_build(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, enum cfoil_answer answer,
    ngx_uint_t status);
ngx_int_t ngx_http_counterfoil_answer(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, enum cfoil_answer answer);
/* Sends head and body from a phase handler; the handler returns what this returns. */
ngx_int_t ngx_http_counterfoil_respond(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_buf_t *b);

/* pending.c: where a duplicate is told to look. status: 202, or as it was */
ngx_int_t ngx_http_counterfoil_accept(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_uint_t *status);

/* replay.c */
void ngx_http_counterfoil_status_line(ngx_http_request_t *r);
ngx_int_t ngx_http_counterfoil_replay(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);

/* guard.c: the content handler of a claimed request, and how its exchange ended */
ngx_int_t ngx_http_counterfoil_guard(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_watch(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_exchange(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_exchange *exchange);
ngx_msec_t ngx_http_counterfoil_read_timeout(ngx_http_request_t *r);

/* upstream.c: what is read of a backend */
void ngx_http_counterfoil_hook_header(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_hook_body(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);

/* stream.c: responses that cannot be held */
ngx_flag_t ngx_http_counterfoil_has_body(ngx_http_request_t *r);
ngx_flag_t ngx_http_counterfoil_is_stream(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_unbuffer(ngx_http_request_t *r);

/* client.c: clients that end their half, or their stream */
void ngx_http_counterfoil_stay(ngx_http_request_t *r);
void ngx_http_counterfoil_watch_stream(ngx_http_request_t *r);

/* capture.c: the filters */
ngx_int_t ngx_http_counterfoil_filter_init(ngx_conf_t *cf);
ngx_int_t ngx_http_counterfoil_body_append(ngx_pool_t *pool,
    ngx_http_counterfoil_body_t *body, ngx_buf_t *b, size_t max);

/* dry_run.c: what would have been */
ngx_int_t ngx_http_counterfoil_dry_enter(ngx_http_request_t *r);
ngx_int_t ngx_http_counterfoil_dry_again(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_dry_header(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_dry_body(ngx_http_counterfoil_ctx_t *ctx,
    ngx_chain_t *in);
void ngx_http_counterfoil_dry_over(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_dry_init(void);

/*
 * outcome.c: how an execution ended, as far as it is known now. Fills outcome, cause and resource,
 * whose id is the selector's until it reads again.
 */
void ngx_http_counterfoil_read_ending(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, struct cfoil_ending *ending);

/* settle.c: the end of an execution */
ngx_int_t ngx_http_counterfoil_settle(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_settle_background(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx, ngx_flag_t snapshot);
ngx_buf_t *ngx_http_counterfoil_held(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
void ngx_http_counterfoil_release(ngx_http_counterfoil_ctx_t *ctx);

/* probe.c */
ngx_int_t ngx_http_counterfoil_probe(ngx_http_request_t *r,
    ngx_http_counterfoil_ctx_t *ctx);
ngx_http_counterfoil_probe_t *ngx_http_counterfoil_probe_of(
    ngx_http_request_t *sr);
ngx_int_t ngx_http_counterfoil_probe_header(ngx_http_request_t *sr,
    ngx_http_counterfoil_probe_t *probe);
ngx_int_t ngx_http_counterfoil_probe_body(ngx_http_request_t *sr,
    ngx_http_counterfoil_probe_t *probe, ngx_chain_t *in);

/* variables.c */
ngx_int_t ngx_http_counterfoil_add_variables(ngx_conf_t *cf);


/*
 * Whether a header has this name, case aside. "_" counts as "-": a CGI
 * backend could not tell them apart.
 */
static ngx_inline ngx_flag_t
ngx_http_counterfoil_header_is(ngx_table_elt_t *h, const char *name)
{
    return h->key.len == ngx_strlen(name)
           && ngx_http_counterfoil_header_same(h, name);
}


static ngx_inline struct cfoil_bytes
ngx_http_counterfoil_bytes(ngx_str_t *s)
{
    return cfoil_bytes_of(s->data, s->len);
}


/* nginx's strings are not const; those made here are only read. */
static ngx_inline ngx_str_t
ngx_http_counterfoil_str(const void *data, size_t len)
{
    ngx_str_t  s;

    s.len = len;
    s.data = (u_char *) (uintptr_t) data;

    return s;
}

#endif
