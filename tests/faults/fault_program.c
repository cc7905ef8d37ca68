/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The program that the fault tests run, kill and starve. Datasets of several sizes always hold one
 * generation: every value of the container tells its number.
 *
 * - fault_program write NAME FIRST LAST: writes and commits generations, "committed N" after each
 * - fault_program write NAME FIRST LAST pause: also "written N" before each commit, and waits for a
 *   line of input before the last one
 * - fault_program check NAME: "generation N" when all values say N
 * - fault_program read NAME: one line for each dataset, "D ok N" or "D STATUS TEXT"
 *
 * Exit status 0; 3 after an error of ESDM, whose status and text stand on standard error as
 * "STATUS: TEXT"; 4 when data are wrong. With ESDM_FAIL_AT=N and fail_malloc.so preloaded, the N-th
 * allocation of ESDM fails (ESDM_FAIL_ON=1: and all after it). With ESDM_FAULT_SMALL datasets have
 * a tenth of their rows.
 */

#include <dlfcn.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "esdm/esdm.h"

typedef struct set {
    const char *name;
    uint64_t rows;
    uint64_t columns;
    const char *codec;
} set;

/* Inline, one block, several fragments, compressed. */
static set sets[] = {{"tiny", 1, 12, NULL},
                     {"small", 8, 1000, NULL},
                     {"large", 300, 2000, NULL},
                     {"packed", 100, 2000, "lz4"}};
enum { SETS = sizeof sets / sizeof *sets, LARGEST = 300 * 2000 };

static int64_t *field;
static esdm_error error;

static int
report(esdm_status status)
{
    fprintf(stderr, "%s: %s\n", esdm_status_string(status), error.message);
    return 3;
}

static esdm_status
define(esdm_container *container)
{
    esdm_group *root = esdm_container_root(container);
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    char name[32];
    esdm_status st = ESDM_OK;
    for (int i = 0; i < SETS && st == ESDM_OK; i++) {
        snprintf(name, sizeof name, "%s_row", sets[i].name);
        st = esdm_dimension_create(root, name, sets[i].rows, &dims[0], &error);
        snprintf(name, sizeof name, "%s_column", sets[i].name);
        if (st == ESDM_OK)
            st = esdm_dimension_create(root, name, sets[i].columns, &dims[1], &error);
        if (st == ESDM_OK)
            st =
                esdm_dataset_create(root, sets[i].name, ESDM_TYPE_INT64, 2, dims, &dataset, &error);
        if (st == ESDM_OK)
            st = esdm_dataset_set_codec(dataset, sets[i].codec, &error);
    }
    if (st == ESDM_OK)
        st = esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], &error);
    if (st == ESDM_OK)
        st = esdm_dataset_create(root, "series", ESDM_TYPE_INT64, 1, dims, &dataset, &error);
    return st;
}

static esdm_status
write_generation(esdm_container *container, int64_t generation)
{
    esdm_group *root = esdm_container_root(container);
    esdm_dataspace space;
    esdm_status st = ESDM_OK;
    for (int i = 0; i < SETS && st == ESDM_OK; i++) {
        uint64_t n = sets[i].rows * sets[i].columns;
        for (uint64_t k = 0; k < n; k++)
            field[k] = generation * 10000000 + (int64_t) k;
        st = esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){sets[i].rows, sets[i].columns},
                                 &error);
        if (st == ESDM_OK)
            st = esdm_write(esdm_group_dataset_find(root, sets[i].name), &space, ESDM_TYPE_INT64,
                            field, NULL, &error);
    }
    if (st == ESDM_OK)
        st = esdm_dataspace_init(&space, 1, (uint64_t[]){(uint64_t) generation}, (uint64_t[]){1},
                                 &error);
    if (st == ESDM_OK)
        st = esdm_write(esdm_group_dataset_find(root, "series"), &space, ESDM_TYPE_INT64,
                        &generation, NULL, &error);
    return st;
}

static int
write_generations(esdm_session *session, const char *name, int64_t first, int64_t last, bool pauses)
{
    esdm_container *container;
    esdm_status st = esdm_container_open(session, name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST,
                                         &container, &error);
    if (st == ESDM_ENOENT) {
        st = esdm_container_create(session, name, ESDM_CREATE_NEW, &container, &error);
        if (st == ESDM_OK && (st = define(container)) != ESDM_OK)
            esdm_container_discard(container);
    }
    if (st != ESDM_OK)
        return report(st);
    for (int64_t generation = first; generation <= last; generation++) {
        st = write_generation(container, generation);
        if (st == ESDM_OK && pauses) {
            printf("written %" PRId64 "\n", generation);
            fflush(stdout);
            while (generation == last && getchar() != '\n' && !feof(stdin))
                ;
        }
        if (st == ESDM_OK)
            st = esdm_container_commit(container, NULL, &error);
        if (st != ESDM_OK) {
            int code = report(st);
            esdm_container_discard(container);
            return code;
        }
        printf("committed %" PRId64 "\n", generation);
        fflush(stdout);
    }
    st = esdm_container_close(container, &error);
    return st == ESDM_OK ? 0 : report(st);
}

