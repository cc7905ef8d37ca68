/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Comparisons joined by "and", "or" and "not": what a store finds at once is what follows
 *  from the answers to single comparisons. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"

#define TEXT(set, path, key, value)                                                                \
    {                                                                                              \
        .dataset = (set), .dataset_path = (path), .name = (key), .text = (value)                   \
    }
#define NUMBER(set, path, key, value, as_text)                                                     \
    {                                                                                              \
        .dataset = (set), .dataset_path = (path), .name = (key), .text = (as_text),                \
        .number = (value), .has_number = true                                                      \
    }
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Each variable has "any". */
static const esdm_meta_attribute first[] = {
    TEXT(0, NULL, "institution", "MPI"),
    NUMBER(0, NULL, "resolution", 1, "1"),
    TEXT(1, "/tas", "any", "x"),
    TEXT(1, "/tas", "units", "K"),
    TEXT(2, "/ocean/tos", "any", "x"),
    TEXT(2, "/ocean/tos", "units", "degC"),
    TEXT(2, "/ocean/tos", "institution", "AWI"),
    TEXT(3, "/pr", "any", "x"),
    NUMBER(3, "/pr", "level", 3, "3"),
};
static const esdm_meta_attribute second[] = {
    TEXT(0, NULL, "institution", "AWI"), TEXT(0, NULL, "units", "K"),
    TEXT(1, "/tas", "any", "x"),         NUMBER(1, "/tas", "resolution", 2, "2"),
    TEXT(2, "/pr", "any", "x"),          TEXT(2, "/pr", "units", "mm"),
};
static const esdm_meta_attribute third[] = {
    NUMBER(0, NULL, "resolution", 2, "2"), NUMBER(0, NULL, "level", -5, "-5"),
    NUMBER(0, NULL, "level", 7, "7"),      TEXT(1, "/tas", "any", "x"),
    TEXT(1, "/tas", "units", "K"),
};
static const esdm_meta_extent ranges[] = {
    {.dataset = 0, .name = "@grid", .text = "regular"},
    {.dataset = 0,
     .name = "@time_min",
     .how = ESDM_META_EXTENT_LOWER,
     .has_number = true,
     .number = 10},
    {.dataset = 2, .name = "@time_min", .has_number = true, .number = 30},
    {.dataset = 2, .name = "@grid", .text = ""},
};

/* What containers and variables there are, and what single comparisons say of each. */
static const struct object {
    const char *container, *path;
} objects[] = {{"c1", NULL},  {"c1", "/ocean/tos"}, {"c1", "/pr"}, {"c1", "/tas"}, {"c2", NULL},
               {"c2", "/pr"}, {"c2", "/tas"},       {"c3", NULL},  {"c3", "/tas"}, {"c4", NULL}};

#define TEXT_IS(of, key, sign, value)                                                              \
    {                                                                                              \
        .variable = (of), .attribute = (key), .op = ESDM_META_##sign, .text = (value)              \
    }
#define NUMBER_IS(of, key, sign, value, as_text)                                                   \
    {                                                                                              \
        .variable = (of), .attribute = (key), .op = ESDM_META_##sign, .is_number = true,           \
        .number = (value), .text = (as_text)                                                       \
    }
static const esdm_meta_condition comparisons[] = {
    TEXT_IS(NULL, "institution", EQ, "MPI"),    TEXT_IS(NULL, "institution", NE, "MPI"),
    TEXT_IS("", "institution", GLOB, "A*"),     TEXT_IS(NULL, "units", EQ, "K"),
    TEXT_IS("tas", "units", GLOB, "*"),         TEXT_IS("pr", "any", EQ, "x"),
    TEXT_IS(NULL, "nothing", EQ, "x"),          NUMBER_IS(NULL, "resolution", LT, 2, "2"),
    NUMBER_IS(NULL, "resolution", EQ, 2, "2"),  NUMBER_IS(NULL, "level", GE, 0, "0"),
    TEXT_IS(NULL, "@grid", EQ, "regular"),      NUMBER_IS(NULL, "@time_min", LE, 20, NULL),
    NUMBER_IS("pr", "@time_min", GT, 20, NULL), NUMBER_IS("", "@time_min", LT, 20, NULL),
};

