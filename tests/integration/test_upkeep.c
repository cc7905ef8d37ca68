/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Readers and writers with containers open while their fragments are stored elsewhere: what
 * esdm-drain, esdm-fsck --repair and esdm-gc do to programs that run. */

#include <pthread.h>

#include "esdm/upkeep.h"

enum { ROWS = 64, COLUMNS = 3000 };

#include "rows.h"

static char config[2048];

static void
describe_site(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(test_folder, sizeof test_folder, "%s/esdm-test.XXXXXX", tmp ? tmp : "/tmp");
    check(mkdtemp(test_folder) != NULL);
    test_owner = getpid();
    atexit(remove_test_folder);
    snprintf(config, sizeof config,
             "{\"targets\": [{\"name\": \"burst\", \"plugin\": \"posix\", \"accessibility\": "
             "\"local\", \"directory\": \"%s/burst\"}, {\"name\": \"disk\", \"plugin\": \"posix\", "
             "\"directory\": \"%s/disk\"}], \"metadata\": {\"plugin\": \"sqlite\", \"directory\": "
             "\"%s/meta\"}, \"engine\": {\"pack\": \"64KiB\", \"memory\": \"64MiB\"}, \"history\": "
             "3}",
             test_folder, test_folder, test_folder);
    esdm_site_options options = {.config_json = config};
    ok(esdm_site_create(&options, ERR));
}

static esdm_session *
open_here(void)
{
    esdm_session *session;
    const esdm_session_options options = {.config_json = config};
    ok(esdm_session_open(&options, &session, ERR));
    return session;
}

