/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Threads and processes at once; killed and forked ones; other users; full disks. */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "meta.h"

enum { THREADS = 8, PROCESSES = place_by_build(8, 16), COMMITS = place_by_build(20, 60) };

/* ---- threads -------------------------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    void *store;
    uint64_t shared;
    unsigned number;
    bool good;
} worker;

static atomic_bool writers_done;

static void *
commit_often(void *user)
{
    worker *w = user;
    char name[32];
    esdm_meta_committed own = {0};
    esdm_meta_committed shared = {0};
    (void) snprintf(name, sizeof name, "own%u", w->number);
    w->good = meta_try_create(w->store, name, &own) == ESDM_OK;
    for (int i = 0; i < COMMITS && w->good; i++) {
        w->good = meta_append(w->store, own.container, 1, &own) == ESDM_OK &&
                  own.snapshot == (uint64_t) i + 2 &&
                  meta_append(w->store, w->shared, 1, &shared) == ESDM_OK;
    }
    return NULL;
}

static void *
read_often(void *user)
{
    worker *w = user;
    uint64_t last = 0;
    w->good = true;
    while (w->good && !atomic_load(&writers_done)) {
        uint64_t records = meta_check_whole(w->store, "shared");
        w->good = records != UINT64_MAX && records >= last;
        last = records;
    }
    return NULL;
}

static void
test_process__threads_lose_nothing(void **state)
{
    fixture *f = *state;
    worker workers[THREADS];
    worker readers[2];
    uint64_t shared = meta_create(f->store, "shared").container;
    atomic_store(&writers_done, false);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.store = f->store, .shared = shared, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, commit_often, &workers[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        readers[i] = (worker){.store = f->store};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_often, &readers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].good);
    }
    atomic_store(&writers_done, true);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
        assert_true(readers[i].good);
    }
    assert_int_equal(meta_check_whole(f->store, "shared"), THREADS * COMMITS);
    for (unsigned i = 0; i < THREADS; i++) {
        char name[32];
        (void) snprintf(name, sizeof name, "own%u", i);
        assert_int_equal(meta_check_whole(f->store, name), COMMITS);
    }
}

/* ---- processes ------------------------------------------------------------------------------ */

/* Ends a child that could not do something. */
static void
stop_child(int code)
{
    (void) fprintf(stderr, "%s\n", place_error.message);
    _exit(code);
}

/* Pins what was just committed. On a busy machine that can be so long ago that the others' commits
 * have deleted it: then the newest one, as who writes must. */
static bool
pin_committed(void *store, esdm_meta_committed *committed)
{
    esdm_meta_snapshot newest = {0};
    esdm_status status =
        meta()->pin(store, committed->container, committed->snapshot, &place_error);
    if (status != ESDM_ENOENT)
        return status == ESDM_OK;
    status = meta()->snapshot_open(store, "shared", 0, 0, 0, &newest, &place_error);
    free(newest.document);
    free(newest.lengths);
    committed->snapshot = newest.snapshot;
    return status == ESDM_OK;
}

static void
write_and_check(const fixture *f, unsigned number)
{
    void *store = NULL;
    char name[32];
    esdm_meta_committed own;
    esdm_meta_committed shared;
    esdm_meta_container record;
    if (meta()->open(&f->place.config, false, &store, &place_error) != ESDM_OK)
        stop_child(1);
    (void) snprintf(name, sizeof name, "run/%u", number);
    if (meta()->container_find(store, "shared", &record, &place_error) != ESDM_OK ||
        meta_try_create(store, name, &own) != ESDM_OK)
        stop_child(2);
    for (int i = 0; i < COMMITS; i++) {
        esdm_meta_commit replace = meta_new_commit(ESDM_META_REPLACE);
        esdm_meta_committed replaced;
        replace.name = "replaced";
        if (meta_append(store, own.container, 1, &own) != ESDM_OK)
            stop_child(3);
        if (meta_append(store, record.container, 1, &shared) != ESDM_OK)
            stop_child(4);
        if (!pin_committed(store, &shared))
            stop_child(5);
        if (meta_check_whole(store, "shared") == UINT64_MAX)
            stop_child(6);
        if (i % 10 == 0 && meta()->commit(store, &replace, &replaced, &place_error) != ESDM_OK)
            stop_child(7);
        if (meta_check_whole(store, "replaced") == UINT64_MAX)
            stop_child(8);
        meta()->unpin(store, shared.container, shared.snapshot);
    }
    meta()->close(store);
    _exit(0);
}

