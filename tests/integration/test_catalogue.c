/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Listing, moving, replacing and removing containers; names; what cannot be written. */

#include "testing.h"

static void
create(esdm_session *session, const char *name, int32_t value, uint64_t elements)
{
    esdm_container *container;
    esdm_dimension *x;
    esdm_dataset *dataset;
    esdm_dataspace space;
    int32_t *values = calloc(elements, sizeof *values);
    check(values);
    for (uint64_t i = 0; i < elements; i++)
        values[i] = value;
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "x", elements, &x, ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 1, &x, &dataset, ERR));
    ok(esdm_dataspace_init(&space, 1, NULL, &elements, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, values, NULL, ERR));
    ok(esdm_container_close(container, ERR));
    free(values);
}

static void
check_handle(esdm_container *container, int32_t value)
{
    esdm_dataspace space;
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    check(dataset);
    uint64_t elements = esdm_dimension_length(esdm_dataset_dimension(dataset, 0));
    int32_t *values = calloc(elements, sizeof *values);
    check(values);
    ok(esdm_dataspace_init(&space, 1, NULL, &elements, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, values, NULL, ERR));
    for (uint64_t i = 0; i < elements; i++)
        check(values[i] == value);
    free(values);
}

static void
check_container(esdm_session *session, const char *name, int32_t value)
{
    esdm_container *container;
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, ERR));
    check_handle(container, value);
    ok(esdm_container_close(container, ERR));
}

static bool
join_names(const esdm_container_info *info, void *user)
{
    char *text = user;
    strcat(strcat(text, info->name), ";");
    return true;
}

static void
check_list(esdm_session *session, const char *prefix, const char *expected)
{
    char names[4096] = "";
    ok(esdm_container_list(session, prefix, join_names, names, ERR));
    if (strcmp(names, expected) != 0)
        die("list of %s: \"%s\", expected \"%s\"", prefix ? prefix : "all", names, expected);
}

static void
test_remove__leaves_the_others_alone(void)
{
    esdm_session *session = open_session();
    esdm_container *held;
    create(session, "a/one", 1, 300000);
    create(session, "a/two", 2, 300000);
    create(session, "a/two-below", 3, 10);
    create(session, "ab", 4, 10);
    check_list(session, "a", "a/one;a/two;a/two-below;");
    ok(esdm_container_open(session, "a/one", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &held, ERR));
    ok(esdm_container_remove(session, "a/one", ERR));
    check_list(session, NULL, "a/two;a/two-below;ab;");
    check_handle(held, 1); /* a reader keeps what it opened */
    ok(esdm_container_close(held, ERR));
    check_container(session, "a/two", 2);
    check_container(session, "a/two-below", 3);
    fails(esdm_container_remove(session, "a/one", ERR), ESDM_ENOENT, "a/one");
    fails(esdm_container_open(session, "a/one", ESDM_OPEN_READ, 0, &held, ERR), ESDM_ENOENT,
          "a/one");
    create(session, "a/one", 5, 10);
    check_container(session, "a/one", 5);
    esdm_session_close(session);
    session = open_session();
    check_container(session, "a/one", 5);
    check_container(session, "a/two", 2);
    ok(esdm_container_remove(session, "a/two", ERR));
    check_container(session, "a/two-below", 3);
    esdm_session_close(session);
}

static void
test_move__keeps_data_and_respects_existing_names(void)
{
    esdm_session *session = open_session();
    create(session, "move/from", 1, 10);
    create(session, "move/taken", 2, 10);
    fails(esdm_container_move(session, "move/from", "move/taken", false, ERR), ESDM_EEXIST,
          "move/taken");
    check_container(session, "move/taken", 2);
    ok(esdm_container_move(session, "move/from", "move/to", false, ERR));
    check_container(session, "move/to", 1);
    fails(esdm_container_move(session, "move/from", "move/x", false, ERR), ESDM_ENOENT,
          "move/from");
    ok(esdm_container_move(session, "move/to", "move/taken", true, ERR));
    check_container(session, "move/taken", 1);
    check_list(session, "move", "move/taken;");
    esdm_session_close(session);
}

