/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Many threads in one dataset, in one container and in one session; readers beside a writer. */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "testing.h"

enum { THREADS = 8, ROWS = 512, COLUMNS = 768, POINTS = 4096 };

typedef struct job {
    esdm_session *session;
    esdm_dataset *dataset;
    uint64_t number;
    pthread_t thread;
} job;

static void
run_threads(job *jobs, size_t count, void *(*body)(void *) )
{
    for (size_t i = 0; i < count; i++) {
        jobs[i].number = i;
        check(pthread_create(&jobs[i].thread, NULL, body, &jobs[i]) == 0);
    }
    for (size_t i = 0; i < count; i++)
        check(pthread_join(jobs[i].thread, NULL) == 0);
}

static esdm_dataset *
define(esdm_container *container, const char *name, uint64_t rows, uint64_t columns)
{
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    char dim[64];
    esdm_group *root = esdm_container_root(container);
    snprintf(dim, sizeof dim, "%s_row", name);
    ok(esdm_dimension_create(root, dim, rows, &dims[0], ERR));
    snprintf(dim, sizeof dim, "%s_column", name);
    ok(esdm_dimension_create(root, dim, columns, &dims[1], ERR));
    ok(esdm_dataset_create(root, name, ESDM_TYPE_FLOAT64, 2, dims, &dataset, ERR));
    return dataset;
}

static double
cell(uint64_t row, uint64_t column)
{
    return (double) row * 1e4 + (double) column;
}

/* Thread i writes the rows i, i + THREADS, …: large puts and single cells. */
static void *
write_rows(void *user)
{
    job *j = user;
    double line[COLUMNS];
    esdm_dataspace space;
    for (uint64_t row = j->number; row < ROWS; row += THREADS) {
        for (uint64_t k = 0; k < COLUMNS; k++)
            line[k] = cell(row, k);
        uint64_t step = row % 16 == 0 ? 1 : row % 3 == 0 ? COLUMNS / 4 : COLUMNS;
        for (uint64_t k = 0; k < COLUMNS; k += step) {
            ok(esdm_dataspace_init(&space, 2, (uint64_t[]){row, k}, (uint64_t[]){1, step}, ERR));
            ok(esdm_write(j->dataset, &space, ESDM_TYPE_FLOAT64, line + k, NULL, ERR));
        }
    }
    return NULL;
}

static void *
read_columns(void *user)
{
    job *j = user;
    double column[ROWS];
    esdm_dataspace space;
    for (uint64_t k = j->number; k < COLUMNS; k += THREADS * 4) {
        ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, k}, (uint64_t[]){ROWS, 1}, ERR));
        ok(esdm_read(j->dataset, &space, ESDM_TYPE_FLOAT64, column, NULL, ERR));
        for (uint64_t row = 0; row < ROWS; row++)
            if (column[row] != cell(row, k))
                die("(%" PRIu64 ", %" PRIu64 ") is %g", row, k, column[row]);
    }
    return NULL;
}

