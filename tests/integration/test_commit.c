/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Commits and refreshes beside writers and readers in other threads and by other sessions. */

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "testing.h"

enum { WRITERS = 4, ROWS = 2000 };

typedef struct writer {
    esdm_dataset *dataset;
    pthread_t thread;
} writer;

static atomic_bool stop;

static void
write_row(esdm_dataset *dataset, uint64_t row, double value)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, &row, (uint64_t[]){1}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
}

static void
read_rows(esdm_dataset *dataset, uint64_t rows, double *values)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, NULL, &rows, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, ERR));
}

static esdm_dataset *
find(esdm_container *container, const char *name)
{
    return esdm_group_dataset_find(esdm_container_root(container), name);
}

/* ---- commits while threads write ------------------------------------------------------------ */

static void *
write_rows(void *user)
{
    writer *w = user;
    for (uint64_t row = 0; row < ROWS; row++) {
        write_row(w->dataset, row, (double) row + 1);
        if (row % 8 == 0)
            usleep(20);
    }
    return NULL;
}

static void *
commit_often(void *container)
{
    while (!atomic_load(&stop))
        ok(esdm_container_commit(container, NULL, ERR));
    return NULL;
}

static void
check_rows(esdm_session *session)
{
    static double values[ROWS];
    esdm_container *container;
    ok(esdm_container_open(session, "beside", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                           ERR));
    for (uint64_t i = 0; i < WRITERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%" PRIu64, i);
        read_rows(find(container, name), ROWS, values);
        for (uint64_t row = 0; row < ROWS; row++)
            if (values[row] != (double) row + 1)
                die("%s(%" PRIu64 ") is %g", name, row, values[row]);
    }
    ok(esdm_container_close(container, ERR));
}

static void
commits_beside_writers_lose_nothing(esdm_session *session)
{
    writer writers[WRITERS];
    pthread_t committer;
    esdm_container *container;
    esdm_dimension *time;
    ok(esdm_container_create(session, "beside", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &time, ERR));
    for (uint64_t i = 0; i < WRITERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%" PRIu64, i);
        ok(esdm_dataset_create(root, name, ESDM_TYPE_FLOAT64, 1, &time, &writers[i].dataset, ERR));
    }
    atomic_store(&stop, false);
    check(pthread_create(&committer, NULL, commit_often, container) == 0);
    for (uint64_t i = 0; i < WRITERS; i++)
        check(pthread_create(&writers[i].thread, NULL, write_rows, &writers[i]) == 0);
    for (uint64_t i = 0; i < WRITERS; i++)
        check(pthread_join(writers[i].thread, NULL) == 0);
    atomic_store(&stop, true);
    check(pthread_join(committer, NULL) == 0);
    ok(esdm_container_close(container, ERR));
    check_rows(session);
}

/* ---- refreshes while threads read ----------------------------------------------------------- */

static esdm_dataset *
create_rows(esdm_session *session, const char *name, uint64_t rows, esdm_container **ret_container)
{
    esdm_dimension *time;
    esdm_dataset *dataset;
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, ret_container, ERR));
    esdm_group *root = esdm_container_root(*ret_container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &time, ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &time, &dataset, ERR));
    for (uint64_t row = 0; row < rows; row++)
        write_row(dataset, row, (double) row);
    ok(esdm_container_commit(*ret_container, NULL, ERR));
    return dataset;
}

/* Each row that is inside the length has its value. */
static void *
read_often(void *user)
{
    static _Thread_local double values[ROWS];
    writer *w = user;
    while (!atomic_load(&stop)) {
        uint64_t rows = esdm_dimension_length(esdm_dataset_dimension(w->dataset, 0));
        read_rows(w->dataset, rows, values);
        for (uint64_t row = 0; row < rows; row++)
            if (values[row] != (double) row)
                die("row %" PRIu64 " of %" PRIu64 " is %g", row, rows, values[row]);
    }
    return NULL;
}

static void
refreshes_beside_readers_show_all_data(esdm_session *session, esdm_session *other)
{
    writer readers[WRITERS];
    esdm_container *written;
    esdm_container *read;
    esdm_dataset *dataset = create_rows(session, "refreshed", 64, &written);
    ok(esdm_container_open(other, "refreshed", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &read, ERR));
    atomic_store(&stop, false);
    for (uint64_t i = 0; i < WRITERS; i++) {
        readers[i].dataset = find(read, "v");
        check(pthread_create(&readers[i].thread, NULL, read_often, &readers[i]) == 0);
    }
    for (uint64_t row = 64; row < by_size(600, ROWS, ROWS); row++) {
        write_row(dataset, row, (double) row);
        ok(esdm_container_commit(written, NULL, ERR));
        ok(esdm_container_refresh(read, ERR));
    }
    atomic_store(&stop, true);
    for (uint64_t i = 0; i < WRITERS; i++)
        check(pthread_join(readers[i].thread, NULL) == 0);
    ok(esdm_container_close(read, ERR));
    ok(esdm_container_close(written, ERR));
}

