/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From libyaml's events to the tree of tree.h. A stack of open collections, no recursion; the first
 * fault ends the reading.
 */
#include "policy/tree.h"

#include <yaml.h>

#include "policy/limits.h"

struct builder {
    struct cfoil_pool *pool;
    struct cfoil_bytes text;
    struct cfoil_policy_problems *problems;
    struct cfoil_node *root;
    struct cfoil_node *open[CFOIL_YAML_DEPTH_MAX];
    size_t depth;
    struct cfoil_node pending[CFOIL_YAML_DEPTH_MAX]; /* key*: the member a mapping has begun */
    unsigned documents;
    unsigned nodes;
    bool no_memory;
};

#define LINE(mark)   ((unsigned)(mark).line + 1)
#define COLUMN(mark) ((unsigned)(mark).column + 1)

static bool refuse(struct builder *builder, yaml_mark_t mark, const char *text)
{
    cfoil_problem_add(builder->problems, LINE(mark), COLUMN(mark), "%s", text);
    return false;
}

/* The place of a byte, for faults of the encoding, which libyaml gives as an offset only. */
static yaml_mark_t mark_of(struct cfoil_bytes text, size_t offset)
{
    yaml_mark_t mark = {offset, 0, 0};
    for (size_t i = 0; i < offset && i < text.len; i++) {
        if (text.data[i] == '\n') {
            mark.line++;
            mark.column = 0;
            continue;
        }
        mark.column += (text.data[i] & 0xC0) != 0x80; /* count characters, as libyaml does */
    }
    return mark;
}

/* The line a fault stands on: from its first byte up to the fault has a tab, has a brace. */
static void look_at_line(struct cfoil_bytes text, yaml_mark_t mark, bool *tab, bool *brace)
{
    size_t at = 0;
    for (size_t line = 0; line < mark.line && at < text.len; at++) {
        line += text.data[at] == '\n';
    }
    *tab = false;
    *brace = false;
    for (; at < text.len && text.data[at] != '\n'; at++) {
        *tab = *tab || text.data[at] == '\t';
        *brace = *brace || text.data[at] == '{' || text.data[at] == '[';
    }
}

static void syntax_problem(struct builder *builder, const yaml_parser_t *parser)
{
    if (parser->error == YAML_READER_ERROR) {
        yaml_mark_t mark = mark_of(builder->text, parser->problem_offset);
        cfoil_problem_add(builder->problems, LINE(mark), COLUMN(mark),
                          "the file is not UTF-8 text here (%s); save it as UTF-8 without control "
                          "characters",
                          parser->problem);
        return;
    }

    bool tab;
    bool brace;
    look_at_line(builder->text, parser->problem_mark, &tab, &brace);
    const char *fix = "check indentation, colons and quotes here and on the line before";
    if (brace) {
        fix = "inside [ ] or { } a text with { } [ ] or , needs quotes, and every bracket its end";
    }
    if (tab) {
        fix = "there is a tab on this line; YAML wants spaces";
    }
    cfoil_problem_add(builder->problems, LINE(parser->problem_mark), COLUMN(parser->problem_mark),
                      "not valid YAML: %s%s%s; %s",
                      parser->problem != NULL ? parser->problem : "it cannot be read",
                      parser->context != NULL ? " " : "",
                      parser->context != NULL ? parser->context : "", fix);
}

static struct cfoil_node *top(struct builder *builder)
{
    return builder->depth > 0 ? builder->open[builder->depth - 1] : NULL;
}

/* Takes a scalar as the name of the next member. */
static bool take_key(struct builder *builder, const struct cfoil_node *scalar, yaml_mark_t mark)
{
    struct cfoil_node *mapping = top(builder);
    for (const struct cfoil_node *other = mapping->first; other != NULL; other = other->next) {
        if (strcmp(other->key, scalar->text) != 0) {
            continue;
        }
        cfoil_problem_add(builder->problems, LINE(mark), COLUMN(mark),
                          "`%.60s` stands here twice, first on line %u; keep one", scalar->text,
                          other->key_line);
        return false;
    }
    if (mapping->count >= CFOIL_YAML_MEMBERS_MAX) {
        return refuse(builder, mark, "too many members in one mapping (limit 256)");
    }

    struct cfoil_node *pending = &builder->pending[builder->depth - 1];
    pending->key = scalar->text;
    pending->key_line = LINE(mark);
    pending->key_column = COLUMN(mark);
    return true;
}

static bool wants_key(struct builder *builder)
{
    const struct cfoil_node *parent = top(builder);
    return parent != NULL && parent->kind == CFOIL_NODE_MAPPING &&
           builder->pending[builder->depth - 1].key == NULL;
}

/* Hangs a node under the open collection, or makes it the root. */
static bool attach(struct builder *builder, struct cfoil_node *node, yaml_mark_t mark)
{
    struct cfoil_node *parent = top(builder);
    if (parent == NULL) {
        builder->root = node;
        return true;
    }
    if (wants_key(builder)) {
        return refuse(builder, mark, "a member's name must be a word, not a list or a mapping");
    }

    if (parent->kind == CFOIL_NODE_MAPPING) {
        struct cfoil_node *pending = &builder->pending[builder->depth - 1];
        node->key = pending->key;
        node->key_line = pending->key_line;
        node->key_column = pending->key_column;
        pending->key = NULL;
    }
    if (parent->last == NULL) {
        parent->first = node;
    } else {
        parent->last->next = node;
    }
    parent->last = node;
    parent->count++;
    return true;
}