static esdm_container *
make_container(esdm_session *session, const char *name)
{
    esdm_container *container;
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "row", ROWS, &dims[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &dims[1], ERR));
    ok(esdm_dataset_create(root, "a", ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    return container;
}

static esdm_drain_result
drain(esdm_session *session)
{
    esdm_drain_result result;
    ok(esdm_drain(session, NULL, &result, ERR));
    check(result.failed == 0 && result.elsewhere == 0);
    return result;
}

static void
must_be_sound(esdm_session *session)
{
    const esdm_fsck_options options = {.data = true};
    esdm_fsck_result result;
    ok(esdm_fsck(session, &options, &result, ERR));
    check(result.problems == 0 && result.fragments > 0);
}

/* Pages loaded before, packs gone since: the handle finds the new places by itself. */
static void
test_open_readers_follow(void)
{
    esdm_session *session = open_here();
    esdm_session *other = open_here();
    esdm_container *container = make_container(session, "readers");
    for (uint64_t row = 0; row < ROWS; row++) {
        write_row(container, row, (int32_t) row);
        if (row % 8 == 7)
            ok(esdm_container_commit(container, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
    esdm_container *before;
    esdm_container *lazy;
    ok(esdm_container_open(session, "readers", ESDM_OPEN_READ, 0, &before, ERR));
    ok(esdm_container_open(other, "readers", ESDM_OPEN_READ, 0, &lazy, ERR));
    for (uint64_t row = 0; row < ROWS; row += 8)
        read_row(before, row, (int32_t) row);
    esdm_drain_result result = drain(other);
    check(result.fragments > 0 && result.packs > 0 && result.packs_left == 0);
    for (uint64_t row = 0; row < ROWS; row++) {
        read_row(before, row, (int32_t) row);
        read_row(lazy, row, (int32_t) row);
    }
    check(esdm_container_snapshot(before) == esdm_container_snapshot(lazy));
    ok(esdm_container_close(before, ERR));
    ok(esdm_container_close(lazy, ERR));
    must_be_sound(session);
    esdm_session_close(other);
    esdm_session_close(session);
}

/* Commits merge pages that were replaced since this handle has loaded them. */
static void
test_open_writers_go_on(void)
{
    esdm_session *session = open_here();
    esdm_session *other = open_here();
    esdm_container *container = make_container(session, "writers");
    uint64_t commits = by_size(80, 200, 2000);
    for (uint64_t i = 0; i < commits; i++) {
        write_row(container, i % ROWS, (int32_t) i);
        ok(esdm_container_commit(container, NULL, ERR));
        if (i % 3 == 0)
            (void) drain(other);
        read_row(container, i % ROWS, (int32_t) i);
        if (i >= 10)
            read_row(container, (i - 10) % ROWS, (int32_t) (i - 10));
    }
    ok(esdm_container_close(container, ERR));
    check(drain(other).packs_left == 0);
    ok(esdm_container_open(other, "writers", ESDM_OPEN_READ, 0, &container, ERR));
    for (uint64_t i = commits - ROWS; i < commits; i++)
        read_row(container, i % ROWS, (int32_t) i);
    ok(esdm_container_close(container, ERR));
    must_be_sound(session);
    esdm_session_close(other);
    esdm_session_close(session);
}

static volatile int ends;

static void *
drain_always(void *argument)
{
    while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) {
        esdm_gc_options all = {.any_age = true};
        ok(esdm_drain(argument, NULL, NULL, ERR));
        ok(esdm_gc(argument, &all, NULL, ERR));
    }
    return NULL;
}

static void *
read_always(void *argument)
{
    while (!__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) {
        esdm_container *container;
        ok(esdm_container_open(argument, "threads", ESDM_OPEN_READ, 0, &container, ERR));
        read_row(container, 0, 7);
        read_row(container, 1, 8);
        ok(esdm_container_close(container, ERR));
    }
    return NULL;
}

/* Draining, collecting, reading and writing at once, in sessions of their own. */
static void
test_all_at_once(void)
{
    esdm_session *sessions[3] = {open_here(), open_here(), open_here()};
    pthread_t threads[2];
    esdm_container *container = make_container(sessions[0], "threads");
    write_row(container, 0, 7);
    write_row(container, 1, 8);
    ok(esdm_container_commit(container, NULL, ERR));
    check(pthread_create(&threads[0], NULL, drain_always, sessions[1]) == 0);
    check(pthread_create(&threads[1], NULL, read_always, sessions[2]) == 0);
    for (uint64_t i = 0; i < by_size(100, 300, 5000); i++) {
        write_row(container, 2 + i % 32, (int32_t) i);
        if (i % 4 == 0)
            ok(esdm_container_commit(container, NULL, ERR));
        read_row(container, 2 + i % 32, (int32_t) i);
    }
    ok(esdm_container_close(container, ERR));
    __atomic_store_n(&ends, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        check(pthread_join(threads[i], NULL) == 0);
    must_be_sound(sessions[0]);
    for (int i = 0; i < 3; i++)
        esdm_session_close(sessions[i]);
}

/* A child that closes its copy of a session has no thread that drains, and waits for none. */
static void
test_forked_children_close(void)
{
    static char background[2200];
    const char *engine = strstr(config, "\"engine\": {");
    check(engine != NULL);
    int head = (int) (engine - config) + 11;
    snprintf(background, sizeof background, "%.*s\"drain\": \"background\", %s", head, config,
             engine + 11);
    esdm_session *session;
    const esdm_session_options options = {.config_json = background};
    ok(esdm_session_open(&options, &session, ERR));
    esdm_container *container = make_container(session, "forked");
    for (uint64_t row = 0; row < ROWS; row++)
        write_row(container, row, 5);
    ok(esdm_container_commit(container, NULL, ERR)); /* starts the thread */
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        (void) alarm(600);
        esdm_container_discard(container);
        esdm_session_close(session);
        _exit(0);
    }
    wait_children(&child, 1);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    session = open_here();
    const char *const names[] = {"forked"};
    const esdm_drain_options forked = {.containers = names, .ncontainers = 1};
    esdm_drain_result result;
    ok(esdm_drain(session, &forked, &result, ERR));
    check(result.containers == 1 && result.fragments == 0); /* all of it was, by the thread */
    must_be_sound(session);
    esdm_session_close(session);
}

static void
test_wrong_arguments(void)
{
    esdm_session *session;
    const esdm_session_options options = {.config_json = config, .read_only = true};
    ok(esdm_session_open(&options, &session, ERR));
    const esdm_fsck_options repair = {.repair = true};
    const char *const none[] = {"nothing"};
    const esdm_fsck_options absent = {.containers = none, .ncontainers = 1};
    fails(esdm_fsck(NULL, NULL, NULL, ERR), ESDM_EINVAL, "NULL");
    fails(esdm_gc(NULL, NULL, NULL, ERR), ESDM_EINVAL, "NULL");
    fails(esdm_drain(NULL, NULL, NULL, ERR), ESDM_EINVAL, "NULL");
    fails(esdm_fsck(session, &repair, NULL, ERR), ESDM_EACCES, "read-only");
    fails(esdm_gc(session, NULL, NULL, ERR), ESDM_EACCES, "read-only");
    fails(esdm_drain(session, NULL, NULL, ERR), ESDM_EACCES, "read-only");
    fails(esdm_fsck(session, &absent, NULL, ERR), ESDM_ENOENT, "nothing");
    ok(esdm_fsck(session, NULL, NULL, ERR));
    check(esdm_session_node(session)[0] != '\0');
    esdm_session_close(session);
}

int
main(void)
{
    describe_site();
    test_open_readers_follow();
    test_open_writers_go_on();
    test_all_at_once();
    test_forked_children_close();
    test_wrong_arguments();
    return 0;
}
