/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Containers that begin with a snapshot of another one: both share packs, and whatever becomes of
 * one of them changes nothing of the other. */

#include <dirent.h>

#include "esdm/upkeep.h"

enum { ROWS = 16, COLUMNS = 3000 };

#include "rows.h"

static char config[2048];

static void
make_this_site(const char *replaced)
{
    const char *tmp = getenv("TMPDIR");
    if (test_folder[0] == '\0') {
        snprintf(test_folder, sizeof test_folder, "%s/esdm-test.XXXXXX", tmp ? tmp : "/tmp");
        check(mkdtemp(test_folder) != NULL);
        test_owner = getpid();
        atexit(remove_test_folder);
    }
    snprintf(config, sizeof config,
             "{\"targets\": [{\"name\": \"fast\", \"plugin\": \"posix\", \"directory\": "
             "\"%s/fast\"}, {\"name\": \"disk\", \"plugin\": \"posix\", \"directory\": "
             "\"%s/disk\"}], \"metadata\": {\"plugin\": \"sqlite\", \"directory\": \"%s/meta\"}, "
             "\"history\": 4, "
             "\"replaced\": {\"keep\": \"%s\"}}",
             test_folder, test_folder, test_folder, replaced);
    esdm_site_options options = {.config_json = config};
    ok(esdm_site_create(&options, ERR));
}

static void
remove_this_site(void)
{
    esdm_site_options options = {.config_json = config, .remove_data = true};
    ok(esdm_site_remove(&options, ERR));
}

static esdm_session *
open_here(void)
{
    esdm_session *session;
    const esdm_session_options options = {.config_json = config};
    ok(esdm_session_open(&options, &session, ERR));
    return session;
}

