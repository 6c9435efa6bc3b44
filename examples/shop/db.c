/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the SQLite connection. WAL with synchronous=FULL: what was answered survives a power cut.
 * Invariant: a transaction is open only between shop_db_begin and shop_db_commit or shop_db_leave,
 * under the lock.
 */
#include "db.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DB_BUSY_TIMEOUT_MS = 10000 };

struct shop_db {
    pthread_mutex_t lock;
    sqlite3 *connection;
    sqlite3_stmt *statements[SHOP_SQL_COUNT];
};

#define SHOP_SQL(name, text) text,
static const char *const SQL_TEXTS[SHOP_SQL_COUNT] = {
#include "sql.def"
};
#undef SHOP_SQL

static const char SCHEMA[] =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL,"
    " user_id TEXT NOT NULL, items TEXT NOT NULL, amount INTEGER NOT NULL,"
    " state TEXT NOT NULL DEFAULT 'new', created_at_ms INTEGER NOT NULL);"
    "CREATE INDEX IF NOT EXISTS orders_by_key ON orders (key, id);"
    "CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL,"
    " order_id TEXT NOT NULL, amount INTEGER NOT NULL, created_at_ms INTEGER NOT NULL);"
    "CREATE INDEX IF NOT EXISTS payments_by_key ON payments (key, id);"
    "CREATE TABLE IF NOT EXISTS redemptions (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " key BLOB NOT NULL, coupon TEXT NOT NULL, user_id TEXT NOT NULL,"
    " created_at_ms INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS executions (key BLOB NOT NULL, route TEXT NOT NULL,"
    " count INTEGER NOT NULL, PRIMARY KEY (key, route)) WITHOUT ROWID;";

static bool db_prepare(struct shop_db *db)
{
    for (size_t i = 0; i < SHOP_SQL_COUNT; i++) {
        if (sqlite3_prepare_v3(db->connection, SQL_TEXTS[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &db->statements[i], NULL) != SQLITE_OK) {
            return false;
        }
    }
    return true;
}

struct shop_db *shop_db_open(const char *path, char *error, size_t error_bytes)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    struct shop_db *db = calloc(1, sizeof(*db));

    if (db == NULL || pthread_mutex_init(&db->lock, NULL) != 0) {
        free(db);
        (void)snprintf(error, error_bytes, "out of memory; free some and start again");
        return NULL;
    }
    if (sqlite3_open_v2(path, &db->connection, flags, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(db->connection, DB_BUSY_TIMEOUT_MS) != SQLITE_OK ||
        sqlite3_exec(db->connection, SCHEMA, NULL, NULL, NULL) != SQLITE_OK || !db_prepare(db)) {
        (void)snprintf(error, error_bytes,
                       "%s; --db takes a file in an existing directory that this user may write, "
                       "and that is either missing or a database of this shop",
                       sqlite3_errmsg(db->connection));
        shop_db_close(db);
        return NULL;
    }
    return db;
}

void shop_db_close(struct shop_db *db)
{
    if (db == NULL) {
        return;
    }
    for (size_t i = 0; i < SHOP_SQL_COUNT; i++) {
        (void)sqlite3_finalize(db->statements[i]);
    }
    (void)sqlite3_close(db->connection);
    (void)pthread_mutex_destroy(&db->lock);
    free(db);
}

void shop_db_enter(struct shop_db *db)
{
    (void)pthread_mutex_lock(&db->lock);
}

bool shop_db_begin(struct shop_db *db)
{
    shop_db_enter(db);
    return shop_db_run(shop_db_statement(db, SHOP_SQL_BEGIN));
}

bool shop_db_commit(struct shop_db *db, const struct shop_request *request)
{
    sqlite3_stmt *count = shop_db_statement(db, SHOP_SQL_EXECUTION_COUNT);

    return shop_db_bind_bytes(count, 1, request->key, request->key_bytes) &&
           shop_db_bind_text(count, 2, request->route_name) && shop_db_run(count) &&
           shop_db_run(shop_db_statement(db, SHOP_SQL_COMMIT));
}

void shop_db_report(struct shop_db *db, struct shop_reply *reply)
{
    shop_reply_error(reply, 500,
                     "the database of the shop failed: %s; nothing was changed, look at the file "
                     "given as --db and at the room on its disk",
                     sqlite3_errmsg(db->connection));
}

void shop_db_leave(struct shop_db *db)
{
    for (size_t i = 0; i < SHOP_SQL_COUNT; i++) {
        (void)sqlite3_reset(db->statements[i]);
    }
    if (sqlite3_get_autocommit(db->connection) == 0) {
        (void)sqlite3_step(db->statements[SHOP_SQL_ROLLBACK]);
        (void)sqlite3_reset(db->statements[SHOP_SQL_ROLLBACK]);
    }
    (void)pthread_mutex_unlock(&db->lock);
}

sqlite3_stmt *shop_db_statement(struct shop_db *db, enum shop_sql sql)
{
    sqlite3_stmt *statement = db->statements[sql];

    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return statement;
}

bool shop_db_run(sqlite3_stmt *statement)
{
    return sqlite3_step(statement) == SQLITE_DONE;
}

bool shop_db_row(sqlite3_stmt *statement)
{
    return sqlite3_step(statement) == SQLITE_ROW;
}

bool shop_db_failed(struct shop_db *db)
{
    int code = sqlite3_errcode(db->connection) & 0xFF;

    return code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
}

bool shop_db_bind_bytes(sqlite3_stmt *statement, int position, const char *bytes, size_t byte_count)
{
    return sqlite3_bind_blob64(statement, position, byte_count == 0 ? "" : bytes, byte_count,
                               SQLITE_TRANSIENT) == SQLITE_OK;
}

bool shop_db_bind_text(sqlite3_stmt *statement, int position, const char *text)
{
    return sqlite3_bind_text(statement, position, text, -1, SQLITE_TRANSIENT) == SQLITE_OK;
}

bool shop_db_clear(struct shop_db *db)
{
    bool cleared = shop_db_begin(db) && shop_db_run(shop_db_statement(db, SHOP_SQL_CLEAR_ORDERS)) &&
                   shop_db_run(shop_db_statement(db, SHOP_SQL_CLEAR_PAYMENTS)) &&
                   shop_db_run(shop_db_statement(db, SHOP_SQL_CLEAR_REDEMPTIONS)) &&
                   shop_db_run(shop_db_statement(db, SHOP_SQL_CLEAR_EXECUTIONS)) &&
                   shop_db_run(shop_db_statement(db, SHOP_SQL_CLEAR_NUMBERS)) &&
                   shop_db_run(shop_db_statement(db, SHOP_SQL_COMMIT));

    shop_db_leave(db);
    return cleared;
}

int64_t shop_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
