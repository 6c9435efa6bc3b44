/* SPDX-License-Identifier: Apache-2.0 */
/* The language a client reads, by its Accept-Language; policy/language.c decides. */
#include "gateway/gateway.h"


enum cfoil_language
ngx_http_counterfoil_language(ngx_http_request_t *r)
{
    ngx_str_t  value;

    if (ngx_http_counterfoil_header_join(r, "Accept-Language", &value)
        != NGX_OK)
    {
        ngx_str_null(&value);
    }

    return cfoil_language_wanted(ngx_http_counterfoil_bytes(&value));
}
