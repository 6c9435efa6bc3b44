/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every limit of the policy file that is not part of the public contract in policy.h, with its unit.
 * The ranges of single fields are columns of fields.def and use these names.
 */
#ifndef CFOIL_POLICY_LIMITS_H
#define CFOIL_POLICY_LIMITS_H

#define CFOIL_SECOND_MS INT64_C(1000)
#define CFOIL_MINUTE_MS (60 * CFOIL_SECOND_MS)
#define CFOIL_HOUR_MS   (60 * CFOIL_MINUTE_MS)
#define CFOIL_DAY_MS    (24 * CFOIL_HOUR_MS)
#define CFOIL_KIB       INT64_C(1024)
#define CFOIL_MIB       (1024 * CFOIL_KIB)

#define CFOIL_DURATION_MAX_MS         (3650 * CFOIL_DAY_MS) /* 10 years */
#define CFOIL_LEASE_MIN_MS            INT64_C(100)
#define CFOIL_LEASE_MAX_MS            CFOIL_HOUR_MS
#define CFOIL_RETRY_AFTER_MAX_MS      CFOIL_DAY_MS
#define CFOIL_WAIT_MAX_MS             (10 * CFOIL_MINUTE_MS)
#define CFOIL_PROBE_TIMEOUT_MAX_MS    (10 * CFOIL_MINUTE_MS)
#define CFOIL_SNAPSHOT_BODY_BYTES_MAX (32 * CFOIL_MIB)

#define CFOIL_YAML_DEPTH_MAX   16
#define CFOIL_YAML_NODES_MAX   (1U << 20)
#define CFOIL_YAML_MEMBERS_MAX 256  /* members of one mapping */
#define CFOIL_FIELD_TEXT_MAX   2048 /* bytes of one value */
#define CFOIL_NAME_BYTES_MAX   100  /* a route's name */
#define CFOIL_HEADER_BYTES_MAX 128  /* a header's name */
#define CFOIL_LIST_ITEMS_MAX   256  /* items of one list, routes aside */
#define CFOIL_SEGMENTS_MAX     64   /* segments of one pattern */
#define CFOIL_METHODS_MAX      16   /* methods of one pattern */
#define CFOIL_ALL_METHODS_MAX  64   /* different methods of one policy */
#define CFOIL_TRIE_NODES_MAX   (1U << 21)
#define CFOIL_PROBE_LEASE_ADD_MS                                                                   \
    (2 * CFOIL_SECOND_MS) /* a probe mark outlives the probe's time-out */

#define CFOIL_MESSAGE_BYTES_MAX 512 /* one text of `messages` */

#endif
