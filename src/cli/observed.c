/* SPDX-License-Identifier: Apache-2.0 */
/* See observed.h. A line, as src/gateway/repeats.c writes it, behind date and process:
 *
 *   counterfoil: repeats route="order.create" 1s=3 5s=0 30s=1 ... 7d=0 later=0
 */
#include "cli/observed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "policy/scalar.h"

#define MARK "counterfoil: repeats route=\""

/* The counts of a route, new ones if the log has not named it yet. NULL: no memory. */
static struct cfoil_ages *ages_of(struct cfoil_observed *observed, const char *name, size_t len)
{
    for (size_t i = 0; i < observed->count; i++) {
        if (strlen(observed->routes[i].name) == len &&
            memcmp(observed->routes[i].name, name, len) == 0) {
            return &observed->routes[i].ages;
        }
    }
    struct cfoil_observed_route *routes =
        realloc(observed->routes, (observed->count + 1) * sizeof(*routes));
    if (routes == NULL) {
        return NULL;
    }
    observed->routes = routes;
    struct cfoil_observed_route *route = &routes[observed->count];
    *route = (struct cfoil_observed_route){.name = strndup(name, len)};
    if (route->name == NULL) {
        return NULL;
    }
    observed->count++;
    return &route->ages;
}

/* Adds " BOUND=COUNT"; other words, of a newer gateway perhaps, are skipped. */
static void add_counts(struct cfoil_ages *ages, char *text)
{
    char *rest = NULL;
    for (char *word = strtok_r(text, " \r\n", &rest); word != NULL;
         word = strtok_r(NULL, " \r\n", &rest)) {
        char *count = strchr(word, '=');
        if (count == NULL) {
            continue;
        }
        *count++ = '\0';
        for (size_t i = 0; i < CFOIL_AGES_COUNT; i++) {
            if (strcmp(word, cfoil_ages_name(i)) == 0) {
                ages->count[i] += strtoull(count, NULL, 10);
            }
        }
    }
}

/* False: no memory. */
static bool take_line(struct cfoil_observed *observed, char *line)
{
    char *name = strstr(line, MARK);
    char *end = name != NULL ? strchr(name + strlen(MARK), '"') : NULL;
    if (end == NULL) {
        return true;
    }
    name += strlen(MARK);
    struct cfoil_ages *ages = ages_of(observed, name, (size_t)(end - name));
    if (ages == NULL) {
        return false;
    }
    add_counts(ages, end + 1);
    return true;
}

bool cfoil_observed_read(const char *path, struct cfoil_observed *observed)
{
    bool is_input = strcmp(path, "-") == 0;
    FILE *file = is_input ? stdin : fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    bool good = file != NULL;

    *observed = (struct cfoil_observed){0};
    while (good && getline(&line, &room, file) >= 0) {
        good = take_line(observed, line);
    }
    good = good && ferror(file) == 0;
    if (!good) {
        cfoil_complain("--observed %s: cannot be read: %s; give the gateway's error log", path,
                       strerror(errno));
    } else if (observed->count == 0) {
        cfoil_complain("--observed %s: tells of no repeats; the gateway writes them into its error "
                       "log every hour and when a worker leaves",
                       path);
        good = false;
    }
    free(line);
    if (file != NULL && !is_input) {
        (void)fclose(file);
    }
    if (!good) {
        cfoil_observed_free(observed);
    }
    return good;
}

void cfoil_observed_free(struct cfoil_observed *observed)
{
    for (size_t i = 0; i < observed->count; i++) {
        free(observed->routes[i].name);
    }
    free(observed->routes);
    *observed = (struct cfoil_observed){0};
}

uint64_t cfoil_observed_total(const struct cfoil_ages *ages)
{
    uint64_t total = 0;
    for (size_t i = 0; i < CFOIL_AGES_COUNT; i++) {
        total += ages->count[i];
    }
    return total;
}

/* The bound below which so many percent of the repeats came. */
static size_t bound_of(const struct cfoil_ages *ages, uint64_t percent)
{
    uint64_t total = cfoil_observed_total(ages);
    uint64_t sum = 0;
    size_t i = 0;
    while (i < CFOIL_AGES_COUNT - 1 && (sum + ages->count[i]) * 100 < total * percent) {
        sum += ages->count[i++];
    }
    return i;
}

/* How long the answers of a route are replayed. */
static int64_t kept_ms(const struct cfoil_route *route)
{
    bool window = route->terms.semantics == CFOIL_SEMANTICS_WINDOW ||
                  route->terms.semantics == CFOIL_SEMANTICS_WINDOW_KEY;
    return window ? route->terms.window_ms : route->terms.ttl_ms;
}

static const char *within(size_t bound, char *out, size_t out_bytes)
{
    if (bound == CFOIL_AGES_COUNT - 1) {
        (void)snprintf(out, out_bytes, "later than %s", cfoil_ages_name(bound - 1));
    } else {
        (void)snprintf(out, out_bytes, "within %s", cfoil_ages_name(bound));
    }
    return out;
}

void cfoil_observed_summary(const struct cfoil_observed_route *observed,
                            const struct cfoil_policy *policy, char *text, size_t text_bytes)
{
    const struct cfoil_route *route = cfoil_policy_route_by_name(policy, observed->name);
    uint64_t total = cfoil_observed_total(&observed->ages);
    char half[32];
    char most[32];
    char last[32];
    char kept[32] = "";

    if (route != NULL) {
        (void)cfoil_duration_text(kept_ms(route), kept, sizeof(kept));
    }
    (void)snprintf(text, text_bytes,
                   "%s: %" PRIu64 " repeat%s, half of them %s, 99%% %s, all %s%s%s", observed->name,
                   total, total == 1 ? "" : "s",
                   within(bound_of(&observed->ages, 50), half, sizeof(half)),
                   within(bound_of(&observed->ages, 99), most, sizeof(most)),
                   within(bound_of(&observed->ages, 100), last, sizeof(last)),
                   route != NULL ? "; answers are kept for " : "", kept);
}

/* Those that surely came in the second half of `kept`: of a histogram only bounds are known. */
static uint64_t late(const struct cfoil_ages *ages, int64_t kept)
{
    uint64_t count = 0;
    for (size_t i = 1; i < CFOIL_AGES_COUNT; i++) {
        count += cfoil_ages_bound_ms(i - 1) >= kept / 2 ? ages->count[i] : 0;
    }
    return count;
}

bool cfoil_observed_advice(const struct cfoil_observed_route *observed,
                           const struct cfoil_policy *policy, char *text, size_t text_bytes)
{
    const struct cfoil_route *route = cfoil_policy_route_by_name(policy, observed->name);
    if (route == NULL) {
        (void)snprintf(text, text_bytes,
                       "the log tells of a route %s, which this policy does not have",
                       observed->name);
        return true;
    }
    uint64_t count = late(&observed->ages, kept_ms(route));
    if (count == 0) {
        return false;
    }
    char kept[32];
    (void)snprintf(
        text, text_bytes,
        "%s: %" PRIu64 " of %" PRIu64 " repeats came when half of the %s for which answers "
        "are kept was over; one that comes after its end runs again, so keep them longer",
        observed->name, count, cfoil_observed_total(&observed->ages),
        cfoil_duration_text(kept_ms(route), kept, sizeof(kept)));
    return true;
}