/* -1 and a message when the values are not those of one generation. */
static int64_t
generation_of(const set *s, const char *name)
{
    int64_t generation = field[0] / 10000000;
    for (uint64_t k = 0; k < s->rows * s->columns; k++) {
        if (field[k] != generation * 10000000 + (int64_t) k) {
            fprintf(stderr, "wrong data: %s, dataset %s, element %" PRIu64 ": %" PRId64 "\n", name,
                    s->name, k, field[k]);
            return -1;
        }
    }
    return generation;
}

static esdm_status
read_set(esdm_container *container, const set *s)
{
    esdm_dataspace space;
    memset(field, 0x77, LARGEST * sizeof *field);
    esdm_status st =
        esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){s->rows, s->columns}, &error);
    if (st != ESDM_OK)
        return st;
    return esdm_read(esdm_group_dataset_find(esdm_container_root(container), s->name), &space,
                     ESDM_TYPE_INT64, field, NULL, &error);
}

/* The series holds its own index wherever a generation was written, the fill value elsewhere. */
static int
check_series(esdm_container *container, int64_t generation)
{
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "series");
    uint64_t length = esdm_dimension_length(esdm_dataset_dimension(dataset, 0));
    esdm_dataspace space;
    if (length != (uint64_t) generation + 1 || length > LARGEST) {
        fprintf(stderr, "wrong data: series of %" PRIu64 " at generation %" PRId64 "\n", length,
                generation);
        return 4;
    }
    esdm_status st = esdm_dataspace_init(&space, 1, NULL, &length, &error);
    if (st == ESDM_OK)
        st = esdm_read(dataset, &space, ESDM_TYPE_INT64, field, NULL, &error);
    if (st != ESDM_OK)
        return report(st);
    int64_t fill = *(const int64_t *) esdm_type_default_fill(ESDM_TYPE_INT64);
    for (uint64_t i = 0; i < length; i++) {
        if (field[i] != (int64_t) i && (field[i] != fill || i + 1 == length)) {
            fprintf(stderr, "wrong data: series[%" PRIu64 "] is %" PRId64 "\n", i, field[i]);
            return 4;
        }
    }
    return 0;
}

static int
check_container(esdm_container *container, const char *name)
{
    int64_t generation = 0;
    for (int i = 0; i < SETS; i++) {
        esdm_status st = read_set(container, &sets[i]);
        if (st != ESDM_OK)
            return report(st);
        int64_t found = generation_of(&sets[i], name);
        if (found < 0)
            return 4;
        if (i > 0 && found != generation) {
            fprintf(stderr, "wrong data: %s: generations %" PRId64 " and %" PRId64 "\n", name,
                    generation, found);
            return 4;
        }
        generation = found;
    }
    int code = check_series(container, generation);
    if (code == 0)
        printf("generation %" PRId64 "\n", generation);
    return code;
}

static int
read_datasets(esdm_container *container, const char *name)
{
    int code = 0;
    for (int i = 0; i < SETS; i++) {
        esdm_status st = read_set(container, &sets[i]);
        if (st != ESDM_OK) {
            printf("%s %s: %s\n", sets[i].name, esdm_status_string(st), error.message);
            continue;
        }
        int64_t generation = generation_of(&sets[i], name);
        if (generation < 0)
            code = 4;
        printf("%s ok %" PRId64 "\n", sets[i].name, generation);
    }
    return code;
}

static int
with_container(esdm_session *session, const char *name,
               int (*action)(esdm_container *container, const char *name))
{
    esdm_container *container;
    esdm_status st = esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                                         &container, &error);
    if (st != ESDM_OK)
        return report(st);
    int code = action(container, name);
    st = esdm_container_close(container, &error);
    return code != 0 || st == ESDM_OK ? code : report(st);
}

/* Tells fail_malloc.so, when it is there, to begin counting. */
static void
arm_failing_allocation(void)
{
    const char *at = getenv("ESDM_FAIL_AT");
    if (!at)
        return;
    void (*arm)(long, int);
    (void) getpwuid(
        getuid()); /* glibc itself ends the process when this finds no memory at first */
    *(void **) &arm = dlsym(RTLD_DEFAULT, "fail_malloc_arm");
    if (arm)
        arm(strtol(at, NULL, 10), getenv("ESDM_FAIL_ON") != NULL);
}

int
main(int argc, char **argv)
{
    esdm_session *session;
    field = calloc(LARGEST, sizeof *field);
    if (!field || argc < 3)
        return 2;
    printf("started\n");
    fflush(stdout);
    arm_failing_allocation();
    for (int i = 0; i < SETS && getenv("ESDM_FAULT_SMALL") != NULL; i++)
        sets[i].rows = sets[i].rows / 10 + 1;
    esdm_status st = esdm_session_open(NULL, &session, &error);
    if (st != ESDM_OK)
        return report(st);
    int code = 2;
    if (strcmp(argv[1], "write") == 0 && argc >= 5)
        code = write_generations(session, argv[2], strtol(argv[3], NULL, 10),
                                 strtol(argv[4], NULL, 10), argc > 5);
    else if (strcmp(argv[1], "check") == 0)
        code = with_container(session, argv[2], check_container);
    else if (strcmp(argv[1], "read") == 0)
        code = with_container(session, argv[2], read_datasets);
    esdm_session_close(session);
    free(field);
    return code;
}
