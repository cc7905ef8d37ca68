/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Threads that take turns under one lock, as programs do because libnetcdf is not safe for threads:
 * what one thread opened another one reads, synchronises and closes, also when the first has ended.
 * The turns go round, and what is done in each comes from a fixed sequence of numbers, so that
 * every run makes the same calls. Every read is compared with what the containers should hold. */

#include <netcdf.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "own_site.h"

enum {
    CONTAINERS = 3,
    READERS = 4,
    RECORDS = 8,
    LENGTH = 20000, /* of a record, so that it is written by the pool */
    THREADS = 4,
    TURNS = 75, /* of a thread; then another one takes its place */
    GENERATIONS = 3,
    CLOSED = -1,
    LIVE = -1
};

/* What a container holds: every record counts up from its stamp. */
typedef struct content {
    int records;
    int stamps[RECORDS];
    int mark; /* the global attribute */
} content;

typedef struct container {
    char path[60];
    int writer;  /* ncid */
    int version; /* of what nc_create() made */
    content live;
    content committed;
} container;

typedef struct reader {
    int ncid;
    int of;
    int version;
    bool live; /* shares the container of the writer in this process */
    content content;
} reader;

/* All of it is guarded by `turn_lock`. */
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_over = PTHREAD_COND_INITIALIZER;
static int turn;
static int failed_line;
static container containers[CONTAINERS];
static reader readers[READERS];
static uint64_t state;
static int stamp;
static int done[7]; /* actions of each kind */

#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "turn %d: %s is not so\n", turn, #condition);                          \
            failed_line = __LINE__;                                                                \
            return;                                                                                \
        }                                                                                          \
    } while (0)

static int
pick(int below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int) ((state >> 33) % (unsigned) below);
}

/* NC_NOERR when the handle shows that content. */
static int
check(int ncid, const content *wanted)
{
    static int values[RECORDS * LENGTH];
    size_t records = 0;
    int mark = 0;
    int rc = nc_inq_dimlen(ncid, 0, &records);
    if (rc == NC_NOERR && records != (size_t) wanted->records)
        return -1000;
    if (rc == NC_NOERR)
        rc = nc_get_att_int(ncid, NC_GLOBAL, "mark", &mark);
    if (rc == NC_NOERR && mark != wanted->mark)
        return -1001;
    if (rc == NC_NOERR)
        rc = nc_get_var_int(ncid, 0, values);
    for (int r = 0; rc == NC_NOERR && r < wanted->records; r++)
        for (int i = 0; i < LENGTH; i++)
            if (values[r * LENGTH + i] != wanted->stamps[r] + i)
                return -1002;
    return rc;
}

/* Readers that share the container of a writer that ends stay at what it wrote last. */
static void
freeze(int of)
{
    for (int i = 0; i < READERS; i++) {
        reader *r = &readers[i];
        if (r->ncid != CLOSED && r->of == of && r->live) {
            r->content = containers[of].live;
            r->live = false;
        }
    }
}

static void
open_writer(container *c)
{
    NEED(nc_open(c->path, NC_WRITE, &c->writer) == NC_NOERR);
}

static void
write_record(container *c)
{
    static int values[LENGTH];
    int at = pick(c->live.records < RECORDS ? c->live.records + 1 : RECORDS);
    stamp += LENGTH;
    for (int i = 0; i < LENGTH; i++)
        values[i] = stamp + i;
    NEED(nc_put_vara_int(c->writer, 0, (size_t[]){(size_t) at, 0}, (size_t[]){1, LENGTH}, values) ==
         NC_NOERR);
    c->live.stamps[at] = stamp;
    c->live.records = at < c->live.records ? c->live.records : at + 1;
}

static void
change(container *c)
{
    stamp++;
    NEED(nc_put_att_int(c->writer, NC_GLOBAL, "mark", NC_INT, 1, &stamp) == NC_NOERR);
    c->live.mark = stamp;
}

static void
close_writer(container *c, int of)
{
    NEED(nc_close(c->writer) == NC_NOERR);
    c->writer = CLOSED;
    c->committed = c->live;
    freeze(of);
}

/* A new container in place of the old one, which its readers keep. */
static void
replace(container *c)
{
    int dims[2];
    NEED(nc_create(c->path, NC_NETCDF4, &c->writer) == NC_NOERR);
    NEED(nc_def_dim(c->writer, "time", NC_UNLIMITED, &dims[0]) == NC_NOERR);
    NEED(nc_def_dim(c->writer, "x", LENGTH, &dims[1]) == NC_NOERR);
    NEED(nc_def_var(c->writer, "v", NC_INT, 2, dims, NULL) == NC_NOERR);
    c->live = (content){0};
    c->version++;
    change(c);
    if (failed_line == 0)
        NEED(nc_sync(c->writer) == NC_NOERR);
    c->committed = c->live;
}

