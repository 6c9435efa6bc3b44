/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of the master process: the only moment at which an empty store, and the secret of the
 * authorization tenant beside it, may come into being. Reloads and respawned workers find what is
 * kept here and never create anything, so a store that was deleted or replaced under a running
 * nginx is noticed and not quietly begun again.
 *
 * Kept in this process and inherited by every fork: the store's URL, its identity, the secret.
 */
#include "gateway/gateway.h"


#define NGX_HTTP_COUNTERFOIL_STORE_FILES  3


static ngx_http_counterfoil_start_t  ngx_http_counterfoil_start;


const ngx_http_counterfoil_start_t *
ngx_http_counterfoil_started(void)
{
    return &ngx_http_counterfoil_start;
}


ngx_flag_t
ngx_http_counterfoil_store_is_memory(ngx_str_t *url)
{
    return cfoil_store_for_url((char *) url->data) == &cfoil_store_memory;
}


/* "lmdb:DIR?option" and "name" give "DIR/name", or "DIR" without a name. */
static u_char *
ngx_http_counterfoil_store_path(ngx_pool_t *pool, ngx_str_t *url,
    const char *name)
{
    size_t   len;
    u_char  *path, *p, *end;

    p = ngx_strlchr(url->data, url->data + url->len, ':');
    p = (p == NULL) ? url->data : p + 1;

    end = ngx_strlchr(p, url->data + url->len, '?');
    if (end == NULL) {
        end = url->data + url->len;
    }

    len = (end - p) + ngx_strlen(name) + sizeof("/");

    path = ngx_pnalloc(pool, len);
    if (path == NULL) {
        return NULL;
    }

    (void) ngx_snprintf(path, len, "%*s%s%s%Z", (size_t) (end - p), p,
                        *name ? "/" : "", name);

    return path;
}


