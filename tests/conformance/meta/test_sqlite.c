/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What only the store "sqlite" can be asked: its files, and how it opens them. */

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sqlite_store.h"

static off_t
file_bytes(const fixture *f, const char *suffix)
{
    char path[300];
    struct stat found;
    sqlite_path(f, suffix, path);
    return stat(path, &found) == 0 ? found.st_size : -1;
}

static void
test_sqlite__newer_format_is_enotsup(void **state)
{
    fixture *f = *state;
    void *store = NULL;
    char back[64];
    skip_if(!sqlite_is_tested());
    meta()->close(f->store);
    f->store = NULL;
    (void) snprintf(back, sizeof back, "PRAGMA user_version = %lld",
                    (long long) sqlite_number(f, "PRAGMA user_version"));
    sqlite_run(f, "PRAGMA user_version = 999");
    assert_status(meta()->open(&f->place.config, false, &store, &place_error), ESDM_ENOTSUP);
    assert_non_null(strstr(place_error.message, "999"));
    assert_status(meta()->open(&f->place.config, true, &store, &place_error), ESDM_ENOTSUP);
    assert_status(meta()->make(&f->place.config, false, NULL, NULL, &place_error), ESDM_ENOTSUP);
    assert_status(meta()->check(&f->place.config, NULL, NULL, &place_error), ESDM_ENOTSUP);
    assert_status(meta()->remove(&f->place.config, false, NULL, NULL, &place_error), ESDM_ENOTSUP);
    assert_null(store);
    sqlite_run(f, back); /* it is removed at the end */
}

static void
test_sqlite__foreign_database_is_refused(void **state)
{
    fixture *f = *state;
    void *store = NULL;
    skip_if(!sqlite_is_tested());
    meta()->close(f->store);
    f->store = NULL;
    sqlite_run(f, "PRAGMA application_id = 1");
    assert_status(meta()->open(&f->place.config, false, &store, &place_error), ESDM_ECORRUPT);
    assert_null(store);
}

static void
damage(const fixture *f, off_t from, size_t bytes)
{
    char path[300];
    char noise[4096];
    sqlite_path(f, "", path);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    memset(noise, 0x9d, sizeof noise);
    for (size_t done = 0; done < bytes; done += sizeof noise)
        assert_int_equal(pwrite(fd, noise, sizeof noise, from + (off_t) done), sizeof noise);
    (void) close(fd);
}

static void
fill(const fixture *f)
{
    for (int i = 0; i < 300; i++) {
        char name[32];
        (void) snprintf(name, sizeof name, "c%d", i);
        esdm_meta_committed committed = meta_create(f->store, name);
        assert_ok(meta_append(f->store, committed.container, 1, &committed));
    }
}

static void
test_sqlite__damage_is_ecorrupt(void **state)
{
    fixture *f = *state;
    void *store = NULL;
    esdm_meta_container record;
    esdm_status status = ESDM_OK;
    skip_if(!sqlite_is_tested());
    fill(f);
    meta()->close(f->store);
    f->store = NULL;
    sqlite_run(f, "PRAGMA wal_checkpoint(TRUNCATE)");
    off_t bytes = file_bytes(f, "");
    assert_true(bytes > 100000);
    damage(f, 8192, (size_t) bytes - 8192 - 4096);
    assert_status(meta()->check(&f->place.config, NULL, NULL, &place_error), ESDM_ECORRUPT);
    assert_ok(meta()->open(&f->place.config, false, &store, &place_error));
    for (int i = 0; i < 300 && status != ESDM_ECORRUPT; i++) {
        char name[32];
        (void) snprintf(name, sizeof name, "c%d", i);
        status = meta()->container_find(store, name, &record, &place_error);
    }
    assert_int_equal(status, ESDM_ECORRUPT);
    assert_non_null(strstr(place_error.message, "damaged"));
    meta()->close(store);
    store = NULL;
    damage(f, 0, 4096);
    assert_status(meta()->open(&f->place.config, false, &store, &place_error), ESDM_ECORRUPT);
    assert_null(store);
}

