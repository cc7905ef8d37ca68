/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What an operation takes of the processors, to compare two versions of ESDM; versions.py runs it.
 *
 *     bench_rows prepare            makes what others read
 *     bench_rows ROW TIMES          does it so often, and prints seconds of processor time, of all
 *                                   threads
 *
 *     write      a step of 8 MiB of a variable, and a commit at the end of all
 *     read       a variable of 64 MiB; open before
 *     point      a series of 256 values through it
 *     column     a box of 256 x 32 x 1 through it
 *     create     a new container with a dimension, a variable, an attribute and ten values; closed
 *     open       one of these opened and closed
 *     append     a record of one value; a commit at the end of all
 *     parts      20,000 fragments of 4 KiB written and committed
 *     commit     their commit alone
 *     recommit   of one fragment more, beside 20,000
 *
 * Values are neither made nor verified: that would take more than what is measured.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "esdm/esdm.h"

enum {
    STEPS = 256,
    ROWS = 256,
    COLUMNS = 256,
    PART = 4096,
    PARTS = 20000,
    SMALL = 200,
    STEP = 8 << 20
};

static esdm_session *session;
static esdm_error err;
static double spent;
static float *buffer;

static void
ok(esdm_status status)
{
    if (status != ESDM_OK) {
        (void) fprintf(stderr, "%s: %s\n", esdm_status_string(status), err.message);
        exit(1);
    }
}

static double
processor(void)
{
    struct rusage used;
    (void) getrusage(RUSAGE_SELF, &used);
    return (double) (used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double) (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static esdm_container *
create(const char *name, uint32_t rank, const uint64_t *lengths, const uint64_t *chunk,
       esdm_dataset **ret)
{
    esdm_container *container;
    esdm_dimension *dims[4];
    char dim[16];
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, &err));
    esdm_group *root = esdm_container_root(container);
    for (uint32_t i = 0; i < rank; i++) {
        (void) snprintf(dim, sizeof dim, "d%u", i);
        ok(esdm_dimension_create(root, dim, lengths[i], &dims[i], &err));
    }
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, rank, dims, ret, &err));
    if (chunk != NULL)
        ok(esdm_dataset_set_chunk(*ret, chunk, &err));
    return container;
}

static esdm_dataset *
open_v(const char *name, esdm_open_mode mode, esdm_container **ret)
{
    ok(esdm_container_open(session, name, mode, ESDM_SNAPSHOT_LATEST, ret, &err));
    return esdm_group_dataset_find(esdm_container_root(*ret), "v");
}

static void
transfer(esdm_dataset *dataset, uint32_t rank, const uint64_t *offset, const uint64_t *size,
         bool writes)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, rank, offset, size, &err));
    ok(writes ? esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, buffer, NULL, &err)
              : esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, buffer, NULL, &err));
}

static void
make_parts(const char *name)
{
    esdm_dataset *dataset;
    esdm_container *container =
        create(name, 2, (uint64_t[]){PARTS, PART / 4}, (uint64_t[]){1, PART / 4}, &dataset);
    for (uint64_t i = 0; i < PARTS; i += 2000)
        transfer(dataset, 2, (uint64_t[]){i, 0}, (uint64_t[]){2000, PART / 4}, true);
    double t = processor();
    ok(esdm_container_close(container, &err));
    spent += processor() - t;
}

static void
make_small(const char *prefix, uint64_t number)
{
    char name[64];
    esdm_dataset *dataset;
    (void) snprintf(name, sizeof name, "%s/%" PRIu64 ".nc", prefix, number);
    esdm_container *container = create(name, 1, (uint64_t[]){10}, NULL, &dataset);
    ok(esdm_attribute_set(esdm_dataset_attributes(dataset), "units", ESDM_TYPE_CHAR, 1, "K", &err));
    transfer(dataset, 1, (uint64_t[]){0}, (uint64_t[]){10}, true);
    ok(esdm_container_close(container, &err));
}

static void
prepare(uint64_t times)
{
    esdm_dataset *dataset;
    (void) times;
    esdm_container *container =
        create("cube.nc", 3, (uint64_t[]){STEPS, ROWS, COLUMNS}, NULL, &dataset);
    for (uint64_t i = 0; i < STEPS; i++)
        transfer(dataset, 3, (uint64_t[]){i, 0, 0}, (uint64_t[]){1, ROWS, COLUMNS}, true);
    ok(esdm_container_close(container, &err));
    for (uint64_t i = 0; i < SMALL; i++)
        make_small("small", i);
    make_parts("parts.nc");
}

