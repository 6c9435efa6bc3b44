/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong policies: each row is a text, where its one problem stands (counted by hand: both from 1, at
 * the value, or at the name where the name itself is wrong) and words its message must contain.
 */
#include "support.h"

#define V "version: 1\n"
#define R V "routes:\n  - match: POST /x\n" /* the next line is line 4 */

struct row {
    const char *name;
    const char *text;
    unsigned line;
    unsigned column;
    const char *words;
    const char *fix;
};

static const struct row rows[] = {
    /* The YAML itself. */
    {"an empty file", "", 1, 1, "empty", "version: 1"},
    {"only a comment", "# nothing\n", 1, 1, "empty", "version: 1"},
    {"a list as policy", "- a\n", 1, 1, "mapping", "version: 1"},
    {"a tab as indentation", V "routes:\n\t- match: POST /x\n", 3, 1, "YAML", "tab"},
    {"an open bracket", R "    outcome: {failed: [401}\n", 4, 27, "YAML", "bracket"},
    {"an alias", V "tenant: &a none\nroutes: *a\n", 2, 9, "anchors", "defaults"},
    {"an alias without anchor", V "routes: *a\n", 2, 9, "aliases", "defaults"},
    {"an anchor on a mapping", V "defaults: &d {lease: 5s}\n", 2, 11, "anchors", "defaults"},
    {"a tag", V "tenant: !!str none\n", 2, 9, "tags", "value itself"},
    {"a second document", R "---\nversion: 1\n", 4, 1, "one document", "---"},
    {"a member twice", V "version: 1\n", 2, 1, "twice", "line 1"},
    {"a member twice in a route", R "    lease: 5s\n    lease: 6s\n", 5, 5, "twice", "line 4"},
    {"a list as a member's name", V "? [a, b]\n: 1\n", 2, 3, "name must be", "word"},
    {"a control character", R "    name: \"a\\u0007\"\n", 4, 11, "control", "one line"},
    {"bytes that are not UTF-8", V "# \xff\n", 2, 3, "UTF-8", "save it"},
    {"nested too deep", V "routes: [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]\n", 2, 24, "too deep", "16"},

    /* Names. */
    {"a misspelt field", R "    lese: 5s\n", 4, 5, "`lese`", "`lease`"},
    {"a misspelt member", R "    retention: {tll: 24h}\n", 4, 17, "`tll` in retention", "`ttl`"},
    {"neighbours swapped", R "    semnatics: strict\n", 4, 5, "`semnatics`", "`semantics`"},
    {"a field at another place", R "    ttl: 24h\n", 4, 5, "`ttl`", "`retention.ttl`"},
    {"a route's field at the top",
     V "lease: 5s\n"
       "routes: [{match: POST /x}]\n",
     2, 1, "`lease`", "of a route"},
    {"a name like no other", R "    zzzzzz: 1\n", 4, 5, "unknown field `zzzzzz`", "route"},
    {"match under defaults",
     V "defaults: {match: POST /x}\n"
       "routes: [{match: POST /x}]\n",
     2, 12, "`match` in defaults", "of a route"},
    {"a merge key", R "    <<: {lease: 5s}\n", 4, 5, "unknown field `<<`", "route"},

    /* What every policy needs. */
    {"no version", "routes: [{match: POST /x}]\n", 1, 1, "`version: 1` is missing", "begin"},
    {"another version", "version: 2\nroutes: [{match: POST /x}]\n", 1, 10, "version", "must be 1"},
    {"version as text", "version: \"1\"\nroutes: [{match: POST /x}]\n", 1, 10, "version", "quotes"},
    {"no routes", V, 1, 1, "routes", "at least one"},
    {"no route in routes", V "routes: []\n", 2, 9, "routes", "at least one"},
    {"routes without value", V "routes:\n", 2, 8, "routes", "missing"},
    {"routes as a mapping", V "routes: {match: POST /x}\n", 2, 9, "routes", "a list of mappings"},
    {"a text among the routes", V "routes: [POST /x]\n", 2, 10, "routes", "a mapping"},
    {"a route without match", V "routes:\n  - name: a\n", 3, 5, "match", "POST /orders"},
    {"an empty match", V "routes:\n  - match: []\n", 3, 12, "match", "POST /orders"},
    {"two routes of one name",
     V "routes:\n  - {name: a, match: POST /x}\n"
       "  - {name: a, match: POST /y}\n",
     4, 12, "stands on line 3", "own name"},
    {"a name like a given one",
     V "routes:\n  - {name: route-2, match: POST /x}\n"
       "  - {match: POST /y}\n",
     4, 5, "route-2", "own name"},

    /* Shapes. */
    {"a list for a value", R "    lease: [5s]\n", 4, 12, "lease", "a single value"},
    {"a value for a list", R "    fingerprint: {ignore: /a}\n", 4, 27, "fingerprint.ignore",
     "list"},
    {"a value for a mapping", R "    retention: 24h\n", 4, 16, "retention", "mapping"},
    {"a mapping in a list of values", R "    fingerprint: {ignore: [{a: b}]}\n", 4, 28,
     "fingerprint.ignore", "single value"},
    {"nothing for a value", R "    lease:\n", 4, 11, "lease", "missing"},
    {"null for a value", R "    lease: ~\n", 4, 12, "lease", "missing"},
    {"an empty mapping", R "    in_doubt: {}\n", 4, 15, "in_doubt", "empty mapping"},

    /* Units and ranges. */
    {"a duration without unit", R "    lease: 24\n", 4, 12, "24 has no unit", "24s"},
    {"hours in letters", R "    retention: {ttl: 24hours}\n", 4, 22, "24hours", "write 24h"},
    {"a space before the unit", R "    retention: {ttl: 24 h}\n", 4, 22, "24 h", "write 24h"},
    {"a unit in upper case", R "    retention: {ttl: 24H}\n", 4, 22, "24H", "write 24h"},
    {"two units", R "    retention: {ttl: 1h30m}\n", 4, 22, "1h30m", "90m"},
    {"a fraction", R "    retention: {ttl: 1.5h}\n", 4, 22, "1.5h", "whole number"},
    {"a word for a duration", R "    retention: {ttl: soon}\n", 4, 22, "`soon`", "90s"},
    {"a negative duration", R "    retry_after: -1s\n", 4, 18, "`-1s`", "90s"},
    {"a ttl of nothing", R "    retention: {ttl: 0s}\n", 4, 22, "from 1ms to 3650d", "0s"},
    {"more than ten years", R "    retention: {ttl: 3651d}\n", 4, 22, "3650d", "3651d"},
    {"a duration out of any range", R "    retention: {ttl: 99999999999999999999d}\n", 4, 22,
     "3650d", "outside"},
    {"a lease too short", R "    lease: 99ms\n", 4, 12, "from 100ms to 1h", "99ms"},
    {"a lease too long", R "    lease: 61m\n", 4, 12, "from 100ms to 1h", "61m"},
    {"failed of nothing", R "    retention: {failed: 0s}\n", 4, 25, "from 1ms", "0s"},
    {"a size without unit", R "    snapshot: {max_body: 1024}\n", 4, 26, "1024 has no unit", "KiB"},
    {"a size in MB", R "    snapshot: {max_body: 1MB}\n", 4, 26, "1MB", "write 1MiB"},
    {"a body too big", R "    snapshot: {max_body: 33MiB}\n", 4, 26, "32MiB", "33MiB"},
    {"a count in quotes", R "    client: {max_attempts: \"3\"}\n", 4, 28, "client.max_attempts",
     "without quotes"},
    {"a count out of range", R "    client: {max_attempts: 0}\n", 4, 28, "from 1", "0"},
    {"yes for true", R "    key: {required: yes}\n", 4, 21, "key.required", "true or false"},
    {"true in quotes", R "    key: {required: \"true\"}\n", 4, 21, "key.required",
     "without quotes"},
    {"a status that is none", R "    outcome: {failed: [600]}\n", 4, 24, "`600`", "4xx"},
    {"a class that is none", R "    outcome: {failed: [4xxx]}\n", 4, 24, "`4xxx`", "4xx"},
    {"a replay status of failure",
     R "    in_doubt: {probe: \"GET /x/{key}\", replay_status: 404}\n", 4, 54,
     "in_doubt.replay_status", "from 200 to 399"},

    /* Values. */
    {"a misspelt value", R "    semantics: lose\n", 4, 16, "does not take `lose`", "`loose`"},
    {"a value of no kin", R "    semantics: exact\n", 4, 16, "`exact`", "strict, loose"},
    {"probe as a plain word", R "    in_doubt: probe\n", 4, 15, "needs a value for probe",
     "in_doubt: {probe: ...}"},
    {"a header with a colon", R "    key: {header: \"X-Key:\"}\n", 4, 19, "key.header",
     "without colon"},
    {"an empty header", R "    key: {header: \"\"}\n", 4, 19, "key.header", "is not a header"},
    {"a star in front", R "    snapshot: {drop_headers: [\"*-Id\"]}\n", 4, 31, "drop_headers",
     "prefix"},
    {"a pointer without slash", R "    fingerprint: {ignore: [a]}\n", 4, 28, "`a`", "/a"},
    {"a pointer with a bad escape", R "    fingerprint: {ignore: [/a~2]}\n", 4, 28, "~", "~0"},
    {"a name with a space", R "    name: a b\n", 4, 11, "name", "letters"},

    /* Patterns. */
    {"a pattern without method", V "routes: [{match: /x}]\n", 2, 18, "match", "POST /orders"},
    {"a pattern without path", V "routes: [{match: POST}]\n", 2, 18, "match", "POST /orders"},
    {"a method in lower case", V "routes: [{match: post /x}]\n", 2, 18, "`post`", "upper case"},
    {"an empty method", V "routes: [{match: POST| /x}]\n", 2, 18, "``", "upper case"},
    {"a method twice", V "routes: [{match: POST|POST /x}]\n", 2, 18, "POST", "twice"},
    {"a path without slash", V "routes: [{match: POST x}]\n", 2, 18, "begins with /", "POST"},
    {"a star within", V "routes:\n  - match: POST /a/*\n", 3, 12, "match", "{name}"},
    {"two stars within", V "routes:\n  - match: POST /**/a\n", 3, 12, "at the end only", "{name}"},
    {"a parameter within a segment", V "routes:\n  - match: POST /a/{id}.json\n", 3, 12,
     "whole segment", "/orders/{id}"},
    {"a parameter twice", V "routes:\n  - match: POST /{a}/{a}\n", 3, 12, "{a}", "own name"},
    {"a parameter without name", V "routes:\n  - match: POST /a/{}\n", 3, 12, "not a parameter",
     "/orders/{id}"},
    {"a doubled slash", V "routes:\n  - match: POST /a//b\n", 3, 12, "merged", "one /"},
    {"dots in a path", V "routes:\n  - match: POST /a/../b\n", 3, 12, "resolved", "without it"},
    {"a query in a pattern", V "routes:\n  - match: POST /a?b=1\n", 3, 12, "path only", "?"},
    {"an encoded path", V "routes:\n  - match: POST /a%20b\n", 3, 12, "decoded", "itself"},
    {"the second of a list", V "routes:\n  - match: [POST /x, PUT y]\n", 3, 22, "begins with /",
     "POST /orders"},

    /* Probes. */
    {"a probe by POST", R "    in_doubt: {probe: \"POST /x/{key}\"}\n", 4, 23, "in_doubt.probe",
     "GET"},
    {"a probe of one fixed path", R "    in_doubt: {probe: \"GET /x\"}\n", 4, 23, "every request",
     "{key}"},
    {"a probe with an open brace", R "    in_doubt: {probe: \"GET /x/{key\"}\n", 4, 23, "{",
     "{key}"},
    {"a probe's unknown parameter", R "    in_doubt: {probe: \"GET /x/{id}\"}\n", 4, 23, "{id}",
     "parameter"},
    {"a mapping without probe", R "    in_doubt: {timeout: 5s}\n", 4, 15, "`probe`",
     "hold or retry"},
    {"a parameter named key",
     V "routes:\n  - match: POST /x/{key}\n"
       "    in_doubt: {probe: \"GET /x/{key}\"}\n",
     4, 23, "{key}", "another name"},

    /* Contradictions. */
    {"ttl beside its sum", R "    retention: {retry_window: 24h, ttl: 73h}\n", 4, 36,
     "contradicts retry_window", "sum"},
    {"ttl beside its sum in defaults",
     V "defaults: {retention: {ttl: 73h, observation: 1h}}\n"
       "routes: [{match: POST /x}]\n",
     2, 24, "contradicts observation", "sum"},
    {"a sum over ten years", R "    retention: {retry_window: 3650d, delay_bound: 1d}\n", 4, 16,
     "3651d", "3650d"},
    {"a lease longer than retention", R "    retention: {ttl: 10s}\n    lease: 11s\n", 5, 12, "11s",
     "lengthen retention"},
    {"the usual lease, too long", R "    retention: {ttl: 10s}\n", 4, 16, "15s", "shorten lease"},
    {"one status in two lists", R "    outcome: {failed: [401], failed_final: [401]}\n", 4, 45,
     "401", "one outcome"},
    {"one class in two lists", R "    outcome: {succeeded: [4xx], in_doubt: [500, 4xx]}\n", 4, 49,
     "4xx", "outcome.succeeded"},
    {"a body rule without a place", R "    outcome: {body: {failed: [1]}}\n", 4, 21,
     "where the value", "`at`"},
    {"a body rule that says nothing", R "    outcome: {body: {at: /code}}\n", 4, 21, "says nothing",
     "`otherwise`"},
    {"a body rule for many places", R "    outcome: {body: {at: /items/*/code, failed: [1]}}\n", 4,
     26, "/items/*/code", "name one"},
    {"a value of a body twice",
     R "    outcome: {body: {at: /c, failed: [1], succeeded: [\"1\", 1.0]}}\n", 4, 60,
     "listed on line 4 already, in failed", "one outcome"},
    {"a number of a body that JSON has not", R "    outcome: {body: {at: /c, failed: [007]}}\n", 4,
     39, "007", "in quotes"},
    {"redacting the whole body", R "    snapshot: {redact: [\"\"]}\n", 4, 25, "the whole body",
     "max_body: 0"},
    {"a resource without an id", R "    resource: {type: order}\n", 4, 15, "needs type and id",
     "/data/order_id"},
    {"a resource without a type", R "    resource: {id: /id}\n", 4, 15, "needs type and id",
     "type: order"},
    {"a resource of many ids", R "    resource: {type: order, id: /items/*}\n", 4, 33, "/items/*",
     "name one"},
    {"one status twice", R "    outcome: {failed: [401, 401]}\n", 4, 29, "401", "one outcome"},
    {"a default's status elsewhere",
     V "defaults: {outcome: {failed: [401]}}\n"
       "routes: [{match: POST /x, outcome: {succeeded: [401]}}]\n",
     3, 49, "line 2", "one outcome"},
    {"dropped and kept", R "    snapshot: {drop_headers: [X-A], keep_headers: [x-a]}\n", 4, 52,
     "x-a", "one of the two"},
    {"keeping what is never kept", R "    snapshot: {keep_headers: [Connection]}\n", 4, 31,
     "never stored", "remove"},
    {"a key in two places", R "    key: {header: X-K, query: k}\n", 4, 24, "both header and query",
     "remove one"},
    {"one argument for key and tenant", R "    tenant: {query: t}\n    key: {query: t}\n", 5, 18,
     "the tenant's argument", "both"},
    {"one header for key and tenant",
     V "tenant: {header: X-Id}\nroutes:\n  - match: POST /x\n"
       "    key: {header: x-id}\n",
     5, 19, "tenant's header", "both"},
    {"a tenant from two places", R "    tenant: {header: X-T, cookie: sid}\n", 4, 27,
     "both header and cookie", "remove one"},
    {"a tenant in a path without it", R "    tenant: {path: shop}\n", 4, 20, "{shop}",
     "every pattern"},
    {"a tenant from nowhere", R "    tenant: {otherwise: none}\n", 4, 13, "tenant", "header: NAME"},
};

static void has_the_problem(void **state)
{
    const struct row *row = *state;
    struct cfoil_policy_problems *problems = test_calloc(1, sizeof(*problems));
    struct cfoil_policy *policy = NULL;
    enum cfoil_error error = cfoil_policy_load_text(cfoil_bytes_text(row->text), &policy, problems);
    for (size_t i = 0; i < problems->count; i++) {
        print_message("# %u:%u: %s\n", problems->item[i].line, problems->item[i].column,
                      problems->item[i].text);
    }
    assert_int_equal(error, CFOIL_E_POLICY);
    assert_null(policy);
    assert_int_equal(problems->count, 1);
    assert_int_equal(problems->item[0].line, row->line);
    assert_int_equal(problems->item[0].column, row->column);
    assert_non_null(strstr(problems->item[0].text, row->words));
    assert_non_null(strstr(problems->item[0].text, row->fix));
    test_free(problems);
}

int main(void)
{
    const struct row_table table = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(rows[0]),
                                    has_the_problem};
    return run_rows("policy/problems", &table, NULL, 0);
}
