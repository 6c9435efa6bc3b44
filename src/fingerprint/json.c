/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a JSON workspace: a few arrays that only grow while a document is read, are kept for
 * the next one, and are given back when a large document made them large. json.h has the drawing.
 */
#include "fingerprint/json.h"

#include <stdlib.h>

/* What a workspace keeps between documents, in elements: some 7 MiB in all. */
#define KEEP_TEXT    (2U << 20)
#define KEEP_NODES   (128U << 10)
#define KEEP_ENTRIES (32U << 10)

#define FIRST_TEXT    (16U << 10)
#define FIRST_NODES   512U
#define FIRST_ENTRIES 256U
#define FIRST_CUTS    16U

/* Doubling meets the limit on values exactly, so that it need be checked only when nodes grow. */
_Static_assert(CFOIL_JSON_VALUES_MAX % FIRST_NODES == 0 &&
                   (CFOIL_JSON_VALUES_MAX & (CFOIL_JSON_VALUES_MAX - 1)) == 0,
               "a power of two, reached by doubling");

/* Grows an array to hold `need` elements, doubling; false: no memory, the array stays as it was. */
static bool grow(void **array, uint32_t *capacity, size_t element_bytes, size_t need)
{
    size_t wanted = (size_t)*capacity * 2;
    if (wanted < need) {
        wanted = need;
    }
    void *grown = realloc(*array, wanted * element_bytes);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *capacity = (uint32_t)wanted;
    return true;
}

bool cfoil_json_more_text(struct cfoil_json *json, size_t more)
{
    size_t need = json->text_used + more + CFOIL_JSON_PAD_BYTES;
    if (need <= json->text_capacity) {
        return true;
    }
    size_t capacity = json->text_capacity == 0 ? FIRST_TEXT : json->text_capacity * 2;
    while (capacity < need) {
        capacity *= 2;
    }
    uint8_t *text = realloc(json->text, capacity);
    if (text == NULL) {
        json->no_memory = true;
        return false;
    }
    json->text = text;
    json->text_capacity = capacity;
    return true;
}

bool cfoil_json_more_nodes(struct cfoil_json *json)
{
    void *nodes = json->nodes;
    if (!grow(&nodes, &json->node_capacity, sizeof(*json->nodes), FIRST_NODES)) {
        json->no_memory = true;
        return false;
    }
    json->nodes = nodes;
    return true;
}

/* Both arrays or, as far as their capacity says, neither. */
static bool grow_entries(struct cfoil_json_entries *entries, size_t need)
{
    void *keys = entries->keys;
    void *nodes = entries->nodes;
    uint32_t key_capacity = entries->capacity;
    bool grown = grow(&keys, &key_capacity, sizeof(*entries->keys), need) &&
                 grow(&nodes, &entries->capacity, sizeof(*entries->nodes), need);
    entries->keys = keys;
    entries->nodes = nodes;
    return grown;
}

static void free_entries(struct cfoil_json_entries *entries)
{
    free(entries->keys);
    free(entries->nodes);
    *entries = (struct cfoil_json_entries){0};
}

bool cfoil_json_more_entries(struct cfoil_json *json)
{
    json->no_memory = !grow_entries(&json->entries, FIRST_ENTRIES);
    return !json->no_memory;
}

bool cfoil_json_scratch(struct cfoil_json *json, uint32_t count)
{
    json->no_memory = count > json->scratch.capacity && !grow_entries(&json->scratch, count);
    return !json->no_memory;
}

bool cfoil_json_more_places(struct cfoil_json *json, uint32_t count)
{
    if (count <= json->place_capacity) {
        return true;
    }
    void *places = json->places;
    if (!grow(&places, &json->place_capacity, sizeof(*json->places), count)) {
        json->no_memory = true;
        return false;
    }
    json->places = places;
    return true;
}

bool cfoil_json_more_cuts(struct cfoil_json *json)
{
    void *cuts = json->cuts->at;
    if (!grow(&cuts, &json->cuts->capacity, sizeof(*json->cuts->at), FIRST_CUTS)) {
        json->no_memory = true;
        return false;
    }
    json->cuts->at = cuts;
    return true;
}

enum cfoil_error cfoil_json_append(struct cfoil_json *json, const void *data, size_t len)
{
    if (len == 0) {
        return CFOIL_OK;
    }
    if (!cfoil_json_more_text(json, len)) {
        return CFOIL_E_NO_MEMORY;
    }
    memcpy(json->text + json->text_used, data, len);
    json->text_used += len;
    return CFOIL_OK;
}

void cfoil_json_reset(struct cfoil_json *json)
{
    if (json->text_capacity > KEEP_TEXT) {
        free(json->text);
        json->text = NULL;
        json->text_capacity = 0;
    }
    if (json->node_capacity > KEEP_NODES) {
        free(json->nodes);
        json->nodes = NULL;
        json->node_capacity = 0;
    }
    if (json->entries.capacity > KEEP_ENTRIES) {
        free_entries(&json->entries);
    }
    if (json->scratch.capacity > KEEP_ENTRIES) {
        free_entries(&json->scratch);
    }
    json->text_used = 0;
    json->no_memory = false;
    json->reason = NULL;
}

void cfoil_json_free(struct cfoil_json *json)
{
    free(json->text);
    free(json->nodes);
    free_entries(&json->entries);
    free_entries(&json->scratch);
    free(json->places);
}
