/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The engine's buffers stay within the site's bound, whatever the size of the data. */
#include "testing.h"

#include <malloc.h>
#include <pthread.h>

#ifdef __SANITIZE_THREAD__
/* A commit holds the lock of every dataset, and TSan's deadlock detector ends the process at 64. */
ESDM_API const char *__tsan_default_options(void);
const char *
__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}
#endif

/* Sanitizers take memory of their own, so that nothing is bounded: what they look for is found in
 * an eighth. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOUNDED    false
#define MEMORY_MIB 4
#else
#define BOUNDED    true
#define MEMORY_MIB 32
#endif
/* Beside buffers: code, the test's own arrays, index pages, SQLite's cache. */
#define SLACK_MIB 40

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
    if (BOUNDED && grown > (MEMORY_MIB + SLACK_MIB) * UINT64_C(1024))
        die("%s: %" PRIu64 " KiB more than at the start", what, grown);
}

/* 2,000 datasets that take small records in turn: every one of them gathers. */
static void
write_many_datasets(esdm_session *session)
{
    enum { DATASETS = BOUNDED ? 2000 : 500, ROUNDS = BOUNDED ? 64 : 32, WIDTH = 512 };
    static float row[WIDTH];
    esdm_container *container;
    esdm_dimension *dims[2];
    esdm_dataset *datasets[DATASETS];
    ok(esdm_container_create(session, "many", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "x", WIDTH, &dims[1], ERR));
    for (int i = 0; i < DATASETS; i++) {
        char name[32];
        snprintf(name, sizeof name, "v%d", i);
        ok(esdm_dataset_create(root, name, ESDM_TYPE_FLOAT32, 2, dims, &datasets[i], ERR));
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < DATASETS; i++) {
            esdm_dataspace space;
            row[0] = (float) (i + 10000 * (int) round);
            ok(esdm_dataspace_init(&space, 2, (uint64_t[]){round, 0}, (uint64_t[]){1, WIDTH}, ERR));
            ok(esdm_write(datasets[i], &space, ESDM_TYPE_FLOAT32, row, NULL, ERR));
        }
    }
    ok(esdm_container_close(container, ERR));

    ok(esdm_container_open(session, "many", ESDM_OPEN_READ, 0, &container, ERR));
    for (int i = 0; i < DATASETS; i += 97) {
        esdm_dataset *dataset = esdm_group_dataset_at(esdm_container_root(container), (size_t) i);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            esdm_dataspace space;
            ok(esdm_dataspace_init(&space, 2, (uint64_t[]){round, 0}, (uint64_t[]){1, WIDTH}, ERR));
            ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, row, NULL, ERR));
            check(row[0] == (float) (i + 10000 * (int) round));
        }
    }
    ok(esdm_container_close(container, ERR));
}

/* ---- very many datasets, by counted bytes --------------------------------------------------- */

enum { VERY_MANY = BOUNDED ? 20000 : 1000 };

