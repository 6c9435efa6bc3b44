/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where records stand in a store that keeps what is being executed apart. A record that is claimed and
 * settled is at every moment in one place and in one only: for the process that does it, for another
 * that looks, and after it was killed.
 */
#include "contract.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP 16 /* ids of one batch */

static void kill_and_reap(pid_t child)
{
    int status;

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

/* What is being executed is kept apart, and nothing but that: so it stays small. */
static void only_what_is_being_executed_is_pending(void **state)
{
    struct contract *contract = *state;
    const enum cfoil_state all[] = {
        CFOIL_STATE_ISSUED,       CFOIL_STATE_PROCESSING, CFOIL_STATE_SUCCEEDED,
        CFOIL_STATE_FAILED_FINAL, CFOIL_STATE_FAILED,     CFOIL_STATE_IN_DOUBT,
    };

    for (uint64_t i = 0; i < 6; i++) {
        struct cfoil_op op =
            contract_cas_op(i, 0, contract_draft_in(contract, all[i], 7, HOUR_MS, 10));
        contract_apply(contract, &op);
        assert_applied(&op);
    }
    contract_close(contract);
    for (uint64_t i = 0; i < 6; i++) {
        uint8_t id[CFOIL_ID_BYTES];
        contract_id(id, i);
        struct contract_places places = contract->store->hands->places(contract->dir, id);
        assert_int_equal(places.pending, all[i] == CFOIL_STATE_PROCESSING);
        assert_int_equal(places.records, all[i] != CFOIL_STATE_PROCESSING);
    }
}

/* Applies one cas to each of GROUP ids in one batch. */
static void write_group(struct contract *contract, uint64_t first, uint64_t expect,
                        struct cfoil_bytes draft)
{
    struct cfoil_op ops[GROUP];
    struct cfoil_op *list[GROUP];

    for (uint64_t i = 0; i < GROUP; i++) {
        ops[i] = contract_cas_op(first + i, expect, draft);
        list[i] = &ops[i];
    }
    assert_int_equal(contract->ops->apply(contract->handle, list, GROUP), CFOIL_OK);
    for (size_t i = 0; i < GROUP; i++) {
        assert_applied(&ops[i]);
    }
}

struct told {
    uint64_t first;
    uint64_t generation;
};

static void tell(int fd, uint64_t first, uint64_t generation)
{
    struct told told = {first, generation};
    assert_int_equal(write(fd, &told, sizeof(told)), sizeof(told));
}

/* In a child: claims a group, settles it, goes on to the next; says each on the pipe once applied. */
static _Noreturn void claim_and_settle(struct contract *contract, uint64_t first, int fd)
{
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
    struct cfoil_bytes claim = contract_draft_in(contract, CFOIL_STATE_PROCESSING, 7, 0, 300);
    struct cfoil_bytes settle = contract_draft_in(contract, CFOIL_STATE_SUCCEEDED, 8, 0, 700);
    for (;; first += GROUP) {
        write_group(contract, first, 0, claim);
        tell(fd, first, 7);
        write_group(contract, first, 7, settle);
        tell(fd, first, 8);
    }
}

/* The generation that is found, 0 if absent. */
static uint64_t generation_of(struct contract *contract, uint64_t number, bool by_lookup)
{
    struct cfoil_op op = contract_get_op(number);
    struct cfoil_record_head head = {0};

    if (by_lookup) {
        contract->ops->lookup(contract->handle, &op);
    } else {
        contract_apply(contract, &op);
    }
    assert_int_equal(op.status, CFOIL_OP_CURRENT);
    if (op.current_bytes > 0) {
        assert_int_equal(cfoil_record_peek(cfoil_bytes_of(op.current, op.current_bytes), &head),
                         CFOIL_OK);
    }
    cfoil_op_free_current(&op);
    return head.generation;
}

/* All that was told is there; the group at which the child died is there as a whole or not at all. */
static void assert_sound(struct contract *contract, uint64_t first, const struct told *last)
{
    contract_reopen(contract);
    for (uint64_t i = first; i < last->first; i++) {
        assert_int_equal(generation_of(contract, i, false), 8);
    }
    uint64_t reached = generation_of(contract, last->first, false);
    assert_in_range(reached, last->generation, 8);
    for (uint64_t i = last->first; i < last->first + GROUP; i++) {
        assert_int_equal(generation_of(contract, i, false), reached);
    }
    contract_close(contract);
    for (uint64_t i = first; i < last->first + GROUP; i++) {
        assert_stands_once(contract, i);
    }
    for (uint64_t i = last->first + GROUP; i < last->first + 2 * GROUP; i++) {
        assert_stands_at_most_once(contract, i);
    }
}

static void a_death_between_claim_and_settle_leaves_each_record_once(void **state)
{
    struct contract *contract = *state;
    uint64_t random = contract_seed();

    contract_close(contract);
    for (uint64_t round = 0; round < 20; round++) {
        uint64_t first = round * 100000;
        uint64_t wanted = 1 + contract_random(&random) % 12;
        struct told last = {first, 0};
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (child == 0) {
            claim_and_settle(contract, first, fds[1]);
        }
        assert_int_equal(close(fds[1]), 0);
        for (uint64_t i = 0; i < wanted; i++) {
            assert_int_equal(read(fds[0], &last, sizeof(last)), sizeof(last));
        }
        kill_and_reap(child);
        while (read(fds[0], &last, sizeof(last)) == sizeof(last)) {
        }
        assert_int_equal(close(fds[0]), 0);
        assert_sound(contract, first, &last);
    }
    contract_reopen(contract);
}

/* In a child: the same ids are claimed and settled over and over, until it is killed. */
static _Noreturn void move_to_and_fro(struct contract *contract, int ready_fd)
{
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
    for (uint64_t generation = 1;; generation++) {
        enum cfoil_state state = generation % 2 == 1 ? CFOIL_STATE_PROCESSING : CFOIL_STATE_FAILED;
        struct cfoil_bytes draft = contract_draft_in(contract, state, generation, 0, 300);
        write_group(contract, 0, generation - 1, draft);
        free(contract->owned[--contract->owned_count]);
        if (generation == 1) {
            assert_int_equal(write(ready_fd, "r", 1), 1);
        }
    }
}

struct seen {
    uint64_t next;
    uint64_t generation;
};

/* One scan is one moment: all records, each once, and all of one generation. */
static bool see(void *context, const uint8_t *id, struct cfoil_bytes encoded, int64_t now_ms)
{
    struct seen *seen = context;
    struct cfoil_record_head head;
    uint8_t expected[CFOIL_ID_BYTES];

    (void)now_ms;
    contract_id(expected, seen->next++);
    assert_memory_equal(id, expected, CFOIL_ID_BYTES);
    assert_int_equal(cfoil_record_peek(encoded, &head), CFOIL_OK);
    assert_true(seen->generation == 0 || seen->generation == head.generation);
    seen->generation = head.generation;
    return true;
}

static void a_record_on_the_move_is_never_absent_and_never_twice_there(void **state)
{
    struct contract *contract = *state;
    uint64_t latest = 0;
    int ready[2];
    char byte;

    contract_close(contract);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        move_to_and_fro(contract, ready[1]);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    contract_reopen(contract);
    for (uint64_t i = 0; i < 20000 || latest < 100; i++) {
        uint64_t generation = generation_of(contract, i % GROUP, i % 3 > 0);
        assert_true(generation >= latest && generation > 0);
        latest = generation;
        if (i % 20 == 0) {
            struct seen seen = {0, 0};
            assert_int_equal(contract->ops->scan(contract->handle, NULL, 1000, see, &seen),
                             CFOIL_OK);
            assert_int_equal(seen.next, GROUP);
        }
    }
    kill_and_reap(child);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(only_what_is_being_executed_is_pending),
        CONTRACT_CASE(a_death_between_claim_and_settle_leaves_each_record_once),
        CONTRACT_CASE(a_record_on_the_move_is_never_absent_and_never_twice_there),
    };
    return contract_run(argc, argv, "places", tests, sizeof(tests) / sizeof(tests[0]));
}
