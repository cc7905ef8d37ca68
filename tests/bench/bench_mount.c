/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What esdm-mount costs; mount.py runs it.
 *
 *     bench_mount make NAME MIB         a variable of so many MiB of float32, in steps of 8 MiB
 *     bench_mount empty NAME GIB        a variable of so many GiB that nobody has written
 *     bench_mount container NAME        reads all of it through the API, step by step
 *     bench_mount file PATH READERS     reads the file from its beginning to its end by read() of 1
 * MiB, so often at the same time bench_mount first PATH            opens it, and reads a byte in
 * its middle bench_mount evict PATH…           takes files out of the kernel's memory
 *
 * Prints seconds, and how many bytes were read: opening is part of it, starting the process is not.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "esdm/esdm.h"

enum { ROWS = 1024, COLUMNS = 2048, STEP_MIB = ROWS * COLUMNS * 4 >> 20, MOST_READERS = 64 };
#define PIECE (1u << 20)

static esdm_error err;

static double
now(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static void
ok(esdm_status status)
{
    if (status != ESDM_OK) {
        (void) fprintf(stderr, "%s: %s\n", esdm_status_string(status), err.message);
        exit(1);
    }
}

static void
needs(bool right, const char *what)
{
    if (!right) {
        perror(what);
        exit(1);
    }
}

static esdm_session *
open_session(void)
{
    esdm_session *session;
    ok(esdm_session_open(NULL, &session, &err));
    return session;
}

/* Memory whose pages are there already. */
static void *
touched(size_t bytes)
{
    void *memory = NULL;
    needs(posix_memalign(&memory, 4096, bytes) == 0, "no memory");
    memset(memory, 1, bytes);
    return memory;
}

static void
make(const char *name, uint64_t mib, bool empty)
{
    esdm_session *session = open_session();
    esdm_container *container;
    esdm_dataset *dataset;
    esdm_dimension *dims[3];
    uint64_t steps = mib / STEP_MIB;
    float *buffer = touched((size_t) ROWS * COLUMNS * sizeof *buffer);
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, &err));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "time", empty ? steps : ESDM_UNLIMITED, &dims[0], &err));
    ok(esdm_dimension_create(root, "y", ROWS, &dims[1], &err));
    ok(esdm_dimension_create(root, "x", COLUMNS, &dims[2], &err));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 3, dims, &dataset, &err));
    for (uint64_t i = 0; i < (empty ? 0 : steps); i++) {
        esdm_dataspace space;
        for (uint64_t k = 0; k < (uint64_t) ROWS * COLUMNS; k++) /* smooth, with some noise */
            buffer[k] = 280 + (float) ((k / COLUMNS + i) % 512) * 0.05F +
                        (float) (k % COLUMNS % 700) * 0.02F +
                        (float) ((k + i) * 2654435761U >> 20 & 255) * 0.001F;
        ok(esdm_dataspace_init(&space, 3, (uint64_t[]){i, 0, 0}, (uint64_t[]){1, ROWS, COLUMNS},
                               &err));
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, buffer, NULL, &err));
    }
    ok(esdm_container_close(container, &err));
    esdm_session_close(session);
}

static uint64_t
read_container(const char *name)
{
    esdm_session *session = open_session();
    esdm_container *container;
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, &err));
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    uint64_t steps = esdm_dimension_length(esdm_dataset_dimension(dataset, 0)), read_bytes = 0;
    static float *buffer;
    buffer = touched((size_t) ROWS * COLUMNS * sizeof *buffer);
    for (uint64_t i = 0; i < steps; i++) {
        esdm_dataspace space;
        ok(esdm_dataspace_init(&space, 3, (uint64_t[]){i, 0, 0}, (uint64_t[]){1, ROWS, COLUMNS},
                               &err));
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, buffer, NULL, &err));
        read_bytes += (uint64_t) STEP_MIB << 20;
    }
    ok(esdm_container_close(container, &err));
    esdm_session_close(session);
    return read_bytes;
}

static void *
read_file(void *user)
{
    const char *path = user;
    int fd = open(path, O_RDONLY);
    needs(fd >= 0, path);
    char *buffer = touched(PIECE);
    uintptr_t total = 0;
    for (ssize_t got = 1; got > 0; total += (uintptr_t) got) {
        got = read(fd, buffer, PIECE);
        needs(got >= 0, path);
    }
    (void) close(fd);
    free(buffer);
    return (void *) total; /* NOLINT(performance-no-int-to-ptr) */
}

static uint64_t
read_by_several(char *path, int readers)
{
    pthread_t threads[MOST_READERS];
    uint64_t total = 0;
    for (int i = 0; i < readers; i++)
        needs(pthread_create(&threads[i], NULL, read_file, path) == 0, "thread");
    for (int i = 0; i < readers; i++) {
        void *got;
        (void) pthread_join(threads[i], &got);
        total += (uintptr_t) got;
    }
    return total;
}

static uint64_t
read_first(const char *path)
{
    char byte;
    struct stat st;
    int fd = open(path, O_RDONLY);
    needs(fd >= 0 && fstat(fd, &st) == 0, path);
    needs(pread(fd, &byte, 1, st.st_size / 2) == 1, path);
    (void) close(fd);
    return (uint64_t) st.st_size;
}

static void
evict(int count, char **paths)
{
    for (int i = 0; i < count; i++) {
        int fd = open(paths[i], O_RDONLY);
        needs(fd >= 0, paths[i]);
        (void) fdatasync(fd);
        (void) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        (void) close(fd);
    }
}

int
main(int argc, char **argv)
{
    const char *task = argc > 2 ? argv[1] : "";
    int number = argc > 3 ? atoi(argv[3]) : 1;
    uint64_t bytes = 0;
    double begun = now();
    if (strcmp(task, "make") == 0)
        make(argv[2], (uint64_t) number, false);
    else if (strcmp(task, "empty") == 0)
        make(argv[2], (uint64_t) number << 10, true);
    else if (strcmp(task, "container") == 0)
        bytes = read_container(argv[2]);
    else if (strcmp(task, "file") == 0 && number > 0 && number <= MOST_READERS)
        bytes = read_by_several(argv[2], number);
    else if (strcmp(task, "first") == 0)
        bytes = read_first(argv[2]);
    else if (strcmp(task, "evict") == 0)
        evict(argc - 2, argv + 2);
    else
        return 2;
    printf("%.6f %" PRIu64 "\n", now() - begun, bytes);
    return 0;
}
