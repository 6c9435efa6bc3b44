/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil serve: the gateway, that is nginx with our module, in the foreground. */
#include "cli/serve.h"

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    struct cfoil_serve serve;
    enum cfoil_exit status = cfoil_serve_settings(arguments, &serve);
    if (status == CFOIL_EXIT_OK && cfoil_flag(arguments, "--print-config")) {
        cfoil_serve_config(&serve, stdout);
        cfoil_serve_free(&serve);
        return CFOIL_EXIT_OK;
    }
    if (status == CFOIL_EXIT_OK) {
        status = cfoil_serve_prepare(&serve);
    }
    if (status == CFOIL_EXIT_OK) {
        cfoil_serve_announce(&serve, stdout);
        cfoil_serve_announce_new(&serve, stdout);
        status = cfoil_serve_start(&serve);
    }
    cfoil_serve_free(&serve);
    return status;
}

static const struct cfoil_option options[] = {
    {"--upstream", "URL", "the backend, as in http://127.0.0.1:3000; needed", false},
    {"--listen", "ADDR:PORT", "where clients connect (default: 127.0.0.1:8080)", false},
    {"--admin", "ADDR:PORT", "GET /healthz answers here (default: 127.0.0.1:8081)", false},
    {"--policy", "FILE",
     "what a repeated request means (default: every POST and PATCH that\n"
     "carries an Idempotency-Key is guarded)",
     false},
    {"--store", "URL", "where records live (default: lmdb:STATE/store)", false},
    {"--state", "DIR",
     "the state directory (default: /var/lib/counterfoil as root, else\n"
     "${XDG_STATE_HOME:-~/.local/state}/counterfoil)",
     false},
    {"--workers", "N", "worker processes, or auto (the default): one for each processor", false},
    {"--upstream-timeout", "TIME", "how long the backend may be silent (default: 60s)", false},
    {"--print-config", NULL, "print the nginx configuration and do nothing", false},
    {"--dry-run", NULL, "only log what would be done: nothing is held, refused or replayed", false},
    {0},
};

const struct cfoil_command cfoil_command_serve = {
    .name = "serve",
    .summary = "run the gateway before a backend",
    .usage = "--upstream URL [--policy FILE] [--listen ADDR:PORT] [--state DIR] ...",
    .text =
        "Checks everything, writes STATE/nginx.conf and runs nginx with it in the foreground.\n"
        "SIGTERM ends it, SIGQUIT lets running requests finish, SIGHUP reads the policy again.\n"
        "Keep the state directory: it is what makes a repeated request harmless after a restart.\n"
        "As root, workers run as the owner of the state directory.\n\n"
        "Exit status: that of nginx; 2 wrong arguments or policy; 3 something is missing or\n"
        "taken.\n",
    .example = "  counterfoil serve --upstream http://127.0.0.1:3000 --policy policy.yaml\n",
    .options = options,
    .run = run,
};
