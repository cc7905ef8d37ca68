/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Extents: kept by commits, merged between writers, found by comparisons. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define RANGE(set, key, how_, value)                                                               \
    {                                                                                              \
        .dataset = (set), .name = (key), .how = (how_), .has_number = true, .number = (value)      \
    }
#define WORD(set, key, value)                                                                      \
    {                                                                                              \
        .dataset = (set), .name = (key), .text = (value)                                           \
    }
#define SET   ESDM_META_EXTENT_SET
#define LOWER ESDM_META_EXTENT_LOWER
#define UPPER ESDM_META_EXTENT_UPPER

static const esdm_meta_attribute attributes[] = {
    {.dataset = 0, .name = "model", .text = "MPI"},
    {.dataset = 1, .dataset_path = "/tas", .name = "@type", .text = "float"},
    {.dataset = 1, .dataset_path = "/tas", .name = "units", .text = "K"},
    {.dataset = 2, .dataset_path = "/orog", .name = "@type", .text = "float"},
    {.dataset = 2, .dataset_path = "/orog", .name = "units", .text = "m"},
};
/* The container's times are those of "tas"; "orog" has none. */
static const esdm_meta_extent extents[] = {
    RANGE(0, "@time_max", UPPER, 20),
    RANGE(0, "@time_min", LOWER, 10),
    RANGE(0, "@max:tas\tK", SET, 310.5),
    WORD(0, "@grid", "regular"),
    WORD(2, "@time_max", ""),
    WORD(2, "@time_min", ""),
};

static esdm_meta_committed
create(const fixture *f, const char *name, size_t nattributes, const esdm_meta_extent *list,
       size_t count)
{
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    esdm_meta_committed committed = {0};
    commit.name = name;
    commit.attributes = attributes;
    commit.nattributes = nattributes;
    commit.extents = list;
    commit.nextents = count;
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    return committed;
}

static esdm_status
update(const fixture *f, uint64_t container, const esdm_meta_extent *list, size_t count, bool all)
{
    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    esdm_meta_committed committed = {0};
    commit.container = container;
    commit.document = NULL;
    commit.extents = list;
    commit.nextents = count;
    commit.all_extents = all;
    return meta()->commit(f->store, &commit, &committed, &place_error);
}

typedef struct text {
    char text[1000];
} text;

static bool
add_match(const char *container, const char *path, void *user)
{
    text *t = user;
    size_t used = strlen(t->text);
    (void) snprintf(t->text + used, sizeof t->text - used, "%s%s%s ", container,
                    path != NULL ? ":" : "", path != NULL ? path : "");
    return true;
}

static bool
add_extent(const esdm_meta_extent *e, void *user)
{
    text *t = user;
    size_t used = strlen(t->text);
    if (e->has_number)
        (void) snprintf(t->text + used, sizeof t->text - used, "%u%s=%g ", (unsigned) e->dataset,
                        e->name, e->number);
    else
        (void) snprintf(t->text + used, sizeof t->text - used, "%u%s='%s' ", (unsigned) e->dataset,
                        e->name, e->text);
    return true;
}

static bool
add_name(const char *name, void *user)
{
    return add_match(name, NULL, user);
}

static void
expect_extents(const fixture *f, uint64_t container, const char *expected)
{
    text t = {""};
    assert_ok(meta()->extent_list(f->store, container, add_extent, &t, &place_error));
    assert_string_equal(t.text, expected);
}

static void
expect_found(const fixture *f, const esdm_meta_condition *conditions, size_t count,
             const char *expected)
{
    text t = {""};
    assert_ok(meta()->find(f->store, conditions, count, add_match, &t, &place_error));
    assert_string_equal(t.text, expected);
}

static esdm_meta_condition
number(const char *variable, const char *name, esdm_meta_operator op, double value)
{
    return (esdm_meta_condition){
        .variable = variable, .attribute = name, .op = op, .is_number = true, .number = value};
}

static esdm_meta_condition
word(const char *variable, const char *name, esdm_meta_operator op, const char *value)
{
    return (esdm_meta_condition){.variable = variable, .attribute = name, .op = op, .text = value};
}