/* What malloc() has given out; 0 under sanitizers. */
static size_t
allocated(void)
{
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

static void
expect_each(size_t before, size_t most, const char *what)
{
    size_t now = allocated();
    size_t each = (now > before ? now - before : 0) / VERY_MANY;
    printf("%d datasets, %s: %zu bytes each\n", (int) VERY_MANY, what, each);
    if (each > most)
        die("a dataset keeps %zu bytes when it was %s", each, what);
}

static void
write_one_to_each(esdm_container *container, const esdm_dataspace *space, double value)
{
    for (size_t i = 0; i < VERY_MANY; i++)
        ok(esdm_write(esdm_group_dataset_at(esdm_container_root(container), i), space,
                      ESDM_TYPE_FLOAT64, &value, NULL, ERR));
}

static void
read_one_of_each(esdm_container *container, const esdm_dataspace *space, double expected)
{
    for (size_t i = 0; i < VERY_MANY; i++) {
        double value = 0;
        ok(esdm_read(esdm_group_dataset_at(esdm_container_root(container), i), space,
                     ESDM_TYPE_FLOAT64, &value, NULL, ERR));
        check(value == expected);
    }
}

/* Reads here and there while another thread writes: indexes give memory back under both. */
static void *
read_here_and_there(void *argument)
{
    esdm_container *container = argument;
    const uint64_t zero = 0;
    const uint64_t one = 1;
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, &zero, &one, ERR));
    for (size_t k = 0; k < VERY_MANY / 2; k++) {
        double value = 0;
        ok(esdm_read(esdm_group_dataset_at(esdm_container_root(container), k * 7919 % VERY_MANY),
                     &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
        check(value == 1 || value == 2);
    }
    return NULL;
}

static esdm_container *
name_very_many(esdm_session *session, const char *container_name)
{
    esdm_container *container;
    esdm_dimension *dim;
    esdm_dataset *dataset;
    ok(esdm_container_create(session, container_name, ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_dimension_create(esdm_container_root(container), "x", 1, &dim, ERR));
    for (int i = 0; i < VERY_MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "v%d", i);
        ok(esdm_dataset_create(esdm_container_root(container), name, ESDM_TYPE_FLOAT64, 1, &dim,
                               &dataset, ERR));
    }
    return container;
}

static void
set_units(esdm_container *container)
{
    for (size_t i = 0; i < VERY_MANY; i++)
        ok(esdm_attribute_set(
            esdm_dataset_attributes(esdm_group_dataset_at(esdm_container_root(container), i)),
            "units", ESDM_TYPE_CHAR, 1, "K", ERR));
}

static void
state_accuracy(esdm_container *container)
{
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    ok(esdm_accuracy_parse(&accuracy, "abs=0.5", NULL, ERR));
    for (size_t i = 0; i < VERY_MANY; i++)
        ok(esdm_dataset_set_accuracy(esdm_group_dataset_at(esdm_container_root(container), i),
                                     &accuracy, ERR));
}

static void
write_beside_readers(esdm_container *container, const esdm_dataspace *space, double value)
{
    pthread_t readers[2];
    for (int i = 0; i < 2; i++)
        check(pthread_create(&readers[i], NULL, read_here_and_there, container) == 0);
    write_one_to_each(container, space, value);
    for (int i = 0; i < 2; i++)
        check(pthread_join(readers[i], NULL) == 0);
}

/* SQLite's caches, one a thread, have a bound of their own, and keep what they have taken. */
static void
fill_caches(esdm_session *session, const esdm_dataspace *space)
{
    esdm_container *container = name_very_many(session, "very-many-before");
    set_units(container);
    write_one_to_each(container, space, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_beside_readers(container, space, 2);
    read_one_of_each(container, space, 2);
    ok(esdm_container_close(container, ERR));
}

/* What a dataset keeps as long as its container is open, at 32 MiB for the engine: its description,
 * and state while it has something that is not committed. All other state of all datasets, with
 * their index pages, has an eighth of that together, which are 210 bytes for each of 20,000. */
static void
write_very_many_datasets(esdm_session *session)
{
    enum {
        NAMED = 225,
        DESCRIBED = 305,
        WRITTEN = 830,
        COMMITTED = 460,
        READ_AGAIN = 680,
        OPENED = 540,
        STATED = 340,
        STATED_COMMITTED = 540
    };
    const uint64_t zero = 0;
    const uint64_t one = 1;
    esdm_container *container;
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, &zero, &one, ERR));
    fill_caches(session, &space);
    size_t before = allocated();
    container = name_very_many(session, "very-many");
    expect_each(before, NAMED, "named");
    set_units(container);
    expect_each(before, DESCRIBED, "described");
    write_one_to_each(container, &space, 1);
    expect_each(before, WRITTEN, "written");
    ok(esdm_container_commit(container, NULL, ERR));
    expect_each(before, COMMITTED, "committed");
    write_beside_readers(container, &space, 2);
    ok(esdm_container_commit(container, NULL, ERR));
    read_one_of_each(container, &space, 2);
    expect_each(before, READ_AGAIN, "written again, and read");
    ok(esdm_container_close(container, ERR));

    before = allocated();
    ok(esdm_container_open(session, "very-many", ESDM_OPEN_READ, 0, &container, ERR));
    read_one_of_each(container, &space, 2);
    expect_each(before, OPENED, "opened and read");
    read_one_of_each(container, &space, 2);
    expect_each(before, OPENED, "read once more");
    ok(esdm_container_close(container, ERR));

    /* What is stated of accuracies takes what it says, and a choice of codecs stays without the
     * rest of the state. */
    before = allocated();
    container = name_very_many(session, "very-many-stated");
    state_accuracy(container);
    expect_each(before, STATED, "stated");
    write_one_to_each(container, &space, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    expect_each(before, STATED_COMMITTED, "stated, written and committed");
    ok(esdm_container_close(container, ERR));
}

/* The site of make_site() with a small bound. */
static esdm_session *
open_small_session(void)
{
    char json[2048];
    int n = snprintf(json, sizeof json,
                     "{\"site\": {\"name\": \"test\"},"
                     " \"targets\": [{\"name\": \"disk\", \"plugin\": \"posix\","
                     " \"directory\": \"%s/packs\"}],"
                     " \"metadata\": {\"plugin\": \"sqlite\", \"directory\": \"%s/metadata\"},"
                     " \"engine\": {\"memory\": \"%d MiB\", \"threads\": 2}}",
                     test_folder, test_folder, MEMORY_MIB);
    check(n > 0 && (size_t) n < sizeof json);
    esdm_session_options options = {.config_json = json};
    esdm_session *session;
    ok(esdm_session_open(&options, &session, ERR));
    return session;
}

/* A catalogue's cache does not keep what was read of a description: the first container of a
 * session that is opened takes what its datasets take. */
static void
open_first(void)
{
    enum { EACH = 200, NAME_BYTES = 7 };
    esdm_session *session = open_small_session();
    esdm_container *container;
    esdm_dimension *dims[4];
    esdm_dataset *dataset;
    ok(esdm_container_create(session, "first", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    for (int i = 0; i < 4; i++)
        ok(esdm_dimension_create(root, (const char *[]){"t", "z", "y", "x"}[i], 10, &dims[i], ERR));
    for (int i = 0; i < VERY_MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "v%06d", i);
        ok(esdm_dataset_create(root, name, ESDM_TYPE_FLOAT32, 4, dims, &dataset, ERR));
    }
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    session = open_small_session();
    esdm_container_info info;
    check(esdm_container_stat(session, "none", &info, ERR) ==
          ESDM_ENOENT); /* opens the catalogue */
    size_t before = allocated();
    ok(esdm_container_open(session, "first", ESDM_OPEN_READ, 0, &container, ERR));
    expect_each(before, EACH + NAME_BYTES, "opened, with four dimensions");
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* 512 MiB in steps, compressed, written with conversion and read back by points. */
static void
write_much_data(esdm_session *session, const char *chain)
{
    enum { STEPS = BOUNDED ? 128 : 24, SIDE = 1024, POINTS = BOUNDED ? 2000 : 200 };
    static float step[SIDE * SIDE];
    esdm_container *container;
    esdm_dimension *dims[3];
    esdm_dataset *dataset;
    esdm_dataspace space;
    ok(esdm_container_create(session, chain, ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "y", SIDE, &dims[1], ERR));
    ok(esdm_dimension_create(root, "x", SIDE, &dims[2], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 3, dims, &dataset, ERR));
    ok(esdm_dataset_set_codec(dataset, chain, ERR));
    for (uint64_t t = 0; t < STEPS / 2; t++) {
        for (size_t i = 0; i < SIDE * SIDE; i++)
            step[i] = (float) (i / 64) + (float) t;
        ok(esdm_dataspace_init(&space, 3, (uint64_t[]){t, 0, 0}, (uint64_t[]){1, SIDE, SIDE}, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, step, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open(session, chain, ESDM_OPEN_READ, 0, &container, ERR));
    dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    for (uint64_t i = 0; i < POINTS; i++) {
        double value;
        uint64_t t = i % (STEPS / 2);
        uint64_t at = i * 7919 % (SIDE * SIDE);
        ok(esdm_dataspace_init(&space, 3, (uint64_t[]){t, at / SIDE, at % SIDE},
                               (uint64_t[]){1, 1, 1}, ERR));
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
        check(value == (double) (float) (at / 64) + (double) t);
    }
    ok(esdm_container_close(container, ERR));
}

int
main(void)
{
    make_site();
    open_first();
    esdm_session *session = open_small_session();
    uint64_t before = peak_kib();
    write_much_data(session, "none");
    expect_bounded(before, "512 MiB, uncompressed");
    write_much_data(session, "lz4");
    expect_bounded(before, "512 MiB, lz4");
    write_many_datasets(session);
    expect_bounded(before, "2,000 datasets");
    write_very_many_datasets(session);
    esdm_session_close(session);
    return 0;
}
