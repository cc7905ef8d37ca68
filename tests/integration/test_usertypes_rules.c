/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* User-defined types: memory layouts, wrong arguments, conflicts of writers, threads. */

#include "usertypes.h"

#include <pthread.h>

/* ---- layouts ------------------------------------------------------------------------------- */

#pragma pack(push, 1)
typedef struct packed {
    int8_t a;
    double b;
    char *c;
} packed;
#pragma pack(pop)
typedef struct spread {
    int8_t a;
    char gap[100];
    char *c;
    double b;
    char tail[20];
} spread;
typedef struct natural {
    int8_t a;
    double b;
    char *c;
} natural;

/* The layout is the program's: not stored, and natural when a container is opened. */
static void
test_layouts(esdm_session *session)
{
    static char text[] = "xy";
    esdm_container *container;
    esdm_dataset *dataset;
    esdm_type tight, wide;
    esdm_dataspace scalar;
    packed p = {-1, 2.5, text}, p2;
    spread s = {.a = -2, .b = 3.5, .c = text}, s2;
    ok(esdm_dataspace_init(&scalar, 0, NULL, NULL, ERR));
    ok(esdm_container_create(session, "layout.nc", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_compound_create(root, "packed", sizeof(packed), &tight, ERR));
    ADD(tight, packed, a, ESDM_TYPE_INT8, 0, NULL);
    ADD(tight, packed, b, ESDM_TYPE_FLOAT64, 0, NULL);
    ADD(tight, packed, c, ESDM_TYPE_STRING, 0, NULL);
    ok(esdm_compound_create(root, "spread", sizeof(spread), &wide, ERR));
    ADD(wide, spread, a, ESDM_TYPE_INT8, 0, NULL);
    ADD(wide, spread, b, ESDM_TYPE_FLOAT64, 0, NULL);
    ADD(wide, spread, c, ESDM_TYPE_STRING, 0, NULL);
    check(esdm_type_equal(container, tight, container, wide));
    ok(esdm_dataset_create(root, "p", tight, 0, NULL, &dataset, ERR));
    ok(esdm_write(dataset, &scalar, tight, &p, NULL, ERR));
    ok(esdm_read(dataset, &scalar, tight, &p2, NULL, ERR));
    check(p2.a == -1 && p2.b == 2.5 && strcmp(p2.c, "xy") == 0);
    esdm_values_clear(container, tight, 1, &p2);
    ok(esdm_dataset_create(root, "s", wide, 0, NULL, &dataset, ERR));
    ok(esdm_write(dataset, &scalar, wide, &s, NULL, ERR));
    memset(&s2, 7, sizeof s2);
    ok(esdm_read(dataset, &scalar, wide, &s2, NULL, ERR));
    check(s2.a == -2 && s2.b == 3.5 && strcmp(s2.c, "xy") == 0);
    esdm_values_clear(container, wide, 1, &s2);
    ok(esdm_container_close(container, ERR));

    ok(esdm_container_open(session, "layout.nc", ESDM_OPEN_READ, 0, &container, ERR));
    root = esdm_container_root(container);
    const char *const names[] = {"p", "s"};
    for (int i = 0; i < 2; i++) {
        natural n;
        dataset = esdm_group_dataset_find(root, names[i]);
        esdm_type type = esdm_dataset_type(dataset);
        esdm_compound_member member;
        check(esdm_container_type_size(container, type) == sizeof(natural));
        check(esdm_compound_member_at(container, type, 2, &member));
        check(member.offset == offsetof(natural, c));
        ok(esdm_read(dataset, &scalar, type, &n, NULL, ERR));
        check(n.a == -1 - i && n.b == 2.5 + i && strcmp(n.c, "xy") == 0);
        esdm_values_clear(container, type, 1, &n);
    }
    ok(esdm_container_close(container, ERR));
}

/* ---- conversions and wrong arguments ------------------------------------------------------- */

static void
test_arguments(esdm_session *session)
{
    esdm_container *container;
    esdm_dataset *flags, *rows, *bad;
    types t;
    esdm_dataspace scalar;
    esdm_type empty;
    int32_t number = 0;
    uint16_t flag = 7;
    ok(esdm_dataspace_init(&scalar, 0, NULL, NULL, ERR));
    ok(esdm_container_create(session, "arguments.nc", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    define_types(root, &t);
    ok(esdm_dataset_create(root, "flags", t.flag, 0, NULL, &flags, ERR));
    ok(esdm_dataset_create(root, "list", t.rows, 0, NULL, &rows, ERR));
    ok(esdm_write(flags, &scalar, t.flag, &flag, NULL, ERR));
    flag = 0;
    ok(esdm_read(flags, &scalar, ESDM_TYPE_UINT16, &flag, NULL, ERR)); /* its base type */
    check(flag == 7);
    fails(esdm_read(flags, &scalar, ESDM_TYPE_INT32, &number, NULL, ERR), ESDM_EINVAL,
          "elements of type int32 do not convert to or from flag");
    fails(esdm_write(rows, &scalar, t.numbers, &number, NULL, ERR), ESDM_EINVAL,
          "elements of type numbers do not convert to or from rows");
    fails(esdm_write(rows, &scalar, 999, &number, NULL, ERR), ESDM_EINVAL, "(unknown)");
    fails(esdm_write(rows, &scalar, t.rows, &(esdm_vlen){3, NULL}, NULL, ERR), ESDM_EINVAL,
          "an array of 3 elements has no memory");
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EINVAL, "was not repeated");
    check(esdm_container_give_up_failed(container) == 1);
    ok(esdm_container_commit(container, NULL, ERR));
    esdm_container_discard(container);

    ok(esdm_container_create(session, "arguments.nc", ESDM_CREATE_REPLACE, &container, ERR));
    root = esdm_container_root(container);
    ok(esdm_compound_create(root, "empty", 4, &empty, ERR));
    ok(esdm_dataset_create(root, "bad", empty, 0, NULL, &bad, ERR));
    fails(esdm_write(bad, &scalar, empty, &number, NULL, ERR), ESDM_EINVAL, "has no members");
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EINVAL, "'empty' has no members");
    ok(esdm_compound_add(container, empty, "a", 0, ESDM_TYPE_INT32, 0, NULL, ERR));
    number = 42;
    ok(esdm_write(bad, &scalar, empty, &number, NULL, ERR));
    ok(esdm_container_close(container, ERR));
}

/* ---- two writers --------------------------------------------------------------------------- */

static void
test_conflict(esdm_session *session)
{
    esdm_container *first, *second, *reader;
    esdm_type type;
    esdm_dataset *dataset;
    ok(esdm_container_create(session, "conflict.nc", ESDM_CREATE_NEW, &first, ERR));
    ok(esdm_container_commit(first, NULL, ERR));
    ok(esdm_container_open(session, "conflict.nc", ESDM_OPEN_WRITE, 0, &second, ERR));
    ok(esdm_container_open(session, "conflict.nc", ESDM_OPEN_READ, 0, &reader, ERR));
    ok(esdm_opaque_create(esdm_container_root(first), "one", 4, &type, ERR));
    ok(esdm_opaque_create(esdm_container_root(second), "two", 4, &type, ERR));
    ok(esdm_container_close(first, ERR));
    fails(esdm_container_commit(second, NULL, ERR), ESDM_ECONFLICT, "");
    esdm_container_discard(second);
    check(esdm_container_type_count(reader) == 0);
    fails(esdm_container_refresh(reader, ERR), ESDM_ECONFLICT, "new structure");
    ok(esdm_container_close(reader, ERR));

    /* Types stay when others add to the structure, and their numbers with them. */
    ok(esdm_container_open(session, "conflict.nc", ESDM_OPEN_WRITE, 0, &second, ERR));
    esdm_group *root = esdm_container_root(second);
    check(esdm_group_type_find(root, "one") == ESDM_TYPE_FIRST_USER);
    ok(esdm_vlen_create(root, "two", ESDM_TYPE_FIRST_USER, &type, ERR));
    check(type == ESDM_TYPE_FIRST_USER + 1);
    ok(esdm_dataset_create(root, "v", type, 0, NULL, &dataset, ERR));
    ok(esdm_container_close(second, ERR));
}

/* ---- threads ------------------------------------------------------------------------------- */

typedef struct worker {
    esdm_dataset *dataset;
    const types *t;
    uint64_t first;
} worker;

enum { WORKERS = 4, RECORDS = 200 };

static void *
work(void *argument)
{
    const worker *w = argument;
    esdm_error error;
    esdm_type type = esdm_dataset_type(w->dataset);
    esdm_container *container = esdm_group_container(esdm_dataset_group(w->dataset));
    for (uint64_t i = 0; i < RECORDS; i++) {
        uint64_t offset = w->first + i * WORKERS, one = 1;
        esdm_dataspace space;
        mixed value;
        make_value(w->t, type, (uint32_t) offset, &value);
        check(esdm_dataspace_init(&space, 1, &offset, &one, &error) == ESDM_OK);
        check(esdm_write(w->dataset, &space, type, &value, NULL, &error) == ESDM_OK);
        esdm_values_clear(container, type, 1, &value);
        check(esdm_read(w->dataset, &space, type, &value, NULL, &error) == ESDM_OK);
        check(is_value(container, w->t, type, (uint32_t) offset, &value));
        esdm_values_clear(container, type, 1, &value);
    }
    return NULL;
}

/* The types are completed by whichever thread is first. */
static void
test_threads(esdm_session *session)
{
    esdm_container *container;
    esdm_dimension *dimension;
    worker workers[WORKERS];
    pthread_t threads[WORKERS];
    types t;
    esdm_dataset *dataset;
    ok(esdm_container_create(session, "threads.nc", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    define_types(root, &t);
    ok(esdm_dimension_create(root, "n", ESDM_UNLIMITED, &dimension, ERR));
    ok(esdm_dataset_create(root, "v", t.mixed, 1, &dimension, &dataset, ERR));
    for (uint64_t i = 0; i < WORKERS; i++) {
        workers[i] = (worker){dataset, &t, i};
        check(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < WORKERS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    ok(esdm_container_close(container, ERR));
}

int
main(void)
{
    make_site();
    esdm_session *session = open_session();
    test_layouts(session);
    test_arguments(session);
    test_conflict(session);
    test_threads(session);
    esdm_session_close(session);
    return 0;
}
