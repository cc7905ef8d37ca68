/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the machine can do: bare pwrite and pread loops. FORMAT is the number of threads, each with
 * a file of its own (PATH.0, PATH.1) and every n-th part of a step, resp. of the whole. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "bench.h"

enum { MAX_THREADS = 16 };

typedef struct part {
    const bench *b;
    int fd;
    char *buffer;
    size_t bytes;
    off_t position;
    bool writing;
    pthread_t thread;
} part;

static void *
transfer(void *user)
{
    part *p = user;
    size_t done = 0;
    while (done < p->bytes) {
        off_t at = p->position + (off_t) done;
        ssize_t n = p->writing ? pwrite(p->fd, p->buffer + done, p->bytes - done, at)
                               : pread(p->fd, p->buffer + done, p->bytes - done, at);
        if (n <= 0)
            fail(p->writing ? "pwrite" : "pread", strerror(errno));
        done += (size_t) n;
    }
    return NULL;
}

static size_t
open_parts(const bench *b, part *parts, bool writing)
{
    size_t threads = strtoul(b->format, NULL, 10);
    if (threads < 1 || threads > MAX_THREADS)
        fail(b->format, "number of threads expected");
    for (size_t i = 0; i < threads; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s.%zu", b->path, i);
        parts[i] = (part){.b = b, .writing = writing};
        parts[i].fd = open(path, writing ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY, 0644);
        if (parts[i].fd < 0)
            fail(path, strerror(errno));
    }
    return threads;
}

/* Moves `bytes` at `position` of the whole, shared by the threads. */
static void
move(part *parts, size_t threads, void *buffer, size_t bytes, size_t position)
{
    size_t share = bytes / threads;
    for (size_t i = 0; i < threads; i++) {
        parts[i].buffer = (char *) buffer + i * share;
        parts[i].bytes = share;
        parts[i].position = (off_t) (position / threads);
    }
    for (size_t i = 1; i < threads; i++)
        if (pthread_create(&parts[i].thread, NULL, transfer, &parts[i]) != 0)
            fail("thread", "cannot start");
    transfer(&parts[0]);
    for (size_t i = 1; i < threads; i++)
        pthread_join(parts[i].thread, NULL);
}

static void
run_steps(const bench *b, bool writing, size_t steps_at_once)
{
    const size_t step_bytes = STEP_ELEMS * sizeof(float);
    float *buffer = touched(steps_at_once * step_bytes);
    part parts[MAX_THREADS];
    double total = 0;
    double t = now();
    size_t threads = open_parts(b, parts, writing);
    total += now() - t;
    for (size_t step = 0; step < b->steps; step += steps_at_once) {
        if (writing)
            fill_step(step, buffer);
        t = now();
        move(parts, threads, buffer, steps_at_once * step_bytes, step * step_bytes);
        total += now() - t;
        if (!writing && steps_at_once == 1)
            verify_step(b, step, buffer);
    }
    t = now();
    for (size_t i = 0; i < threads; i++)
        close(parts[i].fd);
    report(b, total + now() - t);
    free(buffer);
}

static void
run_points(const bench *b)
{
    part parts[MAX_THREADS];
    size_t threads = open_parts(b, parts, false);
    const size_t share = STEP_ELEMS / threads;
    double total = 0;
    for (size_t i = 0; i < POINTS; i++) {
        size_t k = point_index(i);
        double t = now();
        for (size_t step = 0; step < b->steps; step++) {
            float value;
            off_t at = (off_t) ((step * share + k % share) * sizeof value);
            if (pread(parts[k / share].fd, &value, sizeof value, at) != sizeof value)
                fail("pread", strerror(errno));
            if (value != field_value(step, k))
                fail("point", "wrong value");
        }
        total += now() - t;
    }
    report(b, total / POINTS);
}

int
main(int argc, char **argv)
{
    bench b = parse_arguments(argc, argv);
    init_field();
    if (strcmp(b.task, "write") == 0)
        run_steps(&b, true, 1);
    else if (strcmp(b.task, "read") == 0)
        run_steps(&b, false, b.steps);
    else if (strcmp(b.task, "read-steps") == 0)
        run_steps(&b, false, 1);
    else if (strcmp(b.task, "point") == 0)
        run_points(&b);
    else
        fail(b.task, "no such task");
    return 0;
}
