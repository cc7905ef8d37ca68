/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Threads of a program that share one dataset of one open container:
 *
 *     bench_threads TASK PATH THREADS READS     TASK: make, level, point, fresh
 *
 *     make    the variable, 16 steps of 32 x 180 x 360 float32
 *     level   READS levels of 259 KB, drawn at random; all threads together
 *     point   READS single values, whose blocks are in the cache of the container after the first
 * ones fresh   READS openings of the container with one value read, by one session
 *
 * Prints "TASK SECONDS CPU SWITCHES": by the clock, of all threads' processors, and how often one
 * of them gave a processor up to wait. Each value is verified.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "bench.h"
#include "esdm/esdm.h"

enum { STEPS = 16, LEVEL_ELEMS = LAT * LON };

typedef struct reader {
    pthread_t thread;
    size_t first; /* its reads: first, first + threads, … */
    float *values;
} reader;

static esdm_session *session;
static esdm_dataset *dataset;
static const char *path;
static size_t threads;
static size_t reads;
static void (*read_one)(const reader *r, size_t k);
static pthread_barrier_t together;

static void
ok(esdm_status status, const esdm_error *err)
{
    if (status != ESDM_OK)
        fail(esdm_status_string(status), err->message);
}

static size_t
drawn(size_t k)
{
    uint64_t x = (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t) (x >> 20);
}

static void
make(void)
{
    static const char *const names[] = {"time", "level", "lat", "lon"};
    const uint64_t lengths[] = {STEPS, LEVELS, LAT, LON};
    float *buffer = touched(STEP_ELEMS * sizeof *buffer);
    esdm_dimension *dims[4];
    esdm_container *container;
    esdm_dataspace space;
    esdm_error err;
    ok(esdm_container_create(session, path, ESDM_CREATE_REPLACE, &container, &err), &err);
    esdm_group *root = esdm_container_root(container);
    for (int i = 0; i < 4; i++)
        ok(esdm_dimension_create(root, names[i], lengths[i], &dims[i], &err), &err);
    ok(esdm_dataset_create(root, "ta", ESDM_TYPE_FLOAT32, 4, dims, &dataset, &err), &err);
    for (size_t step = 0; step < STEPS; step++) {
        fill_step(step, buffer);
        ok(esdm_dataspace_init(&space, 4, (uint64_t[]){step, 0, 0, 0},
                               (uint64_t[]){1, LEVELS, LAT, LON}, &err),
           &err);
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, buffer, NULL, &err), &err);
    }
    ok(esdm_container_close(container, &err), &err);
    free(buffer);
}

static esdm_container *
open_variable(esdm_dataset **ret_dataset)
{
    esdm_container *container;
    esdm_error err;
    ok(esdm_container_open(session, path, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, &err),
       &err);
    *ret_dataset = esdm_group_dataset_find(esdm_container_root(container), "ta");
    return container;
}

static void
read_level(const reader *r, size_t k)
{
    size_t level = drawn(k) % LEVELS;
    size_t step = drawn(k) / LEVELS % STEPS;
    esdm_dataspace space;
    esdm_error err;
    ok(esdm_dataspace_init(&space, 4, (uint64_t[]){step, level, 0, 0}, (uint64_t[]){1, 1, LAT, LON},
                           &err),
       &err);
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, r->values, NULL, &err), &err);
    for (size_t i = 0; i < LEVEL_ELEMS; i++)
        if (r->values[i] != field_value(step, level * LEVEL_ELEMS + i))
            fail("level", "wrong value");
}

static void
read_value(esdm_dataset *of, size_t k)
{
    size_t at = drawn(k) % 64; /* of a few blocks */
    size_t step = drawn(k) / 64 % STEPS;
    esdm_dataspace space;
    esdm_error err;
    float value = 0;
    ok(esdm_dataspace_init(&space, 4, (uint64_t[]){step, 0, at, at}, (uint64_t[]){1, 1, 1, 1},
                           &err),
       &err);
    ok(esdm_read(of, &space, ESDM_TYPE_FLOAT32, &value, NULL, &err), &err);
    if (value != field_value(step, at * LON + at))
        fail("point", "wrong value");
}

static void
read_point(const reader *r, size_t k)
{
    (void) r;
    read_value(dataset, k);
}

static void
read_fresh(const reader *r, size_t k)
{
    esdm_dataset *mine;
    esdm_error err;
    (void) r;
    esdm_container *container = open_variable(&mine);
    read_value(mine, k);
    ok(esdm_container_close(container, &err), &err);
}

static void *
read_all(void *user)
{
    const reader *r = user;
    (void) pthread_barrier_wait(&together);
    for (size_t k = r->first; k < reads; k += threads)
        read_one(r, k);
    return NULL;
}

static double
processor_seconds(const struct rusage *used)
{
    return (double) used->ru_utime.tv_sec + 1e-6 * (double) used->ru_utime.tv_usec +
           (double) used->ru_stime.tv_sec + 1e-6 * (double) used->ru_stime.tv_usec;
}

/* The first reads, which fill caches, are not timed. */
static void
measure(const char *task)
{
    reader *readers = calloc(threads, sizeof *readers);
    struct rusage before;
    struct rusage after;
    esdm_error err;
    esdm_container *container = open_variable(&dataset);
    if (readers == NULL || pthread_barrier_init(&together, NULL, (unsigned) threads + 1) != 0)
        fail("threads", "no memory");
    for (size_t i = 0; i < threads; i++) {
        readers[i].first = i;
        readers[i].values = touched(LEVEL_ELEMS * sizeof(float));
    }
    for (size_t k = 0; k < STEPS * (size_t) 64; k++)
        read_one(&readers[0], k);
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&readers[i].thread, NULL, read_all, &readers[i]) != 0)
            fail("threads", "cannot start one");
    (void) getrusage(RUSAGE_SELF, &before);
    (void) pthread_barrier_wait(&together);
    double t = now();
    for (size_t i = 0; i < threads; i++)
        (void) pthread_join(readers[i].thread, NULL);
    t = now() - t;
    (void) getrusage(RUSAGE_SELF, &after);
    printf("%s %.6f %.6f %ld\n", task, t, processor_seconds(&after) - processor_seconds(&before),
           after.ru_nvcsw - before.ru_nvcsw);
    for (size_t i = 0; i < threads; i++)
        free(readers[i].values);
    free(readers);
    ok(esdm_container_close(container, &err), &err);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*read)(const reader *r, size_t k);
    } tasks[] = {{"level", read_level}, {"point", read_point}, {"fresh", read_fresh}};
    esdm_error err;
    if (argc != 5)
        fail("usage", "TASK PATH THREADS READS");
    path = argv[2];
    threads = strtoul(argv[3], NULL, 10);
    reads = strtoul(argv[4], NULL, 10);
    init_field();
    ok(esdm_session_open(NULL, &session, &err), &err);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        if (strcmp(argv[1], tasks[i].name) == 0)
            read_one = tasks[i].read;
    if (read_one != NULL && threads > 0)
        measure(argv[1]);
    else if (strcmp(argv[1], "make") == 0)
        make();
    else
        fail(argv[1], "no such task");
    esdm_session_close(session);
    return 0;
}
