/* SPDX-License-Identifier: Apache-2.0 */
/* See files.h. */
#include "cli/files.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"

/* Reads to the end, growing as needed. NULL: complained. */
static uint8_t *read_all(FILE *file, const char *path, size_t bytes_max, size_t *len)
{
    size_t capacity = 65536;
    uint8_t *data = malloc(capacity);
    *len = 0;
    while (data != NULL) {
        errno = 0;
        *len += fread(data + *len, 1, capacity - *len, file);
        if (ferror(file) != 0) {
            cfoil_complain("%s cannot be read: %s", path, strerror(errno));
            break;
        }
        if (*len > bytes_max) {
            cfoil_complain("%s is longer than %zu bytes", path, bytes_max);
            break;
        }
        if (*len < capacity) {
            return data;
        }
        capacity *= 2;
        uint8_t *grown = realloc(data, capacity);
        if (grown == NULL) {
            cfoil_complain("out of memory");
            break;
        }
        data = grown;
    }
    free(data);
    return NULL;
}

uint8_t *cfoil_file_read(const char *path, size_t bytes_max, size_t *len)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rbe");
    if (file == NULL) {
        cfoil_complain("%s cannot be opened: %s", path, strerror(errno));
        return NULL;
    }
    uint8_t *data = read_all(file, standard ? "standard input" : path, bytes_max, len);
    if (!standard) {
        (void)fclose(file);
    }
    return data;
}

static bool name_valid(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool alnum = (name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'z') ||
                     (name[i] >= 'A' && name[i] <= 'Z');
        if (!alnum && strchr("!#$%&'*+-.^_`|~", name[i]) == NULL) {
            return false;
        }
    }
    return len > 0;
}

static bool value_valid(const char *value)
{
    for (; *value != '\0'; value++) {
        uint8_t byte = (uint8_t)*value;
        if ((byte < 0x20 && byte != '\t') || byte == 0x7F) {
            return false;
        }
    }
    return true;
}

bool cfoil_header_split(const char *line, struct cfoil_bytes *name, struct cfoil_bytes *value)
{
    const char *colon = strchr(line, ':');
    if (colon == NULL || !name_valid(line, (size_t)(colon - line)) || !value_valid(colon + 1)) {
        cfoil_complain("--header '%s': write it as in 'Location: /orders/1', on one line", line);
        return false;
    }
    *name = cfoil_bytes_of(line, (size_t)(colon - line));
    const char *start = colon + 1 + strspn(colon + 1, " \t");
    size_t len = strlen(start);
    while (len > 0 && (start[len - 1] == ' ' || start[len - 1] == '\t')) {
        len--;
    }
    *value = cfoil_bytes_of(start, len);
    return true;
}

bool cfoil_is_json(struct cfoil_bytes text)
{
    json_t *json = json_loadb((const char *)text.data, text.len, JSON_DECODE_ANY, NULL);
    json_decref(json);
    return json != NULL;
}
