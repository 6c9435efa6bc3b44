/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the JSON bodies of requests. Owns the wording of what is wrong with one; stores nothing.
 * Every function that returns false or NULL has made the reply a 400 that names the field.
 * Invariant: money is a whole number of cents and nothing else.
 */
#ifndef SHOP_FIELDS_H
#define SHOP_FIELDS_H

#include "reply.h"
#include "request.h"

#include <jansson.h>
#include <stdbool.h>

/* The body as a JSON object. New reference. */
json_t *shop_body_object(const struct shop_request *request,
                         struct shop_reply *reply) SHOP_MUST_CHECK;

/* A required amount of at least cents_min cents, of at most 16 digits. */
bool shop_field_cents(const json_t *object, const char *name, json_int_t cents_min,
                      json_int_t *cents, struct shop_reply *reply) SHOP_MUST_CHECK;

/* A required string that is not empty, free of NUL. Borrowed from object. */
bool shop_field_text(const json_t *object, const char *name, const char **text,
                     struct shop_reply *reply) SHOP_MUST_CHECK;

/* The required user_id, a string that is not empty or a whole number. Borrowed from object. */
bool shop_field_user(const json_t *object, json_t **user_id,
                     struct shop_reply *reply) SHOP_MUST_CHECK;

/* A whole number between minimum and maximum; left as it is if the field is absent. */
bool shop_field_number(const json_t *object, const char *name, json_int_t minimum,
                       json_int_t maximum, json_int_t *number,
                       struct shop_reply *reply) SHOP_MUST_CHECK;

#endif
