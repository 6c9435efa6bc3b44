/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the checks of request bodies. Invariant: a value that passed is stored as it was sent; there
 * is no rounding and no conversion.
 */
#include "fields.h"

#include <string.h>

static const json_int_t CENTS_MAX = 9999999999999999;

json_t *shop_body_object(const struct shop_request *request, struct shop_reply *reply)
{
    json_error_t error;
    const char *body = request->body == NULL ? "" : request->body;
    json_t *object = json_loadb(body, request->body_bytes, 0, &error);

    if (object == NULL) {
        shop_reply_error(reply, 400, "the body is not JSON: line %d, column %d: %s; send an object",
                         error.line, error.column, error.text);
        return NULL;
    }
    if (!json_is_object(object)) {
        json_decref(object);
        shop_reply_error(reply, 400, "the body is JSON but not an object; send {…}");
        return NULL;
    }
    return object;
}

bool shop_field_cents(const json_t *object, const char *name, json_int_t cents_min,
                      json_int_t *cents, struct shop_reply *reply)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_integer(value)) {
        shop_reply_error(reply, 400,
                         "%s must be a whole number of cents as a JSON integer, such as 4999 for "
                         "49.99; decimals and text are not accepted",
                         name);
        return false;
    }
    *cents = json_integer_value(value);
    if (*cents < cents_min || *cents > CENTS_MAX) {
        shop_reply_error(reply, 400,
                         "%s is %" JSON_INTEGER_FORMAT " cents; it must be between "
                         "%" JSON_INTEGER_FORMAT " and %" JSON_INTEGER_FORMAT,
                         name, *cents, cents_min, CENTS_MAX);
        return false;
    }
    return true;
}

static bool is_plain_text(const json_t *value)
{
    return json_is_string(value) && json_string_length(value) > 0 &&
           strlen(json_string_value(value)) == json_string_length(value);
}

bool shop_field_text(const json_t *object, const char *name, const char **text,
                     struct shop_reply *reply)
{
    const json_t *value = json_object_get(object, name);

    if (!is_plain_text(value)) {
        shop_reply_error(reply, 400, "%s must be a string that is not empty", name);
        return false;
    }
    *text = json_string_value(value);
    return true;
}

bool shop_field_user(const json_t *object, json_t **user_id, struct shop_reply *reply)
{
    json_t *value = json_object_get(object, "user_id");

    if (!is_plain_text(value) && !json_is_integer(value)) {
        shop_reply_error(reply, 400,
                         "user_id must be a string that is not empty, or a whole number");
        return false;
    }
    *user_id = value;
    return true;
}

bool shop_field_number(const json_t *object, const char *name, json_int_t minimum,
                       json_int_t maximum, json_int_t *number, struct shop_reply *reply)
{
    const json_t *value = json_object_get(object, name);

    if (value == NULL) {
        return true;
    }
    if (!json_is_integer(value) || json_integer_value(value) < minimum ||
        json_integer_value(value) > maximum) {
        shop_reply_error(reply, 400,
                         "%s must be a whole number between %" JSON_INTEGER_FORMAT
                         " and %" JSON_INTEGER_FORMAT,
                         name, minimum, maximum);
        return false;
    }
    *number = json_integer_value(value);
    return true;
}