static void
test_sqlite__missing_or_empty_database_is_enoent(void **state)
{
    fixture *f = *state;
    void *store = NULL;
    char path[300];
    skip_if(!sqlite_is_tested());
    meta()->close(f->store);
    f->store = NULL;
    sqlite_path(f, "", path);
    assert_int_equal(truncate(path, 0), 0);
    assert_status(meta()->open(&f->place.config, false, &store, &place_error), ESDM_ENOENT);
    assert_int_equal(unlink(path), 0);
    assert_status(meta()->open(&f->place.config, false, &store, &place_error), ESDM_ENOENT);
    assert_status(meta()->open(&f->place.config, true, &store, &place_error), ESDM_ENOENT);
    assert_null(store);
    assert_ok(meta()->make(&f->place.config, false, NULL, NULL, &place_error)); /* mends it */
    f->store = meta_open(f, false);
    meta_create(f->store, "a");
}

static bool
count_match(const char *container, const char *path, void *user)
{
    assert_string_equal(container, "a");
    assert_null(path);
    ++*(size_t *) user;
    return true;
}

static void
test_sqlite__damaged_columns_are_ecorrupt(void **state)
{
    static const char *const damages[] = {
        "UPDATE snapshot SET lengths = x'80'",
        "UPDATE snapshot SET lengths = x'ffffffffff0101'",
        "UPDATE snapshot SET lengths = NULL, document = NULL",
    };
    static const char *const boxes[] = {"UPDATE page SET box = x'05'",
                                        "UPDATE page SET box = x'ffffff01'",
                                        "UPDATE page SET box = x'000000'"};
    static const char *const lists[] = {"UPDATE snapshot SET attributes = x'0000ff'",
                                        "UPDATE snapshot SET attributes = x'0000056e616d65'",
                                        "UPDATE snapshot SET attributes = x'01'"};
    fixture *f = *state;
    esdm_meta_snapshot loaded;
    size_t count = 0;
    esdm_meta_condition condition = {.attribute = "x", .op = ESDM_META_EQ, .text = "y"};
    skip_if(!sqlite_is_tested());
    esdm_meta_committed committed = meta_create(f->store, "a");
    assert_ok(meta_append(f->store, committed.container, 1, &committed));
    for (size_t i = 0; i < 3; i++) {
        sqlite_run(f, boxes[i]);
        assert_status(
            meta()->page_list(f->store, committed.container, 2, 0, NULL, NULL, &place_error),
            ESDM_ECORRUPT);
    }
    for (size_t i = 0; i < 3; i++) {
        sqlite_run(f, lists[i]);
        assert_status(meta()->find(f->store, &condition, 1, count_match, &count, &place_error),
                      ESDM_ECORRUPT);
    }
    for (size_t i = 0; i < 3; i++) {
        sqlite_run(f, damages[i]);
        assert_status(meta()->snapshot_open(f->store, "a", 0, 0, 0, &loaded, &place_error),
                      ESDM_ECORRUPT);
    }
}

/* ---- read-only media ------------------------------------------------------------------------ */

typedef struct media {
    fixture f;
    uint64_t container;
    bool mounted;
} media;

/* A store on a file system of its own, with a container "a" of four snapshots. */
static bool
media_init(media *m)
{
    memset(m, 0, sizeof *m);
    place_init(&m->f.place, place_current_kind);
    if (mount("tmpfs", m->f.place.folder, "tmpfs", 0, "size=20m,mode=0755") != 0) {
        place_clear(&m->f.place);
        return false;
    }
    assert_ok(meta()->make(&m->f.place.config, false, NULL, NULL, &place_error));
    m->f.store = meta_open(&m->f, false);
    static const esdm_meta_attribute title = {.name = "title", .text = "frozen"};
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    esdm_meta_committed committed;
    commit.name = "a";
    commit.attributes = &title;
    commit.nattributes = 1;
    assert_ok(meta()->commit(m->f.store, &commit, &committed, &place_error));
    m->container = committed.container;
    for (int i = 0; i < 3; i++)
        assert_ok(meta_append(m->f.store, m->container, 1, &committed));
    return true;
}