static void
test_nesting__a_container_is_no_folder(void)
{
    esdm_session *session = open_session();
    esdm_container *container;
    create(session, "nest/leaf", 1, 10);
    fails(esdm_container_create(session, "nest/leaf/below", ESDM_CREATE_NEW, &container, ERR),
          ESDM_EEXIST, "'nest/leaf' is a container");
    fails(esdm_container_create(session, "nest", ESDM_CREATE_REPLACE, &container, ERR), ESDM_EEXIST,
          "folder of containers ('nest/leaf')");
    fails(esdm_container_move(session, "nest/leaf", "nest/leaf/x", false, ERR), ESDM_EEXIST,
          "'nest/leaf' is a container");
    ok(esdm_container_create(session, "nest/leaf2/below", ESDM_CREATE_NEW, &container, ERR));
    ok(esdm_container_close(container, ERR));
    check_list(session, "nest", "nest/leaf;nest/leaf2/below;");
    esdm_session_close(session);
}

static void
test_discard__publishes_nothing(void)
{
    esdm_container *container;
    esdm_session *session = open_session();
    create(session, "discard/old", 1, 10);
    ok(esdm_container_create(session, "discard/new", ESDM_CREATE_NEW, &container, ERR));
    esdm_container_discard(container);
    ok(esdm_container_create(session, "discard/old", ESDM_CREATE_REPLACE, &container, ERR));
    check_container(session, "discard/old", 1); /* readers see the old one until the commit */
    esdm_container_discard(container);
    check_container(session, "discard/old", 1);
    check_list(session, "discard", "discard/old;");
    fails(esdm_container_create(session, "discard/old", ESDM_CREATE_NEW, &container, ERR),
          ESDM_EEXIST, "discard/old");
    esdm_session_close(session);
}

static void
test_names__odd_ones_work_and_wrong_ones_are_refused(void)
{
    char part[257];
    char name[ESDM_CONTAINER_NAME_MAX + 2];
    esdm_container *container;
    esdm_session *session = open_session();
    static const char *const good[] = {"names/with space", "names/Zürich/東京.nc",
                                       "names/%41&?#*'\"\\;", "names/-rf", "names/a.b..c"};
    static const char *const wrong[] = {"",        "names/../x", "..",          "names/./x", "/",
                                        "esdm://", "names/a\nb", "names/\x01x", "names/\xff"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        create(session, good[i], (int32_t) i, 3);
        check_container(session, good[i], (int32_t) i);
    }
    create(session, "esdm://names//slashes/", 77, 3);
    check_container(session, "names/slashes", 77);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        fails(esdm_container_create(session, wrong[i], ESDM_CREATE_NEW, &container, ERR),
              ESDM_EINVAL, "");

    memset(part, 'n', sizeof part - 1);
    part[256] = '\0';
    fails(esdm_container_create(session, part, ESDM_CREATE_NEW, &container, ERR), ESDM_EINVAL,
          "255");
    part[255] = '\0';
    create(session, part, 8, 3);
    check_container(session, part, 8);
    memset(name, 'n', sizeof name - 1);
    for (size_t i = 100; i < sizeof name; i += 100)
        name[i] = '/';
    name[ESDM_CONTAINER_NAME_MAX + 1] = '\0';
    fails(esdm_container_create(session, name, ESDM_CREATE_NEW, &container, ERR), ESDM_EINVAL,
          "1024");
    name[ESDM_CONTAINER_NAME_MAX] = '\0';
    create(session, name, 9, 3);
    check_container(session, name, 9);
    esdm_session_close(session);
}