static struct cfoil_node *node_new(struct builder *builder, enum cfoil_node_kind kind,
                                   yaml_mark_t mark)
{
    if (++builder->nodes > CFOIL_YAML_NODES_MAX) {
        (void)refuse(builder, mark, "too many values in one policy (limit 1048576); split it");
        return NULL;
    }
    struct cfoil_node *node = cfoil_pool_take(builder->pool, sizeof(*node));
    if (node == NULL) {
        builder->no_memory = true;
        return NULL;
    }
    node->kind = kind;
    node->line = LINE(mark);
    node->column = COLUMN(mark);
    node->text = "";
    return node;
}

static bool on_scalar(struct builder *builder, const yaml_event_t *event)
{
    yaml_mark_t mark = event->start_mark;
    const unsigned char *value = event->data.scalar.value;
    size_t len = event->data.scalar.length;
    if (event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL) {
        return refuse(builder, mark,
                      "anchors (&) and tags (!) are not used in a policy; write the value itself, "
                      "or put what routes share under `defaults`");
    }
    if (len > CFOIL_FIELD_TEXT_MAX) {
        return refuse(builder, mark, "a value is longer than 2048 bytes");
    }
    for (size_t i = 0; i < len; i++) {
        if (value[i] < 0x20 || value[i] == 0x7F) {
            return refuse(builder, mark,
                          "a value must be one line of text without control characters");
        }
    }

    struct cfoil_node *node = node_new(builder, CFOIL_NODE_SCALAR, mark);
    if (node == NULL) {
        return false;
    }
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->len = len;
    node->text = cfoil_pool_text(builder->pool, (const char *)value, len);
    if (node->text == NULL) {
        builder->no_memory = true;
        return false;
    }
    return wants_key(builder) ? take_key(builder, node, mark) : attach(builder, node, mark);
}

static bool on_collection(struct builder *builder, enum cfoil_node_kind kind,
                          const yaml_char_t *anchor, const yaml_char_t *tag, yaml_mark_t mark)
{
    if (anchor != NULL || tag != NULL) {
        return refuse(builder, mark,
                      "anchors (&) and tags (!) are not used in a policy; write the value itself, "
                      "or put what routes share under `defaults`");
    }
    if (builder->depth == CFOIL_YAML_DEPTH_MAX) {
        return refuse(builder, mark, "nested too deep (limit 16); no field needs that");
    }

    struct cfoil_node *node = node_new(builder, kind, mark);
    if (node == NULL || !attach(builder, node, mark)) {
        return false;
    }
    builder->pending[builder->depth].key = NULL;
    builder->open[builder->depth++] = node;
    return true;
}

/* True: go on. */
static bool on_event(struct builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++builder->documents > 1) {
            return refuse(
                builder, event->start_mark,
                "a policy is one document; remove the `---` and what follows, or merge it");
        }
        return true;
    case YAML_ALIAS_EVENT:
        return refuse(builder, event->start_mark,
                      "aliases (*) are not used in a policy; write the value itself, or put what "
                      "routes share under `defaults`");
    case YAML_SCALAR_EVENT:
        return on_scalar(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_collection(builder, CFOIL_NODE_LIST, event->data.sequence_start.anchor,
                             event->data.sequence_start.tag, event->start_mark);
    case YAML_MAPPING_START_EVENT:
        return on_collection(builder, CFOIL_NODE_MAPPING, event->data.mapping_start.anchor,
                             event->data.mapping_start.tag, event->start_mark);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        builder->depth--;
        return true;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    }
    return true;
}

static void read_events(struct builder *builder, yaml_parser_t *parser)
{
    bool going = true;
    while (going) {
        yaml_event_t event;
        if (yaml_parser_parse(parser, &event) == 0) {
            builder->no_memory = parser->error == YAML_MEMORY_ERROR;
            if (!builder->no_memory) {
                syntax_problem(builder, parser);
            }
            return;
        }
        going = on_event(builder, &event) && event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
}

enum cfoil_error cfoil_tree_read(struct cfoil_pool *pool, struct cfoil_bytes text,
                                 struct cfoil_node **root, struct cfoil_policy_problems *problems)
{
    struct builder builder = {.pool = pool, .text = text, .problems = problems};
    yaml_parser_t parser;
    if (yaml_parser_initialize(&parser) == 0) {
        return CFOIL_E_NO_MEMORY;
    }
    size_t before = problems->count;
    yaml_parser_set_input_string(&parser, text.len > 0 ? text.data : (const uint8_t *)"", text.len);
    read_events(&builder, &parser);
    yaml_parser_delete(&parser);

    if (builder.no_memory) {
        return CFOIL_E_NO_MEMORY;
    }
    if (problems->count > before) {
        return CFOIL_E_POLICY;
    }
    if (builder.root == NULL || cfoil_node_is_null(builder.root)) {
        cfoil_problem_add(problems, 1, 1,
                          "the policy is empty; it begins with `version: 1` and needs `routes:`");
        return CFOIL_E_POLICY;
    }
    if (builder.root->kind != CFOIL_NODE_MAPPING) {
        cfoil_problem_add(problems, builder.root->line, builder.root->column,
                          "a policy is a mapping; begin with `version: 1` and `routes:`");
        return CFOIL_E_POLICY;
    }
    *root = builder.root;
    return CFOIL_OK;
}

bool cfoil_node_is_null(const struct cfoil_node *node)
{
    if (node->kind != CFOIL_NODE_SCALAR || node->quoted) {
        return false;
    }
    return node->len == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0 ||
           strcmp(node->text, "Null") == 0 || strcmp(node->text, "NULL") == 0;
}

const struct cfoil_node *cfoil_node_member(const struct cfoil_node *mapping, enum cfoil_field field)
{
    if (mapping == NULL || mapping->kind != CFOIL_NODE_MAPPING) {
        return NULL;
    }
    for (const struct cfoil_node *member = mapping->first; member != NULL; member = member->next) {
        if (member->field == field) {
            return member;
        }
    }
    return NULL;
}
