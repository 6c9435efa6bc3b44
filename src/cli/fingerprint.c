/* SPDX-License-Identifier: Apache-2.0 */
/* counterfoil fingerprint: what a request means under a route, and whether two mean the same. */
#include <stdlib.h>

#include "cli/files.h"
#include "cli/options.h"
#include "cli/policies.h"
#include "cli/render.h"
#include "policy/pattern.h"

struct subject {
    const struct cfoil_route *route;
    struct cfoil_request_view view;
    struct cfoil_bytes *header_values;
    char *path; /* made from the pattern, where none is given */
};

struct result {
    struct cfoil_fingerprint fingerprint;
    uint8_t *canonical; /* NULL: hashed raw */
    size_t canonical_bytes;
    const char *raw_reason;
};

/* The first pattern's path as it stands in the policy: what to hash where no --path is given. */
static char *pattern_path(const struct cfoil_pattern *pattern)
{
    char *path = NULL;
    return asprintf(&path, "%.*s", (int)pattern->template.len,
                    (const char *)pattern->template.data) < 0
               ? NULL
               : path;
}

/* The values of the headers the rules want, from --header lines. False: complained. */
static bool take_headers(const struct cfoil_arguments *arguments, struct subject *subject)
{
    const char *lines[CFOIL_HEADERS_MAX];
    size_t line_count = cfoil_option_all(arguments, "--header", lines, CFOIL_HEADERS_MAX);
    size_t wanted = cfoil_rules_header_count(subject->route->rules);
    subject->header_values = calloc(wanted + 1, sizeof(*subject->header_values));
    if (subject->header_values == NULL) {
        cfoil_complain("out of memory");
        return false;
    }
    for (size_t i = 0; i < line_count; i++) {
        struct cfoil_bytes name;
        struct cfoil_bytes value;
        if (!cfoil_header_split(lines[i], &name, &value)) {
            return false;
        }
        for (size_t h = 0; h < wanted; h++) {
            const char *header = cfoil_rules_header(subject->route->rules, h);
            if (strlen(header) == name.len &&
                strncasecmp(header, (const char *)name.data, name.len) == 0) {
                subject->header_values[h] = value;
            }
        }
    }
    subject->view.header_values = subject->header_values;
    return true;
}

static bool take_request(const struct cfoil_arguments *arguments, struct subject *subject)
{
    const struct cfoil_pattern *pattern = subject->route->patterns[0];
    const char *method = cfoil_option(arguments, "--method");
    const char *path = cfoil_option(arguments, "--path");
    const char *query = cfoil_option(arguments, "--query");
    const char *type = cfoil_option(arguments, "--content-type");
    subject->path = pattern_path(pattern);
    if (subject->path == NULL) {
        cfoil_complain("out of memory");
        return false;
    }
    subject->view.method = method != NULL ? cfoil_bytes_text(method) : pattern->methods[0];
    subject->view.path = cfoil_bytes_text(path != NULL ? path : subject->path);
    subject->view.query = cfoil_bytes_text(query);
    subject->view.content_type = cfoil_bytes_text(type != NULL ? type : "application/json");
    return take_headers(arguments, subject);
}

/* Hashes one body, and makes its canonical form where it has one. False: complained. */
static bool hash_body(const struct subject *subject, struct cfoil_bytes body, struct result *result)
{
    struct cfoil_fingerprinter *fingerprinter = NULL;
    enum cfoil_error error = cfoil_fingerprinter_create(&fingerprinter);
    if (error == CFOIL_OK) {
        cfoil_fingerprint_begin(fingerprinter, subject->route->rules, &subject->view);
        cfoil_fingerprint_body(fingerprinter, body.data, body.len);
        error = cfoil_fingerprint_end(fingerprinter, &result->fingerprint, &result->raw_reason);
    }
    cfoil_fingerprinter_free(fingerprinter);
    if (error == CFOIL_OK && !cfoil_content_type_is_json(subject->view.content_type)) {
        result->raw_reason = "the Content-Type is not JSON";
    }
    if (error == CFOIL_OK && result->raw_reason == NULL) {
        error = cfoil_json_canonical(subject->route->rules, body, &result->canonical,
                                     &result->canonical_bytes, &result->raw_reason);
        error = error == CFOIL_E_SYNTAX ? CFOIL_OK : error;
    }
    if (error != CFOIL_OK) {
        cfoil_complain("the fingerprint cannot be made: %s", cfoil_error_text(error));
        return false;
    }
    return true;
}