typedef struct truth {
    bool holds[COUNT(comparisons)], own[COUNT(comparisons)]; /* of a variable: also by itself */
} truth;

typedef struct answer {
    bool found[COUNT(objects)];
    size_t count;
} answer;

static bool
note(const char *container, const char *path, void *user)
{
    answer *a = user;
    for (size_t i = 0; i < COUNT(objects); i++) {
        const char *has = objects[i].path;
        if (strcmp(objects[i].container, container) == 0 &&
            (path == NULL ? has == NULL : has != NULL && strcmp(has, path) == 0)) {
            assert_false(a->found[i]);
            a->found[i] = true;
            a->count++;
            return true;
        }
    }
    fail_msg("found %s:%s", container, path != NULL ? path : "");
    return false;
}

static void
learn(const fixture *f, truth *truths)
{
    static const esdm_meta_condition any = TEXT_IS(NULL, "any", EQ, "x");
    for (size_t i = 0; i < COUNT(comparisons); i++) {
        const esdm_meta_condition two[2] = {any, comparisons[i]};
        answer alone = {.count = 0}, beside = {.count = 0};
        assert_ok(meta()->find(f->store, &comparisons[i], 1, note, &alone, &place_error));
        assert_ok(meta()->find(f->store, two, 2, note, &beside, &place_error));
        for (size_t k = 0; k < COUNT(objects); k++) {
            bool variable = objects[k].path != NULL;
            truths[k].own[i] = alone.found[k];
            truths[k].holds[i] = variable ? beside.found[k] : alone.found[k];
        }
    }
}

/* ---- expressions ---------------------------------------------------------------------------- */

typedef struct tree {
    esdm_meta_node nodes[200];
    size_t count;
    unsigned random;
} tree;

static unsigned
draw(tree *t, unsigned below)
{
    t->random = t->random * 1103515245u + 12345u;
    return (t->random >> 16) % below;
}

static void
grow(tree *t, int depth)
{
    size_t at = t->count++;
    unsigned kind = draw(t, 10), parts = draw(t, 10) == 0 ? 0 : 1 + draw(t, 3);
    bool leaf = depth >= 4 || kind < 4;
    t->nodes[at] =
        (esdm_meta_node){.kind = leaf ? (kind % 4 == 0 ? ESDM_META_FAILS : ESDM_META_HOLDS)
                                 : kind % 2 == 0 ? ESDM_META_ALL
                                                 : ESDM_META_ANY,
                         .condition = draw(t, COUNT(comparisons))};
    for (unsigned i = 0; i < parts && !leaf; i++)
        grow(t, depth + 1);
    t->nodes[at].size = (uint32_t) (t->count - at);
}

/* Whether it holds; *ret_own: a list of comparisons that hold, once all is multiplied out, has one
 * that the object meets by itself. */
static bool
evaluate(const tree *t, size_t at, const truth *object, bool *ret_own)
{
    const esdm_meta_node *n = &t->nodes[at];
    bool any = n->kind == ESDM_META_ANY, holds = !any;
    *ret_own = false;
    if (n->kind == ESDM_META_HOLDS || n->kind == ESDM_META_FAILS) {
        holds = object->holds[n->condition] == (n->kind == ESDM_META_HOLDS);
        *ret_own = holds && n->kind == ESDM_META_HOLDS && object->own[n->condition];
        return holds;
    }
    for (size_t i = at + 1; i < at + n->size; i += t->nodes[i].size) {
        bool own = false, one = evaluate(t, i, object, &own);
        holds = any ? holds || one : holds && one;
        *ret_own |= own;
    }
    *ret_own = *ret_own && holds;
    return holds;
}

