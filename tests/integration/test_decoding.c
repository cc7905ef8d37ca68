/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Many threads that read large blocks together stay within the site's memory. */
#define _XOPEN_SOURCE 700
#include "testing.h"

#include <math.h>
#include <pthread.h>

#define BOUND 0.05
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BLOCKS     3u /* of 1 MiB: a fragment each */
#define SIDE       512u
#define MEMORY_MIB 8
#else
#define BLOCKS     10u /* of 16 MiB */
#define SIDE       2048u
#define MEMORY_MIB 128
#endif
#define THREADS 8u
/* Beside buffers: code, the test's own arrays, SQLite's cache, what malloc keeps for threads. */
#define SLACK_MIB 40
/* Of a row only every 32nd number is read: then blocks are not decoded where they are wanted. */
#define STEP 32u
#define ROW  (SIDE / STEP)

/* With so much noise that no block is small when it is stored. */
static float
value_at(uint64_t i)
{
    uint64_t state = i;
    return (float) (280 + 12 * sin((double) (i % SIDE) * 0.003) +
                    0.3 * cos((double) (i / SIDE) * 0.1) +
                    (double) (next_random(&state) >> 44) * 0x1p-20);
}

static esdm_session *
open_with(const char *engine)
{
    char config[1024];
    snprintf(
        config, sizeof config,
        "{\"site\":{\"name\":\"test\"},\"targets\":[{\"name\":\"disk\","
        "\"plugin\":\"posix\",\"directory\":\"%s/packs\"}],\"metadata\":{\"plugin\":\"sqlite\","
        "\"directory\":\"%s/metadata\"},\"engine\":{%s}}",
        test_folder, test_folder, engine);
    esdm_session *session;
    esdm_session_options options = {.config_json = config};
    ok(esdm_session_open(&options, &session, ERR));
    return session;
}

static void
write_blocks(void)
{
    static const uint64_t one[3] = {1, SIDE, SIDE};
    static const char *const names[] = {"t", "y", "x"};
    esdm_session *session = open_with("\"threads\":1,\"memory\":\"256 MiB\"");
    esdm_container *container;
    esdm_dimension *dims[3];
    esdm_dataset *dataset;
    esdm_accuracy accuracy;
    float *values = malloc(sizeof *values * SIDE * SIDE);
    check(values != NULL);
    ok(esdm_container_create(session, "blocks", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    for (int d = 0; d < 3; d++)
        ok(esdm_dimension_create(root, names[d], d == 0 ? BLOCKS : SIDE, &dims[d], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 3, dims, &dataset, ERR));
    esdm_accuracy_init(&accuracy);
    ok(esdm_accuracy_parse(&accuracy, "abs=0.05; mode=archive", NULL, ERR));
    ok(esdm_dataset_set_accuracy(dataset, &accuracy, ERR));
    for (uint64_t t = 0; t < BLOCKS; t++) {
        esdm_dataspace space;
        for (uint64_t i = 0; i < SIDE * SIDE; i++)
            values[i] = value_at(t * SIDE * SIDE + i);
        ok(esdm_dataspace_init(&space, 3, (uint64_t[]){t, 0, 0}, one, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
    free(values);
    esdm_session_close(session);
}

/* What is read at once: `count` blocks from `first` on, one of STEP rows and columns. */
static void
read_blocks(esdm_dataset *dataset, uint64_t first, uint64_t count)
{
    esdm_dataspace space;
    float *values = malloc(sizeof *values * count * ROW * ROW);
    check(values != NULL);
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){first, 0, 0}, (uint64_t[]){count, ROW, ROW},
                           ERR));
    space.has_stride = true;
    space.stride[0] = 1;
    space.stride[1] = STEP;
    space.stride[2] = STEP;
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, ERR));
    for (uint64_t k = 0; k < count * ROW * ROW; k++) {
        uint64_t t = first + k / (ROW * ROW);
        uint64_t i = (t * SIDE + k / ROW % ROW * STEP) * SIDE + k % ROW * STEP;
        if (!(fabs((double) values[k] - (double) value_at(i)) <= BOUND))
            die("element %" PRIu64 ", %.9g, became %.9g", i, (double) value_at(i),
                (double) values[k]);
    }
    free(values);
}

typedef struct reader {
    pthread_t thread;
    esdm_dataset *dataset;
    uint64_t block;
} reader;

static void *
read_one(void *argument)
{
    const reader *r = argument;
    read_blocks(r->dataset, r->block % BLOCKS, 1);
    return NULL;
}

static uint64_t
peak_kib(void)
{
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    check(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtoull(line + 6, NULL, 10);
    }
    fclose(file);
    return kib;
}

static void
expect_bounded(uint64_t before_kib, const char *what)
{
    uint64_t grown = peak_kib() - before_kib;
    printf("%s: %" PRIu64 " KiB above the start\n", what, grown);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (grown > (MEMORY_MIB + SLACK_MIB) * UINT64_C(1024))
        die("%s: %" PRIu64 " KiB more than at the start", what, grown);
#endif
}

int
main(void)
{
    char engine[64];
    reader readers[THREADS];
    make_site();
    pid_t writer = fork(); /* what it has in memory is not this process's */
    check(writer >= 0);
    if (writer == 0) {
        write_blocks();
        exit(0);
    }
    wait_children(&writer, 1);

    uint64_t before = peak_kib();
    snprintf(engine, sizeof engine, "\"threads\":%u,\"memory\":\"%d MiB\"", THREADS, MEMORY_MIB);
    esdm_session *session = open_with(engine);
    esdm_container *container;
    ok(esdm_container_open(session, "blocks", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                           ERR));
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    read_blocks(dataset, 0, BLOCKS);
    expect_bounded(before, "one call in a pool of threads");
    for (uint64_t i = 0; i < THREADS; i++) {
        readers[i] = (reader){.dataset = dataset, .block = i};
        check(pthread_create(&readers[i].thread, NULL, read_one, &readers[i]) == 0);
    }
    for (uint64_t i = 0; i < THREADS; i++)
        check(pthread_join(readers[i].thread, NULL) == 0);
    expect_bounded(before, "a call in each of many threads");
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    return 0;
}