/* What a root master just made belongs to the user its workers run as. */
static ngx_int_t
ngx_http_counterfoil_give(ngx_cycle_t *cycle, u_char *path)
{
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (geteuid() != 0 || ccf->user == (ngx_uid_t) NGX_CONF_UNSET_UINT) {
        return NGX_OK;
    }

    if (chown((char *) path, ccf->user, ccf->group) == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "chown(\"%s\", %d) failed", path, ccf->user);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* The store's directory and its files, and which of them were there before it was opened. */
static ngx_int_t
ngx_http_counterfoil_store_files(ngx_cycle_t *cycle, ngx_str_t *url,
    u_char **paths, ngx_flag_t *there)
{
    ngx_uint_t          i;
    ngx_file_info_t     fi;
    static const char  *names[NGX_HTTP_COUNTERFOIL_STORE_FILES] = {
        "", "data.mdb", "lock.mdb"
    };

    for (i = 0; i < NGX_HTTP_COUNTERFOIL_STORE_FILES; i++) {
        paths[i] = ngx_http_counterfoil_store_path(cycle->pool, url, names[i]);
        if (paths[i] == NULL) {
            return NGX_ERROR;
        }

        there[i] = (ngx_file_info(paths[i], &fi) != NGX_FILE_ERROR);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_make_store(ngx_cycle_t *cycle,
    ngx_http_counterfoil_main_conf_t *mcf)
{
    char                           problem[512];
    u_char                        *paths[NGX_HTTP_COUNTERFOIL_STORE_FILES];
    ngx_uint_t                     i;
    ngx_flag_t                     there[NGX_HTTP_COUNTERFOIL_STORE_FILES];
    ngx_file_info_t                fi;
    enum cfoil_error               error;
    struct cfoil_store            *store;
    struct cfoil_store_options     options;
    const struct cfoil_store_ops  *ops;

    if (ngx_http_counterfoil_store_files(cycle, &mcf->store, paths, there)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_memzero(&options, sizeof(options));
    options.url = (char *) mcf->store.data;
    options.mode = CFOIL_OPEN_CREATE;
    problem[0] = '\0';

    ops = cfoil_store_for_url(options.url);

    error = ops->open(&options, &store, problem, sizeof(problem));
    if (error != CFOIL_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "counterfoil_store \"%V\" cannot be opened: %s: %s",
                      &mcf->store, cfoil_error_text(error), problem);
        return NGX_ERROR;
    }

    ops->identity(store, ngx_http_counterfoil_start.store_id);
    ops->close(store);

    for (i = 0; i < NGX_HTTP_COUNTERFOIL_STORE_FILES; i++) {
        if (!there[i] && ngx_file_info(paths[i], &fi) != NGX_FILE_ERROR
            && ngx_http_counterfoil_give(cycle, paths[i]) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_make_secret(ngx_cycle_t *cycle, u_char *path)
{
    char      hex[2 * NGX_HTTP_COUNTERFOIL_SECRET_BYTES + 1];
    u_char    bytes[NGX_HTTP_COUNTERFOIL_SECRET_BYTES];
    ngx_fd_t  fd;

    if (cfoil_random(bytes, sizeof(bytes)) != CFOIL_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "the system gives no random bytes");
        return NGX_ERROR;
    }

    cfoil_hex(bytes, sizeof(bytes), hex);
    hex[sizeof(hex) - 1] = '\n';

    fd = ngx_open_file(path, NGX_FILE_WRONLY, O_CREAT|O_EXCL, 0600);
    if (fd == NGX_INVALID_FILE) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      ngx_open_file_n " \"%s\" failed", path);
        return NGX_ERROR;
    }

    if (ngx_write_fd(fd, hex, sizeof(hex)) != (ssize_t) sizeof(hex)
        || fsync(fd) == -1)
    {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "writing \"%s\" failed", path);
        (void) ngx_close_file(fd);
        (void) ngx_delete_file(path);
        return NGX_ERROR;
    }

    (void) ngx_close_file(fd);

    return NGX_OK;
}


/* Reads the secret without a line's end. NGX_DECLINED: there is no such file. */
static ngx_int_t
ngx_http_counterfoil_read_secret(ngx_cycle_t *cycle, u_char *path)
{
    size_t     len;
    ssize_t    n;
    ngx_fd_t   fd;
    ngx_err_t  err;
    u_char    *secret;

    fd = ngx_open_file(path, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        err = ngx_errno;

        if (err == NGX_ENOENT) {
            return NGX_DECLINED;
        }

        ngx_log_error(NGX_LOG_EMERG, cycle->log, err,
                      ngx_open_file_n " \"%s\" failed", path);
        return NGX_ERROR;
    }

    secret = ngx_http_counterfoil_start.secret;
    n = ngx_read_fd(fd, secret, NGX_HTTP_COUNTERFOIL_SECRET_MAX);
    (void) ngx_close_file(fd);

    for (len = (n > 0) ? (size_t) n : 0; len > 0; len--) {
        if (secret[len - 1] != CR && secret[len - 1] != LF) {
            break;
        }
    }

    if (len < NGX_HTTP_COUNTERFOIL_SECRET_BYTES / 2) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "the secret in \"%s\" is shorter than %d bytes", path,
                      NGX_HTTP_COUNTERFOIL_SECRET_BYTES / 2);
        return NGX_ERROR;
    }

    ngx_http_counterfoil_start.secret_len = len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_find_secret(ngx_cycle_t *cycle,
    ngx_http_counterfoil_main_conf_t *mcf)
{
    u_char     *path;
    ngx_int_t   rc;

    if (mcf->secret_file.len) {
        rc = ngx_http_counterfoil_read_secret(cycle, mcf->secret_file.data);

        if (rc == NGX_DECLINED) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "counterfoil_secret \"%V\" does not exist: make it "
                          "with \"openssl rand -hex 32\"", &mcf->secret_file);
        }

        return (rc == NGX_OK) ? NGX_OK : NGX_ERROR;
    }

    if (ngx_http_counterfoil_store_is_memory(&mcf->store)) {
        ngx_http_counterfoil_start.secret_len =
                                            NGX_HTTP_COUNTERFOIL_SECRET_BYTES;

        return cfoil_random(ngx_http_counterfoil_start.secret,
                            NGX_HTTP_COUNTERFOIL_SECRET_BYTES)
               == CFOIL_OK ? NGX_OK : NGX_ERROR;
    }

    path = ngx_http_counterfoil_store_path(cycle->pool, &mcf->store, "secret");
    if (path == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_counterfoil_read_secret(cycle, path);
    if (rc != NGX_DECLINED) {
        return rc;
    }

    if (ngx_http_counterfoil_make_secret(cycle, path) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_counterfoil_read_secret(cycle, path);
}


/* A store in a process's memory is one worker's: a second worker would be a second truth. */
static ngx_int_t
ngx_http_counterfoil_check_memory(ngx_cycle_t *cycle)
{
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (ccf->master && ccf->worker_processes > 1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "counterfoil_store \"memory:\" serves one worker only: "
                      "set worker_processes to 1, or use lmdb:DIRECTORY");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_counterfoil_keep_url(ngx_cycle_t *cycle, ngx_str_t *url)
{
    u_char  *data;

    /* a cycle's pool does not outlive a reload */

    data = ngx_alloc(url->len + 1, cycle->log);
    if (data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(data, url->data, url->len + 1);

    ngx_http_counterfoil_start.store.data = data;
    ngx_http_counterfoil_start.store.len = url->len;

    return NGX_OK;
}


ngx_int_t
ngx_http_counterfoil_init_module(ngx_cycle_t *cycle)
{
    ngx_http_counterfoil_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle,
                                              ngx_http_counterfoil_module);

    if (mcf == NULL || !mcf->used || ngx_test_config) {
        return NGX_OK;
    }

    if (!ngx_is_init_cycle(cycle->old_cycle)) {
        return NGX_OK;
    }

    if (ngx_http_counterfoil_store_is_memory(&mcf->store)) {
        if (ngx_http_counterfoil_check_memory(cycle) != NGX_OK) {
            return NGX_ERROR;
        }

    } else if (ngx_http_counterfoil_make_store(cycle, mcf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_counterfoil_find_secret(cycle, mcf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_counterfoil_keep_url(cycle, &mcf->store);
}