static void
show(const tree *t, size_t at, char *text, size_t room)
{
    static const char *const names[] = {"", "-", "all", "any"};
    const esdm_meta_node *n = &t->nodes[at];
    size_t used = strlen(text);
    bool leaf = n->size == 1 && (n->kind == ESDM_META_HOLDS || n->kind == ESDM_META_FAILS);
    if (leaf)
        (void) snprintf(text + used, room - used, " %s%u", names[n->kind], n->condition);
    else
        (void) snprintf(text + used, room - used, " %s(", names[n->kind]);
    for (size_t i = at + 1; i < at + n->size; i += t->nodes[i].size)
        show(t, i, text, room);
    used = strlen(text);
    if (!leaf)
        (void) snprintf(text + used, room - used, ")");
}

static void
check(const fixture *f, const tree *t, const truth *truths)
{
    char text[2000] = "";
    answer a = {.count = 0};
    const esdm_meta_expression e = {comparisons, COUNT(comparisons), t->nodes, t->count, 0};
    show(t, 0, text, sizeof text);
    if (meta()->find_expression(f->store, &e, note, &a, &place_error) != ESDM_OK)
        fail_msg("%s: %s", text, place_error.message);
    for (size_t i = 0; i < COUNT(objects); i++) {
        bool own = false, holds = evaluate(t, 0, &truths[i], &own);
        if (a.found[i] != (objects[i].path != NULL ? own : holds))
            fail_msg("%s: %s:%s is %sfound", text, objects[i].container,
                     objects[i].path != NULL ? objects[i].path : "", a.found[i] ? "" : "not ");
    }
}

static void
create(const fixture *f, const char *name, const esdm_meta_attribute *attributes, size_t count,
       bool with_ranges)
{
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    esdm_meta_committed committed = {0};
    commit.name = name;
    commit.attributes = attributes;
    commit.nattributes = count;
    commit.extents = ranges;
    commit.nextents = with_ranges ? COUNT(ranges) : 0;
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
}

static void
test_expression__is_what_its_comparisons_say(void **state)
{
    static const esdm_meta_attribute filler[] = {TEXT(0, NULL, "filler", "x")};
    fixture *f = *state;
    truth truths[COUNT(objects)];
    if (meta()->find_expression == NULL)
        skip();
    create(f, "c1", first, COUNT(first), true);
    create(f, "c2", second, COUNT(second), true);
    create(f, "c3", third, COUNT(third), false);
    create(f, "c4", NULL, 0, false); /* has no attributes at all */
    /* In an index that is made later than a commit, and in one that is there. */
    for (int round = 0; round < 2; round++) {
        learn(f, truths);
        for (unsigned i = 0; i < 400; i++) {
            tree t = {.random = i * 7919 + 1};
            grow(&t, 0);
            check(f, &t, truths);
        }
        for (int i = 0; i < 130 && round == 0; i++) {
            char name[32];
            uint64_t record = 0;
            (void) snprintf(name, sizeof name, "filler/%d", i);
            create(f, name, filler, 1, false);
            assert_ok(meta()->container_remove(f->store, name, &record, &place_error));
        }
    }
}

/* A list of one comparison, which must fail, and no other one in the question. */
static void
test_expression__of_one_that_must_fail(void **state)
{
    fixture *f = *state;
    static const esdm_meta_condition mpi = TEXT_IS(NULL, "institution", EQ, "MPI");
    static const esdm_meta_node nodes[] = {{ESDM_META_ALL, 0, 2}, {ESDM_META_FAILS, 0, 1}};
    const esdm_meta_expression e = {&mpi, 1, nodes, COUNT(nodes), 0};
    answer a = {.count = 0};
    if (meta()->find_expression == NULL)
        skip();
    create(f, "c1", first, COUNT(first), true);
    create(f, "c2", second, COUNT(second), true);
    assert_ok(meta()->find_expression(f->store, &e, note, &a, &place_error));
    assert_int_equal(a.count, 1);
    assert_true(a.found[4]); /* c2 */
}

