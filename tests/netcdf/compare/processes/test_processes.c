/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the dispatcher does beyond single calls: forks, exits without nc_close(), threads, removed
 * and replaced containers, many open files. */

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netcdf.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_site.h"

#if defined(__SANITIZE_ADDRESS__)
/* A forked child cannot close what it inherited. */
extern __attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *
__lsan_default_suppressions(void)
{
    return "leak:libhdf5\nleak:esdm_\nleak:sqlite\n";
}
#endif

enum { LENGTH = 1000 };

static void
make(const char *path, int value)
{
    int ncid;
    int x;
    int v;
    int data[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        data[i] = value + i;
    assert_int_equal(nc_create(path, NC_NETCDF4, &ncid), NC_NOERR);
    assert_int_equal(nc_def_dim(ncid, "x", LENGTH, &x), NC_NOERR);
    assert_int_equal(nc_def_var(ncid, "v", NC_INT, 1, &x, &v), NC_NOERR);
    assert_int_equal(nc_put_var_int(ncid, v, data), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

/* NC_NOERR when the variable holds value, value+1, … */
static int
check(int ncid, int value)
{
    int data[LENGTH];
    int rc = nc_get_var_int(ncid, 0, data);
    for (int i = 0; rc == NC_NOERR && i < LENGTH; i++)
        if (data[i] != value + i)
            rc = -1000;
    return rc;
}

static void
check_file(const char *path, int value)
{
    int ncid;
    assert_int_equal(nc_open(path, NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(check(ncid, value), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

/* Exit status of a child that runs the function. */
static int
in_child(int (*run)(int), int argument)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        exit(run(argument));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int
child_reads(int ncid)
{
    if (check(ncid, 10) != NC_NOERR)
        return 1;
    return nc_close(ncid) == NC_NOERR ? 0 : 2;
}

static void
test_fork__child_reads_what_the_parent_opened(void **state)
{
    (void) state;
    int ncid;
    make("esdm://processes/fork.nc", 10);
    assert_int_equal(nc_open("esdm://processes/fork.nc", NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(check(ncid, 10), NC_NOERR);
    assert_int_equal(in_child(child_reads, ncid), 0);
    assert_int_equal(check(ncid, 10), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they walk by themselves */
static atomic_int walks;

static int
pass_by(struct dl_phdr_info *info, size_t size, void *user)
{
    (void) info;
    (void) size;
    (void) user;
    return 0;
}

/* As a profiler that unwinds, or a thread that loads one library after the other. */
static void *
walk_over_libraries(void *user)
{
    while (atomic_load(&walks))
        (void) dl_iterate_phdr(pass_by, user);
    return NULL;
}

static int
child_opens(int argument)
{
    (void) argument;
    (void) alarm(20); /* SIGALRM ends one that waits for a lock that nobody gives back */
    int fd = open("esdm://processes/walked.nc", O_RDONLY | O_CLOEXEC);
    _exit(fd >= 0 ? 0 : 1);
}

static void
test_fork__child_opens_while_a_thread_held_the_linkers_lock(void **state)
{
    (void) state;
    pthread_t thread;
    make("esdm://processes/walked.nc", 10);
    atomic_store(&walks, 1);
    assert_int_equal(pthread_create(&thread, NULL, walk_over_libraries, NULL), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(in_child(child_opens, 0), 0);
    atomic_store(&walks, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}
#endif

static void
overwrite(const char *path, int value)
{
    int ncid;
    int data[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        data[i] = value + i;
    assert_int_equal(nc_open(path, NC_WRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_put_var_int(ncid, 0, data), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_fork__child_stays_at_the_snapshot(void **state)
{
    (void) state;
    int ncid;
    make("esdm://processes/fork_old.nc", 10);
    assert_int_equal(nc_open("esdm://processes/fork_old.nc", NC_NOWRITE, &ncid), NC_NOERR);
    overwrite("esdm://processes/fork_old.nc", 5000);
    assert_int_equal(in_child(child_reads, ncid), 0);
    assert_int_equal(check(ncid, 10), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    check_file("esdm://processes/fork_old.nc", 5000);
}

static int
child_is_refused(int ncid)
{
    if (check(ncid, 10) == NC_NOERR)
        return 1;
    int data[LENGTH] = {0};
    if (nc_get_var_int(ncid, 0, data) != NC_ECANTREAD)
        return 2; /* not the values of the new container */
    return nc_close(ncid) == NC_NOERR ? 0 : 3;
}

static void
test_fork__child_cannot_read_a_replaced_container(void **state)
{
    (void) state;
    int ncid;
    make("esdm://processes/fork_new.nc", 10);
    assert_int_equal(nc_open("esdm://processes/fork_new.nc", NC_NOWRITE, &ncid), NC_NOERR);
    make("esdm://processes/fork_new.nc", 5000);
    assert_int_equal(in_child(child_is_refused, ncid), 0);
    assert_int_equal(check(ncid, 10), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static int
child_writes(int ncid)
{
    int data[LENGTH] = {0};
    if (nc_put_var_int(ncid, 0, data) == NC_NOERR)
        return 1; /* would be lost */
    if (nc_close(ncid) != NC_NOERR)
        return 2;
    make("esdm://processes/of_child.nc", 3);
    return 0;
}

static int
child_sees(int value)
{
    int ncid;
    if (nc_open("esdm://processes/fork_write.nc", NC_NOWRITE, &ncid) != NC_NOERR)
        return 1;
    return check(ncid, value) != NC_NOERR || nc_close(ncid) != NC_NOERR;
}

static void
test_fork__child_cannot_write_to_the_parents_file(void **state)
{
    (void) state;
    int ncid;
    int data[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        data[i] = 70 + i;
    make("esdm://processes/fork_write.nc", 20);
    assert_int_equal(nc_open("esdm://processes/fork_write.nc", NC_WRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_put_var_int(ncid, 0, data), NC_NOERR);
    assert_int_equal(in_child(child_writes, ncid), 0);
    assert_int_equal(in_child(child_sees, 20), 0);
    check_file("esdm://processes/of_child.nc", 3);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    check_file("esdm://processes/fork_write.nc", 70);
}

static int
child_forgets_to_close(int value)
{
    int ncid;
    int x;
    int v;
    int data[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        data[i] = value + i;
    if (nc_create("esdm://processes/unclosed.nc", NC_CLOBBER, &ncid) != NC_NOERR ||
        nc_def_dim(ncid, "x", LENGTH, &x) != NC_NOERR ||
        nc_def_var(ncid, "v", NC_INT, 1, &x, &v) != NC_NOERR)
        return 1;
    if (value < 0)
        return 0; /* in the middle of the definitions */
    return nc_enddef(ncid) != NC_NOERR || nc_put_var_int(ncid, v, data) != NC_NOERR;
}

static void
test_exit__data_is_committed_without_close(void **state)
{
    (void) state;
    int ncid;
    assert_int_equal(in_child(child_forgets_to_close, -1), 0);
    assert_int_equal(nc_open("esdm://processes/unclosed.nc", NC_NOWRITE, &ncid), ENOENT);
    assert_int_equal(in_child(child_forgets_to_close, 400), 0);
    check_file("esdm://processes/unclosed.nc", 400);
}

static int
child_makes_a_stub(int finish)
{
    int ncid;
    char path[120];
    snprintf(path, sizeof path, "%s/stub.nc", folder);
    if (nc_create(path, NC_CLOBBER, &ncid) != NC_NOERR || access(path, F_OK) != 0)
        return 1;
    return finish ? nc_enddef(ncid) != NC_NOERR : 0;
}

static void
test_exit__a_container_that_was_not_defined_leaves_no_stub(void **state)
{
    (void) state;
    char path[120];
    snprintf(path, sizeof path, "%s/stub.nc", folder);
    assert_int_equal(setenv("ESDM_NC_ROUTE", folder, 1), 0);
    assert_int_equal(in_child(child_makes_a_stub, 0), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(in_child(child_makes_a_stub, 1), 0);
    assert_int_equal(unsetenv("ESDM_NC_ROUTE"), 0);
    assert_int_equal(access(path, F_OK), 0);
    int ncid;
    assert_int_equal(nc_open(path, NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_remove__an_open_container_stays_readable(void **state)
{
    (void) state;
    int ncid;
    make("esdm://processes/removed.nc", 1);
    assert_int_equal(nc_open("esdm://processes/removed.nc", NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_delete("esdm://processes/removed.nc"), NC_NOERR);
    assert_int_equal(nc_sync(ncid), NC_NOERR);
    assert_int_equal(check(ncid, 1), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(nc_open("esdm://processes/removed.nc", NC_NOWRITE, &ncid), ENOENT);
    assert_int_equal(nc_delete("esdm://processes/removed.nc"), ENOENT);
}

static void
test_replace__a_reader_keeps_the_old_container(void **state)
{
    (void) state;
    int ncid;
    make("esdm://processes/replaced.nc", 1);
    assert_int_equal(nc_open("esdm://processes/replaced.nc", NC_NOWRITE, &ncid), NC_NOERR);
    make("esdm://processes/replaced.nc", 2);
    assert_int_equal(check(ncid, 1), NC_NOERR);
    assert_int_equal(nc_sync(ncid), NC_NOERR);
    assert_int_equal(check(ncid, 1), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    check_file("esdm://processes/replaced.nc", 2);
}

/* A writer in a process of its own, which takes one step for each byte it is sent and answers each
 * with one. */
typedef struct model {
    pid_t pid;
    int to;
    int from;
} model;

static int
append(int ncid, int varid, size_t record)
{
    double value = 100.0 * (double) varid + (double) record;
    int rc = nc_put_var1_double(ncid, varid, &record, &value);
    return rc == NC_NOERR ? nc_sync(ncid) : rc;
}

static int
model_step(int step, int *ncid)
{
    int time = 0;
    int rc = NC_NOERR;
    switch (step) {
    case 0:
        rc = nc_create("esdm://processes/model.nc", NC_NETCDF4, ncid);
        if (rc == NC_NOERR)
            rc = nc_def_dim(*ncid, "time", NC_UNLIMITED, &time);
        if (rc == NC_NOERR)
            rc = nc_def_var(*ncid, "a", NC_DOUBLE, 1, &time, NULL);
        return rc == NC_NOERR ? nc_sync(*ncid) : rc;
    case 3:
        rc = nc_def_var(*ncid, "b", NC_DOUBLE, 1, &time, NULL);
        if (rc == NC_NOERR)
            rc = nc_put_att_text(*ncid, 0, "units", 1, "K");
        if (rc == NC_NOERR)
            rc = nc_rename_var(*ncid, 0, "c");
        return rc == NC_NOERR ? append(*ncid, 1, 0) : rc;
    case 5:
        return nc_close(*ncid);
    default:
        return append(*ncid, 0, (size_t) step - (step > 3 ? 2 : 1));
    }
}

static void
model_run(const model *m)
{
    char step;
    int ncid = -1;
    while (read(m->to, &step, 1) == 1) {
        int rc = model_step(step, &ncid);
        if (rc != NC_NOERR)
            fprintf(stderr, "step %d: %s\n", step, nc_strerror(rc));
        step = rc == NC_NOERR ? 'y' : 'n';
        if (write(m->from, &step, 1) != 1)
            break;
    }
}

static model
model_start(void)
{
    int to[2];
    int from[2];
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(to[1]);
        model_run(&(model){0, to[0], from[1]});
        exit(0);
    }
    close(to[0]);
    close(from[1]);
    return (model){pid, to[1], from[0]};
}

static void
model_do(const model *m, char step)
{
    char answer = 0;
    assert_int_equal(write(m->to, &step, 1), 1);
    assert_int_equal(read(m->from, &answer, 1), 1);
    assert_int_equal(answer, 'y');
}

static void
check_records(int ncid, const char *name, size_t records, double first)
{
    int varid;
    size_t length = 0;
    double values[10];
    assert_int_equal(nc_inq_varid(ncid, name, &varid), NC_NOERR);
    assert_int_equal(nc_inq_dimlen(ncid, 0, &length), NC_NOERR);
    assert_int_equal(length, records);
    assert_int_equal(nc_get_var_double(ncid, varid, values), NC_NOERR);
    for (size_t i = 0; i < records; i++)
        assert_true(values[i] == first + (double) i);
}

static void
test_sync__a_reader_follows_a_model(void **state)
{
    (void) state;
    int ncid;
    int varid;
    char units = ' ';
    model m = model_start();
    model_do(&m, 0);
    assert_int_equal(nc_open("esdm://processes/model.nc", NC_NOWRITE, &ncid), NC_NOERR);
    check_records(ncid, "a", 0, 0);
    model_do(&m, 1);
    check_records(ncid, "a", 0, 0); /* until it asks */
    assert_int_equal(nc_sync(ncid), NC_NOERR);
    check_records(ncid, "a", 1, 0);
    model_do(&m, 2);
    model_do(&m, 3); /* new structure */
    check_records(ncid, "a", 1, 0);
    assert_int_equal(nc_inq_varid(ncid, "b", &varid), NC_ENOTVAR);
    assert_int_equal(nc_sync(ncid), NC_NOERR);
    check_records(ncid, "c", 2, 0);
    assert_int_equal(nc_inq_varid(ncid, "a", &varid), NC_ENOTVAR);
    assert_int_equal(nc_inq_varid(ncid, "b", &varid), NC_NOERR);
    assert_int_equal(varid, 1);
    assert_int_equal(nc_get_att_text(ncid, 0, "units", &units), NC_NOERR);
    assert_int_equal(units, 'K');
    model_do(&m, 4);
    assert_int_equal(nc_sync(ncid), NC_NOERR);
    check_records(ncid, "c", 3, 0);
    model_do(&m, 5);
    assert_int_equal(nc_sync(ncid), NC_NOERR);
    check_records(ncid, "c", 3, 0);
    /* Replaced: the reader keeps the old one, whether the new one looks alike or not. */
    model_do(&m, 0);
    assert_int_equal(nc_sync(ncid), NC_NOERR);
    check_records(ncid, "c", 3, 0);
    model_do(&m, 1);
    model_do(&m, 2);
    model_do(&m, 3);
    assert_int_equal(nc_sync(ncid), NC_NOERR);
    check_records(ncid, "c", 3, 0);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    close(m.to);
    close(m.from);
    assert_int_equal(waitpid(m.pid, NULL, 0), m.pid);
}

static void
test_abort__takes_away_what_was_to_be_replaced(void **state)
{
    (void) state;
    const char *path = "esdm://processes/abort.nc";
    int ncid;
    int reader;
    make(path, 1);
    assert_int_equal(nc_open(path, NC_NOWRITE, &reader), NC_NOERR);
    assert_int_equal(nc_create(path, NC_CLOBBER, &ncid), NC_NOERR);
    assert_int_equal(nc_abort(ncid), NC_NOERR);
    assert_int_equal(check(reader, 1), NC_NOERR); /* as an unlinked file */
    assert_int_equal(nc_close(reader), NC_NOERR);
    assert_int_equal(nc_open(path, NC_NOWRITE, &ncid), ENOENT);
}

static void
test_abort__leaves_what_others_made_meanwhile(void **state)
{
    (void) state;
    const char *path = "esdm://processes/abort.nc";
    int ncid;
    make(path, 1);
    assert_int_equal(nc_create(path, NC_CLOBBER, &ncid), NC_NOERR);
    make(path, 2);
    assert_int_equal(nc_abort(ncid), NC_NOERR);
    check_file(path, 2);
}

static void
test_diskless__is_dropped_without_persist(void **state)
{
    (void) state;
    int ncid;
    make("esdm://processes/diskless.nc", 1);
    int data[LENGTH] = {0};
    assert_int_equal(nc_open("esdm://processes/diskless.nc", NC_WRITE | NC_DISKLESS, &ncid),
                     NC_NOERR);
    assert_int_equal(nc_put_var_int(ncid, 0, data), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    check_file("esdm://processes/diskless.nc", 1);
}

static void
test_table__many_files_at_once(void **state)
{
    (void) state;
    enum { FILES = 600 };
    static int ncids[FILES];
    make("esdm://processes/many.nc", 9);
    for (int i = 0; i < FILES; i++)
        assert_int_equal(nc_open("esdm://processes/many.nc", NC_NOWRITE, &ncids[i]), NC_NOERR);
    for (int i = 0; i < FILES; i += 37)
        assert_int_equal(check(ncids[i], 9), NC_NOERR);
    for (int i = 0; i < FILES; i++)
        assert_int_equal(nc_close(ncids[i]), NC_NOERR);
    assert_int_equal(nc_close(ncids[0]), NC_EBADID);
}

static void
test_readers__share_what_this_process_writes(void **state)
{
    (void) state;
    int writer;
    int reader;
    int dim = -1;
    make("esdm://processes/both.nc", 1);
    assert_int_equal(nc_create("esdm://processes/both.nc", NC_NETCDF4, &writer), NC_NOERR);
    assert_int_equal(nc_def_dim(writer, "new", 7, NULL), NC_NOERR);
    assert_int_equal(nc_open("esdm://processes/both.nc", NC_NOWRITE, &reader), NC_NOERR);
    assert_int_equal(nc_inq_dimid(reader, "new", &dim), NC_NOERR);
    assert_int_equal(nc_def_var(writer, "late", NC_INT, 1, &dim, NULL), NC_NOERR);
    assert_int_equal(nc_sync(reader), NC_NOERR);
    assert_int_equal(nc_inq_varid(reader, "late", &dim), NC_NOERR);
    assert_int_equal(nc_close(writer), NC_NOERR);
    assert_int_equal(nc_inq_varname(reader, 0, (char[NC_MAX_NAME + 1]){0}), NC_NOERR);
    assert_int_equal(nc_sync(reader), NC_NOERR);
    assert_int_equal(nc_close(reader), NC_NOERR);
}

typedef struct worker {
    pthread_t thread;
    int ncid;
    int value;
    int rc;
} worker;

static void *
work(void *argument)
{
    worker *w = argument;
    for (int round = 0; round < 50 && w->rc == NC_NOERR; round++) {
        for (size_t i = 0; i < LENGTH && w->rc == NC_NOERR; i += 100) {
            int data[100];
            for (int k = 0; k < 100; k++)
                data[k] = w->value + (int) i + k;
            w->rc = nc_put_vara_int(w->ncid, 0, &i, (size_t[]){100}, data);
        }
        if (w->rc == NC_NOERR)
            w->rc = check(w->ncid, w->value);
    }
    return NULL;
}

static void
test_threads__each_with_a_file_of_its_own(void **state)
{
    (void) state;
    worker workers[4] = {0};
    char path[100];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "esdm://processes/thread%d.nc", i);
        make(path, 0);
        workers[i].value = 10000 * i;
        assert_int_equal(nc_open(path, NC_WRITE, &workers[i].ncid), NC_NOERR);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].rc, NC_NOERR);
        assert_int_equal(nc_close(workers[i].ncid), NC_NOERR);
        snprintf(path, sizeof path, "esdm://processes/thread%d.nc", i);
        check_file(path, workers[i].value);
    }
}

static void
test_readers__one_file_from_many_threads(void **state)
{
    (void) state;
    worker workers[4] = {0};
    int ncid;
    make("esdm://processes/shared.nc", 0);
    assert_int_equal(nc_open("esdm://processes/shared.nc", NC_WRITE, &ncid), NC_NOERR);
    for (int i = 0; i < 4; i++) {
        workers[i].ncid = ncid; /* all write the same values */
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].rc, NC_NOERR);
    }
    assert_int_equal(nc_close(ncid), NC_NOERR);
    check_file("esdm://processes/shared.nc", 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork__child_reads_what_the_parent_opened),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_fork__child_opens_while_a_thread_held_the_linkers_lock),
#endif
        cmocka_unit_test(test_fork__child_stays_at_the_snapshot),
        cmocka_unit_test(test_fork__child_cannot_read_a_replaced_container),
        cmocka_unit_test(test_fork__child_cannot_write_to_the_parents_file),
        cmocka_unit_test(test_exit__data_is_committed_without_close),
        cmocka_unit_test(test_exit__a_container_that_was_not_defined_leaves_no_stub),
        cmocka_unit_test(test_remove__an_open_container_stays_readable),
        cmocka_unit_test(test_replace__a_reader_keeps_the_old_container),
        cmocka_unit_test(test_sync__a_reader_follows_a_model),
        cmocka_unit_test(test_abort__takes_away_what_was_to_be_replaced),
        cmocka_unit_test(test_abort__leaves_what_others_made_meanwhile),
        cmocka_unit_test(test_diskless__is_dropped_without_persist),
        cmocka_unit_test(test_table__many_files_at_once),
        cmocka_unit_test(test_readers__share_what_this_process_writes),
        cmocka_unit_test(test_threads__each_with_a_file_of_its_own),
        cmocka_unit_test(test_readers__one_file_from_many_threads),
    };
    return cmocka_run_group_tests_name("nc_processes", tests, make_site, remove_site);
}
