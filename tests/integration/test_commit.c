/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Commits and refreshes beside writers and readers in other threads and by other sessions. */

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

int
main(void)
{
    make_site();
    esdm_session *session = open_session();
    commits_beside_writers_lose_nothing(session);
    esdm_session_close(session);
    return 0;
}
