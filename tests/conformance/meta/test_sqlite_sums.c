/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Rows of the store "sqlite" whose values are not those that were written. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sqlite_store.h"

#define CONTAINERS 6

/* ---- all that a reader is told -------------------------------------------------------------- */

typedef struct story {
    char *text;
    size_t bytes;
    FILE *stream;
} story;

static bool
tell_page(const esdm_meta_page *page, void *user)
{
    FILE *out = user;
    (void) fprintf(out, "page %" PRIu64 " %u %u %" PRIu64 " %u %d %" PRIu64 " %" PRIu64, page->page,
                   page->dataset, page->records, page->added, page->level, page->absolute,
                   page->raw_bytes, page->stored_bytes);
    for (uint32_t i = 0; i < 2 * page->rank; i++)
        (void) fprintf(out, " %" PRIu64, page->box[i]);
    (void) fputc('\n', out);
    return true;
}

/* The document and the pages are not in it: they carry checksums of their own. Nor are lists of
 * snapshots, in which one may be missing. */
static esdm_status
tell_container(void *store, const char *name, uint64_t snapshot, FILE *out)
{
    esdm_meta_snapshot loaded = {0};
    esdm_status status = meta()->snapshot_open(store, name, snapshot, 0, 0, &loaded, &place_error);
    if (status != ESDM_OK)
        return status;
    const esdm_meta_container *r = &loaded.record;
    (void) fprintf(out,
                   "container %" PRIu64 " %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                   " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u at %" PRIu64 " %" PRIu64 "\n",
                   r->container, r->uuid, r->snapshot, r->structure, r->created_ns, r->modified_ns,
                   r->raw_bytes, r->stored_bytes, r->fragments, r->datasets, loaded.snapshot,
                   loaded.structure);
    for (size_t i = 0; i < loaded.nlengths; i++)
        (void) fprintf(out, "length %" PRIu64 " %" PRIu64 "\n",
                       (uint64_t) loaded.lengths[i].dimension, loaded.lengths[i].length);
    for (uint32_t dataset = 0; dataset <= 2 && status == ESDM_OK; dataset++)
        status = meta()->page_list(store, r->container, loaded.snapshot, dataset, tell_page, out,
                                   &place_error);
    meta()->unpin(store, r->container, loaded.snapshot);
    free(loaded.document);
    free(loaded.lengths);
    return status;
}

static bool
tell_listed(const char *name, const esdm_meta_container *record, void *user)
{
    (void) name, (void) record;
    (void) fputs("listed\n", user);
    return true;
}

/* None at all is told as "there is none", which is no other story. */
static esdm_status
list_some(void *store, FILE *out)
{
    long before = ftell(out);
    esdm_status status = meta()->container_list(store, "d", tell_listed, out, &place_error);
    return status == ESDM_OK && ftell(out) == before ? ESDM_ENOENT : status;
}

static bool
tell_record(uint64_t container, const char *uuid, const char *name, void *user)
{
    (void) fprintf(user, "record %" PRIu64 " %s %s\n", container, uuid,
                   name != NULL ? name : "(garbage)");
    return true;
}

static story
tell(const fixture *f, esdm_status *ret_status)
{
    story s = {0};
    void *store = NULL;
    *ret_status = meta()->open(&f->place.config, true, &store, &place_error);
    s.stream = open_memstream(&s.text, &s.bytes);
    assert_non_null(s.stream);
    for (int i = 0; i < CONTAINERS && *ret_status == ESDM_OK; i++) {
        char name[8];
        (void) snprintf(name, sizeof name, "c%d", i);
        *ret_status = tell_container(store, name, 0, s.stream);
        if (*ret_status == ESDM_OK)
            *ret_status = tell_container(store, name, 3, s.stream);
    }
    if (*ret_status == ESDM_OK)
        *ret_status = meta()->container_list(store, NULL, tell_listed, s.stream, &place_error);
    if (*ret_status == ESDM_OK)
        *ret_status = list_some(store, s.stream);
    if (*ret_status == ESDM_OK)
        *ret_status = meta()->record_list(store, tell_record, s.stream, &place_error);
    assert_int_equal(fclose(s.stream), 0);
    if (store != NULL)
        meta()->close(store);
    return s;
}