static void
test_threads__write_and_read_one_dataset(void)
{
    job jobs[THREADS];
    esdm_session *session = open_session();
    esdm_container *container;
    ok(esdm_container_create(session, "threads/one", ESDM_CREATE_NEW, &container, ERR));
    esdm_dataset *dataset = define(container, "v", ROWS, COLUMNS);
    for (int i = 0; i < THREADS; i++)
        jobs[i].dataset = dataset;
    run_threads(jobs, THREADS, write_rows);
    run_threads(jobs, THREADS, read_columns);
    ok(esdm_container_close(container, ERR));

    ok(esdm_container_open(session, "threads/one", ESDM_OPEN_READ, 0, &container, ERR));
    for (int i = 0; i < THREADS; i++)
        jobs[i].dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    run_threads(jobs, THREADS, read_columns);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* Appends to an unlimited dimension from all threads; every record must be there. */
static void *
append_records(void *user)
{
    job *j = user;
    esdm_dataspace space;
    for (uint64_t i = j->number; i < POINTS; i += THREADS) {
        int64_t value = (int64_t) i * 3;
        ok(esdm_dataspace_init(&space, 1, &i, (uint64_t[]){1}, ERR));
        ok(esdm_write(j->dataset, &space, ESDM_TYPE_INT64, &value, NULL, ERR));
    }
    return NULL;
}

static void
test_threads__append_records(void)
{
    static int64_t values[POINTS];
    job jobs[THREADS];
    esdm_session *session = open_session();
    esdm_container *container;
    esdm_dimension *time;
    esdm_dataset *dataset;
    esdm_dataspace space;
    ok(esdm_container_create(session, "threads/append", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &time, ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT64, 1, &time, &dataset, ERR));
    for (int i = 0; i < THREADS; i++)
        jobs[i].dataset = dataset;
    run_threads(jobs, THREADS, append_records);
    check(esdm_dimension_length(time) == POINTS);
    ok(esdm_container_close(container, ERR));

    ok(esdm_container_open(session, "threads/append", ESDM_OPEN_READ, 0, &container, ERR));
    dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){POINTS}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT64, values, NULL, ERR));
    for (int64_t i = 0; i < POINTS; i++)
        check(values[i] == i * 3);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* Each thread creates, fills and removes containers of its own. */
static void *
live_alone(void *user)
{
    job *j = user;
    double line[64];
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){8, 8}, ERR));
    for (int round = 0; round < 8; round++) {
        char name[64];
        esdm_container *container;
        snprintf(name, sizeof name, "threads/own-%" PRIu64 "-%d", j->number, round);
        ok(esdm_container_create(j->session, name, ESDM_CREATE_NEW, &container, ERR));
        esdm_dataset *dataset = define(container, "v", 8, 8);
        for (int i = 0; i < 64; i++)
            line[i] = (double) (j->number * 100) + i;
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, line, NULL, ERR));
        ok(esdm_container_close(container, ERR));
        ok(esdm_container_open(j->session, name, ESDM_OPEN_READ, 0, &container, ERR));
        dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
        memset(line, 0, sizeof line);
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, line, NULL, ERR));
        for (int i = 0; i < 64; i++)
            check(line[i] == (double) (j->number * 100) + i);
        ok(esdm_container_close(container, ERR));
        if (round % 2)
            ok(esdm_container_remove(j->session, name, ERR));
    }
    return NULL;
}

static bool
count_container(const esdm_container_info *info, void *user)
{
    (void) info;
    ++*(int *) user;
    return true;
}

static void
test_threads__separate_containers_in_one_session(void)
{
    job jobs[THREADS];
    int found = 0;
    esdm_session *session = open_session();
    for (int i = 0; i < THREADS; i++)
        jobs[i].session = session;
    run_threads(jobs, THREADS, live_alone);
    ok(esdm_container_list(session, "threads", count_container, &found, ERR));
    check(found == 2 + THREADS * 4); /* "one", "append" and half of the own ones */
    esdm_session_close(session);
}

static atomic_bool writer_done;

/* Rewrites all cells with one generation after the other, each committed. */
static void *
write_generations(void *user)
{
    job *j = user;
    double field[64 * 64];
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){64, 64}, ERR));
    for (int generation = 2; generation <= 100; generation++) {
        for (int i = 0; i < 64 * 64; i++)
            field[i] = generation;
        ok(esdm_write(j->dataset, &space, ESDM_TYPE_FLOAT64, field, NULL, ERR));
        ok(esdm_container_commit(esdm_group_container(esdm_dataset_group(j->dataset)), NULL, ERR));
    }
    atomic_store(&writer_done, true);
    return NULL;
}

