/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of JSON (RFC 8259) in one pass with an explicit stack of frames. Builds the tree of
 * json.h and finds, while it goes, on which places of the rules each value stands.
 *
 * Invariant: every value that closes is in canonical order inside. What ends in an error has no
 * canonical form; nothing of it is used.
 */
#include "fingerprint/json.h"

#include "fingerprint/scan.h"

static uint8_t *fail(struct cfoil_json *json, const char *reason)
{
    json->reason = reason;
    return NULL;
}

static struct cfoil_json_frame *top(struct cfoil_json *json)
{
    return &json->frames[json->depth - 1];
}

/*
 * The node of the coming value: behind the nodes that are, so that its name and flags can be noted
 * before its value is read. NULL with a reason or no_memory.
 */
static inline struct cfoil_json_node *coming_node(struct cfoil_json *json)
{
    if (json->node_count < json->node_capacity) {
        return &json->nodes[json->node_count];
    }
    if (json->node_count >= CFOIL_JSON_VALUES_MAX) {
        json->reason = "it has too many values";
        return NULL;
    }
    return cfoil_json_more_nodes(json) ? &json->nodes[json->node_count] : NULL;
}

/* Adds a place the coming value stands on. The array is large enough: see rules.h, invariant. */
static void stand_on(struct cfoil_json *json, struct cfoil_json_node *coming, uint32_t place)
{
    if (place == CFOIL_PLACE_NONE) {
        return;
    }
    json->places[json->coming_places + json->coming_place_count++] = place;
    uint8_t flags = json->rules->places[place].flags;
    coming->flags |= (flags & CFOIL_PLACE_IGNORE) != 0 ? CFOIL_JSON_IGNORED : 0;
    coming->flags |= (flags & CFOIL_PLACE_UNORDERED) != 0 ? CFOIL_JSON_UNORDERED : 0;
}

/* Finds the places a child stands on, from those its container stands on. */
static void step_places(struct cfoil_json *json, struct cfoil_json_node *coming,
                        const struct cfoil_json_frame *frame, struct cfoil_bytes token)
{
    json->coming_places = frame->place_first + frame->place_count;
    for (uint32_t i = 0; i < frame->place_count; i++) {
        uint32_t place = json->places[frame->place_first + i];
        stand_on(json, coming, cfoil_rules_step(json->rules, place, token));
        stand_on(json, coming, json->rules->places[place].star);
    }
}

/* An element's token is its index in decimal. */
static void step_element(struct cfoil_json *json, struct cfoil_json_node *coming,
                         const struct cfoil_json_frame *frame)
{
    uint8_t digits[10];
    size_t first = sizeof(digits);
    uint32_t index = frame->index;
    do {
        digits[--first] = (uint8_t)('0' + index % 10);
        index /= 10;
    } while (index > 0);
    step_places(json, coming, frame, cfoil_bytes_of(digits + first, sizeof(digits) - first));
}

/* Prepares for the next element of an array. */
static inline uint8_t *expect_element(struct cfoil_json *json, uint8_t *at)
{
    struct cfoil_json_frame *frame = top(json);
    struct cfoil_json_node *coming = coming_node(json);
    if (coming == NULL) {
        return NULL;
    }
    coming->name_at = 0;
    coming->name_bytes = 0;
    coming->flags = 0;
    json->coming_place_count = 0;
    if (frame->place_count > 0) {
        step_element(json, coming, frame);
    }
    frame->index++;
    return at;
}

/* Reads a string; `at` stands behind its opening quote. */
static inline uint8_t *read_string(struct cfoil_json *json, uint8_t *at,
                                   struct cfoil_json_span *span)
{
    uint8_t *end = cfoil_scan_plain(at);
    if (*end == '"') {
        *span = (struct cfoil_json_span){(uint32_t)(at - json->text), (uint32_t)(end - at), 0};
        return end + 1;
    }
    struct cfoil_json_span rest; /* its address is given away, that of *span need not be memory */
    end = cfoil_json_string_rest(json, at, end, &rest);
    *span = rest;
    return end;
}