/* First line in which they differ, for the message. */
static void
fail_different(const story *now, const story *right, off_t at)
{
    size_t from = 0;
    for (size_t i = 0; i < now->bytes && now->text[i] == right->text[i]; i++)
        from = now->text[i] == '\n' ? i + 1 : from;
    fail_msg("byte %lld of the database changed, and it reads\n%.200s\ninstead of\n%.200s",
             (long long) at, now->text + from, right->text + from);
}

static void
expect_status(const fixture *f, esdm_status wanted)
{
    esdm_status status;
    story s = tell(f, &status);
    free(s.text);
    assert_int_equal(status, wanted);
}

/* Some containers with two datasets, lengths and a history, whose pages were merged once. */
static void
fill(const fixture *f)
{
    for (int i = 0; i < CONTAINERS + 3; i++) { /* the last three are listed alone */
        char name[8];
        (void) snprintf(name, sizeof name, i < CONTAINERS ? "c%d" : "d/%d", i);
        esdm_meta_committed committed = meta_create(f->store, name);
        uint64_t container = committed.container;
        uint64_t first = 0;
        for (uint64_t step = 0; step < 12; step++) {
            esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
            esdm_meta_new_page page = meta_page(1 + step % 2, 1 + (uint32_t) step, step);
            const esdm_meta_length length = {.dimension = 1, .length = step + 1};
            commit.container = container;
            commit.history = 100;
            commit.pages = &page;
            commit.npages = 1;
            commit.lengths = &length;
            commit.nlengths = 1;
            commit.merged = &first;
            commit.nmerged = step == 9;
            assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
            first = step == 0 ? committed.first_page : first;
        }
    }
}

/* ---- values --------------------------------------------------------------------------------- */

static void
test_sqlite__changed_values_are_ecorrupt(void **state)
{
    static const struct {
        const char *table, *columns, *change, *back;
    } kinds[] = {
        {"container",
         "container snapshot structure document_at next_page created_ns modified_ns raw_bytes "
         "stored_bytes fragments datasets sum",
         "%s + 1000000", "%s - 1000000"},
        {"container", "uuid", "'x' || %s", "substr(%s, 2)"},
        {"snapshot", "id parent structure document_at time_ns pruned sum", "%s + 1000000",
         "%s - 1000000"},
        {"snapshot", "writer message", "'x' || %s", "substr(%s, 2)"},
        {"page",
         "container dataset page records level absolute added removed raw_bytes stored_bytes sum",
         "%s + 1000000", "%s - 1000000"},
    };
    fixture *f = *state;
    skip_if(!sqlite_is_tested());
    fill(f);
    expect_status(f, ESDM_OK);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char columns[300];
        char *rest = columns;
        char *column = NULL;
        (void) snprintf(columns, sizeof columns, "%s", kinds[i].columns);
        while ((column = strsep(&rest, " ")) != NULL) {
            for (int back = 0; back < 2; back++) {
                char value[64];
                char sql[300];
                (void) snprintf(value, sizeof value, back ? kinds[i].back : kinds[i].change,
                                column);
                (void) snprintf(sql, sizeof sql, "UPDATE %s SET %s = %s", kinds[i].table, column,
                                value);
                sqlite_run(f, sql);
                expect_status(f, back ? ESDM_OK : ESDM_ECORRUPT);
            }
        }
    }
}

static esdm_status
list_pages(const fixture *f, const char *name, uint32_t dataset)
{
    esdm_meta_snapshot loaded = meta_pin(f->store, name, 0);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    esdm_status status = meta()->page_list(f->store, loaded.record.container, loaded.snapshot,
                                           dataset, tell_page, out, &place_error);
    assert_int_equal(fclose(out), 0);
    free(text);
    meta()->unpin(f->store, loaded.record.container, loaded.snapshot);
    return status;
}

static void
test_sqlite__damage_stays_where_it_is(void **state)
{
    fixture *f = *state;
    esdm_meta_container record;
    char sql[200];
    skip_if(!sqlite_is_tested());
    fill(f);
    assert_ok(meta()->container_find(f->store, "c1", &record, &place_error));
    (void) snprintf(sql, sizeof sql,
                    "UPDATE page SET records = records + 1 WHERE container = %" PRIu64
                    " AND dataset = 1",
                    record.container);
    sqlite_run(f, sql);
    assert_ok(list_pages(f, "c0", 0));
    assert_ok(list_pages(f, "c2", 0));
    assert_ok(list_pages(f, "c1", 2));
    assert_ok(list_pages(f, "c0", 2));
    assert_status(list_pages(f, "c1", 1), ESDM_ECORRUPT);
    assert_status(list_pages(f, "c1", 0), ESDM_ECORRUPT);
    assert_status(meta()->page_list(f->store, record.container, ESDM_META_EVERY_SNAPSHOT, 1, NULL,
                                    NULL, &place_error),
                  ESDM_ECORRUPT);
}

