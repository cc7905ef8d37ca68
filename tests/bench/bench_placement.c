/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Writes or reads a dataset in calls of some size and prints the seconds.
 *
 *     bench_placement write|read CONTAINER MIB CALL_MIB
 *
 * Values are their own numbers, and are checked when they are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "esdm/esdm.h"

#define ROW_ELEMS (UINT64_C(1) << 18) /* of 4 bytes: 1 MiB */

static double
now_s(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static void
need(esdm_status status, const esdm_error *err)
{
    if (status == ESDM_OK)
        return;
    fprintf(stderr, "bench_placement: %s\n", err->message);
    exit(1);
}

static esdm_container *
open_container(esdm_session *session, const char *name, bool write, uint64_t rows,
               esdm_dataset **ret_dataset)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    const uint64_t size[2] = {rows, ROW_ELEMS};
    esdm_dimension *dims[2];
    if (!write) {
        need(esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                                 &err),
             &err);
        *ret_dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
        return container;
    }
    need(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, &err), &err);
    esdm_group *root = esdm_container_root(container);
    need(esdm_dimension_create(root, "row", size[0], &dims[0], &err), &err);
    need(esdm_dimension_create(root, "column", size[1], &dims[1], &err), &err);
    need(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 2, dims, ret_dataset, &err), &err);
    return container;
}

int
main(int argc, char **argv)
{
    esdm_session *session = NULL;
    esdm_dataset *dataset = NULL;
    esdm_error err = {0};
    if (argc != 5) {
        fprintf(stderr, "usage: bench_placement write|read CONTAINER MIB CALL_MIB\n");
        return 2;
    }
    bool write = strcmp(argv[1], "write") == 0;
    uint64_t rows = strtoull(argv[3], NULL, 10);
    uint64_t step = strtoull(argv[4], NULL, 10);
    int32_t *values = malloc((size_t) (step * ROW_ELEMS) * sizeof *values);
    if (values == NULL)
        return 1;
    need(esdm_session_open(NULL, &session, &err), &err);
    esdm_container *container = open_container(session, argv[2], write, rows, &dataset);
    double seconds = 0;
    for (uint64_t row = 0; row < rows; row += step) {
        uint64_t n = rows - row < step ? rows - row : step;
        esdm_dataspace space;
        need(esdm_dataspace_init(&space, 2, (uint64_t[]){row, 0}, (uint64_t[]){n, ROW_ELEMS}, &err),
             &err);
        for (uint64_t i = 0; write && i < n * ROW_ELEMS; i++)
            values[i] = (int32_t) (row * ROW_ELEMS + i);
        if (!write)
            memset(values, 0, (size_t) (n * ROW_ELEMS) * sizeof *values);
        double started = now_s();
        need(write ? esdm_write(dataset, &space, ESDM_TYPE_INT32, values, NULL, &err)
                   : esdm_read(dataset, &space, ESDM_TYPE_INT32, values, NULL, &err),
             &err);
        seconds += now_s() - started;
        for (uint64_t i = 0; !write && i < n * ROW_ELEMS; i++) {
            if (values[i] != (int32_t) (row * ROW_ELEMS + i)) {
                fprintf(stderr, "bench_placement: wrong value\n");
                return 1;
            }
        }
    }
    double started = now_s();
    if (write)
        need(esdm_container_commit(container, NULL, &err), &err);
    seconds += now_s() - started;
    printf("%.6f\n", seconds);
    need(esdm_container_close(container, &err), &err);
    esdm_session_close(session);
    free(values);
    return 0;
}