static void
test_extents__containers_are_found_by_numbers_and_texts(void **state)
{
    const fixture *f = *state;
    (void) create(f, "a", COUNT(attributes), extents, COUNT(extents));
    (void) create(f, "b", 0, extents, 2); /* without any attribute */
    const esdm_meta_condition later = number(NULL, "@time_max", ESDM_META_GE, 20);
    const esdm_meta_condition never = number(NULL, "@time_max", ESDM_META_GT, 20);
    const esdm_meta_condition grid = word(NULL, "@grid", ESDM_META_EQ, "regular");
    const esdm_meta_condition hot = number(NULL, "@max:tas\tK", ESDM_META_GT, 310);
    const esdm_meta_condition both[] = {later, number(NULL, "@time_min", ESDM_META_LT, 15)};
    const esdm_meta_condition three[] = {hot, both[0], grid};
    expect_found(f, &later, 1, "a b ");
    expect_found(f, &never, 1, "");
    expect_found(f, &grid, 1, "a ");
    expect_found(f, &hot, 1, "a ");
    expect_found(f, both, 2, "a b ");
    expect_found(f, three, 3, "a ");
}

static void
test_extents__datasets_have_their_own_or_the_containers(void **state)
{
    const fixture *f = *state;
    (void) create(f, "a", COUNT(attributes), extents, COUNT(extents));
    const esdm_meta_condition later = number(NULL, "@time_max", ESDM_META_GE, 20);
    esdm_meta_condition pair[] = {later, word(NULL, "units", ESDM_META_GLOB, "*")};
    expect_found(f, pair, 2, "a:/tas ");
    pair[0] = word(NULL, "@grid", ESDM_META_GLOB, "reg*");
    expect_found(f, pair, 2, "a:/orog a:/tas ");
    pair[0] = word(NULL, "@grid", ESDM_META_NE, "curvilinear");
    pair[1] = word("tas", "@type", ESDM_META_GLOB, "*");
    expect_found(f, pair, 2, "a:/tas ");
    pair[0] = number("orog", "@time_max", ESDM_META_GE, 0);
    pair[1] = word("orog", "@type", ESDM_META_GLOB, "*");
    expect_found(f, pair, 2, "");
    pair[0] = number("", "@time_max", ESDM_META_GE, 0);
    expect_found(f, pair, 2, "a:/orog ");
}

static void
test_extents__writers_widen_what_others_have_published(void **state)
{
    static const esdm_meta_extent more[] = {RANGE(0, "@time_min", LOWER, 12),
                                            RANGE(0, "@time_max", UPPER, 33),
                                            RANGE(0, "@max:tas\tK", SET, 300)};
    const fixture *f = *state;
    uint64_t container = create(f, "a", COUNT(attributes), extents, COUNT(extents)).container;
    assert_ok(update(f, container, more, COUNT(more), false));
    expect_extents(f, container,
                   "0@grid='regular' 0@max:tas\tK=300 0@time_max=33 0@time_min=10 "
                   "2@time_max='' 2@time_min='' ");
    assert_ok(update(f, container, more + 2, 1, true));
    expect_extents(f, container, "0@max:tas\tK=300 ");
}

static void
test_extents__all_are_replaced_while_nobody_commits(void **state)
{
    const fixture *f = *state;
    esdm_meta_committed at = create(f, "a", COUNT(attributes), extents, COUNT(extents));
    assert_ok(
        meta()->extent_put(f->store, at.container, at.snapshot, extents + 2, 1, &place_error));
    expect_extents(f, at.container, "0@max:tas\tK=310.5 ");
    assert_status(
        meta()->extent_put(f->store, at.container, at.snapshot + 1, extents, 1, &place_error),
        ESDM_ECONFLICT);
    assert_status(update(f, at.container, &(esdm_meta_extent) RANGE(0, "time", SET, 1), 1, false),
                  ESDM_EINVAL);
    expect_extents(f, at.container, "0@max:tas\tK=310.5 ");
}

