/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a store lives: made when it may be made and only then, recognised by its identity, and out of
 * service when its files are not the ones at their paths any more. An empty store in the place of a
 * lost one would execute everything a second time (R6).
 */
#include "contract.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void path_of(struct contract *contract, const char *file, char *path)
{
    int len = snprintf(path, CONTRACT_PATH_BYTES, "%s/%s", contract->dir, file);
    assert_in_range(len, 1, CONTRACT_PATH_BYTES - 1);
}

static void assert_no_file(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), -1);
    assert_int_equal(errno, ENOENT);
}

static void move_away(struct contract *contract, char *away)
{
    int len = snprintf(away, CONTRACT_PATH_BYTES, "%s/away", contract->base);
    assert_in_range(len, 1, CONTRACT_PATH_BYTES - 1);
    assert_int_equal(rename(contract->dir, away), 0);
}

static void a_missing_store_is_not_made_where_it_must_exist(void **state)
{
    struct contract *contract = *state;

    contract_close(contract);
    contract_remove_tree(contract->dir);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_READ_ONLY), CFOIL_E_STORE_UNAVAILABLE);
    assert_no_file(contract->dir);
    assert_int_equal(mkdir(contract->dir, 0700), 0);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(rmdir(contract->dir), 0); /* nothing in it */
}

static void an_empty_data_file_is_no_store(void **state)
{
    struct contract *contract = *state;
    char data[CONTRACT_PATH_BYTES];
    struct stat info;

    contract_close(contract);
    path_of(contract, contract->store->hands->data_file, data);
    assert_int_equal(truncate(data, 0), 0);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(stat(data, &info), 0);
    assert_int_equal(info.st_size, 0);
}

static void only_its_owner_may_read_a_new_store(void **state)
{
    struct contract *contract = *state;
    char data[CONTRACT_PATH_BYTES];
    struct stat info;

    path_of(contract, contract->store->hands->data_file, data);
    assert_int_equal(stat(contract->dir, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_int_equal(stat(data, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
}

static void opening_to_create_keeps_what_is_there(void **state)
{
    struct contract *contract = *state;
    uint8_t before[CFOIL_STORE_ID_BYTES];
    uint8_t after[CFOIL_STORE_ID_BYTES];

    contract_claim(contract, 1, 7, 0);
    contract->ops->identity(contract->handle, before);
    contract_close(contract);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_CREATE), CFOIL_OK);
    contract->ops->identity(contract->handle, after);
    assert_memory_equal(before, after, sizeof(before));
    assert_get_shows(contract, 1, 7);
}

static void every_new_store_has_an_identity_of_its_own(void **state)
{
    static const uint8_t none[CFOIL_STORE_ID_BYTES];
    struct contract *contract = *state;
    uint8_t first[CFOIL_STORE_ID_BYTES];
    uint8_t second[CFOIL_STORE_ID_BYTES];

    contract->ops->identity(contract->handle, first);
    contract_close(contract);
    contract_remove_tree(contract->dir);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_CREATE), CFOIL_OK);
    contract->ops->identity(contract->handle, second);
    assert_memory_not_equal(first, second, sizeof(first));
    assert_memory_not_equal(first, none, sizeof(first));
}

static enum cfoil_error open_expecting(struct contract *contract, const uint8_t *store_id)
{
    struct cfoil_store_options options = contract_options(contract, CFOIL_OPEN_EXISTING);
    char problem[512] = "";

    memcpy(options.expect_store_id, store_id, CFOIL_STORE_ID_BYTES);
    return contract->ops->open(&options, &contract->handle, problem, sizeof(problem));
}

static void another_store_than_the_expected_one_is_refused(void **state)
{
    struct contract *contract = *state;
    uint8_t store_id[CFOIL_STORE_ID_BYTES];

    contract->ops->identity(contract->handle, store_id);
    contract_close(contract);
    store_id[3] ^= 1;
    assert_int_equal(open_expecting(contract, store_id), CFOIL_E_STORE_REPLACED);
    assert_null(contract->handle);
    store_id[3] ^= 1;
    assert_int_equal(open_expecting(contract, store_id), CFOIL_OK);
}

static void a_newer_format_is_refused(void **state)
{
    struct contract *contract = *state;

    contract_close(contract);
    contract->store->hands->set_format(contract->dir, 3);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_E_STORE_VERSION);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_CREATE), CFOIL_E_STORE_VERSION);
    contract->store->hands->set_format(contract->dir, 2);
    contract_reopen(contract);
}

/* It has records where this program does not look for them, and none where it does. */
static void an_older_format_is_refused_and_left_as_it_is(void **state)
{
    struct contract *contract = *state;
    static const enum cfoil_open_mode modes[] = {CFOIL_OPEN_EXISTING, CFOIL_OPEN_CREATE,
                                                 CFOIL_OPEN_READ_ONLY};
    char problem[512] = "";

    contract_close(contract);
    contract->store->hands->make_older(contract->dir);
    for (size_t i = 0; i < 3; i++) {
        struct cfoil_store_options options = contract_options(contract, modes[i]);
        assert_int_equal(contract->ops->open(&options, &contract->handle, problem, sizeof(problem)),
                         CFOIL_E_STORE_VERSION);
        assert_non_null(strstr(problem, "the store has format 1, this program knows format 2"));
    }
    contract->store->hands->set_format(contract->dir, 2);
    /* Nobody made what the older one lacks. */
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_E_STORE_UNAVAILABLE);
}