static void
test_process__many_write_and_read_one_being_rewritten(void **state)
{
    fixture *f = *state;
    pid_t children[PROCESSES];
    skip_if(!place_current_kind->shared);
    meta_create(f->store, "shared");
    meta_create(f->store, "replaced");
    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            write_and_check(f, i);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(meta_check_whole(f->store, "shared"), PROCESSES * COMMITS);
    for (unsigned i = 0; i < PROCESSES; i++) {
        char name[32];
        (void) snprintf(name, sizeof name, "run/%u", i);
        assert_int_equal(meta_check_whole(f->store, name), COMMITS);
    }
}

/* ---- killed --------------------------------------------------------------------------------- */

static void
commit_until_killed(const fixture *f, uint64_t container, int tell_fd)
{
    void *store = NULL;
    esdm_meta_committed committed;
    if (meta()->open(&f->place.config, false, &store, &place_error) != ESDM_OK)
        _exit(1);
    while (meta_append(store, container, 1, &committed) == ESDM_OK) {
        if (write(tell_fd, &committed.snapshot, sizeof committed.snapshot) < 0)
            _exit(2);
    }
    _exit(3);
}

/* A server may still be at work for a client that was killed: counts until nothing changes. */
static uint64_t
settled_records(void *store, const char *name)
{
    uint64_t records = meta_check_whole(store, name);
    for (int same = 0; same < 3;) {
        const struct timespec nap = {.tv_nsec = 20000000};
        (void) nanosleep(&nap, NULL);
        uint64_t now = meta_check_whole(store, name);
        same = now == records ? same + 1 : 0;
        records = now;
    }
    return records;
}

static void
test_process__killed_writer_leaves_the_last_commit(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->shared);
    uint64_t container = meta_create(f->store, "a").container;
    uint64_t last = 1;
    for (int round = 0; round < 20; round++) {
        int fds[2];
        uint64_t told = 0;
        esdm_meta_committed committed;
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (child == 0)
            commit_until_killed(f, container, fds[1]);
        (void) close(fds[1]);
        assert_int_equal(read(fds[0], &told, sizeof told), sizeof told);
        struct timespec nap = {.tv_nsec = 1000L * (1 + round * 137 % 3000)};
        (void) nanosleep(&nap, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        while (read(fds[0], &told, sizeof told) == (ssize_t) sizeof told)
            last = told;
        (void) close(fds[0]);
        if (round % 2 == 0) { /* by a handle that was open, and by a new one */
            meta()->close(f->store);
            f->store = meta_open(f, false);
        }
        uint64_t records = settled_records(f->store, "a");
        assert_true(records != UINT64_MAX);
        assert_true(records + 1 >= last);
        assert_ok(meta_append(f->store, container, 1, &committed));
        /* A commit that nobody was told of may come to light at the next one. */
        assert_in_range(committed.snapshot, records + 2, records + 3);
    }
    assert_ok(meta()->check(&f->place.config, NULL, NULL, &place_error));
}

/* Forking while other threads are inside: the child only leaves, or opens anew. */
static void
test_process__fork_among_busy_threads(void **state)
{
    fixture *f = *state;
    worker workers[2];
    skip_if(!place_current_kind->shared);
    uint64_t shared = meta_create(f->store, "shared").container;
    for (unsigned i = 0; i < 2; i++) {
        workers[i] = (worker){.store = f->store, .shared = shared, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, commit_often, &workers[i]), 0);
    }
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            meta()->close(f->store);
            (void) raise(SIGKILL); /* no exit: the thread sanitizer would miss threads there */
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].good);
    }
    assert_int_equal(meta_check_whole(f->store, "shared"), 2 * COMMITS);
}

/* ---- another user --------------------------------------------------------------------------- */

