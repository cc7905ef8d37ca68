/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* nc_threads PREFIX THREADS ROUNDS [SECONDS]: each thread opens, reads and closes data sets of its
 * own, and now and then makes one. Then all append records to one data set, each to its own
 * variable. Ends with 1 when a call fails or gives another thread's data; with SECONDS after that
 * time, however many rounds that are. Knows nothing of ESDM.
 *
 * libnetcdf allocates its list of open files with the first file and frees it with the last one.
 * Here that allocation takes long, so that two threads meet in it wherever nothing keeps them
 * apart. */

#include <netcdf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, FILES = 3, VALUES = 5, MAKE_EVERY = 16, TOLD_MAX = 10, RECORDS = 500 };
enum { LIST_BYTES = 0x10000 * sizeof(void *), LIST_TAKES_US = 2000 };

static const char *prefix;
static int rounds;
static double until; /* 0: never */
static pthread_barrier_t ready;
static atomic_int failures;
static atomic_int opened;

/* In place of libc's, for all libraries. */
void *
calloc(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    if (count * size == LIST_BYTES)
        (void) usleep(LIST_TAKES_US);
    void *memory = malloc(count * size);
    return memory == NULL ? NULL : memset(memory, 0, count * size);
}

static double
now(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void
failed(int thread, const char *what, int rc)
{
    if (atomic_fetch_add(&failures, 1) < TOLD_MAX)
        (void) fprintf(stderr, "thread %d: %s: %s\n", thread, what,
                       rc == NC_NOERR ? "another's data" : nc_strerror(rc));
}

static bool
good(int thread, const char *what, int rc)
{
    if (rc != NC_NOERR)
        failed(thread, what, rc);
    return rc == NC_NOERR;
}
#define GOOD(call) good(thread, #call, (call))

static void
path_of(int thread, int file, char *ret, size_t size)
{
    (void) snprintf(ret, size, "%s%d-%d.nc", prefix, thread, file);
}

static int
value_of(int thread, int file, int i)
{
    return 10000 * thread + 100 * file + i;
}

static bool
make(int thread, int file)
{
    char path[1000];
    int data[VALUES];
    int ncid, dim, var;
    path_of(thread, file, path, sizeof path);
    for (int i = 0; i < VALUES; i++)
        data[i] = value_of(thread, file, i);
    if (!GOOD(nc_create(path, NC_CLOBBER, &ncid)))
        return false;
    bool ok = GOOD(nc_def_dim(ncid, "x", VALUES, &dim)) &&
              GOOD(nc_def_var(ncid, "v", NC_INT, 1, &dim, &var)) && GOOD(nc_enddef(ncid)) &&
              GOOD(nc_put_var_int(ncid, var, data));
    return GOOD(nc_close(ncid)) && ok;
}

static void
look(int thread, int file)
{
    char path[1000];
    int data[VALUES] = {0};
    int ncid, var;
    path_of(thread, file, path, sizeof path);
    if (!GOOD(nc_open(path, NC_NOWRITE, &ncid)))
        return;
    atomic_fetch_add(&opened, 1);
    if (GOOD(nc_inq_varid(ncid, "v", &var)) && GOOD(nc_get_var_int(ncid, var, data)))
        for (int i = 0; i < VALUES; i++)
            if (data[i] != value_of(thread, file, i)) {
                failed(thread, "nc_get_var_int", NC_NOERR);
                break;
            }
    (void) GOOD(nc_close(ncid));
}

static void *
work(void *user)
{
    int thread = *(const int *) user;
    (void) pthread_barrier_wait(&ready); /* the very first call comes from all at once */
    for (int file = 0; file < FILES; file++)
        (void) make(thread, file);
    for (int round = 0; until > 0 ? now() < until : round < rounds; round++) {
        if (round % MAKE_EVERY == 0)
            (void) make(thread, round % FILES);
        look(thread, round % FILES);
    }
    return NULL;
}

/* ---- one data set --------------------------------------------------------------------------- */

static int shared;                 /* its ncid */
static int variables[THREADS_MAX]; /* of threads */

static void *
append(void *user)
{
    int thread = *(const int *) user;
    (void) pthread_barrier_wait(&ready);
    for (size_t i = 0; i < RECORDS; i++) {
        int value = value_of(thread, 0, (int) i);
        if (!GOOD(nc_put_var1_int(shared, variables[thread], &i, &value)))
            break;
    }
    return NULL;
}

static bool
make_shared(const char *path, int threads)
{
    int dim;
    if (!good(0, "nc_create", nc_create(path, NC_CLOBBER | NC_64BIT_DATA, &shared)))
        return false;
    bool ok = good(0, "nc_def_dim", nc_def_dim(shared, "time", NC_UNLIMITED, &dim));
    for (int i = 0; i < threads && ok; i++) {
        char name[16];
        (void) snprintf(name, sizeof name, "v%d", i);
        ok = good(i, "nc_def_var", nc_def_var(shared, name, NC_INT, 1, &dim, &variables[i]));
    }
    return ok && good(0, "nc_enddef", nc_enddef(shared));
}

static void
check_shared(const char *path, int threads)
{
    int data[RECORDS] = {0};
    if (!good(0, "nc_open", nc_open(path, NC_NOWRITE, &shared)))
        return;
    for (int thread = 0; thread < threads; thread++) {
        if (GOOD(nc_get_var_int(shared, variables[thread], data)))
            for (int i = 0; i < RECORDS; i++)
                if (data[i] != value_of(thread, 0, i)) {
                    failed(thread, "records", NC_NOERR);
                    break;
                }
    }
    (void) good(0, "nc_close", nc_close(shared));
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool
run_threads(void *(*what)(void *), int count)
{
    pthread_t threads[THREADS_MAX];
    static int numbers[THREADS_MAX];
    (void) pthread_barrier_init(&ready, NULL, (unsigned) count);
    for (int i = 0; i < count; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, what, &numbers[i]) != 0)
            return false;
    }
    for (int i = 0; i < count; i++)
        (void) pthread_join(threads[i], NULL);
    (void) pthread_barrier_destroy(&ready);
    return true;
}

int
main(int argc, char **argv)
{
    char path[1000];
    int count = argc > 3 ? atoi(argv[2]) : 0;
    if (count < 1 || count > THREADS_MAX)
        return 2;
    prefix = argv[1];
    rounds = atoi(argv[3]);
    until = argc > 4 ? now() + atof(argv[4]) : 0;
    if (!run_threads(work, count))
        return 2;
    (void) snprintf(path, sizeof path, "%sshared.nc", prefix);
    if (make_shared(path, count)) {
        if (!run_threads(append, count))
            return 2;
        if (good(0, "nc_close", nc_close(shared)))
            check_shared(path, count);
    }
    printf("%d opened, %d failures\n", atomic_load(&opened), atomic_load(&failures));
    return atomic_load(&failures) != 0;
}