static void print_result(const struct result *result)
{
    char hex[2 * CFOIL_DIGEST_BYTES + 1];
    cfoil_hex(result->fingerprint.request_hash, CFOIL_DIGEST_BYTES, hex);
    if (result->canonical != NULL) {
        (void)cfoil_text_print(stdout, cfoil_bytes_of(result->canonical, result->canonical_bytes));
        (void)putchar('\n');
    } else if (result->raw_reason != NULL) {
        (void)printf("(the raw bytes are hashed: %s)\n", result->raw_reason);
    }
    (void)puts(hex);
}

static json_t *result_json(const struct result *result)
{
    char hex[2 * CFOIL_DIGEST_BYTES + 1];
    cfoil_hex(result->fingerprint.request_hash, CFOIL_DIGEST_BYTES, hex);
    json_t *object = json_object();
    json_t *canonical = json_null();
    if (result->canonical != NULL) {
        canonical = cfoil_text_json(cfoil_bytes_of(result->canonical, result->canonical_bytes));
    }
    (void)json_object_set_new(object, "request_hash", json_string(hex));
    (void)json_object_set_new(object, "canonical", canonical);
    (void)json_object_set_new(object, "raw_because",
                              result->raw_reason != NULL ? json_string(result->raw_reason)
                                                         : json_null());
    return object;
}

/* `loose` compares no bodies: what the digests call different is replayed, and marked. */
static enum cfoil_exit say(const struct result *results, size_t count, bool loose, bool json)
{
    bool same = count < 2 || memcmp(results[0].fingerprint.request_hash,
                                    results[1].fingerprint.request_hash, CFOIL_DIGEST_BYTES) == 0;
    enum cfoil_exit status = same ? CFOIL_EXIT_OK : CFOIL_EXIT_NO;
    if (json) {
        json_t *object = result_json(&results[0]);
        if (count == 2) {
            (void)json_object_set_new(object, "other", result_json(&results[1]));
            (void)json_object_set_new(object, "same", json_boolean(same));
            (void)json_object_set_new(object, "loose", json_boolean(loose));
        }
        return cfoil_json_print(object, false) ? status : CFOIL_EXIT_SYSTEM;
    }
    for (size_t i = 0; i < count; i++) {
        print_result(&results[i]);
    }
    if (!same && loose) {
        (void)puts("(the route is loose: the gateway would replay the first answer, with "
                   "Counterfoil-Body: differs)");
    }
    if (count == 2) {
        (void)puts(same ? "same" : "different");
    }
    return status;
}

static enum cfoil_exit hash_all(const struct cfoil_arguments *arguments,
                                const struct subject *subject)
{
    struct result results[2] = {0};
    size_t count = arguments->word_count > 0 ? arguments->word_count : 1;
    enum cfoil_exit status = CFOIL_EXIT_OK;
    for (size_t i = 0; i < count && status == CFOIL_EXIT_OK; i++) {
        size_t len = 0;
        const char *path = arguments->word_count > 0 ? arguments->words[i] : "-";
        uint8_t *body = cfoil_file_read(path, CFOIL_BODY_FILE_BYTES_MAX, &len);
        if (body == NULL) {
            status = CFOIL_EXIT_USAGE;
        } else if (!hash_body(subject, cfoil_bytes_of(body, len), &results[i])) {
            status = CFOIL_EXIT_SYSTEM;
        }
        free(body);
    }
    if (status == CFOIL_EXIT_OK) {
        enum cfoil_semantics semantics = subject->route->terms.semantics;
        bool loose = semantics == CFOIL_SEMANTICS_LOOSE || semantics == CFOIL_SEMANTICS_WINDOW_KEY;
        status = say(results, count, loose, cfoil_flag(arguments, "--json"));
    }
    free(results[0].canonical);
    free(results[1].canonical);
    return status;
}