/* Reads a member's name and colon, and prepares for its value. */
static inline uint8_t *expect_member(struct cfoil_json *json, uint8_t *at)
{
    struct cfoil_json_span name;
    if (*at != '"') {
        return fail(json, "a member's name is missing");
    }
    at = read_string(json, at + 1, &name);
    if (at == NULL) {
        return NULL;
    }
    at = cfoil_scan_space(at);
    if (*at != ':') {
        return fail(json, "a colon is missing after a member's name");
    }
    struct cfoil_json_node *coming = coming_node(json);
    if (coming == NULL) {
        return NULL;
    }
    coming->name_at = name.at;
    coming->name_bytes = name.bytes;
    coming->flags = name.escape != 0 ? CFOIL_JSON_NAMED | CFOIL_JSON_ESCAPE_NAME : CFOIL_JSON_NAMED;
    json->coming_place_count = 0;
    struct cfoil_json_frame *frame = top(json);
    if (frame->place_count > 0) {
        step_places(json, coming, frame, cfoil_bytes_of(json->text + name.at, name.bytes));
    }
    return cfoil_scan_space(at + 1);
}

/* Makes the coming node the value read last. */
static inline void add_node(struct cfoil_json *json, enum cfoil_json_kind kind,
                            struct cfoil_json_span text)
{
    struct cfoil_json_node *node = &json->nodes[json->node_count];
    node->text_at = text.at;
    node->text_bytes = text.bytes;
    node->first = 0;
    node->kind = (uint8_t)kind;
    if (text.escape != 0) {
        node->flags |= CFOIL_JSON_ESCAPE_TEXT;
    }
    json->value = json->node_count++;
}

static enum cfoil_json_list list_of(enum cfoil_json_kind kind, uint8_t flags)
{
    if (kind == CFOIL_JSON_OBJECT) {
        return CFOIL_LIST_OBJECT;
    }
    return (flags & CFOIL_JSON_UNORDERED) != 0 ? CFOIL_LIST_MULTISET : CFOIL_LIST_ARRAY;
}

/* Links a child as the last of its container so far. */
static void link_child(struct cfoil_json *json, struct cfoil_json_frame *frame, uint32_t child)
{
    if (frame->last == 0) {
        json->nodes[frame->node].first = child;
    } else {
        json->nodes[frame->last].next = child;
    }
    frame->last = child;
    json->nodes[frame->node].text_bytes++;
}

/* Takes the container's entries off the stack and links them in their canonical order. */
static bool link_entries(struct cfoil_json *json, struct cfoil_json_frame *frame)
{
    if (!cfoil_json_sort(json, frame->entry_first, frame->list == CFOIL_LIST_OBJECT)) {
        return false;
    }
    for (uint32_t i = frame->entry_first; i < json->entry_count; i++) {
        uint32_t child = json->entries.nodes[i];
        if ((json->nodes[child].flags & CFOIL_JSON_IGNORED) == 0) {
            link_child(json, frame, child);
        }
    }
    json->entry_count = frame->entry_first;
    return true;
}

/* What the reader has before it. */
enum expected { EXPECT_VALUE, EXPECT_AFTER_VALUE, EXPECT_NOTHING };

static uint8_t *close_container(struct cfoil_json *json, uint8_t *at)
{
    struct cfoil_json_frame *frame = top(json);
    if (frame->list != CFOIL_LIST_ARRAY && !link_entries(json, frame)) {
        return NULL;
    }
    if (frame->last != 0) {
        json->nodes[frame->last].next = frame->node;
        json->nodes[frame->last].flags |= CFOIL_JSON_LAST;
    }
    json->value = frame->node;
    json->depth--;
    return at + 1;
}

/* Opens the container `at` stands on; an empty one is closed at once. */
static uint8_t *open_container(struct cfoil_json *json, uint8_t *at, enum cfoil_json_kind kind,
                               enum expected *expected)
{
    if (json->depth == CFOIL_JSON_DEPTH_MAX) {
        return fail(json, "it is nested too deeply");
    }
    add_node(json, kind, (struct cfoil_json_span){0});
    json->frames[json->depth++] = (struct cfoil_json_frame){
        .node = json->value,
        .entry_first = json->entry_count,
        .place_first = json->coming_places,
        .place_count = json->coming_place_count,
        .list = list_of(kind, json->nodes[json->value].flags),
    };
    at = cfoil_scan_space(at + 1);
    if (*at == (kind == CFOIL_JSON_OBJECT ? '}' : ']')) {
        *expected = EXPECT_AFTER_VALUE;
        return close_container(json, at);
    }
    *expected = EXPECT_VALUE;
    return kind == CFOIL_JSON_OBJECT ? expect_member(json, at) : expect_element(json, at);
}