static void
test_sqlite__changes_keep_the_checksums_right(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed;
    uint64_t replaced = 0;
    uint64_t removed = 0;
    skip_if(!sqlite_is_tested());
    fill(f);
    assert_ok(meta()->container_move(f->store, "c1", "c9", false, NULL, &replaced, &place_error));
    assert_ok(meta()->container_move(f->store, "c9", "c1", false, NULL, &replaced, &place_error));
    assert_ok(meta()->container_move(f->store, "c2", "c1", true, NULL, &replaced, &place_error));
    assert_ok(meta()->container_move(f->store, "c1", "c2", true, NULL, &replaced, &place_error));
    assert_ok(meta()->container_remove(f->store, "c0", &removed, &place_error));
    assert_true(meta_is_garbage(f->store, removed));
    assert_ok(meta()->forget(f->store, removed, &place_error));
    assert_status(meta_append(f->store, removed, 1, &committed), ESDM_ECONFLICT);
    assert_ok(meta()->container_remove(f->store, "d/8", &removed, &place_error));
    assert_ok(meta()->forget(f->store, removed, &place_error)); /* the last one: a tombstone */
    assert_status(meta_append(f->store, removed, 1, &committed), ESDM_ECONFLICT);
    for (int i = 3; i < CONTAINERS; i++) {
        esdm_meta_container record;
        char name[8];
        (void) snprintf(name, sizeof name, "c%d", i);
        assert_ok(meta()->container_find(f->store, name, &record, &place_error));
        for (int k = 0; k < 40; k++) /* prunes */
            assert_ok(meta_append(f->store, record.container, 1, &committed));
        assert_true(meta_count_pages(f->store, record.container, committed.snapshot, 0) > 40);
        assert_true(meta_count_snapshots(f->store, name) >= 1);
    }
}

/* ---- bits ----------------------------------------------------------------------------------- */

/* Number of cells in the head of a node: it is not under any checksum, and fewer cells are as good
 * as others. esdm-fsck compares the sums. */
static bool
is_cell_count(off_t at)
{
    off_t in_node = at % 4096 - (at < 4096 ? 100 : 0);
    return in_node == 3 || in_node == 4;
}

static int
open_database(const fixture *f)
{
    char path[300];
    sqlite_path(f, "", path);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    return fd;
}

static size_t
flips(void)
{
    const char *size = getenv("ESDM_TEST_SIZE");
    if (size != NULL && strcmp(size, "long") == 0)
        return 200000;
    return size != NULL && strcmp(size, "quick") == 0 ? 500 : 3000;
}

