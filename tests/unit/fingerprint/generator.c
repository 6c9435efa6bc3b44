/* SPDX-License-Identifier: Apache-2.0 */
/* Random documents: making and changing them. spelling.c writes them. */
#include "generator.h"

static uint32_t random_point(uint64_t *random)
{
    static const uint32_t special[] = {'"',      '\\', '/',    0,      1,       0x1F,   '\n',
                                       '\t',     0x7F, 0xE9,   0x4E2D, 0x1F600, 0x2028, 0xFFFD,
                                       0x10FFFF, ' ',  0xD7FF, 0xE000, 0x10000, 0x80};
    const uint32_t count = sizeof(special) / sizeof(special[0]);
    if (random_below(random, 3) == 0) {
        return special[random_below(random, count)];
    }
    return 'A' + random_below(random, 26);
}

static void random_text(struct doc_text *text, uint64_t *random)
{
    text->count = (int)random_below(random, DOC_POINTS_MAX + 1);
    for (int i = 0; i < text->count; i++) {
        text->points[i] = random_point(random);
    }
}

static void random_number(struct doc_value *value, uint64_t *random)
{
    value->digit_count = (int)random_below(random, 21);
    value->negative = random_below(random, 2) == 0;
    value->exponent = (int)random_below(random, 60) - 30;
    for (int i = 0; i < value->digit_count; i++) {
        bool end = i == 0 || i == value->digit_count - 1;
        value->digits[i] =
            (char)('0' + (end ? 1 + random_below(random, 9) : random_below(random, 10)));
    }
}

static int add_value(struct doc *doc, uint64_t *random, int depth)
{
    int index = doc->count++;
    struct doc_value *value = &doc->values[index];
    *value = (struct doc_value){.kind = (enum doc_kind)random_below(random, 7)};
    if (depth == 0) {
        value->kind = random_below(random, 2) == 0 ? DOC_ARRAY : DOC_OBJECT;
    } else if (depth == DOC_DEPTH_MAX || doc->count > DOC_VALUES_MAX - 2 * DOC_CHILDREN_MAX) {
        value->kind = (enum doc_kind)random_below(random, DOC_ARRAY);
    }
    if (value->kind == DOC_NUMBER) {
        random_number(value, random);
    } else if (value->kind == DOC_STRING) {
        random_text(&value->text, random);
    } else if (value->kind >= DOC_ARRAY) {
        value->child_count = (int)random_below(random, DOC_CHILDREN_MAX + 1);
    }
    return index;
}

/* Breadth first, so that there is no recursion to mind. */
void doc_generate(struct doc *doc, uint64_t *random)
{
    int depth_of[DOC_VALUES_MAX + 8] = {0};
    doc->count = 0;
    add_value(doc, random, 0);
    for (int parent = 0; parent < doc->count; parent++) {
        struct doc_value *container = &doc->values[parent];
        for (int i = 0; i < container->child_count; i++) {
            if (doc->count >= DOC_VALUES_MAX) {
                container->child_count = i;
                break;
            }
            int child = add_value(doc, random, depth_of[parent] + 1);
            struct doc_text *name = &doc->values[child].name;
            depth_of[child] = depth_of[parent] + 1;
            container->children[i] = child;
            random_text(name, random);
            name->points[name->count++] = 'a' + (uint32_t)i; /* unlike its siblings' */
        }
    }
}

static void change_number(struct doc_value *value, uint64_t *random)
{
    uint32_t choice = random_below(random, 3);
    if (value->digit_count == 0) {
        value->digits[0] = '7';
        value->digit_count = 1;
    } else if (choice == 0) {
        value->exponent++;
    } else if (choice == 1) {
        value->negative = !value->negative;
    } else {
        char *last = &value->digits[value->digit_count - 1];
        *last = *last == '9' ? '1' : (char)(*last + 1);
    }
}

static void change_text(struct doc_text *text, uint64_t *random)
{
    if (text->count > 0 && random_below(random, 2) == 0) {
        uint32_t *point = &text->points[random_below(random, (uint32_t)text->count)];
        *point = *point == 'Q' ? 'R' : 'Q';
        return;
    }
    text->points[text->count++] = 'Z';
}

static void change_children(struct doc *doc, struct doc_value *container, uint64_t *random)
{
    if (container->child_count > 0 && random_below(random, 2) == 0) {
        container->child_count--;
        return;
    }
    int child = doc->count++;
    doc->values[child] = (struct doc_value){.kind = DOC_NULL};
    doc->values[child].name.points[0] = 'y';
    doc->values[child].name.count = 1;
    container->children[container->child_count++] = child;
}

/* Only values that can still be reached are changed; a removed one would change nothing. */
void doc_mutate(struct doc *doc, uint64_t *random)
{
    struct doc_value *value = &doc->values[random_below(random, (uint32_t)doc->count)];
    switch (value->kind) {
    case DOC_NULL:
        value->kind = DOC_FALSE;
        break;
    case DOC_FALSE:
        value->kind = DOC_TRUE;
        break;
    case DOC_TRUE:
        value->kind = DOC_NULL;
        break;
    case DOC_NUMBER:
        change_number(value, random);
        break;
    case DOC_STRING:
        change_text(&value->text, random);
        break;
    case DOC_ARRAY:
    case DOC_OBJECT:
        change_children(doc, value, random);
        break;
    }
}