static uint8_t *read_word(struct cfoil_json *json, uint8_t *at)
{
    static const struct {
        char word[6];
        uint8_t bytes;
        enum cfoil_json_kind kind;
    } words[] = {
        {"null", 4, CFOIL_JSON_NULL}, {"true", 4, CFOIL_JSON_TRUE}, {"false", 5, CFOIL_JSON_FALSE}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (memcmp(at, words[i].word, words[i].bytes) != 0) {
            continue;
        }
        add_node(json, words[i].kind,
                 (struct cfoil_json_span){(uint32_t)(at - json->text), words[i].bytes, 0});
        return at + words[i].bytes;
    }
    return fail(json, "a value is missing");
}

/* Most numbers are short integers, canonical as they stand; the rest takes the long way. */
static inline uint8_t *read_number(struct cfoil_json *json, uint8_t *at)
{
    uint8_t *end = cfoil_scan_digits(at);
    bool plain = *at != '0' && end > at && end - at <= CFOIL_JSON_PLAIN_DIGITS && *end != '.' &&
                 *end != 'e' && *end != 'E';
    if (plain) {
        add_node(json, CFOIL_JSON_NUMBER,
                 (struct cfoil_json_span){(uint32_t)(at - json->text), (uint32_t)(end - at), 0});
        return end;
    }
    struct cfoil_json_span text;
    end = cfoil_json_number(json, at, &text);
    if (end != NULL) {
        add_node(json, CFOIL_JSON_NUMBER, text);
    }
    return end;
}

/* Reads a value; of a container its opening only, unless it is empty. */
static inline uint8_t *read_value(struct cfoil_json *json, uint8_t *at, enum expected *expected)
{
    *expected = EXPECT_AFTER_VALUE;
    if (*at == '"') {
        struct cfoil_json_span text;
        at = read_string(json, at + 1, &text);
        if (at != NULL) {
            add_node(json, CFOIL_JSON_STRING, text);
        }
        return at;
    }
    if (cfoil_is_digit(*at) || *at == '-') {
        return read_number(json, at);
    }
    if (*at == '{') {
        return open_container(json, at, CFOIL_JSON_OBJECT, expected);
    }
    if (*at == '[') {
        return open_container(json, at, CFOIL_JSON_ARRAY, expected);
    }
    return read_word(json, at);
}

/* Puts the complete value where its container keeps it. False: no memory. */
static inline bool keep_value(struct cfoil_json *json, struct cfoil_json_frame *frame)
{
    const struct cfoil_json_node *node = &json->nodes[json->value];
    bool object = frame->list == CFOIL_LIST_OBJECT;
    if (!object && (node->flags & CFOIL_JSON_IGNORED) != 0) {
        return true; /* an ignored member stays until it is known to be the only one of its name */
    }
    if (frame->list == CFOIL_LIST_ARRAY) {
        link_child(json, frame, json->value);
        return true;
    }
    if (json->entry_count == json->entries.capacity && !cfoil_json_more_entries(json)) {
        return false;
    }
    json->entries.keys[json->entry_count] =
        object ? cfoil_json_prefix_key(json->text + node->name_at, node->name_bytes)
               : cfoil_json_value_key(json, node);
    json->entries.nodes[json->entry_count++] = json->value;
    return true;
}

/* What may follow a complete value: the next one, the end of its container, the end of all. */
static inline uint8_t *read_after_value(struct cfoil_json *json, uint8_t *at,
                                        enum expected *expected)
{
    at = cfoil_scan_space(at);
    if (json->depth == 0) {
        *expected = EXPECT_NOTHING;
        return at == json->text + json->document_bytes ? at : fail(json, "bytes follow the value");
    }
    struct cfoil_json_frame *frame = top(json);
    if (!keep_value(json, frame)) {
        return NULL;
    }
    bool object = frame->list == CFOIL_LIST_OBJECT;
    if (*at == ',') {
        *expected = EXPECT_VALUE;
        at = cfoil_scan_space(at + 1);
        return object ? expect_member(json, at) : expect_element(json, at);
    }
    if (*at == (object ? '}' : ']')) {
        return close_container(json, at);
    }
    return fail(json, object ? "an object does not end" : "an array does not end");
}

