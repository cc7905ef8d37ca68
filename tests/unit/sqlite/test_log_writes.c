/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Pages of a transaction go to the log by one call, and the log is what it would be else:
 *  database and log alone, as after a crash, give what was committed, and nothing else. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "sql.h"

#define ROWS 60

/* ---- instead of libc's ---------------------------------------------------------------------- */

static int writes;  /* how many there were */
static int fail_at; /* which of them fails; 0: none */

static ssize_t
counted_write(int fd, const void *data, size_t bytes, off_t at)
{
    if (++writes == fail_at) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, bytes, at);
}

ssize_t
pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    return counted_write(fd, data, bytes, at);
}

ssize_t
pwrite64(int fd, const void *data, size_t bytes, off_t at)
{
    return counted_write(fd, data, bytes, at);
}

/* ---- support -------------------------------------------------------------------------------- */

typedef struct fixture {
    char folder[64];
    char file[100];
    char copy[100];
    sqlite__link links[2]; /* as two stores have them */
    uint64_t random;
} fixture;

static uint64_t
below(fixture *f, uint64_t bound)
{
    f->random = f->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (f->random >> 33) % bound;
}

static int
try(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static void
run(sqlite3 *db, const char *sql)
{
    if (try(db, sql) != SQLITE_OK)
        fail_msg("%s: %s", sqlite3_errmsg(db), sql);
}

/* All there is, as a number; that the database is sound. */
static uint64_t
digest(sqlite3 *db)
{
    uint64_t sum = UINT64_C(14695981039346656037);
    sqlite3_stmt *rows = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &rows, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(rows), SQLITE_ROW);
    assert_string_equal((const char *) sqlite3_column_text(rows, 0), "ok");
    (void) sqlite3_finalize(rows);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT id, data FROM t ORDER BY id", -1, &rows, NULL),
                     SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        const uint8_t *data = sqlite3_column_blob(rows, 1);
        sum = (sum ^ (uint64_t) sqlite3_column_int64(rows, 0)) * 1099511628211;
        for (int i = 0; i < sqlite3_column_bytes(rows, 1); i++)
            sum = (sum ^ data[i]) * 1099511628211;
    }
    (void) sqlite3_finalize(rows);
    return sum;
}

static void
copy(const char *from, const char *to, const char *end)
{
    char path[120];
    char data[65536];
    ssize_t n = 0;
    (void) snprintf(path, sizeof path, "%s%s", from, end);
    int in = open(path, O_RDONLY);
    (void) snprintf(path, sizeof path, "%s%s", to, end);
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, data, sizeof data)) > 0)
        assert_int_equal(write(out, data, (size_t) n), n);
    (void) close(in);
    (void) close(out);
}

/* What somebody finds who has the two files alone. */
static uint64_t
digest_of_files(fixture *f)
{
    char path[120];
    sqlite3 *db = NULL;
    copy(f->file, f->copy, "");
    copy(f->file, f->copy, "-wal");
    (void) snprintf(path, sizeof path, "%s-shm", f->copy);
    (void) unlink(path);
    assert_int_equal(sqlite3_open(f->copy, &db), SQLITE_OK);
    run(db, "PRAGMA synchronous = OFF"); /* close() waits for no disk */
    uint64_t sum = digest(db);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return sum;
}

static void
put(fixture *f, sqlite3 *db, int row)
{
    char sql[120];
    (void) snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO t VALUES(%d, randomblob(%d))", row,
                    1 + (int) below(f, 9000));
    run(db, sql);
}