static void
media_read_only(const media *m, bool read_only)
{
    assert_int_equal(
        mount("tmpfs", m->f.place.folder, "tmpfs", MS_REMOUNT | (read_only ? MS_RDONLY : 0), NULL),
        0);
}

static void
media_clear(media *m)
{
    assert_int_equal(umount(m->f.place.folder), 0);
    place_clear(&m->f.place);
}

static void
expect_findable(void *store)
{
    size_t found = 0;
    esdm_meta_condition condition = {.attribute = "title", .op = ESDM_META_EQ, .text = "frozen"};
    assert_ok(meta()->find(store, &condition, 1, count_match, &found, &place_error));
    assert_int_equal(found, 1);
}

/* Reads everything in every way, and is refused writing. */
static void
expect_readable(const media *m, uint64_t records)
{
    for (int read_only = 0; read_only < 2; read_only++) {
        esdm_meta_committed committed;
        void *store = meta_open(&m->f, read_only != 0);
        assert_int_equal(meta_check_whole(store, "a"), records);
        assert_status(meta_try_create(store, "b", &committed), ESDM_EACCES);
        assert_int_equal(meta_check_whole(store, "a"), records);
        expect_findable(store);
        meta()->close(store);
    }
}

static void
remove_files(const media *m, const char *const *suffixes)
{
    for (; *suffixes != NULL; suffixes++) {
        char path[300];
        sqlite_path(&m->f, *suffixes, path);
        (void) unlink(path);
    }
}

static void
test_sqlite__read_only_media(void **state)
{
    (void) state;
    static const char *const shared_memory[] = {"-shm", NULL};
    media m;
    skip_if(!sqlite_is_tested() || !media_init(&m));
    meta()->close(m.f.store);
    assert_true(file_bytes(&m.f, "-wal") > 0); /* small logs stay */
    media_read_only(&m, true);
    expect_readable(&m, 3);
    media_read_only(&m, false);
    remove_files(&m, shared_memory);
    media_read_only(&m, true);
    expect_readable(&m, 3); /* by a private copy */
    media_read_only(&m, false);
    sqlite_run(&m.f, "PRAGMA wal_checkpoint(TRUNCATE)"); /* removes -wal and -shm */
    media_read_only(&m, true);
    assert_true(file_bytes(&m.f, "-wal") <= 0);
    expect_readable(&m, 3); /* as it is */
    media_read_only(&m, false);
    media_clear(&m);
}

/* What is read without locks must not be stale when the medium becomes writable meanwhile. */
static void
test_sqlite__frozen_handles_notice_changes(void **state)
{
    (void) state;
    media m;
    skip_if(!sqlite_is_tested() || !media_init(&m));
    for (int with_log = 0; with_log < 2; with_log++) {
        static const char *const shared_memory[] = {"-shm", NULL};
        esdm_meta_committed committed;
        meta()->close(m.f.store);
        if (with_log == 0)
            sqlite_run(&m.f, "PRAGMA wal_checkpoint(TRUNCATE)");
        else
            remove_files(&m, shared_memory);
        media_read_only(&m, true);
        void *frozen = meta_open(&m.f, false);
        uint64_t before = meta_check_whole(frozen, "a");
        media_read_only(&m, false);
        m.f.store = meta_open(&m.f, false);
        assert_ok(meta_append(m.f.store, m.container, 1, &committed));
        assert_int_equal(meta_check_whole(frozen, "a"), before + 1);
        assert_ok(meta_append(m.f.store, m.container, 1, &committed));
        assert_int_equal(meta_check_whole(frozen, "a"), before + 2);
        assert_status(meta_try_create(frozen, "b", &committed), ESDM_EACCES);
        meta()->close(frozen);
    }
    meta()->close(m.f.store);
    media_clear(&m);
}

