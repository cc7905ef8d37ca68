/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Compiled against the public headers of an earlier version, and run with the library of this one
 * (test_earlier_programs.sh). Each structure that the library fills lies before bytes that it must
 * not touch: one that has grown since would be written beyond its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/branch.h"
#include "esdm/esdm.h"
#include "esdm/statistics.h"

#define GUARDED(type)                                                                              \
    struct {                                                                                       \
        type value;                                                                                \
        unsigned char behind[64];                                                                  \
    }
#define FILL(guarded) memset((guarded).behind, 0xa5, sizeof(guarded).behind)

static int failures;

static void
expect(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "not as it was: %s\n", what);
        failures++;
    }
}

static void
intact(const unsigned char *behind, const char *what)
{
    for (size_t i = 0; i < 64; i++) {
        if (behind[i] != 0xa5) {
            fprintf(stderr, "%s: byte %zu behind it was written\n", what, i);
            failures++;
            return;
        }
    }
}

static void
need(esdm_status status, const esdm_error *err, const char *what)
{
    if (status != ESDM_OK) {
        fprintf(stderr, "%s: %s: %s\n", what, esdm_status_string(status), err->message);
        exit(EXIT_FAILURE);
    }
}

static void
write_values(esdm_session *session, esdm_error *err)
{
    static double values[1000];
    esdm_container *container = NULL;
    esdm_dimension *dim;
    esdm_dataset *dataset;
    GUARDED(esdm_dataspace) space;
    GUARDED(esdm_accuracy) accuracy;
    for (int i = 0; i < 1000; i++)
        values[i] = i;
    FILL(space), FILL(accuracy);
    need(esdm_container_create(session, "old.nc", ESDM_CREATE_REPLACE, &container, err), err,
         "create");
    esdm_group *root = esdm_container_root(container);
    need(esdm_dimension_create(root, "x", 1000, &dim, err), err, "dimension");
    need(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &dim, &dataset, err), err, "dataset");
    esdm_accuracy_init(&accuracy.value);
    intact(accuracy.behind, "esdm_accuracy");
    need(esdm_dataspace_init(&space.value, 1, (uint64_t[]){0}, (uint64_t[]){1000}, err), err,
         "space");
    intact(space.behind, "esdm_dataspace");
    need(esdm_write(dataset, &space.value, ESDM_TYPE_FLOAT64, values, NULL, err), err, "write");
    need(esdm_container_close(container, err), err, "commit");
}

static void
read_values(esdm_session *session, esdm_error *err)
{
    static double values[1000];
    esdm_container *container = NULL;
    GUARDED(esdm_dataspace) space;
    GUARDED(esdm_statistics) statistics;
    FILL(space), FILL(statistics);
    need(esdm_container_open(session, "old.nc", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                             err),
         err, "open");
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    need(esdm_dataspace_init(&space.value, 1, (uint64_t[]){500}, (uint64_t[]){500}, err), err,
         "space");
    need(esdm_read(dataset, &space.value, ESDM_TYPE_FLOAT64, values, NULL, err), err, "read");
    expect(values[0] == 500 && values[499] == 999, "values");
    need(esdm_dataset_statistics(dataset, NULL, false, &statistics.value, err), err, "statistics");
    intact(statistics.behind, "esdm_statistics");
    expect(statistics.value.min == 0 && statistics.value.max == 999, "minimum, maximum");
    need(esdm_container_close(container, err), err, "close");
}

static void
ask(esdm_session *session, esdm_error *err)
{
    GUARDED(esdm_container_info) info;
    GUARDED(esdm_merge_result) merged;
    FILL(info), FILL(merged);
    need(esdm_container_stat(session, "old.nc", &info.value, err), err, "stat");
    intact(info.behind, "esdm_container_info");
    need(esdm_branch_create(session, "old.nc", "b", NULL, err), err, "branch");
    need(esdm_merge(session, "old.nc", "b", NULL, &merged.value, err), err, "merge");
    intact(merged.behind, "esdm_merge_result");
}

int
main(void)
{
    GUARDED(esdm_error) err = {.value = {0}};
    esdm_session *session = NULL;
    FILL(err);
    need(esdm_session_open(NULL, &session, &err.value), &err.value, "session");
    write_values(session, &err.value);
    read_values(session, &err.value);
    ask(session, &err.value);
    esdm_container_info info;
    expect(esdm_container_stat(session, "none.nc", &info, &err.value) == ESDM_ENOENT,
           "no such name");
    intact(err.behind, "esdm_error");
    esdm_session_close(session);
    if (failures == 0)
        printf("as it was\n");
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