static void
read_as_nobody(void *user)
{
    const fixture *f = user;
    void *store = NULL;
    esdm_meta_committed committed;
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(10);
    if (meta()->open(&f->place.config, false, &store, &place_error) != ESDM_OK)
        _exit(11);
    if (meta_check_whole(store, "a") != 3)
        _exit(12);
    if (meta_try_create(store, "b", &committed) != ESDM_EACCES ||
        meta_append(store, 1, 1, &committed) != ESDM_EACCES)
        _exit(13);
    meta()->close(store);
}

static void
test_process__another_user_reads_beside_the_writer(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->has_directory || geteuid() != 0);
    esdm_meta_committed committed = meta_create(f->store, "a");
    for (int i = 0; i < 3; i++)
        assert_ok(meta_append(f->store, committed.container, 1, &committed));
    assert_int_equal(place_in_child(read_as_nobody, f), 0);
    assert_ok(meta_append(f->store, committed.container, 1, &committed));
}

static void
test_process__another_user_reads_without_the_writer(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->has_directory || geteuid() != 0);
    esdm_meta_committed committed = meta_create(f->store, "a");
    for (int i = 0; i < 3; i++)
        assert_ok(meta_append(f->store, committed.container, 1, &committed));
    meta()->close(f->store);
    int status = place_in_child(read_as_nobody, f);
    f->store = meta_open(f, false);
    assert_int_equal(status, 0);
    assert_ok(meta_append(f->store, committed.container, 1, &committed));
}

/* ---- full ----------------------------------------------------------------------------------- */

static void
test_process__full_disk_keeps_the_last_commit(void **state)
{
    (void) state;
    fixture f = {0};
    skip_if(!place_current_kind->has_directory);
    place_init(&f.place, place_current_kind);
    if (mount("tmpfs", f.place.folder, "tmpfs", 0, "size=3m,mode=0755") != 0) {
        place_clear(&f.place);
        skip();
    }
    assert_ok(meta()->make(&f.place.config, false, NULL, NULL, &place_error));
    f.store = meta_open(&f, false);
    esdm_meta_committed committed = meta_create(f.store, "a");
    esdm_status status = ESDM_OK;
    uint64_t last = 1;
    char *large = calloc(1, 100000);
    assert_non_null(large);
    for (int i = 0; i < 200 && status == ESDM_OK; i++) {
        esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
        esdm_meta_new_page page = meta_page(1, 1, 1);
        page.data = large;
        page.bytes = 100000;
        commit.container = committed.container;
        commit.pages = &page;
        commit.npages = 1;
        status = meta()->commit(f.store, &commit, &committed, &place_error);
        last = status == ESDM_OK ? committed.snapshot : last;
    }
    assert_int_equal(status, ESDM_ENOSPC);
    assert_true(last > 3);
    assert_int_equal(meta_check_whole(f.store, "a"), last - 1);
    assert_status(meta()->check(&f.place.config, NULL, NULL, &place_error), ESDM_ENOSPC);
    assert_int_equal(mount("tmpfs", f.place.folder, "tmpfs", MS_REMOUNT, "size=20m"), 0);
    assert_ok(meta_append(f.store, committed.container, 1, &committed)); /* goes on */
    assert_int_equal(meta_check_whole(f.store, "a"), last);
    meta()->close(f.store);
    f.store = meta_open(&f, false);
    assert_int_equal(meta_check_whole(f.store, "a"), last);
    meta()->close(f.store);
    free(large);
    assert_int_equal(umount(f.place.folder), 0);
    place_clear(&f.place);
}

const struct CMUnitTest meta_process_tests[] = {
    WITH_STORE(test_process__threads_lose_nothing),
    WITH_STORE(test_process__many_write_and_read_one_being_rewritten),
    WITH_STORE(test_process__killed_writer_leaves_the_last_commit),
    WITH_STORE(test_process__fork_among_busy_threads),
    WITH_STORE(test_process__another_user_reads_beside_the_writer),
    WITH_STORE(test_process__another_user_reads_without_the_writer),
    cmocka_unit_test(test_process__full_disk_keeps_the_last_commit),
};
const size_t meta_process_count = sizeof meta_process_tests / sizeof meta_process_tests[0];
