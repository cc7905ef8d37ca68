/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Many tiny variables in one container, each committed by itself.
 *
 *     bench_stores write|read CONTAINER COUNT
 *
 * Prints "seconds N".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "esdm/esdm.h"

enum { VALUES = 25 };

static esdm_error err;
static esdm_session *session;

static void
ok(esdm_status status)
{
    if (status == ESDM_OK)
        return;
    fprintf(stderr, "%s: %s\n", esdm_status_string(status), err.message);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void
define(esdm_container *container, size_t count)
{
    esdm_group *root = esdm_container_root(container);
    esdm_dimension *n;
    ok(esdm_dimension_create(root, "n", VALUES, &n, &err));
    for (size_t i = 0; i < count; i++) {
        char name[32];
        esdm_dataset *dataset;
        (void) snprintf(name, sizeof name, "v%zu", i);
        ok(esdm_dataset_create(root, name, ESDM_TYPE_FLOAT64, 1, &n, &dataset, &err));
    }
    ok(esdm_container_commit(container, NULL, &err));
}

/* Writes or reads every variable. */
static void
transfer(esdm_container *container, size_t count, int writing)
{
    esdm_group *root = esdm_container_root(container);
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){0}, (uint64_t[]){VALUES}, &err));
    for (size_t i = 0; i < count; i++) {
        char name[32];
        double values[VALUES];
        (void) snprintf(name, sizeof name, "v%zu", i);
        esdm_dataset *dataset = esdm_group_dataset_find(root, name);
        for (size_t k = 0; k < VALUES; k++)
            values[k] = (double) (i + k);
        if (writing) {
            ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, &err));
            ok(esdm_container_commit(container, NULL, &err));
            continue;
        }
        memset(values, 0, sizeof values);
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, values, NULL, &err));
        if (values[VALUES - 1] != (double) (i + VALUES - 1)) {
            fprintf(stderr, "wrong data\n");
            exit(1);
        }
    }
}

int
main(int argc, char **argv)
{
    esdm_container *container;
    if (argc != 4) {
        fprintf(stderr, "usage: bench_stores write|read CONTAINER COUNT\n");
        return 2;
    }
    int writing = strcmp(argv[1], "write") == 0;
    size_t count = strtoull(argv[3], NULL, 10);
    ok(esdm_session_open(NULL, &session, &err));
    if (writing) {
        ok(esdm_container_create(session, argv[2], ESDM_CREATE_REPLACE, &container, &err));
        define(container, count);
    } else {
        ok(esdm_container_open(session, argv[2], ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                               &err));
    }
    double t = now();
    transfer(container, count, writing);
    printf("seconds %.6f\n", now() - t);
    ok(esdm_container_close(container, &err));
    esdm_session_close(session);
    return 0;
}