static void
test_sqlite__flipped_bits_never_tell_another_story(void **state)
{
    fixture *f = *state;
    esdm_status status;
    struct stat found;
    size_t noticed = 0;
    uint64_t random = 1;
    skip_if(!sqlite_is_tested());
    fill(f);
    meta()->close(f->store);
    f->store = NULL;
    sqlite_run(f, "PRAGMA wal_checkpoint(TRUNCATE)");
    story right = tell(f, &status);
    assert_int_equal(status, ESDM_OK);
    int fd = open_database(f);
    assert_int_equal(fstat(fd, &found), 0);
    for (size_t i = 0; i < flips(); i++) {
        uint8_t byte;
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        off_t at = (off_t) ((random >> 16) % (uint64_t) found.st_size);
        if (is_cell_count(at))
            continue;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        uint8_t flipped = byte ^ (uint8_t) (1 << (random >> 61));
        assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
        story now = tell(f, &status);
        bool same = now.bytes == right.bytes && memcmp(now.text, right.text, now.bytes) == 0;
        if (status == ESDM_OK && !same)
            fail_different(&now, &right, at);
        noticed += status != ESDM_OK;
        free(now.text);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    (void) close(fd);
    assert_true(noticed > flips() / 20);
    expect_status(f, ESDM_OK);
    free(right.text);
}

/* ---- stores of older versions --------------------------------------------------------------- */

/* @param format "1", or "2" for a store in a migration. */
static void
make_old(const fixture *f, const char *format)
{
    char sql[300];
    (void) snprintf(sql, sizeof sql,
                    "ALTER TABLE container DROP COLUMN sum; ALTER TABLE snapshot DROP COLUMN sum;"
                    "ALTER TABLE page DROP COLUMN sum; DROP TABLE shared; DROP TABLE tag;"
                    "PRAGMA user_version = %s;",
                    format);
    sqlite_run(f, sql);
}

/* Makes the first node of a table or an index one of a kind that there is not. */
static void
damage_root_of(const fixture *f, const char *name)
{
    char sql[100];
    (void) snprintf(sql, sizeof sql, "SELECT rootpage FROM sqlite_master WHERE name = '%s'", name);
    off_t at = (off_t) (sqlite_number(f, sql) - 1) * 4096;
    int fd = open_database(f);
    assert_int_equal(pwrite(fd, "\xff", 1, at), 1);
    (void) close(fd);
}

static int64_t
format_of(const fixture *f)
{
    return sqlite_number(f, "PRAGMA user_version");
}

/* Closes the store and makes it old: without writing, all that it tells is as before. */
static void
expect_old_reads_alike(fixture *f, const char *format)
{
    esdm_status status;
    meta()->close(f->store);
    f->store = NULL;
    story right = tell(f, &status);
    make_old(f, format);
    story old = tell(f, &status);
    assert_int_equal(status, ESDM_OK);
    assert_string_equal(old.text, right.text);
    free(old.text);
    free(right.text);
}

static void
test_sqlite__older_format_is_read_and_upgraded(void **state)
{
    fixture *f = *state;
    esdm_meta_container record;
    esdm_meta_committed committed;
    skip_if(!sqlite_is_tested());
    fill(f);
    expect_old_reads_alike(f, "1");
    assert_int_equal(format_of(f), 1);
    void *reader = meta_open(f, true);
    f->store = meta_open(f, false);
    assert_ok(meta()->container_find(f->store, "c0", &record, &place_error));
    assert_int_equal(format_of(f), 1); /* until something is written */
    for (int i = 0; i < 40; i++) {
        assert_ok(meta()->container_find(f->store, "c0", &record, &place_error));
        assert_ok(meta_append(f->store, record.container, 1, &committed));
    }
    assert_ok(meta()->container_find(reader, "c0", &record, &place_error));
    assert_int_equal(record.snapshot, committed.snapshot);
    assert_true(meta_count_pages(reader, record.container, record.snapshot, 0) >= 40);
    assert_int_equal(format_of(f), 5);
    meta()->close(reader);
    meta()->close(f->store);
    f->store = meta_open(f, false);
    sqlite_run(f, "UPDATE container SET fragments = fragments + 1 WHERE name = 'c0'");
    assert_status(meta()->container_find(f->store, "c0", &record, &place_error), ESDM_ECORRUPT);
    assert_ok(meta()->container_find(f->store, "c1", &record, &place_error));
}

static bool
count_pair(const char *uuid, uint64_t container, void *user)
{
    (void) uuid, (void) container;
    ++*(size_t *) user;
    return true;
}

static void
test_sqlite__store_without_shared_packs_is_upgraded_by_a_clone(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed;
    size_t pairs = 0;
    esdm_meta_clone clone = {
        .from = "c0", .name = "clone", .uuid = "c10e0000000000000000000000000001"};
    skip_if(!sqlite_is_tested());
    fill(f);
    meta()->close(f->store);
    sqlite_run(f, "DROP TABLE shared; DROP TABLE tag; PRAGMA user_version = 3");
    void *reader = meta_open(f, true); /* from before the upgrade */
    assert_ok(meta()->shared_list(reader, 0, count_pair, &pairs, &place_error));
    assert_int_equal(pairs, 0);
    f->store = meta_open(f, false);
    assert_int_equal(format_of(f), 3);
    clone.container = meta_record(f, "c0").container;
    assert_ok(meta()->clone(f->store, &clone, &committed, &place_error));
    assert_int_equal(format_of(f), 5);
    assert_ok(meta()->shared_list(reader, 0, count_pair, &pairs, &place_error));
    assert_int_equal(pairs, 1);
    meta()->close(reader);
    /* programs of older versions that have it open cannot delete anything any more */
    assert_int_equal(sqlite_try(f, "DELETE FROM snapshot WHERE id = 0"), 1 /* SQLITE_ERROR */);
    assert_int_equal(sqlite_try(f, "UPDATE snapshot SET pruned = 1 WHERE id = 0"),
                     1 /* SQLITE_ERROR */);
    assert_int_equal(sqlite_try(f, "UPDATE page SET page = 1 WHERE page = 0"),
                     1 /* SQLITE_ERROR */);
    assert_int_equal(sqlite_try(f, "UPDATE container SET uuid = uuid"), 0);
    /* what a damaged row says may be too little: nobody is to remove anything */
    sqlite_run(f, "UPDATE shared SET sum = sum + 1");
    assert_status(meta()->shared_list(f->store, 0, count_pair, &pairs, &place_error),
                  ESDM_ECORRUPT);
    /* beside what is asked for, too: its key may have been that */
    assert_status(meta()->shared_of(f->store, "0", count_pair, &pairs, &place_error),
                  ESDM_ECORRUPT);
    assert_status(meta()->shared_list(f->store, 1, count_pair, &pairs, &place_error),
                  ESDM_ECORRUPT);
}

static void
test_sqlite__damaged_older_store_is_read_and_not_upgraded(void **state)
{
    fixture *f = *state;
    esdm_meta_container record;
    esdm_meta_committed committed;
    skip_if(!sqlite_is_tested());
    fill(f);
    meta()->close(f->store);
    f->store = NULL;
    make_old(f, "1");
    sqlite_run(f, "CREATE INDEX snapshot_spare ON snapshot(time_ns);" /* only writing needs it */
                  "PRAGMA wal_checkpoint(TRUNCATE)");
    damage_root_of(f, "snapshot_spare");
    f->store = meta_open(f, false);
    assert_ok(meta()->container_find(f->store, "c0", &record, &place_error));
    assert_true(meta_count_pages(f->store, record.container, record.snapshot, 0) > 5);
    assert_status(meta_append(f->store, record.container, 1, &committed), ESDM_ECORRUPT);
    assert_non_null(strstr(place_error.message, "upgrade"));
    assert_ok(meta()->container_find(f->store, "c0", &record, &place_error));
    assert_int_equal(format_of(f), 1);
}

static void
test_sqlite__older_format_in_a_migration(void **state)
{
    fixture *f = *state;
    esdm_meta_state found;
    char note[ESDM_META_NOTE_BYTES];
    skip_if(!sqlite_is_tested());
    fill(f);
    assert_ok(meta()->set_state(f->store, ESDM_META_LEAVING, "leaves", &place_error));
    expect_old_reads_alike(f, "2");
    meta()->close(meta_open(f, false)); /* it takes no commits, so nothing is changed */
    assert_int_equal(format_of(f), 2);
    f->place.config.migrating = true;
    f->store = meta_open(f, false);
    assert_ok(meta()->set_state(f->store, ESDM_META_LEAVING, "leaves", &place_error));
    assert_int_equal(format_of(f), 6);
    assert_ok(meta()->state(f->store, &found, note, &place_error));
    assert_int_equal(found, ESDM_META_LEAVING);
    assert_string_equal(note, "leaves");
    assert_ok(meta()->set_state(f->store, ESDM_META_ACTIVE, "", &place_error));
    assert_int_equal(format_of(f), 5);
    f->place.config.migrating = false;
    expect_status(f, ESDM_OK);
}

const struct CMUnitTest meta_sqlite_sums_tests[] = {
    WITH_STORE(test_sqlite__changed_values_are_ecorrupt),
    WITH_STORE(test_sqlite__damage_stays_where_it_is),
    WITH_STORE(test_sqlite__changes_keep_the_checksums_right),
    WITH_STORE(test_sqlite__flipped_bits_never_tell_another_story),
    WITH_STORE(test_sqlite__older_format_is_read_and_upgraded),
    WITH_STORE(test_sqlite__store_without_shared_packs_is_upgraded_by_a_clone),
    WITH_STORE(test_sqlite__damaged_older_store_is_read_and_not_upgraded),
    WITH_STORE(test_sqlite__older_format_in_a_migration),
};
const size_t meta_sqlite_sums_count =
    sizeof meta_sqlite_sums_tests / sizeof meta_sqlite_sums_tests[0];
