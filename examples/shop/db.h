/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shop's database: one SQLite connection behind one lock. Owns the file, the schema, the
 * prepared statements and the rule that an effect and its count are one transaction.
 *
 *     read    shop_db_enter … shop_db_leave
 *     effect  shop_db_begin … shop_db_commit … shop_db_leave, with shop_db_report after a failure
 *
 * Invariant: between enter or begin and leave the calling thread alone holds the connection.
 */
#ifndef SHOP_DB_H
#define SHOP_DB_H

#include "reply.h"
#include "request.h"
#include "shop.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHOP_SQL(name, text) SHOP_SQL_##name,
enum shop_sql {
#include "sql.def"
    SHOP_SQL_COUNT
};
#undef SHOP_SQL

/* Opens or makes the database file: WAL, synchronous, schema. On failure returns NULL and writes
 * a message with the cause and the fix into error. */
struct shop_db *shop_db_open(const char *path, char *error, size_t error_bytes) SHOP_MUST_CHECK;

/* Closes it; no thread may hold it. NULL is allowed. */
void shop_db_close(struct shop_db *db);

/* Takes the lock, for reads. */
void shop_db_enter(struct shop_db *db);

/* Takes the lock, whatever it returns, and begins a transaction. */
bool shop_db_begin(struct shop_db *db) SHOP_MUST_CHECK;

/* Counts one execution of this request's key and route, and commits. */
bool shop_db_commit(struct shop_db *db, const struct shop_request *request) SHOP_MUST_CHECK;

/* Rolls back if a transaction is open, and makes the reply a 500 that names the cause. */
void shop_db_report(struct shop_db *db, struct shop_reply *reply);

/* Rolls back an open transaction, gives every statement back and releases the lock. */
void shop_db_leave(struct shop_db *db);

/* A prepared statement, reset and without bindings. Valid until shop_db_leave. */
sqlite3_stmt *shop_db_statement(struct shop_db *db, enum shop_sql sql);

/* Runs a statement that returns no row. */
bool shop_db_run(sqlite3_stmt *statement) SHOP_MUST_CHECK;

/* Steps to a row. False for no row and for an error; shop_db_failed tells them apart. */
bool shop_db_row(sqlite3_stmt *statement) SHOP_MUST_CHECK;

/* Whether the last call failed, as opposed to finding nothing. */
bool shop_db_failed(struct shop_db *db);

/* Binds bytes as a blob, copied; never NULL, also for zero bytes. */
bool shop_db_bind_bytes(sqlite3_stmt *statement, int position, const char *bytes,
                        size_t byte_count) SHOP_MUST_CHECK;

/* Binds text, copied. */
bool shop_db_bind_text(sqlite3_stmt *statement, int position, const char *text) SHOP_MUST_CHECK;

/* Empties every table and starts the numbers at 1 again. */
bool shop_db_clear(struct shop_db *db) SHOP_MUST_CHECK;

/* The wall clock in ms since 1970. */
int64_t shop_now_ms(void);

#endif