static void complain_route(const struct cfoil_policy *policy, const char *name)
{
    char names[512] = "";
    size_t used = 0;
    size_t count = cfoil_policy_route_count(policy);
    for (size_t i = 0; i < count && used < sizeof(names); i++) {
        int len = snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "",
                           cfoil_policy_route(policy, i)->name);
        used += (size_t)len;
    }
    cfoil_complain("--route %s: the policy has no route of that name; it has %s%s", name, names,
                   used >= sizeof(names) ? "…" : "");
}

static enum cfoil_exit with_policy(const struct cfoil_arguments *arguments,
                                   const struct cfoil_policy *policy)
{
    const char *name = cfoil_option(arguments, "--route");
    struct subject subject = {0};
    subject.route = cfoil_policy_route(policy, 0);
    if (name != NULL) {
        subject.route = cfoil_policy_route_by_name(policy, name);
    } else if (cfoil_policy_route_count(policy) > 1) {
        cfoil_complain("the policy has several routes; choose one with --route NAME");
        return CFOIL_EXIT_USAGE;
    }
    if (subject.route == NULL) {
        complain_route(policy, name);
        return CFOIL_EXIT_USAGE;
    }

    enum cfoil_exit status = CFOIL_EXIT_USAGE;
    if (take_request(arguments, &subject)) {
        status = hash_all(arguments, &subject);
    }
    free(subject.header_values);
    free(subject.path);
    return status;
}

static enum cfoil_exit run(const struct cfoil_arguments *arguments)
{
    struct cfoil_policy *policy = NULL;
    struct cfoil_policy_problems *problems = calloc(1, sizeof(*problems));
    if (problems == NULL) {
        cfoil_complain("out of memory");
        return CFOIL_EXIT_SYSTEM;
    }
    enum cfoil_exit status =
        cfoil_policy_open(cfoil_option(arguments, "--policy"), stderr, problems, &policy);
    if (status == CFOIL_EXIT_OK) {
        status = with_policy(arguments, policy);
    }
    cfoil_policy_free(policy);
    free(problems);
    return status;
}

static const struct cfoil_option options[] = {
    {"--policy", "FILE", "the policy (default: the built-in one)", false},
    {"--route", "NAME", "the route whose rules count; needed if there are several", false},
    {"--method", "M", "the request's method (default: the route's first)", false},
    {"--path", "P", "its concrete path (default: that of the route's first pattern)", false},
    {"--query", "Q", "its query, without ?", false},
    {"--content-type", "T", "its Content-Type (default: application/json)", false},
    {"--header", "LINE", "a header, as in 'X-Region: eu'; it counts if the rules name it", true},
    {"--json", NULL, "for machines", false},
    {0},
};

const struct cfoil_command cfoil_command_fingerprint = {
    .name = "fingerprint",
    .summary = "show what a request means, or whether two mean the same",
    .usage = "--policy FILE --route NAME [BODY [BODY2]]",
    .text =
        "Prints the body's canonical form and the digest of the request. BODY is a file, - is\n"
        "standard input, which is also read if there is none. Of two bodies it says whether\n"
        "they are the same request. Under `semantics: loose` the gateway replays all the same,\n"
        "which is said too.\n\n"
        "Exit status: 0, and for two bodies: the same; 1 different; 2 wrong arguments, policy or\n"
        "files.\n",
    .example =
        "  counterfoil fingerprint --policy policy.yaml --route order.create a.json b.json\n",
    .words_max = 2,
    .options = options,
    .run = run,
};
