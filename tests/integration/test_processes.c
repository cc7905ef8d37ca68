/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* 16 processes at once: each writes its own container; all read one that is being rewritten; all
 * append to one; many create one name. */

#include "testing.h"

enum { PROCESSES = 16, SETS = 3, SIDE = 48 };

static void
in_children(void (*body)(int number))
{
    pid_t children[PROCESSES];
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        check(children[i] >= 0);
        if (children[i] == 0) {
            body(i);
            exit(0);
        }
    }
    wait_children(children, PROCESSES);
}

static void
slab(esdm_dataspace *space)
{
    ok(esdm_dataspace_init(space, 2, NULL, (uint64_t[]){SIDE, SIDE}, ERR));
}

static void
write_all(esdm_container *container, int64_t value)
{
    static int64_t field[SIDE * SIDE];
    esdm_dataspace space;
    slab(&space);
    for (int i = 0; i < SIDE * SIDE; i++)
        field[i] = value;
    esdm_group *root = esdm_container_root(container);
    for (size_t k = 0; k < esdm_group_dataset_count(root); k++)
        ok(esdm_write(esdm_group_dataset_at(root, k), &space, ESDM_TYPE_INT64, field, NULL, ERR));
}

static esdm_container *
create(esdm_session *session, const char *name, esdm_create_mode mode)
{
    esdm_container *container;
    esdm_dimension *dims[2];
    ok(esdm_container_create(session, name, mode, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "row", SIDE, &dims[0], ERR));
    ok(esdm_dimension_create(root, "column", SIDE, &dims[1], ERR));
    for (int i = 0; i < SETS; i++) {
        char set[8];
        esdm_dataset *dataset;
        snprintf(set, sizeof set, "v%d", i);
        ok(esdm_dataset_create(root, set, ESDM_TYPE_INT64, 2, dims, &dataset, ERR));
    }
    return container;
}

/* Reads every dataset; all values must be one and the same, which is returned. */
static int64_t
read_one_value(esdm_container *container)
{
    static int64_t field[SIDE * SIDE];
    int64_t value = -1;
    esdm_dataspace space;
    slab(&space);
    esdm_group *root = esdm_container_root(container);
    check(esdm_group_dataset_count(root) == SETS);
    for (size_t k = 0; k < SETS; k++) {
        memset(field, 0xff, sizeof field);
        ok(esdm_read(esdm_group_dataset_at(root, k), &space, ESDM_TYPE_INT64, field, NULL, ERR));
        if (k == 0)
            value = field[0];
        for (int i = 0; i < SIDE * SIDE; i++)
            if (field[i] != value)
                die("dataset %zu, element %d: %" PRId64 " beside %" PRId64, k, i, field[i], value);
    }
    return value;
}

static void
write_own(int number)
{
    char name[32];
    esdm_session *session = open_session();
    snprintf(name, sizeof name, "own/%d", number);
    for (int round = 0; round < 4; round++) {
        esdm_container *container = create(session, name, ESDM_CREATE_REPLACE);
        write_all(container, number * 10 + round);
        ok(esdm_container_close(container, ERR));
    }
    esdm_session_close(session);
}

static void
test_processes__write_a_container_each(void)
{
    in_children(write_own);
    esdm_session *session = open_session();
    for (int i = 0; i < PROCESSES; i++) {
        char name[32];
        esdm_container *container;
        snprintf(name, sizeof name, "own/%d", i);
        ok(esdm_container_open(session, name, ESDM_OPEN_READ, 0, &container, ERR));
        check(read_one_value(container) == i * 10 + 3);
        ok(esdm_container_close(container, ERR));
    }
    esdm_session_close(session);
}

static const int64_t last_generation = 60;

/* Waits until the writer is through, seeing a whole generation at every open and refresh. */
static void
watch(int number)
{
    int64_t seen = 0;
    esdm_session *session = open_session();
    while (seen < last_generation) {
        esdm_container *container;
        ok(esdm_container_open(session, "rewritten", ESDM_OPEN_READ, 0, &container, ERR));
        int64_t value = read_one_value(container);
        check(value >= seen);
        seen = value;
        if (number % 2) { /* the same handle still shows the same snapshot */
            usleep(2000);
            check(read_one_value(container) == seen);
        }
        ok(esdm_container_close(container, ERR));
    }
    esdm_session_close(session);
}