/* Sees one generation per snapshot, and never an older one than before. */
static void *
read_generations(void *user)
{
    job *j = user;
    double field[64 * 64];
    double last = 0;
    esdm_container *container;
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){64, 64}, ERR));
    ok(esdm_container_open(j->session, "threads/generations", ESDM_OPEN_READ, 0, &container, ERR));
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    bool done = false;
    while (!done) {
        done = atomic_load(&writer_done);
        ok(esdm_container_refresh(container, ERR));
        for (int again = 0; again < 2; again++) {
            ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, field, NULL, ERR));
            check(again ? field[0] == last : field[0] >= last);
            last = field[0];
            for (int i = 0; i < 64 * 64; i++)
                check(field[i] == last);
        }
    }
    check(last == 100);
    ok(esdm_container_close(container, ERR));
    return NULL;
}

static void *
write_or_read(void *user)
{
    job *j = user;
    return j->number == 0 ? write_generations(user) : read_generations(user);
}

static void
test_reader__sees_whole_snapshots_while_a_writer_commits(void)
{
    job jobs[4];
    double field[64 * 64];
    esdm_container *container;
    esdm_dataspace space;
    esdm_session *session = open_session();
    for (int i = 0; i < 64 * 64; i++)
        field[i] = 1;
    ok(esdm_container_create(session, "threads/generations", ESDM_CREATE_NEW, &container, ERR));
    esdm_dataset *dataset = define(container, "v", 64, 64);
    ok(esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){64, 64}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, field, NULL, ERR));
    ok(esdm_container_commit(container, "first", ERR));
    for (int i = 0; i < 4; i++) {
        jobs[i].session = session;
        jobs[i].dataset = dataset;
    }
    run_threads(jobs, 4, write_or_read);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* ---- readers of the handle that commits ---------------------------------------------------- */

enum { CELLS = 1 << 20, SCATTERED = 700, SETS_BESIDE = 60 };

static atomic_bool over;

