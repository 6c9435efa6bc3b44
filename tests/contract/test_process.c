/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes and one store: fifty claimers of one key, what one wrote seen by the other, and
 * processes killed while they read, write, or commit. Children use the contract like any worker; only
 * those that must die inside a transaction use the store's own hands.
 */
#include "contract.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLAIMERS 50
#define ROUNDS   200

static void *shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static void assert_ends_well(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void kill_and_reap(pid_t child)
{
    int status;

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

struct race {
    pthread_barrier_t barrier;
    _Atomic unsigned applied[ROUNDS];
    _Atomic unsigned shown[ROUNDS];
    _Atomic uint64_t winner[ROUNDS];
    _Atomic uint64_t told[ROUNDS][CLAIMERS];
};

/* One claimer: every round the same id as all the others, with a generation of its own. */
static int claim_all_rounds(struct contract *contract, struct race *race, size_t self)
{
    struct cfoil_bytes draft = contract_draft(contract, self + 1, 0, 5);
    struct cfoil_record_head head;

    if (contract_open(contract, CFOIL_OPEN_EXISTING) != CFOIL_OK) {
        return 1;
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        struct cfoil_op op = contract_cas_op(round, 0, draft);
        struct cfoil_op *list = &op;
        (void)pthread_barrier_wait(&race->barrier);
        if (contract->ops->apply(contract->handle, &list, 1) != CFOIL_OK) {
            return 2;
        }
        if (op.status == CFOIL_OP_APPLIED) {
            atomic_fetch_add(&race->applied[round], 1);
            atomic_store(&race->winner[round], self + 1);
        } else if (op.status == CFOIL_OP_CURRENT &&
                   cfoil_record_peek(cfoil_bytes_of(op.current, op.current_bytes), &head) ==
                       CFOIL_OK) {
            atomic_fetch_add(&race->shown[round], 1);
            atomic_store(&race->told[round][self], head.generation);
        }
        cfoil_op_free_current(&op);
    }
    return 0;
}

static void fifty_processes_claim_one_key_and_one_wins_each_round(void **state)
{
    struct contract *contract = *state;
    struct race *race = shared(sizeof(*race));
    pthread_barrierattr_t attributes;
    pid_t children[CLAIMERS];

    contract_close(contract);
    assert_int_equal(pthread_barrierattr_init(&attributes), 0);
    assert_int_equal(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_barrier_init(&race->barrier, &attributes, CLAIMERS), 0);
    for (size_t i = 0; i < CLAIMERS; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            _exit(claim_all_rounds(contract, race, i));
        }
    }
    for (size_t i = 0; i < CLAIMERS; i++) {
        assert_ends_well(children[i]);
    }
    contract_reopen(contract);
    for (size_t round = 0; round < ROUNDS; round++) {
        uint64_t winner = atomic_load(&race->winner[round]);
        assert_int_equal(atomic_load(&race->applied[round]), 1);
        assert_int_equal(atomic_load(&race->shown[round]), CLAIMERS - 1);
        assert_get_shows(contract, round, winner);
        for (size_t i = 0; i < CLAIMERS; i++) {
            uint64_t told = atomic_load(&race->told[round][i]);
            assert_int_equal(told, i + 1 == winner ? 0 : winner);
        }
    }
    assert_int_equal(munmap(race, sizeof(*race)), 0);
}

static void await(int fd)
{
    char byte;
    assert_int_equal(read(fd, &byte, 1), 1);
}

static void tell(int fd)
{
    assert_int_equal(write(fd, "x", 1), 1);
}

/* The other of two processes: settles what the first claimed, every time it is told to. */
static _Noreturn void settle_when_told(struct contract *contract, int from_fd, int to_fd)
{
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
    struct cfoil_bytes draft = contract_draft(contract, 8, 0, 400);
    for (uint64_t i = 0; i < 100; i++) {
        struct cfoil_op op = contract_cas_op(i, 7, draft);
        await(from_fd);
        contract_apply(contract, &op);
        assert_applied(&op);
        tell(to_fd);
    }
    _exit(0);
}

static void what_one_process_was_told_the_other_sees_at_once(void **state)
{
    struct contract *contract = *state;
    int to_child[2];
    int to_parent[2];

    contract_close(contract);
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(to_parent), 0);
    pid_t child = fork();
    if (child == 0) {
        settle_when_told(contract, to_child[0], to_parent[1]);
    }
    contract_reopen(contract);
    for (uint64_t i = 0; i < 100; i++) {
        struct cfoil_op lookup = contract_get_op(i);
        contract_claim(contract, i, 7, 0);
        tell(to_child[1]);
        await(to_parent[0]);
        assert_get_shows(contract, i, 8);
        if (contract->ops->has_lookup) {
            contract->ops->lookup(contract->handle, &lookup);
            assert_shows(&lookup, 8);
            cfoil_op_free_current(&lookup);
        }
    }
    assert_ends_well(child);
}