static void
use_writer(container *c, int of)
{
    if (c->writer == CLOSED && pick(8) == 0) {
        done[0]++;
        replace(c);
        return;
    }
    if (c->writer == CLOSED)
        open_writer(c);
    if (failed_line != 0)
        return;
    switch (pick(8)) {
    case 0:
        done[1]++;
        close_writer(c, of);
        break;
    case 1:
        done[2]++;
        NEED(nc_sync(c->writer) == NC_NOERR);
        c->committed = c->live;
        break;
    case 2:
        change(c);
        break;
    case 3:
        NEED(check(c->writer, &c->live) == NC_NOERR);
        break;
    default:
        done[3]++;
        write_record(c);
    }
}

static void
open_reader(reader *r)
{
    r->of = pick(CONTAINERS);
    const container *c = &containers[r->of];
    NEED(nc_open(c->path, NC_NOWRITE, &r->ncid) == NC_NOERR);
    r->version = c->version;
    r->live = c->writer != CLOSED;
    r->content = c->committed;
}

static void
use_reader(reader *r)
{
    if (r->ncid == CLOSED) {
        open_reader(r);
        return;
    }
    const container *c = &containers[r->of];
    switch (pick(6)) {
    case 0:
        done[4]++;
        NEED(nc_close(r->ncid) == NC_NOERR);
        r->ncid = CLOSED;
        break;
    case 1:
        done[5]++;
        NEED(nc_sync(r->ncid) == NC_NOERR);
        if (!r->live && r->version == c->version)
            r->content = c->committed;
        break;
    default:
        done[6]++;
        NEED(check(r->ncid, r->live ? &c->live : &r->content) == NC_NOERR);
    }
}

static void
take_turn(void)
{
    if (pick(2) == 0) {
        int of = pick(CONTAINERS);
        use_writer(&containers[of], of);
    } else {
        use_reader(&readers[pick(READERS)]);
    }
}

static void *
run(void *argument)
{
    int me = *(const int *) argument;
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&turn_lock);
        while (turn % THREADS != me)
            pthread_cond_wait(&turn_over, &turn_lock);
        if (failed_line == 0)
            take_turn();
        turn++;
        pthread_cond_broadcast(&turn_over);
        pthread_mutex_unlock(&turn_lock);
    }
    return NULL;
}

static void
begin(const char *prefix, uint64_t seed)
{
    turn = failed_line = stamp = 0;
    state = seed;
    memset(containers, 0, sizeof containers);
    memset(done, 0, sizeof done);
    for (int i = 0; i < CONTAINERS; i++) {
        container *c = &containers[i];
        snprintf(c->path, sizeof c->path, "%s%d.nc", prefix, i);
        replace(c);
        assert_int_equal(failed_line, 0);
        close_writer(c, i);
        assert_int_equal(failed_line, 0);
    }
    for (int i = 0; i < READERS; i++)
        readers[i] = (reader){.ncid = CLOSED};
}

static void
finish(void)
{
    for (int i = 0; i < READERS; i++)
        if (readers[i].ncid != CLOSED)
            assert_int_equal(nc_close(readers[i].ncid), NC_NOERR);
    for (int i = 0; i < CONTAINERS; i++) {
        container *c = &containers[i];
        int ncid;
        if (c->writer != CLOSED)
            close_writer(c, i);
        assert_int_equal(failed_line, 0);
        assert_int_equal(nc_open(c->path, NC_NOWRITE, &ncid), NC_NOERR);
        assert_int_equal(check(ncid, &c->committed), NC_NOERR);
        assert_int_equal(nc_close(ncid), NC_NOERR);
    }
    for (size_t i = 0; i < sizeof done / sizeof *done; i++)
        assert_true(done[i] > 0); /* the numbers lead everywhere */
}

static void
test_threads__handles_go_from_one_to_the_next(void **unused)
{
    (void) unused;
    begin("esdm://turns/", 20261120);
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t threads[THREADS];
        int numbers[THREADS];
        for (int i = 0; i < THREADS; i++) {
            numbers[i] = i;
            assert_int_equal(pthread_create(&threads[i], NULL, run, &numbers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(failed_line, 0);
    }
    assert_int_equal(turn, THREADS * TURNS * GENERATIONS);
    finish();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads__handles_go_from_one_to_the_next),
    };
    return cmocka_run_group_tests_name("nc_turns", tests, make_site, remove_site);
}