/* ---- another user, when files are missing --------------------------------------------------- */

static void
read_as_nobody(void *user)
{
    const media *m = user;
    void *store = NULL;
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(10);
    if (meta()->open(&m->f.place.config, false, &store, &place_error) != ESDM_OK)
        _exit(11);
    if (meta_check_whole(store, "a") != 3)
        _exit(12);
    meta()->close(store);
}

static void
test_sqlite__another_user_without_shared_memory(void **state)
{
    (void) state;
    static const char *const shared_memory[] = {"-shm", NULL};
    media m;
    char copies[200];
    skip_if(!sqlite_is_tested() || geteuid() != 0 || !media_init(&m));
    (void) snprintf(copies, sizeof copies, "%s/tmp", m.f.place.folder);
    assert_int_equal(mkdir(copies, 0777), 0);
    assert_int_equal(chmod(copies, 0777), 0);
    meta()->close(m.f.store);
    const char *old = getenv("TMPDIR");
    assert_int_equal(setenv("TMPDIR", copies, 1), 0);
    assert_int_equal(place_in_child(read_as_nobody, &m), 0);
    remove_files(&m, shared_memory);
    assert_int_equal(place_in_child(read_as_nobody, &m), 0); /* by a copy */
    assert_int_equal(place_count_entries(copies), 0);        /* that leaves nothing behind */
    sqlite_run(&m.f, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(place_in_child(read_as_nobody, &m), 0);
    assert_int_equal(old != NULL ? setenv("TMPDIR", old, 1) : unsetenv("TMPDIR"), 0);
    media_clear(&m);
}

/* ---- journal modes -------------------------------------------------------------------------- */

static void
test_sqlite__works_without_a_log(void **state)
{
    fixture *f = *state;
    skip_if(!sqlite_is_tested());
    meta()->close(f->store);
    sqlite_run(f, "PRAGMA journal_mode = DELETE"); /* as on a network file system */
    f->store = meta_open(f, false);
    void *reader = meta_open(f, true);
    esdm_meta_committed committed = meta_create(f->store, "a");
    for (uint64_t i = 1; i <= 40; i++) {
        assert_ok(meta_append(f->store, committed.container, 1, &committed));
        assert_int_equal(meta_check_whole(reader, "a"), i);
    }
    assert_int_equal(file_bytes(f, "-wal"), -1);
    meta()->close(reader);
}

static void
test_sqlite__log_stays_short(void **state)
{
    fixture *f = *state;
    skip_if(!sqlite_is_tested());
    fill(f);
    for (int i = 300; i < 2500; i++) {
        char name[32];
        (void) snprintf(name, sizeof name, "c%d", i);
        (void) meta_create(f->store, name);
    }
    assert_true(file_bytes(f, "-wal") < (off_t) 12 << 20);
    meta()->close(f->store);
    assert_true(file_bytes(f, "-wal") <= 256 << 10);
    f->store = meta_open(f, false);
}

const struct CMUnitTest meta_sqlite_tests[] = {
    WITH_STORE(test_sqlite__newer_format_is_enotsup),
    WITH_STORE(test_sqlite__foreign_database_is_refused),
    WITH_STORE(test_sqlite__damage_is_ecorrupt),
    WITH_STORE(test_sqlite__missing_or_empty_database_is_enoent),
    WITH_STORE(test_sqlite__damaged_columns_are_ecorrupt),
    cmocka_unit_test(test_sqlite__read_only_media),
    cmocka_unit_test(test_sqlite__frozen_handles_notice_changes),
    cmocka_unit_test(test_sqlite__another_user_without_shared_memory),
    WITH_STORE(test_sqlite__works_without_a_log),
    WITH_STORE(test_sqlite__log_stays_short),
};
const size_t meta_sqlite_count = sizeof meta_sqlite_tests / sizeof meta_sqlite_tests[0];
