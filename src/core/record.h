/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record: what Counterfoil keeps of one key, and its byte layout. Owns the encoding; does not
 * own the meaning (protocol.h) nor the place it is kept (store/store.h).
 *
 * A decision makes a *draft*: a record whose times may still be durations, because only the store
 * reads the clock (R7). The draft is encoded once; the store stamps it with its own time while it
 * copies it into place, and may do so again if a batch has to be repeated.
 *
 *   struct cfoil_draft --encode--> bytes --stamp(now)--> bytes in a store --decode--> cfoil_record
 *
 * Layout, little-endian, CFOIL_RECORD_HEADER_BYTES of header and then fields:
 *
 *    0  magic "CFR" and version (1)          4
 *    4  payload_bytes                        4
 *    8  payload_crc  (CRC-32C)               4
 *   12  header_crc   (CRC-32C of 0..12, 16..) 4
 *   16  generation                           8
 *   24  fence                                8
 *   32  attempt                              4
 *   36  state, form, cause, reserved (0)     4
 *   40  form of each time (0 once stamped)   8   one byte each, enum cfoil_time order
 *   48  times, ms of store time              8 x 8
 *  112  fields: tag (u16, bit 15 = critical), bytes (u32), the bytes; ascending by tag
 *
 * Invariant: what does not pass magic, version, both checksums and the framing is never treated as
 * absent (R6), and bytes decode to what was encoded. An unknown optional field is skipped (and lost
 * if the record is written again); an unknown critical one is CFOIL_E_RECORD_CRITICAL.
 */
#ifndef CFOIL_CORE_RECORD_H
#define CFOIL_CORE_RECORD_H

#include "core/bytes.h"
#include "core/error.h"
#include "core/scope.h"

#define CFOIL_RECORD_VERSION      1
#define CFOIL_RECORD_HEADER_BYTES 112
#define CFOIL_OWNER_BYTES         16
#define CFOIL_DIGEST_BYTES        32
#define CFOIL_RECORD_BYTES_MAX    (64U * 1024 * 1024)
#define CFOIL_GENERATION_MAX      INT64_MAX
#define CFOIL_EXPECT_ABSENT       0 /* no record has generation 0 */

enum cfoil_state {
#define CFOIL_STATE(name, stored, settled, text) CFOIL_STATE_##name,
#include "core/protocol.def"
    CFOIL_STATE_COUNT
};

/* What a record is: a key's own, a second key's pointer to a primary, or a guard. */
enum cfoil_form { CFOIL_FORM_RECORD, CFOIL_FORM_ALIAS, CFOIL_FORM_GUARD, CFOIL_FORM_COUNT };

/*
 * Why a record is IN_DOUBT; NONE in every other state. Only BACKEND_CLOSED (the backend itself
 * ended the exchange by reset or close) lets a probe's "not found" be trusted at once (DESIGN,
 * Probe).
 */
enum cfoil_cause {
    CFOIL_CAUSE_NONE,
    CFOIL_CAUSE_BACKEND_CLOSED,
    CFOIL_CAUSE_TIMEOUT,
    CFOIL_CAUSE_BAD_GATEWAY,
    CFOIL_CAUSE_STATUS,
    CFOIL_CAUSE_OWNER_LOST,
    CFOIL_CAUSE_COUNT
};

/* All in ms of store time; 0 means unset. */
enum cfoil_time {
    CFOIL_TIME_LIFE,           /* the record's first claim: names the life */
    CFOIL_TIME_UPDATED,        /* the last applied cas */
    CFOIL_TIME_SIGN_OF_LIFE,   /* latest of claim, renewal and settle as IN_DOUBT */
    CFOIL_TIME_LEASE_UNTIL,    /* PROCESSING reads as IN_DOUBT from here on */
    CFOIL_TIME_REPLAY_UNTIL,   /* reads as TOMBSTONE from here on */
    CFOIL_TIME_GONE_AT,        /* absent from here on, swept or not (R9) */
    CFOIL_TIME_IN_DOUBT_SINCE, /* set when it became IN_DOUBT, kept through probes */
    CFOIL_TIME_PROBE_UNTIL,    /* the probe mark's lease */
    CFOIL_TIME_COUNT
};

/* How a draft gives a time: as it stands, as a duration after the store's now, or the next
 * multiple. */
enum cfoil_time_form {
    CFOIL_TIME_AT,
    CFOIL_TIME_AFTER,
    CFOIL_TIME_NEXT_MULTIPLE, /* of so many ms: floor(now / ms) * ms + ms */
    CFOIL_TIME_FORM_COUNT
};

/* Where a window ends: so long after its first request, or at the next multiple of its length. */
enum cfoil_anchor { CFOIL_ANCHOR_FIRST, CFOIL_ANCHOR_CLOCK, CFOIL_ANCHOR_COUNT };

/*
 * rules names the fingerprint rules that made request_hash; records made under other rules are
 * compared by raw_hash (method, path, query, raw body: rule-free). target_hash covers method and
 * concrete path only, which even `loose` compares.
 */