/* ---- another writer commits in between ------------------------------------------------------ */

static void
a_commit_takes_over_what_others_appended(esdm_session *session, esdm_session *other)
{
    double values[3];
    esdm_container *first;
    esdm_container *second;
    esdm_dataset *dataset = create_rows(session, "shared", 1, &first);
    ok(esdm_container_open(other, "shared", ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &second, ERR));
    write_row(find(second, "v"), 2, 2);
    ok(esdm_container_commit(second, NULL, ERR));
    write_row(dataset, 1, 1);
    ok(esdm_container_commit(first, NULL, ERR));

    check(esdm_container_snapshot(first) == 3);
    check(esdm_dimension_length(esdm_dataset_dimension(dataset, 0)) == 3);
    check(!esdm_container_is_dirty(first));
    read_rows(dataset, 3, values);
    check(values[0] == 0 && values[1] == 1 && values[2] == 2);
    ok(esdm_container_close(first, ERR));
    ok(esdm_container_close(second, ERR));
}

/* ---- memory of a program that only writes --------------------------------------------------- */

static size_t
memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2(); /* all zero under sanitizers */
    return info.uordblks + info.hblkhd;
}

/* Who has made a container does not ask for what nobody else can have written; as soon as somebody
 * could, it does. */
static void
datasets_that_others_wrote_first_are_known(esdm_session *session, esdm_session *other)
{
    enum { DATASETS = 4 };
    const double fill = 9.9692099683868690e+36;
    const char *const names[DATASETS] = {"a", "b", "c", "d"};
    esdm_dataset *mine[DATASETS];
    esdm_container *container;
    esdm_container *second;
    esdm_dimension *dim;
    double value[2];
    ok(esdm_container_create(session, "untouched", ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "n", 2, &dim, ERR));
    for (int i = 0; i < DATASETS; i++)
        ok(esdm_dataset_create(esdm_container_root(container), names[i], ESDM_TYPE_FLOAT64, 1, &dim,
                               &mine[i], ERR));
    ok(esdm_container_commit(container, NULL, ERR));
    write_row(mine[0], 0, 1);
    ok(esdm_container_commit(container, NULL, ERR));

    ok(esdm_container_open(other, "untouched", ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &second,
                           ERR));
    for (int i = 1; i < DATASETS; i++)
        write_row(find(second, names[i]), 0, 10 + i);
    ok(esdm_container_close(second, ERR));

    read_rows(mine[1], 2, value); /* of its own snapshot */
    check(value[0] == fill && value[1] == fill);
    write_row(mine[3], 1, 20);
    ok(esdm_container_commit(container, NULL, ERR));
    for (int i = 1; i < DATASETS; i++) { /* 1 was asked for before, 2 never, 3 written to */
        read_rows(mine[i], 2, value);
        check(value[0] == 10 + i && value[1] == (i == 3 ? 20 : fill));
    }
    write_row(mine[2], 1, 30);
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open(other, "untouched", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &second, ERR));
    read_rows(find(second, "c"), 2, value);
    check(value[0] == 12 && value[1] == 30);
    ok(esdm_container_close(second, ERR));
}

static void
commits_do_not_fill_memory(esdm_session *session)
{
    enum { STEP = 4096, COMMITS = 30, OTHERS = 40 };
    static double values[STEP];
    size_t before = 0;
    esdm_container *container;
    esdm_dataset *dataset = create_rows(session, "memory", 1, &container);
    esdm_dimension *time = esdm_dataset_dimension(dataset, 0);
    for (int i = 0; i < OTHERS; i++) { /* that share the memory */
        char name[16];
        esdm_dataset *other;
        snprintf(name, sizeof name, "other%d", i);
        ok(esdm_dataset_create(esdm_container_root(container), name, ESDM_TYPE_FLOAT64, 1, &time,
                               &other, ERR));
    }
    for (uint64_t i = 0; i < COMMITS; i++) { /* each cell becomes a fragment */
        esdm_dataspace space;
        ok(esdm_dataspace_init(&space, 1, (uint64_t[]){i * 2 * STEP}, (uint64_t[]){STEP}, ERR));
        ok(esdm_dataspace_set_stride(&space, (uint64_t[]){2}, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, ERR));
        ok(esdm_container_commit(container, NULL, ERR));
        before = i == 2 ? memory_in_use() : before;
    }
    size_t after = memory_in_use();
    if (after > before + (4u << 20))
        die("%zu KiB more are in use", (after - before) >> 10);
    ok(esdm_container_close(container, ERR));
}

