/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module as nginx sees it: directives, their places in the configuration, hooks. Everything
 * that can be wrong with a configuration is found here, in the configuration phase, so that a
 * reload with a mistake leaves the running workers as they are.
 */
#include "gateway/gateway.h"


static void *ngx_http_counterfoil_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_counterfoil_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_counterfoil_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_counterfoil_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_counterfoil_set_policy(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_counterfoil_set_store(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_counterfoil_set_secret(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_counterfoil_set_enable(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static char *ngx_http_counterfoil_not_available(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
static ngx_int_t ngx_http_counterfoil_postconfiguration(ngx_conf_t *cf);


static ngx_command_t  ngx_http_counterfoil_commands[] = {

    { ngx_string("counterfoil_policy"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_counterfoil_set_policy,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("counterfoil_store"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_counterfoil_set_store,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("counterfoil_secret"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_counterfoil_set_secret,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("counterfoil_settle_wait"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_counterfoil_main_conf_t, settle_wait),
      NULL },

    { ngx_string("counterfoil_settle_exit_max"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_counterfoil_main_conf_t, settle_exit_max),
      NULL },

    { ngx_string("counterfoil_waiters_max"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_counterfoil_main_conf_t, waiters_max),
      NULL },

    { ngx_string("counterfoil_key_waiters_max"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_counterfoil_main_conf_t, key_waiters_max),
      NULL },

    { ngx_string("counterfoil"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_counterfoil_set_enable,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("counterfoil_api"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_counterfoil_not_available,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("counterfoil_console"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_http_counterfoil_not_available,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_counterfoil_module_ctx = {
    ngx_http_counterfoil_add_variables,    /* preconfiguration */
    ngx_http_counterfoil_postconfiguration,/* postconfiguration */

    ngx_http_counterfoil_create_main_conf, /* create main configuration */
    ngx_http_counterfoil_init_main_conf,   /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_counterfoil_create_loc_conf,  /* create location configuration */
    ngx_http_counterfoil_merge_loc_conf    /* merge location configuration */
};


ngx_module_t  ngx_http_counterfoil_module = {
    NGX_MODULE_V1,
    &ngx_http_counterfoil_module_ctx,      /* module context */
    ngx_http_counterfoil_commands,         /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_counterfoil_init_module,      /* init module */
    ngx_http_counterfoil_init_process,     /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_counterfoil_exit_process,     /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_counterfoil_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_counterfoil_main_conf_t  *mcf;

    mcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_counterfoil_main_conf_t));
    if (mcf == NULL) {
        return NULL;
    }

    mcf->settle_wait = NGX_CONF_UNSET_MSEC;
    mcf->settle_exit_max = NGX_CONF_UNSET_MSEC;
    mcf->waiters_max = NGX_CONF_UNSET;
    mcf->key_waiters_max = NGX_CONF_UNSET;

    return mcf;
}


/* The modules whose upstream we guard, as far as this nginx has them. */
static void
ngx_http_counterfoil_find_upstreams(ngx_conf_t *cf,
    ngx_http_counterfoil_main_conf_t *mcf)
{
    ngx_uint_t          i, n;
    static const char  *names[NGX_HTTP_COUNTERFOIL_UPSTREAMS] = {
        "ngx_http_proxy_module", "ngx_http_fastcgi_module",
        "ngx_http_uwsgi_module", "ngx_http_scgi_module"
    };

    for (n = 0; n < NGX_HTTP_COUNTERFOIL_UPSTREAMS; n++) {
        for (i = 0; cf->cycle->modules[i]; i++) {
            if (ngx_strcmp(cf->cycle->modules[i]->name, names[n]) == 0) {
                mcf->upstreams[mcf->nupstreams++] =
                                              cf->cycle->modules[i]->ctx_index;
            }
        }
    }
}


static char *
ngx_http_counterfoil_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_counterfoil_main_conf_t *mcf = conf;

    ngx_str_t  name = ngx_string("request_id");

    ngx_conf_init_msec_value(mcf->settle_wait, CFOIL_SETTLE_WAIT_MS);
    ngx_conf_init_msec_value(mcf->settle_exit_max,
                             NGX_HTTP_COUNTERFOIL_SETTLE_EXIT_MS);
    ngx_conf_init_value(mcf->waiters_max, NGX_HTTP_COUNTERFOIL_WAITERS_MAX);
    ngx_conf_init_value(mcf->key_waiters_max,
                        NGX_HTTP_COUNTERFOIL_KEY_WAITERS_MAX);

    mcf->request_id = ngx_http_get_variable_index(cf, &name);
    if (mcf->request_id == NGX_ERROR) {
        return NGX_CONF_ERROR;
    }

    ngx_http_counterfoil_find_upstreams(cf, mcf);

    return NGX_CONF_OK;
}


static void *
ngx_http_counterfoil_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_counterfoil_loc_conf_t  *lcf;

    lcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_counterfoil_loc_conf_t));
    if (lcf == NULL) {
        return NULL;
    }

    lcf->mode = NGX_CONF_UNSET_UINT;

    return lcf;
}


static char *
ngx_http_counterfoil_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_counterfoil_loc_conf_t *prev = parent;
    ngx_http_counterfoil_loc_conf_t *conf = child;

    ngx_http_counterfoil_main_conf_t  *mcf;

    ngx_conf_merge_uint_value(conf->mode, prev->mode,
                              NGX_HTTP_COUNTERFOIL_OFF);

    if (conf->mode != NGX_HTTP_COUNTERFOIL_OFF) {
        mcf = ngx_http_conf_get_module_main_conf(cf,
                                                 ngx_http_counterfoil_module);
        mcf->used = 1;
    }

    return NGX_CONF_OK;
}


static void
ngx_http_counterfoil_free_policy(void *data)
{
    cfoil_policy_free(data);
}


/* nginx itself says where a variable is not known, once all modules have named theirs. */
static ngx_int_t
ngx_http_counterfoil_want_variable(ngx_conf_t *cf, const char *name)
{
    ngx_str_t  low;

    low.len = ngx_strlen(name);
    low.data = ngx_pnalloc(cf->pool, low.len);
    if (low.data == NULL) {
        return NGX_ERROR;
    }

    ngx_strlow(low.data, (u_char *) (uintptr_t) name, low.len);

    return ngx_http_get_variable_index(cf, &low) == NGX_ERROR ? NGX_ERROR
                                                              : NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_want_variables(ngx_conf_t *cf,
    const struct cfoil_policy *policy)
{
    size_t                           i;
    const struct cfoil_tenant_rule  *rule;

    for (i = 0; i < cfoil_policy_route_count(policy); i++) {
        rule = &cfoil_policy_route(policy, i)->tenant;

        if (rule->source == CFOIL_TENANT_FROM_VARIABLE
            && ngx_http_counterfoil_want_variable(cf, rule->name) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static char *
ngx_http_counterfoil_keep_policy(ngx_conf_t *cf,
    ngx_http_counterfoil_main_conf_t *mcf, struct cfoil_policy *policy)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        cfoil_policy_free(policy);
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_http_counterfoil_free_policy;
    cln->data = policy;
    mcf->policy = policy;

    if (ngx_http_counterfoil_want_variables(cf, policy) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Every finding is a line of nginx's own log: file, line, column and the fix. */
static void
ngx_http_counterfoil_log_problems(ngx_conf_t *cf, ngx_str_t *file,
    struct cfoil_policy_problems *problems, enum cfoil_error error)
{
    size_t                        i;
    struct cfoil_policy_problem  *p;

    for (i = 0; i < problems->count; i++) {
        p = &problems->item[i];

        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%V:%ud:%ud: %s", file,
                      p->line, p->column, p->text);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "counterfoil_policy \"%V\" cannot be used: %s", file,
                       cfoil_error_text(error));
}


static char *
ngx_http_counterfoil_set_policy(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_counterfoil_main_conf_t *mcf = conf;

    ngx_str_t                     *value;
    enum cfoil_error               error;
    struct cfoil_policy           *policy;
    struct cfoil_policy_problems  *problems;

    if (mcf->policy) {
        return "is duplicate";
    }

    value = cf->args->elts;
    mcf->policy_file = value[1];

    if (ngx_conf_full_name(cf->cycle, &mcf->policy_file, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    problems = ngx_pcalloc(cf->temp_pool, sizeof(*problems));
    if (problems == NULL) {
        return NGX_CONF_ERROR;
    }

    error = cfoil_policy_load((char *) mcf->policy_file.data, &policy,
                              problems);
    if (error != CFOIL_OK) {
        ngx_http_counterfoil_log_problems(cf, &mcf->policy_file, problems,
                                          error);
        return NGX_CONF_ERROR;
    }

    return ngx_http_counterfoil_keep_policy(cf, mcf, policy);
}


static char *
ngx_http_counterfoil_set_store(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_counterfoil_main_conf_t *mcf = conf;

    ngx_str_t  *value;

    if (mcf->store.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    mcf->store = value[1];

    if (cfoil_store_for_url((char *) mcf->store.data) == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown store \"%V\": write lmdb:DIRECTORY or "
                           "memory:", &mcf->store);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_counterfoil_set_secret(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_counterfoil_main_conf_t *mcf = conf;

    ngx_str_t  *value;

    if (mcf->secret_file.data) {
        return "is duplicate";
    }

    value = cf->args->elts;
    mcf->secret_file = value[1];

    if (ngx_conf_full_name(cf->cycle, &mcf->secret_file, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_counterfoil_set_enable(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_counterfoil_loc_conf_t *lcf = conf;

    ngx_str_t  *value;

    if (lcf->mode != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "on") == 0) {
        lcf->mode = NGX_HTTP_COUNTERFOIL_ON;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value[1].data, "off") == 0) {
        lcf->mode = NGX_HTTP_COUNTERFOIL_OFF;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value[1].data, "dry_run") == 0) {
        lcf->mode = NGX_HTTP_COUNTERFOIL_DRY_RUN;
        return NGX_CONF_OK;
    }

    return "takes \"on\", \"off\" or \"dry_run\"";
}


static char *
ngx_http_counterfoil_not_available(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    return "is not available in this version; remove it";
}


/* Without a policy file: what `counterfoil serve` uses without one. */
static ngx_int_t
ngx_http_counterfoil_default_policy(ngx_conf_t *cf,
    ngx_http_counterfoil_main_conf_t *mcf)
{
    enum cfoil_error               error;
    struct cfoil_policy           *policy;
    struct cfoil_policy_problems  *problems;

    problems = ngx_pcalloc(cf->temp_pool, sizeof(*problems));
    if (problems == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(&mcf->policy_file, "the default policy");

    error = cfoil_policy_load_text(
                               cfoil_bytes_text(cfoil_policy_default_text),
                               &policy, problems);
    if (error != CFOIL_OK) {
        ngx_http_counterfoil_log_problems(cf, &mcf->policy_file, problems,
                                          error);
        return NGX_ERROR;
    }

    if (ngx_http_counterfoil_keep_policy(cf, mcf, policy) != NGX_CONF_OK) {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* A store is made at a start only, so a running nginx cannot be given another one. */
static ngx_int_t
ngx_http_counterfoil_check_store(ngx_conf_t *cf,
    ngx_http_counterfoil_main_conf_t *mcf)
{
    const ngx_http_counterfoil_start_t  *start;

    if (mcf->store.len == 0) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"counterfoil on\" needs a counterfoil_store, for "
                      "example \"counterfoil_store lmdb:/var/lib/counterfoil;\""
                      " in the http block");
        return NGX_ERROR;
    }

    start = ngx_http_counterfoil_started();

    if (start->store.len
        && (start->store.len != mcf->store.len
            || ngx_strncmp(start->store.data, mcf->store.data, mcf->store.len)
               != 0))
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "counterfoil_store cannot change from \"%V\" to \"%V\" "
                      "on reload: restart nginx", &start->store, &mcf->store);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_handler_pt               *h;
    ngx_http_core_main_conf_t         *cmcf;
    ngx_http_counterfoil_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_counterfoil_module);

    if (!mcf->used) {
        return NGX_OK;
    }

    if (ngx_http_counterfoil_check_store(cf, mcf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (mcf->policy == NULL
        && ngx_http_counterfoil_default_policy(cf, mcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_counterfoil_strip_handler;

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_counterfoil_handler;

    ngx_http_counterfoil_dry_init();

    return ngx_http_counterfoil_filter_init(cf);
}