struct cfoil_fingerprint {
    uint64_t rules;
    uint8_t request_hash[CFOIL_DIGEST_BYTES];
    uint8_t raw_hash[CFOIL_DIGEST_BYTES];
    uint8_t target_hash[CFOIL_DIGEST_BYTES];
};

/* What is replayed. headers is the framing of cfoil_headers_put below. status 0: no snapshot. */
struct cfoil_snapshot {
    uint16_t status;
    struct cfoil_bytes headers;
    struct cfoil_bytes body;
};

struct cfoil_resource {
    struct cfoil_bytes type;
    struct cfoil_bytes id;
};

/* Every view points into memory of whoever made the record (decode: the encoded bytes). */
struct cfoil_record {
    uint64_t generation; /* 1..CFOIL_GENERATION_MAX, never repeats for an id (R11) */
    uint64_t fence;
    uint32_t attempt;
    enum cfoil_state state; /* a stored one */
    enum cfoil_form form;
    enum cfoil_cause cause;
    int64_t at_ms[CFOIL_TIME_COUNT];
    uint8_t owner[CFOIL_OWNER_BYTES];  /* kept after settle, so that a repeat is recognised */
    uint8_t prober[CFOIL_OWNER_BYTES]; /* all zero: no probe mark */
    struct cfoil_fingerprint fingerprint;
    struct cfoil_scope scope; /* for people and listings; the id is its digest */
    struct cfoil_bytes first_request_id;
    struct cfoil_snapshot snapshot;
    struct cfoil_resource resource;
    struct cfoil_bytes reason;          /* an operator's words */
    uint8_t target[CFOIL_DIGEST_BYTES]; /* alias and guard: the primary's id */
    int64_t target_life_ms;             /* alias: the primary's life it was bound to */
    int64_t window_ms;                  /* claimed under `semantics: window`; else 0 */
    enum cfoil_anchor window_anchor;
};

struct cfoil_draft {
    struct cfoil_record record;
    enum cfoil_time_form form[CFOIL_TIME_COUNT];
};

/* What stores need of a record without reading its fields. */
struct cfoil_record_head {
    uint64_t generation;
    enum cfoil_state state;
    enum cfoil_form form;
    int64_t life_ms;
    int64_t lease_until_ms;
    int64_t replay_until_ms;
    int64_t gone_at_ms;
};

/* Bytes that encode will write, header included. */
size_t cfoil_draft_encoded_bytes(const struct cfoil_draft *draft);

/*
 * Encodes the draft, times unresolved. `*len` is set on success only. Errors: BUFFER_SMALL; LIMIT
 * (a field or the whole over CFOIL_RECORD_BYTES_MAX).
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_draft_encode(const struct cfoil_draft *draft, uint8_t *out,
                                                     size_t out_bytes, size_t *len);

/*
 * Copies an encoded draft to `out` (as many bytes; may be a store's own page) with every time
 * resolved against the store's now and the header checksum set. The draft stays as it was, so that
 * a batch can be repeated. The input is ours, not a stranger's: a bad one is an assert.
 */
void cfoil_draft_stamp(struct cfoil_bytes draft, int64_t now_ms, uint8_t *out);

/* The state an encoded draft writes. As with stamp, a bad draft is an assert. */
enum cfoil_state cfoil_draft_state(struct cfoil_bytes draft);

/* Resolves one time of a draft as stamp does (for models and tests). */
int64_t cfoil_time_resolve(enum cfoil_time_form form, int64_t value_ms, int64_t now_ms);

/*
 * Reads the header only and checks its checksum; for cas and sweep. Errors: RECORD_CORRUPT,
 * RECORD_VERSION.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_record_peek(struct cfoil_bytes encoded,
                                                    struct cfoil_record_head *head);

/*
 * Decodes stamped bytes; views in `record` point into `encoded`. Reads nothing outside it, whatever
 * it holds. Errors: RECORD_CORRUPT, RECORD_VERSION, RECORD_CRITICAL. On error `record` is
 * undefined.
 */
CFOIL_MUST_CHECK enum cfoil_error cfoil_record_decode(struct cfoil_bytes encoded,
                                                      struct cfoil_record *record);

/*
 * Snapshot headers, in the order of the response: name (u16 length, bytes), value (u32 length,
 * bytes). put returns the bytes needed and writes only if they fit in out_bytes (out may be NULL
 * with 0). next returns false at the end or at bad framing; *cursor starts at 0.
 */
size_t cfoil_headers_put(struct cfoil_bytes name, struct cfoil_bytes value, uint8_t *out,
                         size_t out_bytes);
bool cfoil_headers_next(struct cfoil_bytes headers, size_t *cursor, struct cfoil_bytes *name,
                        struct cfoil_bytes *value);

/* CRC-32C (Castagnoli) of `bytes`, continuing from `seed` (0 at the start). */
uint32_t cfoil_crc32c(uint32_t seed, struct cfoil_bytes bytes);

/* The same, never by the processor's instruction: what machines without it run. */
uint32_t cfoil_crc32c_by_table(uint32_t seed, struct cfoil_bytes bytes);

#endif