static void somebody_else_s_database_is_not_written_into(void **state)
{
    struct contract *contract = *state;

    contract_close(contract);
    contract_remove_tree(contract->dir);
    contract->store->hands->make_stranger(contract->dir);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_CREATE), CFOIL_E_STORE_UNAVAILABLE);
}

static void a_read_only_store_answers_and_refuses_to_write(void **state)
{
    struct contract *contract = *state;
    struct cfoil_sweep sweep = {0};
    struct cfoil_op ops[] = {
        contract_cas_op(1, 0, contract_draft(contract, 8, 0, 5)),
        contract_cas_op(1, 7, contract_draft(contract, 8, 0, 5)),
        contract_cas_op(2, 0, contract_draft(contract, 8, 0, 5)),
        contract_get_op(1),
    };
    struct cfoil_op *list[] = {&ops[0], &ops[1], &ops[2], &ops[3]};

    contract_claim(contract, 1, 7, 0);
    contract_close(contract);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_READ_ONLY), CFOIL_OK);
    assert_int_equal(contract->ops->apply(contract->handle, list, 4), CFOIL_OK);
    assert_shows(&ops[0], 7);
    assert_failed(&ops[1], CFOIL_E_STORE_READ_ONLY);
    assert_failed(&ops[2], CFOIL_E_STORE_READ_ONLY);
    assert_shows(&ops[3], 7);
    assert_int_equal(contract->ops->sweep(contract->handle, &sweep, 10), CFOIL_E_STORE_READ_ONLY);
    assert_get_absent(contract, 2);
    cfoil_op_free_current(&ops[0]);
    cfoil_op_free_current(&ops[3]);
}

/*
 * What a batch must come to whose files are not at their paths: nothing is applied for certain, and
 * the handle is of no use.
 */
/* The claim of record 2 stands in the lost file; nobody holds it, so nobody may be told to wait. */
static void assert_unacknowledged_claim_is_not_shown(struct contract *contract)
{
    struct cfoil_op look = contract_get_op(2);

    contract->ops->lookup(contract->handle, &look);
    assert_failed(&look, CFOIL_E_STORE_REPLACED);
    cfoil_op_free_current(&look);
}

static void assert_out_of_service(struct contract *contract)
{
    struct cfoil_op ops[] = {
        contract_get_op(1),
        contract_cas_op(1, 0, contract_draft(contract, 8, 0, 5)),
        contract_cas_op(2, 0, contract_draft(contract, 8, 0, 5)),
    };
    struct cfoil_op *list[] = {&ops[0], &ops[1], &ops[2]};
    struct cfoil_op *get = &ops[0];

    assert_int_equal(contract->ops->apply(contract->handle, list, 3), CFOIL_E_STORE_REPLACED);
    assert_failed(&ops[0], CFOIL_E_STORE_REPLACED);
    assert_failed(&ops[1], CFOIL_E_STORE_REPLACED); /* a conflict was certainly not applied */
    assert_int_equal(ops[2].status, CFOIL_OP_UNKNOWN);
    assert_int_equal(ops[2].error, CFOIL_E_STORE_REPLACED);
    assert_int_equal(contract->ops->apply(contract->handle, &get, 1), CFOIL_E_STORE_REPLACED);
    assert_failed(get, CFOIL_E_STORE_REPLACED);
    assert_int_equal(contract->ops->apply(contract->handle, NULL, 0), CFOIL_E_STORE_REPLACED);
    assert_unacknowledged_claim_is_not_shown(contract);
    for (size_t i = 0; i < 3; i++) {
        cfoil_op_free_current(&ops[i]);
    }
}

static void a_deleted_file_under_an_open_handle_acknowledges_nothing(void **state)
{
    struct contract *contract = *state;
    char data[CONTRACT_PATH_BYTES];

    contract_claim(contract, 1, 7, 0);
    assert_int_equal(contract->ops->apply(contract->handle, NULL, 0), CFOIL_OK);
    path_of(contract, contract->store->hands->data_file, data);
    assert_int_equal(unlink(data), 0);
    assert_out_of_service(contract);
}

static void a_store_moved_away_acknowledges_nothing_and_comes_back(void **state)
{
    struct contract *contract = *state;
    char away[CONTRACT_PATH_BYTES];

    contract_claim(contract, 1, 7, 0);
    move_away(contract, away);
    assert_out_of_service(contract);
    contract_close(contract);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_E_STORE_UNAVAILABLE);
    assert_int_equal(rename(away, contract->dir), 0);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
    assert_get_shows(contract, 1, 7);
}