/* Generations come as commits of one handle, as reopenings and as replacements in turn. */
static void
rewrite(void)
{
    esdm_session *session = open_session();
    esdm_container *container = NULL;
    for (int64_t generation = 2; generation <= last_generation; generation++) {
        if (generation % 10 == 0 && container) {
            ok(esdm_container_close(container, ERR));
            container = create(session, "rewritten", ESDM_CREATE_REPLACE);
        } else if (generation % 5 == 0 || !container) {
            if (container)
                ok(esdm_container_close(container, ERR));
            ok(esdm_container_open(session, "rewritten", ESDM_OPEN_WRITE, 0, &container, ERR));
        }
        write_all(container, generation);
        ok(esdm_container_commit(container, NULL, ERR));
        usleep(3000);
    }
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

static void
test_readers__of_a_rewritten_container_see_whole_snapshots(void)
{
    pid_t writer;
    esdm_session *session = open_session();
    esdm_container *container = create(session, "rewritten", ESDM_CREATE_NEW);
    write_all(container, 1);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    fflush(NULL);
    writer = fork();
    check(writer >= 0);
    if (writer == 0) {
        rewrite();
        exit(0);
    }
    in_children(watch);
    wait_children(&writer, 1);
}

/* Writers that only add data never conflict: each fills its rows of one dataset. */
static void
add_rows(int number)
{
    static int64_t line[SIDE];
    esdm_container *container;
    esdm_dataspace space;
    esdm_session *session = open_session();
    ok(esdm_container_open(session, "shared", ESDM_OPEN_WRITE, 0, &container, ERR));
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v0");
    for (uint64_t row = (uint64_t) number; row < SIDE; row += PROCESSES) {
        for (int i = 0; i < SIDE; i++)
            line[i] = (int64_t) row * 1000 + i;
        ok(esdm_dataspace_init(&space, 2, (uint64_t[]){row, 0}, (uint64_t[]){1, SIDE}, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_INT64, line, NULL, ERR));
        ok(esdm_container_commit(container, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

static void
test_processes__add_to_one_container_without_conflict(void)
{
    static int64_t field[SIDE * SIDE];
    esdm_dataspace space;
    esdm_session *session = open_session();
    esdm_container *container = create(session, "shared", ESDM_CREATE_NEW);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    in_children(add_rows);
    session = open_session();
    ok(esdm_container_open(session, "shared", ESDM_OPEN_READ, 0, &container, ERR));
    slab(&space);
    ok(esdm_read(esdm_group_dataset_find(esdm_container_root(container), "v0"), &space,
                 ESDM_TYPE_INT64, field, NULL, ERR));
    for (int i = 0; i < SIDE * SIDE; i++)
        check(field[i] == i / SIDE * 1000 + i % SIDE);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* ESDM_CREATE_NEW from all: one gets the name, at create or at the commit; the rest is told. */
static void
race_for_name(int number)
{
    esdm_session *session = open_session();
    esdm_container *container;
    esdm_error err;
    esdm_status st = esdm_container_create(session, "race", ESDM_CREATE_NEW, &container, &err);
    if (st == ESDM_OK) {
        int32_t winner = number;
        ok(esdm_attribute_set(esdm_group_attributes(esdm_container_root(container)), "winner",
                              ESDM_TYPE_INT32, 1, &winner, ERR));
        st = esdm_container_close(container, &err);
    }
    if (st != ESDM_OK && st != ESDM_EEXIST)
        die("race: %s", err.message);
    if (st == ESDM_OK) {
        char path[300];
        snprintf(path, sizeof path, "%s/winner-%d", test_folder, number);
        FILE *mark = fopen(path, "w");
        check(mark);
        fclose(mark);
    }
    esdm_session_close(session);
}

static void
test_processes__one_wins_a_new_name(void)
{
    int winners = 0;
    esdm_container *container;
    esdm_attribute winner;
    in_children(race_for_name);
    esdm_session *session = open_session();
    ok(esdm_container_open(session, "race", ESDM_OPEN_READ, 0, &container, ERR));
    check(esdm_attribute_find(esdm_group_attributes(esdm_container_root(container)), "winner",
                              &winner, NULL));
    for (int i = 0; i < PROCESSES; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/winner-%d", test_folder, i);
        if (access(path, F_OK) == 0) {
            winners++;
            check(*(const int32_t *) winner.values == i);
        }
    }
    check(winners == 1);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

int
main(void)
{
    make_site();
    test_processes__write_a_container_each();
    test_readers__of_a_rewritten_container_see_whole_snapshots();
    test_processes__add_to_one_container_without_conflict();
    test_processes__one_wins_a_new_name();
    return 0;
}