/* Small fragments of many datasets stay in memory until the commit only as far as there is room. */
static void
small_fragments_do_not_fill_memory(esdm_session *session)
{
    enum { DATASETS = 64, RECORDS = 2000, BYTES = 1000 };
    static const int8_t values[BYTES];
    /* Targets that send parts of packs have buffers too, however slow the server is. */
    size_t most = (getenv("ESDM_TEST_SITE") ? 112u : 56u) << 20;
    esdm_container *container;
    esdm_dimension *dim;
    esdm_dataset *datasets[DATASETS];
    ok(esdm_container_create(session, "inline", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "n", ESDM_UNLIMITED, &dim, ERR));
    for (int i = 0; i < DATASETS; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        ok(esdm_dataset_create(root, name, ESDM_TYPE_INT8, 1, &dim, &datasets[i], ERR));
    }
    size_t before = memory_in_use();
    for (uint64_t record = 0; record < RECORDS; record++) {
        for (int i = 0; i < DATASETS; i++) {
            uint64_t at = record * (BYTES + 1); /* with a gap: each record is a fragment */
            esdm_dataspace space;
            ok(esdm_dataspace_init(&space, 1, &at, (uint64_t[]){BYTES}, ERR));
            ok(esdm_write(datasets[i], &space, ESDM_TYPE_INT8, values, NULL, ERR));
        }
    }
    size_t after = memory_in_use();
    if (after > before + most)
        die("%zu KiB more are in use", (after - before) >> 10);
    esdm_container_discard(container);
}

/* ---- forked children ------------------------------------------------------------------------ */

/* A child that cleans up what it inherited takes nothing from its parent. */
static void
a_child_cannot_harm_its_parent(void)
{
    enum { CELLS = 1 << 18 };
    static double values[CELLS];
    esdm_session *session = open_session();
    esdm_container *container;
    esdm_dataset *dataset = create_rows(session, "forked", 1, &container);
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){CELLS}, ERR));
    for (size_t i = 0; i < CELLS; i++)
        values[i] = (double) i;
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, ERR));
    read_rows(dataset, CELLS, values); /* has woken the pool */
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        fails(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, ERR), ESDM_EINVAL,
              "before fork()");
        fails(esdm_container_close(container, ERR), ESDM_EINVAL, "before fork()");
        esdm_session_close(session);
        _exit(0);
    }
    wait_children(&child, 1);
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open(session, "forked", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                           ERR));
    read_rows(find(container, "v"), CELLS, values);
    for (size_t i = 0; i < CELLS; i++)
        check(values[i] == (double) i);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* Selections whose bytes do not fit in 63 bits are refused, and harm nothing. */
static void
more_bytes_than_there_are(esdm_session *session)
{
    const uint64_t sizes[] = {UINT64_C(1) << 60, UINT64_C(1) << 61, INT64_MAX};
    double value = 5;
    esdm_container *container;
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    esdm_dataspace space;
    ok(esdm_container_create(session, "huge", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "t", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "x", 2, &dims[1], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 2, dims, &dataset, ERR));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ok(esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){sizes[i], 1}, ERR));
        fails(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR), ESDM_EINVAL,
              "2^63");
        fails(esdm_read(dataset, &space, ESDM_TYPE_INT8, &value, NULL, ERR), ESDM_EINVAL, "2^63");
    }
    ok(esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){1, 1}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open(session, "huge", ESDM_OPEN_READ, 0, &container, ERR));
    dataset = find(container, "v");
    check(esdm_dimension_length(esdm_dataset_dimension(dataset, 0)) == 1);
    ok(esdm_container_close(container, ERR));
}

/* A last commit that fails leaves a handle that still reads; one that does not is as any other, for
 * everybody else. */