/* The value `node` begins at `from`: what is ignored, and not inside of such a value, is to be cut. */
static void open_cut(struct cfoil_json *json, uint32_t node, uint32_t from)
{
    struct cfoil_json_cuts *cuts = json->cuts;
    if (cuts->open || (json->nodes[node].flags & CFOIL_JSON_IGNORED) == 0) {
        return;
    }
    if (cuts->count == cuts->capacity && !cfoil_json_more_cuts(json)) {
        return;
    }
    cuts->open = true;
    cuts->node = node;
    cuts->at[cuts->count].from = from;
}

static void close_cut(struct cfoil_json *json, uint32_t to)
{
    struct cfoil_json_cuts *cuts = json->cuts;
    if (cuts->open && json->value == cuts->node) {
        cuts->at[cuts->count++].to = to;
        cuts->open = false;
    }
}

/* Reads one value, and what may follow it up to the next one. */
static inline uint8_t *read_on(struct cfoil_json *json, uint8_t *at, enum expected *expected)
{
    uint32_t from = (uint32_t)(at - json->text);
    uint32_t node = json->node_count;
    at = read_value(json, at, expected);
    if (json->cuts != NULL && at != NULL) {
        open_cut(json, node, from);
    }
    while (at != NULL && *expected == EXPECT_AFTER_VALUE) {
        if (json->cuts != NULL) {
            close_cut(json, (uint32_t)(at - json->text));
        }
        at = read_after_value(json, at, expected);
    }
    return at;
}

/* Pads the document and puts the root on the root place. False: no memory. */
static bool start(struct cfoil_json *json, const struct cfoil_rules *rules)
{
    json->rules = rules;
    json->document_bytes = json->text_used;
    json->node_count = 0;
    json->entry_count = 0;
    json->depth = 0;
    if (!cfoil_json_more_text(json, CFOIL_JSON_PAD_BYTES) ||
        !cfoil_json_more_places(json, rules->place_count)) {
        return false;
    }
    memset(json->text + json->text_used, 0, CFOIL_JSON_PAD_BYTES);
    json->text_used += CFOIL_JSON_PAD_BYTES;

    struct cfoil_json_node *root = coming_node(json);
    if (root == NULL) {
        return false;
    }
    uint8_t flags = rules->places[CFOIL_PLACE_ROOT].flags;
    *root = (struct cfoil_json_node){
        .flags = (flags & CFOIL_PLACE_UNORDERED) != 0 ? CFOIL_JSON_UNORDERED : 0,
    };
    json->places[0] = CFOIL_PLACE_ROOT;
    json->coming_places = 0;
    json->coming_place_count = rules->place_count > 1 ? 1 : 0;
    return true;
}

static const char *refuse_at_start(const struct cfoil_json *json)
{
    if (json->text_used == 0) {
        return "it is empty";
    }
    if (json->text_used >= 3 && memcmp(json->text, "\xEF\xBB\xBF", 3) == 0) {
        return "it begins with a byte order mark";
    }
    return NULL;
}

enum cfoil_error cfoil_json_read(struct cfoil_json *json, const struct cfoil_rules *rules)
{
    json->reason = refuse_at_start(json);
    if (json->reason != NULL) {
        return CFOIL_E_SYNTAX;
    }
    if (!start(json, rules)) {
        return CFOIL_E_NO_MEMORY;
    }
    uint8_t *at = cfoil_scan_space(json->text);
    enum expected expected = EXPECT_VALUE;
    while (at != NULL && expected == EXPECT_VALUE) {
        at = read_on(json, at, &expected);
    }
    if (at != NULL && !json->no_memory) {
        return CFOIL_OK;
    }
    return json->no_memory ? CFOIL_E_NO_MEMORY : CFOIL_E_SYNTAX;
}
