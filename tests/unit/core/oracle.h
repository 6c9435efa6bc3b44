/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What DESIGN.md section 3 says must happen in one case, written from its text and from the
 * comments of core/protocol.h alone. oracle.c decides, oracle_write.c says what is written.
 *
 * Invariant: the oracle reads the case's coordinates; of record and event it only copies values.
 */
#ifndef CFOIL_TEST_ORACLE_H
#define CFOIL_TEST_ORACLE_H

#include "table_case.h"

/* What the design leaves open in a case. Everything not named here is judged. */
enum oracle_open {
    ORACLE_OPEN_WHOLE = 1,        /* two sentences apply and nothing says which comes first */
    ORACLE_OPEN_ERROR = 2,        /* refused, for either of two reasons */
    ORACLE_OPEN_RECOGNISED = 4,   /* only CLAIM, PROBE_* and SETTLE are said to recognise */
    ORACLE_OPEN_BODY_DIFFERS = 8, /* said of loose replays only, not of refusals by MISMATCH */
    ORACLE_OPEN_OTHER_RULES = 16, /* nothing had to be compared */
    ORACLE_OPEN_SIGN_OF_LIFE = 32,
    ORACLE_OPEN_SNAPSHOT = 64, /* snapshot and resource of what never replays */
    ORACLE_OPEN_REASON = 128,
    ORACLE_OPEN_COUNTERS = 256, /* attempt and fence of a record nobody has claimed */
    ORACLE_OPEN_CONTENT = 512   /* all but generation, owner, replay_until and gone_at */
};

struct oracle_expected {
    unsigned open; /* enum oracle_open, ored */
    enum cfoil_action action;
    enum cfoil_verdict verdict;
    enum cfoil_error error;
    bool recognised;
    bool body_differs;
    bool other_rules;
    int64_t retry_after_ms;
    bool expect_absent;      /* WRITE: else the record's generation is expected */
    struct cfoil_draft next; /* generation 0: a random start */
};

void oracle_expect(const struct table_case *c, const struct cfoil_record *record,
                   const struct cfoil_event *event, struct oracle_expected *out);

/* The state a reader must see, by coordinates. */
enum cfoil_state oracle_reads_as(const struct table_case *c);

/* The drafts. Each sets action WRITE, expect_absent and next. */
void oracle_write_first_claim(const struct table_case *c, const struct cfoil_record *record,
                              const struct cfoil_event *event, struct oracle_expected *out);
void oracle_write_take(const struct table_case *c, const struct cfoil_record *record,
                       const struct cfoil_event *event, struct oracle_expected *out);
void oracle_write_renewal(const struct table_case *c, const struct cfoil_record *record,
                          struct oracle_expected *out);
void oracle_write_mark(const struct table_case *c, const struct cfoil_record *record,
                       const struct cfoil_event *event, struct oracle_expected *out);
void oracle_write_unmark(const struct cfoil_record *record, struct oracle_expected *out);
void oracle_write_bump(const struct cfoil_record *record, struct oracle_expected *out);
void oracle_write_forget(const struct cfoil_record *record, const struct cfoil_event *event,
                         struct oracle_expected *out);
void oracle_write_issue(const struct table_case *c, const struct cfoil_event *event,
                        struct oracle_expected *out);

/*
 * A settled record: of `record`, or where it is NULL of the event's origin. `outcome` may be
 * IN_DOUBT. Owner, snapshot and resource are the event's; so is the reason of an operator's event,
 * other events carry none.
 */
void oracle_write_settled(const struct table_case *c, const struct cfoil_record *record,
                          const struct cfoil_event *event, enum cfoil_state outcome,
                          struct oracle_expected *out);

#endif