static pid_t start_holder(struct contract *contract, bool writing, uint64_t number)
{
    uint8_t id[CFOIL_ID_BYTES];
    int ready[2];

    contract_id(id, number);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        if (writing) {
            contract->store->hands->hold_write(contract->dir, id, ready[1]);
        } else {
            contract->store->hands->hold_read(contract->dir, ready[1]);
        }
        _exit(1);
    }
    await(ready[0]);
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(close(ready[1]), 0);
    return child;
}

static void a_writer_killed_in_its_transaction_leaves_no_trace(void **state)
{
    struct contract *contract = *state;

    contract_close(contract);
    for (uint64_t i = 0; i < 10; i++) {
        pid_t child = start_holder(contract, true, 1);
        contract_reopen(contract);
        assert_get_absent(contract, 1); /* reading waits for nobody */
        kill_and_reap(child);
        contract_claim(contract, 100 + i, 7, 0);
        assert_get_absent(contract, 1);
        contract_close(contract);
    }
    contract_reopen(contract);
}

static int64_t file_bytes(struct contract *contract)
{
    char path[2 * CONTRACT_PATH_BYTES];
    struct stat info;

    (void)snprintf(path, sizeof(path), "%s/%s", contract->dir, contract->store->hands->data_file);
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

static void update_often(struct contract *contract, uint64_t from, uint64_t count)
{
    for (uint64_t i = from; i < from + count; i++) {
        struct cfoil_op op = contract_cas_op(1, i, contract_draft(contract, i + 1, 0, 3000));
        contract_apply(contract, &op);
        assert_applied(&op);
    }
}

static void a_killed_reader_does_not_make_the_store_grow_for_ever(void **state)
{
    struct contract *contract = *state;
    const int64_t much = 1 << 20;

    contract_close(contract);
    pid_t child = start_holder(contract, false, 0);
    contract_reopen(contract);
    contract_claim(contract, 1, 1, 0);
    int64_t start = file_bytes(contract);
    update_often(contract, 1, 300);
    int64_t pinned = file_bytes(contract);
    assert_true(pinned > start + much); /* or this case proves nothing */
    kill_and_reap(child);
    contract_pass_ms(contract, 11000); /* the time to look for the dead has come */
    assert_int_equal(contract->ops->apply(contract->handle, NULL, 0), CFOIL_OK);
    update_often(contract, 301, 600);
    assert_true(file_bytes(contract) < pinned + much / 4);
}

/* More of them in one batch than a store will try to leave out one by one. */
static void assert_many_updates_are_refused(struct contract *contract, uint64_t generation)
{
    struct cfoil_bytes draft = contract_draft(contract, generation + 1, 0, 3000);
    struct cfoil_op ops[21];
    struct cfoil_op *list[21];

    for (size_t i = 0; i < 20; i++) {
        ops[i] = contract_cas_op(1, generation, draft);
        list[i] = &ops[i];
    }
    ops[20] = contract_cas_op(2, 0, draft);
    list[20] = &ops[20];
    assert_int_equal(contract->ops->apply(contract->handle, list, 21), CFOIL_OK);
    for (size_t i = 0; i < 20; i++) {
        assert_failed(&ops[i], CFOIL_E_STORE_FULL);
    }
    assert_shows(&ops[20], 50);
    cfoil_op_free_current(&ops[20]);
}

/*
 * A reader that never lets go keeps every page that is freed. The store is full then although it counts
 * free pages; it says so, goes on answering, and is well again when the reader is gone.
 */
static void a_reader_that_stands_still_makes_it_full_and_not_broken(void **state)
{
    struct contract *contract = *state;
    uint64_t generation = 1;

    contract_close(contract);
    pid_t child = start_holder(contract, false, 0);
    contract_reopen(contract);
    contract_claim(contract, 1, generation, 0);
    contract_claim(contract, 2, 50, 0);
    for (;; generation++) {
        struct cfoil_op ops[] = {
            contract_cas_op(1, generation, contract_draft(contract, generation + 1, 0, 3000)),
            contract_cas_op(2, 0, contract_draft(contract, 51, 0, 5)),
            contract_get_op(2),
        };
        struct cfoil_op *list[] = {&ops[0], &ops[1], &ops[2]};
        assert_int_equal(contract->ops->apply(contract->handle, list, 3), CFOIL_OK);
        assert_shows(&ops[1], 50);
        assert_shows(&ops[2], 50);
        cfoil_op_free_current(&ops[1]);
        cfoil_op_free_current(&ops[2]);
        if (ops[0].status != CFOIL_OP_APPLIED) {
            assert_failed(&ops[0], CFOIL_E_STORE_FULL);
            break;
        }
        assert_in_range(generation, 1, 2000);
    }
    assert_get_shows(contract, 1, generation);
    assert_many_updates_are_refused(contract, generation);
    kill_and_reap(child);
    update_often(contract, generation, 100);
}

/* Claims one id after the other and says each on the pipe once it was told APPLIED. */
static _Noreturn void claim_and_tell(struct contract *contract, uint64_t first, int fd)
{
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
    struct cfoil_bytes draft = contract_draft(contract, 7, 0, 1200);
    for (uint64_t i = first;; i++) {
        struct cfoil_op op = contract_cas_op(i, 0, draft);
        contract_apply(contract, &op);
        assert_applied(&op);
        assert_int_equal(write(fd, &i, sizeof(i)), sizeof(i));
    }
}

static void nothing_acknowledged_is_lost_when_the_process_is_killed(void **state)
{
    struct contract *contract = *state;
    uint64_t random = contract_seed();

    contract_close(contract);
    for (uint64_t round = 0; round < 15; round++) {
        uint64_t told = 0;
        uint64_t last = round * 100000;
        uint64_t wanted = 1 + contract_random(&random) % 40;
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (child == 0) {
            claim_and_tell(contract, last, fds[1]);
        }
        assert_int_equal(close(fds[1]), 0);
        while (told < wanted && read(fds[0], &last, sizeof(last)) == sizeof(last)) {
            told++;
        }
        assert_int_equal(told, wanted);
        kill_and_reap(child);
        while (read(fds[0], &last, sizeof(last)) == sizeof(last)) {
        }
        assert_int_equal(close(fds[0]), 0);
        contract_reopen(contract);
        for (uint64_t i = round * 100000; i <= last; i++) {
            assert_get_shows(contract, i, 7);
        }
        contract_claim(contract, round * 100000 + 90000, 7, 0);
        contract_close(contract);
    }
}

/* In a child: sweeps until it is killed. */
static _Noreturn void sweep_for_ever(struct contract *contract)
{
    struct cfoil_sweep sweep = {0};

    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
    for (;;) {
        assert_int_equal(contract->ops->sweep(contract->handle, &sweep, 10), CFOIL_OK);
    }
}

/* Claims id 1 as often as it takes to find it absent. */
static void claim_when_gone(struct contract *contract, struct cfoil_bytes draft)
{
    struct cfoil_op op;

    do {
        op = contract_cas_op(1, 0, draft);
        contract_apply(contract, &op);
        cfoil_op_free_current(&op);
    } while (op.status == CFOIL_OP_CURRENT);
    assert_applied(&op);
}

static void a_sweeper_never_takes_a_record_claimed_meanwhile(void **state)
{
    struct contract *contract = *state;
    struct cfoil_bytes lasting = contract_draft(contract, 7, HOUR_MS, 5);
    struct cfoil_bytes gone = contract_draft(contract, 8, 1, 5);

    contract->real_clock = true;
    contract_close(contract);
    pid_t child = fork();
    if (child == 0) {
        sweep_for_ever(contract);
    }
    contract_reopen(contract);
    for (size_t i = 0; i < 500; i++) {
        struct cfoil_op forget = contract_cas_op(1, 7, gone);
        claim_when_gone(contract, lasting);
        for (size_t k = 0; k < 3; k++) {
            assert_get_shows(contract, 1, 7);
        }
        contract_apply(contract, &forget);
        assert_applied(&forget);
    }
    kill_and_reap(child);
}

/* In a child: the files may not grow any more, so that a commit fails half way. */
static _Noreturn void commit_without_room(struct contract *contract)
{
    struct cfoil_op ops[] = {
        contract_get_op(1),
        contract_cas_op(1, 0, contract_draft(contract, 8, 0, 5)),
        contract_cas_op(2, 0, contract_draft(contract, 9, 0, 1 << 20)),
    };
    struct cfoil_op *list[] = {&ops[0], &ops[1], &ops[2]};
    struct rlimit limit = {(rlim_t)file_bytes(contract), (rlim_t)file_bytes(contract)};

    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum cfoil_error error = contract->ops->apply(contract->handle, list, 3);
    assert_int_not_equal(error, CFOIL_OK); /* not a plain "full": open it anew */
    assert_failed(&ops[0], error);
    assert_failed(&ops[1], error);
    assert_int_equal(ops[2].status, CFOIL_OP_UNKNOWN);
    assert_int_equal(ops[2].error, error);
    _exit(0);
}

static void a_commit_that_fails_leaves_its_writes_unknown(void **state)
{
    struct contract *contract = *state;

    contract_claim(contract, 1, 7, 0);
    contract_close(contract);
    pid_t child = fork();
    if (child == 0) {
        commit_without_room(contract);
    }
    assert_ends_well(child);
    contract_reopen(contract);
    assert_get_shows(contract, 1, 7);
    contract_claim(contract, 3, 7, 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(fifty_processes_claim_one_key_and_one_wins_each_round),
        CONTRACT_CASE(what_one_process_was_told_the_other_sees_at_once),
        CONTRACT_CASE(a_writer_killed_in_its_transaction_leaves_no_trace),
        CONTRACT_CASE(a_killed_reader_does_not_make_the_store_grow_for_ever),
        CONTRACT_CASE_SMALL(a_reader_that_stands_still_makes_it_full_and_not_broken),
        CONTRACT_CASE(nothing_acknowledged_is_lost_when_the_process_is_killed),
        CONTRACT_CASE(a_sweeper_never_takes_a_record_claimed_meanwhile),
        CONTRACT_CASE(a_commit_that_fails_leaves_its_writes_unknown),
    };
    return contract_run(argc, argv, "process", tests, sizeof(tests) / sizeof(tests[0]));
}
