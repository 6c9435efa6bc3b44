/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the two built-in languages a client reads: the better weight in Accept-Language (RFC
 * 9110, section 12.5.4) of a "zh" and an "en" range, "*" standing for whichever is not named.
 * English where they tie at nothing.
 */
#include "gateway/gateway.h"


#define NGX_HTTP_COUNTERFOIL_WEIGHT_ONE   1000
#define NGX_HTTP_COUNTERFOIL_WEIGHT_NONE  -1


typedef struct {
    ngx_int_t  chinese;
    ngx_int_t  english;
    ngx_int_t  any;
    ngx_uint_t first_chinese;
    ngx_uint_t first_english;
} ngx_http_counterfoil_weights_t;


static u_char *
ngx_http_counterfoil_skip_blanks(u_char *p, u_char *end)
{
    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    return p;
}


/* "0.85" as 850. What is not a weight counts as none, so that it cannot win. */
static ngx_int_t
ngx_http_counterfoil_weight(u_char *p, u_char *end)
{
    ngx_int_t  weight, digit;

    if (p == end || (*p != '0' && *p != '1')) {
        return 0;
    }

    weight = (*p++ - '0') * NGX_HTTP_COUNTERFOIL_WEIGHT_ONE;

    if (p < end && *p == '.') {
        p++;
        digit = NGX_HTTP_COUNTERFOIL_WEIGHT_ONE / 10;

        for ( /* void */ ; p < end && *p >= '0' && *p <= '9'; p++) {
            weight += (*p - '0') * digit;
            digit /= 10;
        }
    }

    return ngx_min(weight, NGX_HTTP_COUNTERFOIL_WEIGHT_ONE);
}


/* The weight of one range "zh-CN;q=0.8"; *tag_end is where its tag ends. */
static ngx_int_t
ngx_http_counterfoil_range_weight(u_char *p, u_char *end, u_char **tag_end)
{
    u_char  *semicolon;

    semicolon = ngx_strlchr(p, end, ';');
    *tag_end = semicolon ? semicolon : end;

    while (*tag_end > p && ((*tag_end)[-1] == ' ' || (*tag_end)[-1] == '\t')) {
        (*tag_end)--;
    }

    if (semicolon == NULL) {
        return NGX_HTTP_COUNTERFOIL_WEIGHT_ONE;
    }

    p = ngx_http_counterfoil_skip_blanks(semicolon + 1, end);

    if (end - p < 2 || (*p != 'q' && *p != 'Q') || p[1] != '=') {
        return NGX_HTTP_COUNTERFOIL_WEIGHT_ONE;
    }

    return ngx_http_counterfoil_weight(p + 2, end);
}


static ngx_flag_t
ngx_http_counterfoil_is_language(u_char *p, u_char *end, const char *primary)
{
    return end - p >= 2
           && ngx_tolower(p[0]) == (u_char) primary[0]
           && ngx_tolower(p[1]) == (u_char) primary[1]
           && (end - p == 2 || p[2] == '-');
}


static void
ngx_http_counterfoil_weigh(ngx_http_counterfoil_weights_t *weights, u_char *p,
    u_char *end, ngx_uint_t place)
{
    u_char     *tag_end;
    ngx_int_t   weight;

    weight = ngx_http_counterfoil_range_weight(p, end, &tag_end);

    if (ngx_http_counterfoil_is_language(p, tag_end, "zh")) {
        if (weight > weights->chinese) {
            weights->chinese = weight;
            weights->first_chinese = place;
        }

    } else if (ngx_http_counterfoil_is_language(p, tag_end, "en")) {
        if (weight > weights->english) {
            weights->english = weight;
            weights->first_english = place;
        }

    } else if (tag_end - p == 1 && *p == '*') {
        weights->any = weight;
    }
}


ngx_flag_t
ngx_http_counterfoil_wants_chinese(ngx_http_request_t *r)
{
    u_char                          *p, *end, *comma;
    ngx_str_t                        value;
    ngx_uint_t                       place;
    ngx_http_counterfoil_weights_t   weights;

    if (ngx_http_counterfoil_header_join(r, "Accept-Language", &value)
        != NGX_OK
        || value.len == 0)
    {
        return 0;
    }

    weights.chinese = NGX_HTTP_COUNTERFOIL_WEIGHT_NONE;
    weights.english = NGX_HTTP_COUNTERFOIL_WEIGHT_NONE;
    weights.any = 0;
    weights.first_chinese = 0;
    weights.first_english = 0;

    p = value.data;
    end = value.data + value.len;

    for (place = 0; p < end; place++) {
        comma = ngx_strlchr(p, end, ',');
        if (comma == NULL) {
            comma = end;
        }

        p = ngx_http_counterfoil_skip_blanks(p, comma);
        ngx_http_counterfoil_weigh(&weights, p, comma, place);
        p = (comma == end) ? end : comma + 1;
    }

    if (weights.chinese == NGX_HTTP_COUNTERFOIL_WEIGHT_NONE) {
        return 0;
    }

    if (weights.english == NGX_HTTP_COUNTERFOIL_WEIGHT_NONE) {
        return weights.chinese > 0 && weights.chinese >= weights.any;
    }

    return weights.chinese > weights.english
           || (weights.chinese == weights.english && weights.chinese > 0
               && weights.first_chinese < weights.first_english);
}
