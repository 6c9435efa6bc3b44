/* SPDX-License-Identifier: Apache-2.0 */
/* See terminal.h. */
#include "cli/terminal.h"

#include <stdlib.h>
#include <unistd.h>

bool cfoil_colour_wanted(FILE *file)
{
    const char *no_color = getenv("NO_COLOR");
    return isatty(fileno(file)) == 1 && (no_color == NULL || no_color[0] == '\0');
}

size_t cfoil_utf8_printable(struct cfoil_bytes text)
{
    uint8_t first = text.data[0];
    if (first < 0x80) {
        return first >= 0x20 && first != 0x7F ? 1 : 0;
    }
    size_t len = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.len < len) {
        return 0;
    }

    uint32_t point = first & (0xFFU >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((text.data[i] & 0xC0) != 0x80) {
            return 0;
        }
        point = point << 6 | (text.data[i] & 0x3FU);
    }
    bool overlong = (len == 3 && point < 0x800) || (len == 4 && point < 0x10000);
    bool control = point < 0xA0; /* C1 */
    bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    return overlong || control || surrogate || point > 0x10FFFF ? 0 : len;
}

/* Prints one character; returns how many bytes of text it was. */
static size_t print_one(FILE *file, struct cfoil_bytes text)
{
    size_t len = cfoil_utf8_printable(text);
    if (len == 0) {
        (void)fputc('?', file);
        return 1;
    }
    (void)fwrite(text.data, 1, len, file);
    return len;
}

static size_t count_columns(struct cfoil_bytes text)
{
    size_t columns = 0;
    for (size_t at = 0; at < text.len; columns++) {
        size_t len = cfoil_utf8_printable(cfoil_bytes_of(text.data + at, text.len - at));
        at += len > 0 ? len : 1;
    }
    return columns;
}

size_t cfoil_text_print(FILE *file, struct cfoil_bytes text)
{
    size_t columns = 0;
    for (size_t at = 0; at < text.len; columns++) {
        at += print_one(file, cfoil_bytes_of(text.data + at, text.len - at));
    }
    return columns;
}

void cfoil_text_print_cell(FILE *file, struct cfoil_bytes text, size_t columns)
{
    size_t wanted = count_columns(text);
    size_t shown = wanted > columns ? columns - 1 : wanted;
    size_t at = 0;
    for (size_t i = 0; i < shown; i++) {
        at += print_one(file, cfoil_bytes_of(text.data + at, text.len - at));
    }
    if (wanted > columns) {
        (void)fputs("…", file);
    }
    for (size_t i = wanted; i < columns; i++) {
        (void)fputc(' ', file);
    }
}

void cfoil_state_print(FILE *file, const char *name, bool colour, size_t columns)
{
    static const struct {
        const char *state;
        const char *code;
    } colours[] = {
        {"SUCCEEDED", "32"},  {"FAILED_FINAL", "33"}, {"FAILED", "33"},    {"IN_DOUBT", "31"},
        {"PROCESSING", "36"}, {"TOMBSTONE", "2"},     {"CORRUPT", "1;31"},
    };
    const char *code = NULL;
    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]) && colour; i++) {
        code = strcmp(colours[i].state, name) == 0 ? colours[i].code : code;
    }
    if (code == NULL) {
        (void)fprintf(file, "%-*s", (int)columns, name);
        return;
    }
    (void)fprintf(file, "\033[%sm%s\033[0m%*s", code, name,
                  (int)(columns > strlen(name) ? columns - strlen(name) : 0), "");
}
