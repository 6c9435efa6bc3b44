/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nginx configuration serve runs with. Written for reading: whoever grows out of serve copies
 * from it into a configuration of their own. Paths were checked to need no escapes between quotes.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/serve.h"

static void print_main(const struct cfoil_serve *serve, FILE *out)
{
    (void)fprintf(
        out,
        "# Written by counterfoil serve, and again at its next start: changes do not last.\n"
        "load_module \"%s\";\n"
        "daemon off;\n"
        "master_process on;\n",
        serve->module);
    if (serve->user[0] != '\0') {
        (void)fprintf(out, "user \"%s\" \"%s\";\n", serve->user, serve->group);
    }
    if (serve->workers > 0) {
        (void)fprintf(out, "worker_processes %ld;\n", serve->workers);
    } else {
        (void)fputs("worker_processes auto;\n", out);
    }
    (void)fprintf(out,
                  "pid \"%s/nginx.pid\";\n"
                  "error_log stderr notice;\n"
                  "\n"
                  "events {\n"
                  "    worker_connections %ld;\n"
                  "}\n"
                  "\n",
                  serve->state, serve->connections);
}

static void print_places(const struct cfoil_serve *serve, FILE *out)
{
    static const char *const temporary[] = {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"};
    (void)fprintf(
        out,
        "    counterfoil_policy \"%s\";\n"
        "    counterfoil_store \"%s\";\n"
        "\n"
        "    log_format counterfoil '$remote_addr [$time_iso8601] \"$request\" $status '\n"
        "                           '$body_bytes_sent $request_time '\n"
        "                           '\"$counterfoil_verdict\" \"$counterfoil_route\"';\n"
        "    access_log \"%s/access.log\" counterfoil;\n",
        serve->policy, serve->store, serve->state);
    for (size_t i = 0; i < sizeof(temporary) / sizeof(temporary[0]); i++) {
        (void)fprintf(out, "    %s_temp_path \"%s/tmp/%s\";\n", temporary[i], serve->state,
                      temporary[i]);
    }
}

static void print_passing(const struct cfoil_serve *serve, FILE *out)
{
    (void)fprintf(
        out,
        "\n"
        "    # What a request may be is the backend's to say.\n"
        "    client_max_body_size 0;\n"
        "    large_client_header_buffers 4 32k;\n"
        "    underscores_in_headers on;\n"
        "    server_tokens off;\n"
        "\n"
        "    # The backend sees the Host the client asked for; HTTP/1.0 may come without one.\n"
        "    map $http_host $counterfoil_host {\n"
        "        \"\"      \"%s\";\n"
        "        default $http_host;\n"
        "    }\n"
        "    # Whoever ended TLS before us has said so.\n"
        "    map $http_x_forwarded_proto $counterfoil_proto {\n"
        "        \"\"      $scheme;\n"
        "        default $http_x_forwarded_proto;\n"
        "    }\n"
        "\n"
        "    # Nothing is sent to the backend twice, so a connection the backend has just closed\n"
        "    # would leave a request in doubt: idle ones are kept for a second only. A name with "
        "two\n"
        "    # addresses is two servers to nginx; neither is left out for having failed.\n"
        "    upstream counterfoil_backend {\n"
        "        server %s max_fails=0;\n"
        "        keepalive %d;\n"
        "        keepalive_timeout 1s;\n"
        "    }\n"
        "\n"
        "    proxy_http_version 1.1;\n"
        "    proxy_set_header Host $counterfoil_host;\n"
        "    proxy_set_header Connection \"\";\n"
        "    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n"
        "    proxy_set_header X-Forwarded-Proto $counterfoil_proto;\n"
        "    proxy_redirect off;\n"
        "    proxy_buffer_size 32k;\n"
        "    proxy_buffers 8 32k;\n"
        "    proxy_connect_timeout %" PRId64 "ms;\n"
        "    proxy_send_timeout %" PRId64 "ms;\n"
        "    proxy_read_timeout %" PRId64 "ms;\n",
        serve->upstream, serve->upstream, CFOIL_UPSTREAM_IDLE, serve->upstream_timeout_ms,
        serve->upstream_timeout_ms, serve->upstream_timeout_ms);
}

static void print_servers(const struct cfoil_serve *serve, FILE *out)
{
    (void)fprintf(out,
                  "\n"
                  "    server {\n"
                  "        listen %s;\n"
                  "        counterfoil %s;\n"
                  "        location / {\n"
                  "            proxy_pass http://counterfoil_backend;\n"
                  "        }\n"
                  "    }\n"
                  "\n"
                  "    server {\n"
                  "        listen %s;\n"
                  "        access_log off;\n"
                  "        counterfoil off;\n"
                  "        default_type text/plain;\n"
                  "        location = /healthz {\n"
                  "            return 200 \"ok\\n\";\n"
                  "        }\n"
                  "        location / {\n"
                  "            return 404;\n"
                  "        }\n"
                  "    }\n",
                  serve->listen, serve->dry_run ? "dry_run" : "on", serve->admin);
}

void cfoil_serve_config(const struct cfoil_serve *serve, FILE *out)
{
    print_main(serve, out);
    (void)fputs("http {\n", out);
    print_places(serve, out);
    print_passing(serve, out);
    print_servers(serve, out);
    (void)fputs("}\n", out);
}

void cfoil_serve_announce(const struct cfoil_serve *serve, FILE *out)
{
    (void)fprintf(out,
                  "counterfoil %s\n"
                  "  listens on  http://%s\n"
                  "  backend     http://%s, time-out %" PRId64 " ms\n"
                  "  admin       http://%s/healthz\n",
                  CFOIL_VERSION, serve->listen, serve->upstream, serve->upstream_timeout_ms,
                  serve->admin);
    if (serve->policy_built_in) {
        (void)fprintf(out, "  policy      built in: every POST and PATCH that carries an "
                           "Idempotency-Key\n");
    } else {
        (void)fprintf(out, "  policy      %s (%zu route%s)\n", serve->policy, serve->route_count,
                      serve->route_count == 1 ? "" : "s");
    }
    if (serve->dry_run) {
        (void)fputs(
            "  dry run     nothing is enforced: see the verdicts in access.log and the log\n", out);
    }
    (void)fprintf(out,
                  "  tenants by  %s\n"
                  "  records in  %s\n"
                  "  state in    %s (nginx.conf, access.log)\n"
                  "  log         standard error\n",
                  serve->tenants, serve->store, serve->state);
    if (serve->workers > 0) {
        (void)fprintf(out, "  workers     %ld", serve->workers);
    } else {
        (void)fputs("  workers     one for each processor", out);
    }
    if (serve->user[0] != '\0') {
        (void)fprintf(out, ", as %s, the owner of the state directory", serve->user);
    }
    (void)fputs("\n", out);
    (void)fflush(out);
}