static void
last_commits_keep_what_failed(esdm_session *session, esdm_session *other)
{
    enum { CELLS = 3 };
    double values[CELLS] = {1, 2, 3};
    esdm_container *container, *second;
    esdm_dimension *dimension;
    esdm_dataset *dataset;
    ok(esdm_container_create(session, "last", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "x", CELLS, &dimension, ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &dimension, &dataset, ERR));
    for (uint64_t row = 0; row < CELLS; row++)
        write_row(dataset, row, values[row]);
    ok(esdm_container_commit_last(container, "the first", ERR));
    check(esdm_container_snapshot(container) == 1);
    check(!esdm_container_is_dirty(container));
    esdm_container_discard(container);
    ok(esdm_container_open(session, "last", ESDM_OPEN_WRITE, 0, &container, ERR));
    ok(esdm_container_open(other, "last", ESDM_OPEN_WRITE, 0, &second, ERR));
    ok(esdm_dimension_create(esdm_container_root(second), "y", 2, &dimension, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "z", 2, &dimension, ERR));
    ok(esdm_container_commit_last(second, NULL, ERR));
    esdm_container_discard(second);
    fails(esdm_container_commit_last(container, NULL, ERR), ESDM_ECONFLICT, "structure");
    memset(values, 0, sizeof values);
    read_rows(find(container, "v"), CELLS, values);
    check(values[0] == 1 && values[1] == 2 && values[2] == 3);
    esdm_container_discard(container);
    ok(esdm_container_open(session, "last", ESDM_OPEN_WRITE, 0, &container, ERR));
    check(esdm_container_snapshot(container) == 2);
    write_row(find(container, "v"), 1, 7);
    ok(esdm_container_commit_last(container, NULL, ERR));
    ok(esdm_container_open(other, "last", ESDM_OPEN_READ, 0, &second, ERR));
    read_rows(find(second, "v"), CELLS, values);
    check(values[0] == 1 && values[1] == 7 && values[2] == 3);
    esdm_container_discard(second);
    esdm_container_discard(container);
}

static bool
note_oldest(const esdm_snapshot_info *info, void *user)
{
    uint64_t *oldest = user;
    if (*oldest == 0 || info->snapshot < *oldest)
        *oldest = info->snapshot;
    return true;
}

/* What takes a branch's place is committed under a name of its own first: when it cannot have the
 * branch's then, the handle reads on what it has committed, whatever others make of the store. */
static void
refused_branches_leave_handles_that_read(esdm_session *session, esdm_session *other)
{
    enum { CELLS = 3 };
    double values[CELLS] = {1, 2, 3};
    esdm_container *container;
    esdm_dimension *dimension;
    esdm_dataset *dataset;
    uint64_t snapshot;
    ok(esdm_container_create(session, "base", ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "y", 2, &dimension, ERR));
    ok(esdm_container_close(container, ERR));
    ok(esdm_branch_create(session, "base", "b", &snapshot, ERR));
    ok(esdm_container_create(session, "base@branch:b", ESDM_CREATE_REPLACE, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "x", CELLS, &dimension, ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &dimension, &dataset, ERR));
    for (uint64_t row = 0; row < CELLS; row++)
        write_row(dataset, row, values[row]);
    esdm_container_info info;
    ok(esdm_container_stat(other, "base@branch:b", &info, ERR));
    ok(esdm_container_seal(other, "base@branch:b", info.snapshot, "no more", ERR));
    fails(esdm_container_commit_last(container, NULL, ERR), ESDM_EACCES, "sealed");
    for (int again = 0; again < 20; again++) {
        esdm_container *second;
        ok(esdm_container_open(other, esdm_container_name(container), ESDM_OPEN_WRITE, 0, &second,
                               ERR));
        write_row(find(second, "v"), 1, 7);
        ok(esdm_container_close(second, ERR));
    }
    ok(esdm_gc(other, &(esdm_gc_options){.any_age = true}, NULL, ERR));
    uint64_t oldest = 0;
    ok(esdm_container_snapshots(other, esdm_container_name(container), note_oldest, &oldest, ERR));
    check(oldest == 1);
    memset(values, 0, sizeof values);
    read_rows(find(container, "v"), CELLS, values);
    check(values[0] == 1 && values[1] == 2 && values[2] == 3);
    esdm_container_discard(container);
}

int
main(void)
{
    make_site();
    a_child_cannot_harm_its_parent();
    esdm_session *session = open_session();
    esdm_session *other = open_session();
    commits_beside_writers_lose_nothing(session);
    refreshes_beside_readers_show_all_data(session, other);
    a_commit_takes_over_what_others_appended(session, other);
    datasets_that_others_wrote_first_are_known(session, other);
    commits_do_not_fill_memory(session);
    small_fragments_do_not_fill_memory(session);
    more_bytes_than_there_are(session);
    last_commits_keep_what_failed(session, other);
    refused_branches_leave_handles_that_read(session, other);
    esdm_session_close(other);
    esdm_session_close(session);
    return 0;
}