static void
test_limits__are_told(void)
{
    uint64_t one = 1;
    int32_t value = 0;
    esdm_container *container;
    esdm_dimension *dims[ESDM_MAX_RANK + 1];
    esdm_dataset *dataset = (esdm_dataset *) &one;
    esdm_dataspace space;
    esdm_session *session = open_session();
    ok(esdm_container_create(session, "limits", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "big", UINT64_C(1) << 31, &dims[0], ERR));
    ok(esdm_dimension_create(root, "bigger", UINT64_C(1) << 32, &dims[1], ERR));
    fails(esdm_dataset_create(root, "v", ESDM_TYPE_NONE, 2, dims, &dataset, ERR), ESDM_EINVAL, "v");
    check(dataset == (esdm_dataset *) &one); /* outputs stay untouched */
    /* A dataset may be larger than any request. */
    const uint64_t last[] = {(UINT64_C(1) << 31) - 1, (UINT64_C(1) << 32) - 1};
    int32_t back = 0;
    value = 42;
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    ok(esdm_dataspace_init(&space, 2, last, (uint64_t[]){1, 1}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, &value, NULL, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, &back, NULL, ERR));
    check(back == 42);
    fails(esdm_dataspace_init(&space, 2, NULL, (uint64_t[]){last[0] + 1, last[1] + 1}, ERR),
          ESDM_EINVAL, "");
    ok(esdm_dataset_create(root, "w", ESDM_TYPE_INT32, 1, &dims[0], &dataset, ERR));
    fails(esdm_dataset_create(root, "w", ESDM_TYPE_INT32, 1, &dims[0], &dataset, ERR), ESDM_EEXIST,
          "w");
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){UINT64_C(1) << 31}, &one, ERR));
    fails(esdm_write(dataset, &space, ESDM_TYPE_INT32, &value, NULL, ERR), ESDM_EINVAL, "w");
    fails(esdm_read(dataset, &space, ESDM_TYPE_INT32, &value, NULL, ERR), ESDM_EINVAL, "w");
    fails(esdm_write(dataset, &space, ESDM_TYPE_STRING, &value, NULL, ERR), ESDM_EINVAL, "");
    fails(esdm_dataspace_init(&space, 1, (uint64_t[]){UINT64_MAX}, (uint64_t[]){2}, ERR),
          ESDM_EINVAL, "");
    fails(esdm_dataspace_init(&space, ESDM_MAX_RANK + 1, NULL, (uint64_t[40]){0}, ERR), ESDM_EINVAL,
          "");
    for (int i = 0; i < ESDM_MAX_RANK; i++)
        dims[i] = dims[0];
    fails(esdm_dataset_create(root, "deep", ESDM_TYPE_INT8, ESDM_MAX_RANK + 1, dims, &dataset, ERR),
          ESDM_EINVAL, "");
    /* One element at the far end of a huge dataset costs nothing. */
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){(UINT64_C(1) << 31) - 1}, &one, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, &value, NULL, ERR));
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* A structural change that lost the race is refused; the winner's work stays. */
static void
test_conflict__second_structural_change_is_told(void)
{
    esdm_container *first;
    esdm_container *second;
    esdm_session *session = open_session();
    create(session, "conflict", 1, 10);
    ok(esdm_container_open(session, "conflict", ESDM_OPEN_WRITE, 0, &first, ERR));
    ok(esdm_container_open(session, "conflict", ESDM_OPEN_WRITE, 0, &second, ERR));
    ok(esdm_attribute_set(esdm_group_attributes(esdm_container_root(first)), "title",
                          ESDM_TYPE_CHAR, 5, "first", ERR));
    ok(esdm_attribute_set(esdm_group_attributes(esdm_container_root(second)), "title",
                          ESDM_TYPE_CHAR, 6, "second", ERR));
    ok(esdm_container_commit(first, NULL, ERR));
    fails(esdm_container_commit(second, NULL, ERR), ESDM_ECONFLICT, "conflict");
    esdm_container_discard(second);
    ok(esdm_container_close(first, ERR));
    esdm_attribute title;
    ok(esdm_container_open(session, "conflict", ESDM_OPEN_READ, 0, &first, ERR));
    check(esdm_attribute_find(esdm_group_attributes(esdm_container_root(first)), "title", &title,
                              NULL));
    check(title.count == 5 && memcmp(title.values, "first", 5) == 0);
    fails(esdm_attribute_set(esdm_group_attributes(esdm_container_root(first)), "x", ESDM_TYPE_CHAR,
                             1, "y", ERR),
          ESDM_EACCES, "");
    ok(esdm_container_close(first, ERR));
    esdm_session_close(session);
}

int
main(void)
{
    make_site();
    test_remove__leaves_the_others_alone();
    test_move__keeps_data_and_respects_existing_names();
    test_nesting__a_container_is_no_folder();
    test_discard__publishes_nothing();
    test_names__odd_ones_work_and_wrong_ones_are_refused();
    test_limits__are_told();
    test_conflict__second_structural_change_is_told();
    return 0;
}