static int
setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    esdm_error err = {0};
    (void) snprintf(f->folder, sizeof f->folder, "/tmp/esdm-log.XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    (void) snprintf(f->file, sizeof f->file, "%s/a", f->folder);
    (void) snprintf(f->copy, sizeof f->copy, "%s/b", f->folder);
    f->random = 7;
    for (int i = 0; i < 2; i++) {
        if (sqlite__link_open(&f->links[i], f->file, "a",
                              SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &err) != ESDM_OK)
            fail_msg("%s", err.message);
        run(f->links[i].db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
                            "CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, data)");
    }
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    fixture *f = *state;
    char command[100];
    fail_at = 0;
    for (int i = 0; i < 2; i++)
        sqlite__link_close(&f->links[i]);
    (void) snprintf(command, sizeof command, "rm -rf %s", f->folder);
    int status = system(command);
    free(f);
    return status;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void
test_log_writes__of_a_transaction_are_one(void **state)
{
    fixture *f = *state;
    sqlite3 *db = f->links[0].db;
    run(db, "INSERT INTO t VALUES(1, 0)");
    for (int pages = 1; pages < 40; pages += 6) {
        char sql[100];
        (void) snprintf(sql, sizeof sql, "INSERT INTO t VALUES(NULL, randomblob(%d))",
                        4096 * pages);
        writes = 0;
        run(db, sql);
        assert_int_equal(writes, 1);
        assert_int_equal(digest(f->links[1].db), digest_of_files(f));
    }
    /* More than is kept in memory. */
    writes = 0;
    run(db, "INSERT INTO t VALUES(NULL, randomblob(1000000))");
    assert_in_range(writes, 4, 6);
    assert_int_equal(digest(f->links[1].db), digest_of_files(f));
}

/* Many transactions by two, with little memory: pages are written, read and written again before
 * the end, parts are taken back, and the log begins anew. */
static void
test_log_writes__give_what_was_committed(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 2; i++)
        run(f->links[i].db, "PRAGMA cache_size = 3; PRAGMA wal_autocheckpoint = 70");
    uint64_t before = digest(f->links[0].db);
    for (int turn = 0; turn < 300; turn++) {
        sqlite3 *db = f->links[below(f, 2)].db;
        bool marked = false;
        run(db, "BEGIN IMMEDIATE");
        for (uint64_t n = below(f, 40); n > 0; n--) {
            uint64_t what = below(f, 12);
            if (what == 0) {
                run(db, "SAVEPOINT s");
                marked = true;
            } else if (what == 1 && marked) {
                run(db, "ROLLBACK TO s");
            } else if (what == 2) {
                run(db, "DELETE FROM t WHERE id % 7 = 3; SELECT sum(length(data)) FROM t");
            } else {
                put(f, db, (int) below(f, ROWS));
            }
        }
        /* Nobody sees it before its end. */
        assert_int_equal(digest_of_files(f), before);
        bool commits = below(f, 3) > 0;
        run(db, commits ? "COMMIT" : "ROLLBACK");
        uint64_t now = digest(f->links[0].db);
        assert_int_equal(digest(f->links[1].db), now);
        assert_int_equal(digest_of_files(f), now);
        if (!commits)
            assert_int_equal(now, before);
        before = now;
    }
}

/* What was taken back does not come over what the other one has written there since. */
static void
test_log_writes__leave_nothing_of_what_was_taken_back(void **state)
{
    fixture *f = *state;
    sqlite3 *first = f->links[0].db;
    sqlite3 *second = f->links[1].db;
    run(first, "PRAGMA cache_size = 3");
    for (int pages = 2; pages < 30; pages++) {
        char sql[100];
        (void) snprintf(sql, sizeof sql,
                        "BEGIN IMMEDIATE; INSERT INTO t VALUES(NULL, "
                        "randomblob(80000)); ROLLBACK");
        run(first, sql);
        (void) snprintf(sql, sizeof sql, "INSERT INTO t VALUES(NULL, randomblob(%d))",
                        4000 * pages);
        run(second, sql);
        uint64_t sum = digest(second);
        assert_int_equal(digest_of_files(f), sum);
        run(first, "UPDATE t SET id = id WHERE id = 1");
        assert_int_equal(digest(first), sum);
        assert_int_equal(digest_of_files(f), sum);
    }
}

/* A disk that is full is an error of the transaction, which leaves nothing. */
static void
test_log_writes__fail_with_their_transaction(void **state)
{
    fixture *f = *state;
    sqlite3 *db = f->links[0].db;
    run(db, "PRAGMA cache_size = 3; INSERT INTO t VALUES(1, randomblob(20000))");
    uint64_t before = digest(db);
    int failed = 0;
    for (int at = 1, rest = 1; rest > 0; at++) {
        writes = 0;
        fail_at = at;
        int code = try(db, "BEGIN IMMEDIATE; INSERT INTO t VALUES(2, randomblob(600000)); "
                           "UPDATE t SET data = randomblob(30000) WHERE id = 1; COMMIT");
        rest = fail_at <= writes;
        fail_at = 0;
        if (!rest)
            break;
        failed++;
        assert_int_equal(code, SQLITE_FULL);
        (void) try(db, "ROLLBACK");
        assert_int_equal(digest(f->links[1].db), before);
        assert_int_equal(digest_of_files(f), before);
        run(f->links[1].db, "UPDATE t SET id = 1 WHERE id = 1");
        assert_int_equal(digest_of_files(f), before);
    }
    assert_true(failed >= 3);
    assert_int_not_equal(digest(db), before);
    assert_int_equal(digest_of_files(f), digest(f->links[1].db));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_log_writes__of_a_transaction_are_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_writes__give_what_was_committed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_writes__leave_nothing_of_what_was_taken_back,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_writes__fail_with_their_transaction, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