static void
test_expression__of_hundreds_of_alternatives(void **state)
{
    fixture *f = *state;
    enum { MOST = ESDM_META_EXPRESSION_CONDITIONS_MAX };
    static esdm_meta_condition many[MOST];
    static esdm_meta_node nodes[MOST + 2];
    static char texts[MOST][16];
    if (meta()->find_expression == NULL)
        skip();
    create(f, "c1", first, COUNT(first), true);
    create(f, "c2", second, COUNT(second), true);
    create(f, "c3", third, COUNT(third), false);
    for (size_t i = 0; i < MOST; i++) {
        (void) snprintf(texts[i], sizeof texts[i], "text-%zu", i);
        many[i] = (esdm_meta_condition) TEXT_IS(NULL, "institution", EQ, texts[i]);
        nodes[i + 2] = (esdm_meta_node){ESDM_META_HOLDS, (uint32_t) i, 1};
    }
    /* (... or institution = MPI) and units = K: of the container and of its variables. */
    many[MOST - 2].text = "MPI";
    many[MOST - 1] = (esdm_meta_condition) TEXT_IS(NULL, "units", EQ, "K");
    nodes[0] = (esdm_meta_node){ESDM_META_ALL, 0, MOST + 2};
    nodes[1] = (esdm_meta_node){ESDM_META_ANY, 0, MOST};
    esdm_meta_expression e = {many, MOST, nodes, MOST + 2, 0};
    answer a = {.count = 0};
    assert_ok(meta()->find_expression(f->store, &e, note, &a, &place_error));
    assert_int_equal(a.count, 1);
    assert_true(a.found[3]); /* c1:/tas */
    e = (esdm_meta_expression){many, MOST - 1, nodes + 1, MOST, 0};
    memset(&a, 0, sizeof a);
    assert_ok(meta()->find_expression(f->store, &e, note, &a, &place_error));
    assert_int_equal(a.count, 1);
    assert_true(a.found[0]); /* c1 */
}

static void
test_expression__that_is_none_is_refused(void **state)
{
    fixture *f = *state;
    answer a = {.count = 0};
    if (meta()->find_expression == NULL)
        skip();
    const esdm_meta_node bad[][3] = {
        {{ESDM_META_ALL, 0, 2}, {ESDM_META_HOLDS, 0, 1}, {ESDM_META_HOLDS, 1, 1}},
        {{ESDM_META_ALL, 0, 3}, {ESDM_META_HOLDS, 0, 2}, {ESDM_META_HOLDS, 1, 1}},
        {{ESDM_META_ALL, 0, 3}, {ESDM_META_HOLDS, 0, 0}, {ESDM_META_HOLDS, 1, 1}},
        {{ESDM_META_ALL, 0, 3}, {ESDM_META_HOLDS, 0, 1}, {ESDM_META_HOLDS, 2, 1}},
        {{ESDM_META_ALL, 0, 9}, {ESDM_META_HOLDS, 0, 1}, {ESDM_META_HOLDS, 1, 1}},
        {{(esdm_meta_node_kind) 7, 0, 3}, {ESDM_META_HOLDS, 0, 1}, {ESDM_META_HOLDS, 1, 1}},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        const esdm_meta_expression e = {comparisons, 2, bad[i], 3, 0};
        assert_status(meta()->find_expression(f->store, &e, note, &a, &place_error), ESDM_EINVAL);
    }
    esdm_meta_node deep[40];
    for (uint32_t i = 0; i < 40; i++)
        deep[i] = (esdm_meta_node){i < 39 ? ESDM_META_ALL : ESDM_META_HOLDS, 0, 40 - i};
    const esdm_meta_expression e = {comparisons, 1, deep, 40, 0};
    assert_status(meta()->find_expression(f->store, &e, note, &a, &place_error), ESDM_EINVAL);
}

const struct CMUnitTest meta_expression_tests[] = {
    WITH_STORE(test_expression__is_what_its_comparisons_say),
    WITH_STORE(test_expression__of_one_that_must_fail),
    WITH_STORE(test_expression__of_hundreds_of_alternatives),
    WITH_STORE(test_expression__that_is_none_is_refused),
};
const size_t meta_expression_count = sizeof meta_expression_tests / sizeof meta_expression_tests[0];