/* All rows have their value plus `more`, in one commit for each of four rows. */
static void
make(esdm_session *session, const char *name, int32_t more)
{
    esdm_container *container;
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "row", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &dims[1], ERR));
    ok(esdm_dataset_create(root, "a", ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    for (uint64_t row = 0; row < ROWS; row++) {
        write_row(container, row, (int32_t) row + more);
        if (row % 4 == 3)
            ok(esdm_container_commit(container, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
}

static void
change(esdm_session *session, const char *name, uint64_t row, int32_t value)
{
    esdm_container *container;
    ok(esdm_container_open(session, name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &container, ERR));
    write_row(container, row, value);
    ok(esdm_container_close(container, ERR));
}

/* The values of the rows; the last one is `last`, of row ROWS when there is one more. */
static void
expect_rows(esdm_session *session, const char *name, const int32_t *values, size_t count)
{
    esdm_container *container;
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, ERR));
    for (size_t row = 0; row < count; row++)
        read_row(container, row, values[row]);
    ok(esdm_container_close(container, ERR));
}

static void
fill_rows(int32_t *values, int32_t more)
{
    for (int i = 0; i <= ROWS; i++)
        values[i] = i + more;
}

/* Packs of data: their number; moves them aside and back. */
static size_t
packs(const char *move_from, const char *move_to)
{
    char command[1400];
    FILE *pipe;
    size_t count = 0;
    snprintf(command, sizeof command,
             "cd '%s' && find fast disk -type f ! -name '*.json' ! -name '000000000000*' "
             "-name '%s' | while read -r f; do echo \"$f\"; %s%s%s; done",
             test_folder, move_from != NULL ? move_from : "*",
             move_to != NULL ? "mv \"$f\" \"" : "", move_to != NULL ? move_to : ":",
             move_to != NULL ? "\"" : "");
    pipe = popen(command, "r");
    check(pipe != NULL);
    for (char line[600]; fgets(line, sizeof line, pipe) != NULL;)
        count++;
    check(pclose(pipe) == 0);
    return count;
}

static void
collect(esdm_session *session, uint64_t expected_packs)
{
    const esdm_gc_options options = {.any_age = true, .replaced = true};
    esdm_gc_result result;
    ok(esdm_gc(session, &options, &result, ERR));
    check(result.failed == 0);
    if (expected_packs != UINT64_MAX && result.packs != expected_packs)
        die("esdm_gc removed %" PRIu64 " packs, not %" PRIu64, result.packs, expected_packs);
}

static void
expect_sound(esdm_session *session)
{
    const esdm_fsck_options options = {.data = true};
    esdm_fsck_result result;
    ok(esdm_fsck(session, &options, &result, ERR));
    check(result.problems == 0);
}

/* ---- what it costs ------------------------------------------------------------------------ */

/* While the packs are not there: no byte of data is read or written. */
static void
test_clone_touches_no_data(void)
{
    int32_t values[ROWS + 1];
    esdm_container_info a, b;
    fill_rows(values, 1);
    make_this_site("0");
    esdm_session *session = open_here();
    make(session, "a", 1);
    size_t before = packs(NULL, NULL);
    check(before > 0);
    check(packs("*", "$f.aside") == before);
    ok(esdm_container_clone(session, "a", "b", false, ERR));
    check(packs("*.aside", "${f%.aside}") == before);
    check(packs(NULL, NULL) == before);
    ok(esdm_container_stat(session, "a", &a, ERR));
    ok(esdm_container_stat(session, "b", &b, ERR));
    check(a.snapshot == b.snapshot && a.raw_bytes == b.raw_bytes && a.fragments == b.fragments &&
          a.stored_bytes == b.stored_bytes && a.datasets == b.datasets);
    expect_rows(session, "a", values, ROWS);
    expect_rows(session, "b", values, ROWS);
    expect_sound(session);
    collect(session, 0);
    esdm_session_close(session);
    remove_this_site();
}

/* ---- each goes on alone ------------------------------------------------------------------- */

static void
test_clone_each_side_goes_on_alone(void)
{
    int32_t a[ROWS + 1], b[ROWS + 1], c[ROWS + 1];
    fill_rows(a, 0);
    fill_rows(b, 0);
    make_this_site("0");
    esdm_session *session = open_here();
    make(session, "a", 0);
    ok(esdm_container_clone(session, "a", "b", false, ERR));
    for (uint64_t i = 0; i < 12; i++) { /* overwrites all that `a` and `b` had in common there */
        change(session, "a", i % 4, a[i % 4] = (int32_t) (100 + i));
        change(session, "b", 4 + i % 4, b[4 + i % 4] = (int32_t) (200 + i));
    }
    change(session, "b", ROWS, b[ROWS] = 300);
    memcpy(c, b, sizeof c);
    ok(esdm_container_clone(session, "b", "sub/c", false, ERR));
    usleep(600000); /* young snapshots are kept */
    change(session, "a", 0, a[0] = 99);
    change(session, "b", 0, b[0] = 98);
    collect(session, UINT64_MAX);
    expect_rows(session, "a", a, ROWS);
    expect_rows(session, "b", b, ROWS + 1);
    expect_rows(session, "sub/c", c, ROWS + 1);
    expect_sound(session);
    ok(esdm_container_erase(session, "a", ERR));
    collect(session, UINT64_MAX);
    expect_rows(session, "b", b, ROWS + 1);
    ok(esdm_container_erase(session, "b", ERR));
    collect(session, UINT64_MAX);
    expect_rows(session, "sub/c", c, ROWS + 1);
    expect_sound(session);
    ok(esdm_container_erase(session, "sub/c", ERR));
    collect(session, UINT64_MAX);
    if (packs(NULL, NULL) != 0)
        die("%zu packs are left that nobody needs", packs(NULL, NULL));
    esdm_session_close(session);
    remove_this_site();
}

/* A reader that has the clone open as its source goes keeps what it reads. */
static void
test_clone_open_handles_stay_whole(void)
{
    int32_t values[ROWS + 1];
    esdm_container *container;
    fill_rows(values, 5);
    make_this_site("0");
    esdm_session *session = open_here();
    make(session, "a", 5);
    ok(esdm_container_clone(session, "a", "b", false, ERR));
    ok(esdm_container_open(session, "b", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, ERR));
    ok(esdm_container_erase(session, "a", ERR));
    ok(esdm_container_erase(session, "b", ERR));
    collect(session, 0);
    esdm_dataspace space;
    int32_t data[COLUMNS];
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "a");
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){7, 0}, (uint64_t[]){1, COLUMNS}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    check(data[0] == (7 + 5) * 10000);
    ok(esdm_container_close(container, ERR));
    collect(session, UINT64_MAX);
    check(packs(NULL, NULL) == 0);
    esdm_session_close(session);
    remove_this_site();
}

/* ---- names -------------------------------------------------------------------------------- */

