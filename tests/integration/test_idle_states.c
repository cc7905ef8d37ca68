/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* With little memory the states of datasets come and go beside readers, writers, commits and
 * refreshes: nobody sees anything else. */
#include <pthread.h>
#include <stdatomic.h>

#include "testing.h"

#ifdef __SANITIZE_THREAD__
/* A commit holds the lock of every dataset, and TSan's deadlock detector ends the process at 64. */
ESDM_API const char *__tsan_default_options(void);
const char *
__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}
enum { ROUNDS = 4 };
#else
enum { ROUNDS = 8 };
#endif

/* At 1 MiB for the engine about 150 datasets may keep states, pages and directories. */
enum { DATASETS = 600, WIDTH = 8 };

typedef struct world {
    esdm_session *session;
    esdm_container *writer;
    esdm_container *reader;
    atomic_uint committed; /* rounds */
    atomic_uint refreshed; /* the least that the reader's handle shows */
    atomic_bool over;
} world;

static esdm_dataset *
dataset_at(esdm_container *container, size_t number)
{
    return esdm_group_dataset_at(esdm_container_root(container), number);
}

static unsigned
read_one(esdm_container *container, size_t number)
{
    double values[WIDTH];
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){0}, (uint64_t[]){WIDTH}, ERR));
    ok(esdm_read(dataset_at(container, number), &space, ESDM_TYPE_FLOAT64, values, NULL, ERR));
    for (size_t i = 1; i < WIDTH; i++)
        check(values[i] == values[0]);
    return (unsigned) values[0];
}

static void
write_one(esdm_container *container, size_t number, unsigned value)
{
    double values[WIDTH];
    esdm_dataspace space;
    for (size_t i = 0; i < WIDTH; i++)
        values[i] = value;
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){0}, (uint64_t[]){WIDTH}, ERR));
    ok(esdm_write(dataset_at(container, number), &space, ESDM_TYPE_FLOAT64, values, NULL, ERR));
}

/* Dataset 0 belongs to another handle, which commits in between. */
static void *
write_rounds(void *user)
{
    world *w = user;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        for (size_t i = 1; i < DATASETS; i++)
            write_one(w->writer, i, round);
        ok(esdm_container_commit(w->writer, NULL, ERR));
        atomic_store(&w->committed, round);
    }
    atomic_store(&w->over, true);
    return NULL;
}

static void *
commit_between(void *user)
{
    world *w = user;
    esdm_container *own;
    ok(esdm_container_open(w->session, "states", ESDM_OPEN_WRITE, 0, &own, ERR));
    for (unsigned n = 1; !atomic_load(&w->over); n++) {
        write_one(own, 0, n);
        ok(esdm_container_commit(own, NULL, ERR));
        check(read_one(own, 0) == n);
    }
    ok(esdm_container_close(own, ERR));
    return NULL;
}

/* On the handle that writes: what is not committed is seen, too. */
static void *
read_beside(void *user)
{
    world *w = user;
    for (size_t k = 0; !atomic_load(&w->over); k++) {
        unsigned before = atomic_load(&w->committed);
        unsigned value = read_one(w->writer, 1 + k * 7919 % (DATASETS - 1));
        check(value >= before && value <= atomic_load(&w->committed) + 1);
    }
    return NULL;
}

/* One snapshot shows one round. */
static void *
refresh_and_read(void *user)
{
    world *w = user;
    for (size_t k = 0; !atomic_load(&w->over); k++) {
        unsigned before = atomic_load(&w->committed);
        ok(esdm_container_refresh(w->reader, ERR));
        unsigned round = read_one(w->reader, 1 + k % (DATASETS - 1));
        check(round >= before);
        atomic_store(&w->refreshed, round);
        for (size_t i = 0; i < 40; i++)
            check(read_one(w->reader, 1 + (k + i * 7919) % (DATASETS - 1)) == round);
    }
    return NULL;
}

/* On a handle that another thread refreshes: it never goes back. */
static void *
read_refreshed(void *user)
{
    world *w = user;
    unsigned seen = 0;
    for (size_t k = 0; !atomic_load(&w->over); k++) {
        unsigned before = atomic_load(&w->refreshed);
        unsigned round = read_one(w->reader, 1 + k * 104729 % (DATASETS - 1));
        check(round >= before && round >= seen);
        seen = round;
    }
    return NULL;
}

static esdm_session *
open_small_session(void)
{
    char json[2048];
    int n =
        snprintf(json, sizeof json,
                 "{\"site\": {\"name\": \"test\"},"
                 " \"targets\": [{\"name\": \"disk\", \"plugin\": \"posix\","
                 " \"directory\": \"%s/packs\"}],"
                 " \"metadata\": {\"plugin\": \"sqlite\", \"directory\": \"%s/metadata\"},"
                 " \"engine\": {\"memory\": \"1 MiB\", \"fragment\": \"256 KiB\", \"threads\": 2}}",
                 test_folder, test_folder);
    check(n > 0 && (size_t) n < sizeof json);
    esdm_session_options options = {.config_json = json};
    esdm_session *session;
    ok(esdm_session_open(&options, &session, ERR));
    return session;
}

static void
make_container(world *w)
{
    esdm_dimension *dim;
    esdm_dataset *dataset;
    ok(esdm_container_create(w->session, "states", ESDM_CREATE_NEW, &w->writer, ERR));
    ok(esdm_dimension_create(esdm_container_root(w->writer), "x", WIDTH, &dim, ERR));
    for (int i = 0; i < DATASETS; i++) {
        char name[32];
        snprintf(name, sizeof name, "v%d", i);
        ok(esdm_dataset_create(esdm_container_root(w->writer), name, ESDM_TYPE_FLOAT64, 1, &dim,
                               &dataset, ERR));
    }
    for (size_t i = 0; i < DATASETS; i++)
        write_one(w->writer, i, 0);
    ok(esdm_container_commit(w->writer, NULL, ERR));
    ok(esdm_container_open(w->session, "states", ESDM_OPEN_READ, 0, &w->reader, ERR));
}

int
main(void)
{
    static void *(*const bodies[])(void *) = {write_rounds, commit_between,   read_beside,
                                              read_beside,  refresh_and_read, read_refreshed};
    enum { THREADS = sizeof bodies / sizeof *bodies };
    pthread_t threads[THREADS];
    world w = {0};
    make_site();
    w.session = open_small_session();
    make_container(&w);
    for (size_t i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, bodies[i], &w) == 0);
    for (size_t i = 0; i < THREADS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 1; i < DATASETS; i++)
        check(read_one(w.writer, i) == ROUNDS);
    ok(esdm_container_close(w.reader, ERR));
    ok(esdm_container_close(w.writer, ERR));
    esdm_session_close(w.session);
    return 0;
}