static void
write_steps(uint64_t times)
{
    esdm_dataset *dataset;
    double t = processor();
    esdm_container *container =
        create("steps.nc", 2, (uint64_t[]){ESDM_UNLIMITED, STEP / 4}, NULL, &dataset);
    for (uint64_t i = 0; i < times; i++)
        transfer(dataset, 2, (uint64_t[]){i, 0}, (uint64_t[]){1, STEP / 4}, true);
    ok(esdm_container_close(container, &err));
    spent += processor() - t;
}

static void
read_box(uint64_t times, const uint64_t *size)
{
    esdm_container *container;
    esdm_dataset *dataset = open_v("cube.nc", ESDM_OPEN_READ, &container);
    transfer(dataset, 3, (uint64_t[]){0, 0, 0}, (uint64_t[]){STEPS, 1, 1}, false);
    double t = processor();
    for (uint64_t i = 0; i < times; i++)
        transfer(dataset, 3,
                 (uint64_t[]){0, i * 7 % (ROWS - size[1] + 1), i * 13 % (COLUMNS - size[2] + 1)},
                 size, false);
    spent += processor() - t;
    ok(esdm_container_close(container, &err));
}

static void
read_all(uint64_t times)
{
    read_box(times, (uint64_t[]){STEPS, ROWS, COLUMNS});
}

static void
read_point(uint64_t times)
{
    read_box(times, (uint64_t[]){STEPS, 1, 1});
}

static void
read_column(uint64_t times)
{
    read_box(times, (uint64_t[]){STEPS, 32, 1});
}

static void
create_small(uint64_t times)
{
    char prefix[32];
    (void) snprintf(prefix, sizeof prefix, "made-%ld", (long) getpid());
    double t = processor();
    for (uint64_t i = 0; i < times; i++)
        make_small(prefix, i);
    spent += processor() - t;
}

static void
open_small(uint64_t times)
{
    char name[64];
    esdm_container *container;
    double t = processor();
    for (uint64_t i = 0; i < times; i++) {
        (void) snprintf(name, sizeof name, "small/%" PRIu64 ".nc", i % SMALL);
        if (open_v(name, ESDM_OPEN_READ, &container) == NULL)
            exit(1);
        ok(esdm_container_close(container, &err));
    }
    spent += processor() - t;
}

static void
append(uint64_t times)
{
    esdm_dataset *dataset;
    double t = processor();
    esdm_container *container =
        create("records.nc", 1, (uint64_t[]){ESDM_UNLIMITED}, NULL, &dataset);
    for (uint64_t i = 0; i < times; i++)
        transfer(dataset, 1, (uint64_t[]){i}, (uint64_t[]){1}, true);
    ok(esdm_container_close(container, &err));
    spent += processor() - t;
}

static void
commit_many(uint64_t times)
{
    for (uint64_t i = 0; i < times; i++)
        make_parts("many.nc");
}

static void
write_parts(uint64_t times)
{
    double t = processor();
    for (uint64_t i = 0; i < times; i++)
        make_parts("many.nc");
    spent = processor() - t;
}

static void
commit_again(uint64_t times)
{
    esdm_container *container;
    esdm_dataset *dataset = open_v("parts.nc", ESDM_OPEN_WRITE, &container);
    for (uint64_t i = 0; i < times; i++) {
        transfer(dataset, 2, (uint64_t[]){i * 101 % PARTS, 0}, (uint64_t[]){1, PART / 4}, true);
        double t = processor();
        ok(esdm_container_commit(container, NULL, &err));
        spent += processor() - t;
    }
    ok(esdm_container_close(container, &err));
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(uint64_t times);
    } rows[] = {{"prepare", prepare},    {"write", write_steps},    {"read", read_all},
                {"point", read_point},   {"column", read_column},   {"create", create_small},
                {"open", open_small},    {"append", append},        {"parts", write_parts},
                {"commit", commit_many}, {"recommit", commit_again}};
    if (argc != 3)
        return 2;
    buffer = malloc(sizeof(float) * STEPS * ROWS * COLUMNS);
    for (size_t i = 0; i < (size_t) STEPS * ROWS * COLUMNS; i++)
        buffer[i] = 280 + (float) (i * 2654435761U >> 20 & 1023) * 0.01F;
    ok(esdm_session_open(NULL, &session, &err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, argv[1]) == 0)
            rows[i].run(strtoull(argv[2], NULL, 10));
    }
    esdm_session_close(session);
    printf("%.6f\n", spent);
    return 0;
}
