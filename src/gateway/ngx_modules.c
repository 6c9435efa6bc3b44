/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nginx looks for in a dynamic module: its modules, their names, and its place among the
 * filters (before the copy filter, as nginx's build writes it for an HTTP_AUX_FILTER). The only
 * symbols that leave this library.
 */
#include "gateway/gateway.h"


#define CFOIL_EXPORT  __attribute__((visibility("default")))


extern CFOIL_EXPORT ngx_module_t  *ngx_modules[];
extern CFOIL_EXPORT char          *ngx_module_names[];
extern CFOIL_EXPORT char          *ngx_module_order[];


ngx_module_t  *ngx_modules[] = {
    &ngx_http_counterfoil_module,
    NULL
};


char  *ngx_module_names[] = {
    "ngx_http_counterfoil_module",
    NULL
};


char  *ngx_module_order[] = {
    "ngx_http_counterfoil_module",
    "ngx_http_copy_filter_module",
    NULL
};