static void
test_extents__names_are_listed_once(void **state)
{
    const fixture *f = *state;
    text t = {""};
    (void) create(f, "a", COUNT(attributes), extents, COUNT(extents));
    (void) create(f, "b", COUNT(attributes), extents, COUNT(extents));
    assert_ok(meta()->extent_names(f->store, "@time", add_name, &t, &place_error));
    assert_string_equal(t.text, "@time_max @time_min ");
    t.text[0] = '\0';
    assert_ok(meta()->extent_names(f->store, "@max:tas\t", add_name, &t, &place_error));
    assert_string_equal(t.text, "@max:tas\tK ");
    t.text[0] = '\0';
    assert_ok(meta()->extent_names(f->store, "@zzz", add_name, &t, &place_error));
    assert_string_equal(t.text, "");
}

static void
test_extents__go_with_their_container(void **state)
{
    const fixture *f = *state;
    text t = {""};
    uint64_t container = create(f, "a", COUNT(attributes), extents, COUNT(extents)).container;
    const esdm_meta_condition grid = word(NULL, "@grid", ESDM_META_EQ, "regular");
    assert_ok(meta()->container_remove(f->store, "a", &container, &place_error));
    expect_found(f, &grid, 1, "");
    assert_true(meta_becomes_garbage(f->store, container));
    assert_ok(meta()->forget(f->store, container, &place_error));
    assert_ok(meta()->extent_names(f->store, "@", add_name, &t, &place_error));
    assert_string_equal(t.text, "");
}

/* The engine's mark of what saved queries have to look at. */
static void
test_extents__marks_are_set_where_something_follows(void **state)
{
    static const esdm_meta_extent marked[] = {RANGE(0, "@time_max", UPPER, 20),
                                              RANGE(0, "@fresh", ESDM_META_EXTENT_IF_FOLLOWED, 1)};
    static const esdm_meta_extent seen[] = {RANGE(0, "@fresh", SET, 0),
                                            RANGE(0, "@time_max", UPPER, 19)};
    static const esdm_meta_extent members[] = {WORD(0, ESDM_META_EXTENT_FOLLOWS, "2 members")};
    const fixture *f = *state;
    if (meta()->extent_merge == NULL)
        skip();
    esdm_meta_committed a = create(f, "a", COUNT(attributes), marked, COUNT(marked));
    expect_extents(f, a.container, "0@time_max=20 ");
    (void) create(f, "saved", COUNT(attributes), members, COUNT(members));
    assert_ok(update(f, a.container, marked, COUNT(marked), false));
    expect_extents(f, a.container, "0@fresh=1 0@time_max=20 ");
    esdm_meta_committed b = create(f, "b", COUNT(attributes), marked + 1, 1);
    expect_extents(f, b.container, "0@fresh=1 ");
    assert_status(
        meta()->extent_merge(f->store, a.container, a.snapshot, seen, COUNT(seen), &place_error),
        ESDM_ECONFLICT);
    assert_ok(meta()->extent_merge(f->store, a.container, a.snapshot + 1, seen, COUNT(seen),
                                   &place_error));
    expect_extents(f, a.container, "0@fresh=0 0@time_max=20 ");
    assert_ok(meta()->extent_merge(f->store, a.container, a.snapshot + 1, marked, COUNT(marked),
                                   &place_error));
    expect_extents(f, a.container, "0@fresh=1 0@time_max=20 ");
    assert_ok(
        meta()->extent_put(f->store, b.container, b.snapshot, marked, COUNT(marked), &place_error));
    expect_extents(f, b.container, "0@fresh=1 0@time_max=20 ");
}

const struct CMUnitTest meta_extent_tests[] = {
    WITH_STORE(test_extents__containers_are_found_by_numbers_and_texts),
    WITH_STORE(test_extents__datasets_have_their_own_or_the_containers),
    WITH_STORE(test_extents__writers_widen_what_others_have_published),
    WITH_STORE(test_extents__all_are_replaced_while_nobody_commits),
    WITH_STORE(test_extents__names_are_listed_once),
    WITH_STORE(test_extents__marks_are_set_where_something_follows),
    WITH_STORE(test_extents__go_with_their_container),
};
const size_t meta_extent_count = COUNT(meta_extent_tests);