static void
test_clone_of_a_snapshot_and_back(void)
{
    int32_t old[ROWS + 1], new[ROWS + 1];
    esdm_container_info info;
    fill_rows(old, 0);
    fill_rows(new, 0);
    make_this_site("1d");
    esdm_session *session = open_here();
    make(session, "a", 0);
    ok(esdm_container_stat(session, "a", &info, ERR));
    change(session, "a", 3, new[3] = 77);
    char name[40];
    snprintf(name, sizeof name, "a@%" PRIu64, info.snapshot);
    ok(esdm_container_clone(session, name, "b", false, ERR));
    expect_rows(session, "b", old, ROWS);
    fails(esdm_container_clone(session, name, "a", false, ERR), ESDM_EEXIST, "exists");
    ok(esdm_container_clone(session, name, "a", true, ERR));
    expect_rows(session, "a", old, ROWS);
    change(session, "a", 4, old[4] = 55);
    expect_rows(session, "a", old, ROWS);
    collect(session, UINT64_MAX); /* what it was goes */
    expect_rows(session, "a", old, ROWS);
    expect_sound(session);
    esdm_session_close(session);
    remove_this_site();
}

static void
test_clone_refuses(void)
{
    esdm_container_info info;
    make_this_site("0");
    esdm_session *session = open_here();
    make(session, "a", 0);
    make(session, "b/c", 0);
    fails(esdm_container_clone(session, "a", "a", true, ERR), ESDM_EINVAL, "itself");
    fails(esdm_container_clone(session, "a", "/a/", false, ERR), ESDM_EINVAL, "");
    fails(esdm_container_clone(session, "nowhere", "x", false, ERR), ESDM_ENOENT, "nowhere");
    fails(esdm_container_clone(session, "a@77", "x", false, ERR), ESDM_ENOENT, "snapshot '77'");
    fails(esdm_container_clone(session, "a", "b/c", false, ERR), ESDM_EEXIST, "b/c");
    fails(esdm_container_clone(session, "a", "b", true, ERR), ESDM_EEXIST, "b/c");
    fails(esdm_container_clone(session, "a", "a/b", true, ERR), ESDM_EEXIST, "a");
    fails(esdm_container_clone(session, "?x=1", "x", false, ERR), ESDM_ENOTSUP, "query");
    fails(esdm_container_clone(session, "a", "?x=1", false, ERR), ESDM_EACCES, "query");
    fails(esdm_container_clone(NULL, "a", "x", false, ERR), ESDM_EINVAL, "session");
    fails(esdm_container_clone(session, "a", NULL, false, ERR), ESDM_EINVAL, "to");
    make(session, "sealed", 7);
    ok(esdm_container_stat(session, "sealed", &info, ERR));
    ok(esdm_container_seal(session, "sealed", info.snapshot, "by the tests", ERR));
    fails(esdm_container_clone(session, "a", "sealed", true, ERR), ESDM_EACCES, "sealed");
    ok(esdm_container_clone(session, "sealed", "free", false, ERR));
    change(session, "free", 1, 3); /* the clone is none that is sealed */
    esdm_session_close(session);
    esdm_session *reader;
    const esdm_session_options options = {.config_json = config, .read_only = true};
    ok(esdm_session_open(&options, &reader, ERR));
    fails(esdm_container_clone(reader, "a", "x", false, ERR), ESDM_EACCES, "read-only");
    esdm_session_close(reader);
    remove_this_site();
}

/* ---- stored elsewhere --------------------------------------------------------------------- */

static void
test_clone_survives_a_drain_of_its_source(void)
{
    int32_t a[ROWS + 1], b[ROWS + 1];
    fill_rows(a, 0);
    fill_rows(b, 0);
    make_this_site("0");
    esdm_session *session = open_here();
    make(session, "a", 0);
    ok(esdm_container_clone(session, "a", "b", false, ERR));
    change(session, "a", 1, a[1] = 41);
    change(session, "b", 2, b[2] = 42);
    const char *containers[] = {"a"};
    const char *from[] = {"fast"};
    const esdm_drain_options options = {
        .containers = containers, .ncontainers = 1, .from = from, .nfrom = 1};
    esdm_drain_result result;
    ok(esdm_drain(session, &options, &result, ERR));
    expect_rows(session, "a", a, ROWS);
    expect_rows(session, "b", b, ROWS);
    expect_sound(session);
    collect(session, UINT64_MAX);
    expect_rows(session, "a", a, ROWS);
    expect_rows(session, "b", b, ROWS);
    esdm_session_close(session);
    remove_this_site();
}

int
main(void)
{
    test_clone_touches_no_data();
    test_clone_each_side_goes_on_alone();
    test_clone_open_handles_stay_whole();
    test_clone_of_a_snapshot_and_back();
    test_clone_refuses();
    test_clone_survives_a_drain_of_its_source();
    return 0;
}