static void an_empty_store_in_its_place_acknowledges_nothing(void **state)
{
    struct contract *contract = *state;
    struct contract other = *contract;
    char away[CONTRACT_PATH_BYTES];

    contract_claim(contract, 1, 7, 0);
    move_away(contract, away);
    other.handle = NULL;
    assert_int_equal(contract_open(&other, CFOIL_OPEN_CREATE), CFOIL_OK);
    contract_close(&other);
    assert_out_of_service(contract);
}

static void a_store_copied_over_itself_acknowledges_nothing(void **state)
{
    struct contract *contract = *state;
    char data[CONTRACT_PATH_BYTES];
    char copy[CONTRACT_PATH_BYTES];
    char command[5 * CONTRACT_PATH_BYTES];

    contract_claim(contract, 1, 7, 0);
    path_of(contract, contract->store->hands->data_file, data);
    path_of(contract, "copy", copy);
    (void)snprintf(command, sizeof(command), "cp '%s' '%s' && mv '%s' '%s'", data, copy, copy,
                   data);
    assert_int_equal(system(command), 0);
    assert_out_of_service(contract);
}

static void a_deleted_lock_file_is_noticed(void **state)
{
    struct contract *contract = *state;
    char lock[CONTRACT_PATH_BYTES];

    contract_claim(contract, 1, 7, 0);
    path_of(contract, contract->store->hands->lock_file, lock);
    assert_int_equal(unlink(lock), 0);
    assert_out_of_service(contract);
    contract_close(contract);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
    assert_get_shows(contract, 1, 7);
}

static void nobody_opens_beside_a_holder_of_a_deleted_lock_file(void **state)
{
    struct contract *contract = *state;
    struct contract other = *contract;
    char lock[CONTRACT_PATH_BYTES];

    other.handle = NULL;
    path_of(contract, contract->store->hands->lock_file, lock);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(contract_open(&other, CFOIL_OPEN_EXISTING), CFOIL_E_STORE_UNAVAILABLE);
    assert_no_file(lock);
    contract_close(contract);
    assert_int_equal(contract_open(contract, CFOIL_OPEN_EXISTING), CFOIL_OK);
}

static void a_wrong_url_is_explained(void **state)
{
    static const char *const urls[] = {"lmdb:",
                                       "lmdb:?map_size=1GiB",
                                       "lmdb:x?map_size=",
                                       "lmdb:x?map_size=64GB",
                                       "lmdb:x?size=1GiB",
                                       "lmdb:x?map_size=-1GiB",
                                       "lmdb:x?map_size=1KiB",
                                       "lmdb:x?map_size=99999999TiB"};
    struct contract *contract = *state;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct cfoil_store_options options = contract_options(contract, CFOIL_OPEN_EXISTING);
        struct cfoil_store *handle = NULL;
        char problem[512] = "";
        options.url = urls[i];
        assert_int_equal(cfoil_store_lmdb.open(&options, &handle, problem, sizeof(problem)),
                         CFOIL_E_INVALID);
        assert_non_null(strstr(problem, "lmdb"));
    }
    assert_null(cfoil_store_for_url("lmdbx:/tmp"));
    assert_null(cfoil_store_for_url("lmdb"));
    assert_null(cfoil_store_for_url(""));
    assert_ptr_equal(cfoil_store_for_url("lmdb:/x"), &cfoil_store_lmdb);
    assert_ptr_equal(cfoil_store_for_url("memory:"), &cfoil_store_memory);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        CONTRACT_CASE(a_missing_store_is_not_made_where_it_must_exist),
        CONTRACT_CASE(an_empty_data_file_is_no_store),
        CONTRACT_CASE(only_its_owner_may_read_a_new_store),
        CONTRACT_CASE(opening_to_create_keeps_what_is_there),
        CONTRACT_CASE(every_new_store_has_an_identity_of_its_own),
        CONTRACT_CASE(another_store_than_the_expected_one_is_refused),
        CONTRACT_CASE(a_newer_format_is_refused),
        CONTRACT_CASE(an_older_format_is_refused_and_left_as_it_is),
        CONTRACT_CASE(somebody_else_s_database_is_not_written_into),
        CONTRACT_CASE(a_read_only_store_answers_and_refuses_to_write),
        CONTRACT_CASE(a_deleted_file_under_an_open_handle_acknowledges_nothing),
        CONTRACT_CASE(a_store_moved_away_acknowledges_nothing_and_comes_back),
        CONTRACT_CASE(an_empty_store_in_its_place_acknowledges_nothing),
        CONTRACT_CASE(a_store_copied_over_itself_acknowledges_nothing),
        CONTRACT_CASE(a_deleted_lock_file_is_noticed),
        CONTRACT_CASE(nobody_opens_beside_a_holder_of_a_deleted_lock_file),
        CONTRACT_CASE(a_wrong_url_is_explained),
    };
    return contract_run(argc, argv, "place", tests, sizeof(tests) / sizeof(tests[0]));
}