static void *
read_cells(void *user)
{
    const job *j = user;
    uint64_t state = j->number + 1;
    while (!atomic_load(&over)) {
        double value;
        uint64_t at = next_random(&state) % CELLS;
        esdm_dataspace space;
        ok(esdm_dataspace_init(&space, 1, &at, (uint64_t[]){1}, ERR));
        ok(esdm_read(j->dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
        check(value == 0 || value == (double) at);
    }
    return NULL;
}

/* Commits merge index pages which readers of the same handle drop to keep memory bounded. */
static void
test_threads__read_the_handle_that_commits(void)
{
    job readers[3] = {0};
    esdm_session_options options = {.config_path = getenv("ESDM_CONFIG")};
    esdm_session *session;
    esdm_container *container;
    esdm_dimension *dimension;
    esdm_dataset *beside;
    ok(esdm_session_open(&options, &session, ERR));
    ok(esdm_container_create(session, "read/beside", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "cell", CELLS, &dimension, ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &dimension, &readers[0].dataset, ERR));
    ok(esdm_dataset_set_fill(readers[0].dataset, &(double){0}, ERR));
    for (int i = 0; i < SETS_BESIDE; i++) { /* which share the memory for index pages */
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        ok(esdm_dataset_create(root, name, ESDM_TYPE_INT8, 1, &dimension, &beside, ERR));
    }
    ok(esdm_container_commit(container, NULL, ERR));
    for (int i = 0; i < 3; i++) {
        readers[i].dataset = readers[0].dataset;
        readers[i].number = (uint64_t) i;
        check(pthread_create(&readers[i].thread, NULL, read_cells, &readers[i]) == 0);
    }
    uint64_t state = 7;
    for (uint64_t k = 0; k < by_size(80, 150, 600); k++) {
        for (int i = 0; i < SCATTERED; i++) {
            uint64_t at = next_random(&state) % CELLS;
            double value = (double) at;
            esdm_dataspace space;
            ok(esdm_dataspace_init(&space, 1, &at, (uint64_t[]){1}, ERR));
            ok(esdm_write(readers[0].dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
        }
        ok(esdm_container_commit(container, NULL, ERR));
    }
    atomic_store(&over, true);
    for (int i = 0; i < 3; i++)
        check(pthread_join(readers[i].thread, NULL) == 0);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* ---- a commit that keeps why fragments are cut for readers ----------------------------------- */

enum { STEPS = 384, POINTS_OF_STEP = 12 << 10 };

static esdm_dataset *
define_series(esdm_container *container)
{
    esdm_dataset *dataset = define(container, "v", STEPS, POINTS_OF_STEP);
    ok(esdm_dataset_set_codec(dataset, "shuffle+zstd", ERR));
    return dataset;
}

static void
write_steps(esdm_dataset *dataset)
{
    static double step[POINTS_OF_STEP];
    for (uint64_t t = 0; t < STEPS; t++) {
        esdm_dataspace space;
        for (uint64_t k = 0; k < POINTS_OF_STEP; k++)
            step[k] = cell(t, k);
        ok(esdm_dataspace_init(&space, 2, (uint64_t[]){t, 0}, (uint64_t[]){1, POINTS_OF_STEP},
                               ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, step, NULL, ERR));
    }
}

static double
read_series(esdm_dataset *dataset, uint64_t k)
{
    double series[STEPS];
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, k}, (uint64_t[]){STEPS, 1}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, series, NULL, ERR));
    return series[STEPS - 1];
}

static void *
read_while_committed(void *user)
{
    const job *j = user;
    while (!atomic_load(&over)) {
        double value;
        esdm_dataspace space;
        ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, 0}, (uint64_t[]){1, 1}, ERR));
        ok(esdm_read(j->dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
        const char *why = esdm_dataset_hint(j->dataset, "esdm.shape");
        check(why == NULL || strlen(why) > 10);
        (void) sched_yield();
    }
    return NULL;
}

static void
test_threads__read_while_a_commit_keeps_why_it_was_cut(void)
{
    esdm_container *container;
    job reader = {.number = 0};
    (void) unsetenv("ESDM_EARLIER_RUNS"); /* the suites on other sites switch it off */
    esdm_session *session = open_session();
    ok(esdm_container_create(session, "series/out_1", ESDM_CREATE_NEW, &container, ERR));
    write_steps(define_series(container));
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);

    session = open_session();
    ok(esdm_container_open(session, "series/out_1", ESDM_OPEN_READ, 0, &container, ERR));
    for (uint64_t i = 0; i < 6; i++) {
        uint64_t k = 7 + 31 * i;
        check(read_series(esdm_group_dataset_find(esdm_container_root(container), "v"), k) ==
              cell(STEPS - 1, k));
    }
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);

    session = open_session();
    ok(esdm_container_create(session, "series/out_2", ESDM_CREATE_NEW, &container, ERR));
    reader.dataset = define_series(container);
    ok(esdm_container_commit(container, NULL, ERR)); /* what is read is somebody's from now on */
    atomic_store(&over, false);
    check(pthread_create(&reader.thread, NULL, read_while_committed, &reader) == 0);
    write_steps(reader.dataset);
    ok(esdm_container_commit(container, NULL, ERR));
    check(esdm_dataset_hint(reader.dataset, "esdm.shape") != NULL);
    atomic_store(&over, true);
    check(pthread_join(reader.thread, NULL) == 0);
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open(session, "series/out_2", ESDM_OPEN_READ, 0, &container, ERR));
    check(esdm_dataset_hint(esdm_group_dataset_find(esdm_container_root(container), "v"),
                            "esdm.shape") != NULL);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

int
main(void)
{
    make_site();
    test_threads__read_while_a_commit_keeps_why_it_was_cut();
    test_threads__read_the_handle_that_commits();
    test_threads__write_and_read_one_dataset();
    test_threads__append_records();
    test_threads__separate_containers_in_one_session();
    test_reader__sees_whole_snapshots_while_a_writer_commits();
    return 0;
}
