/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Views: the counts that a store keeps are those of what is there, whatever was done to it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"

#define CONTAINERS 90 /* more than SQLite lets wait */
#define LEVELS     3

static const char *const level_names[LEVELS] = {"era", "model", "var"};
static const char *const any[LEVELS] = {NULL, NULL, NULL};
static const char *const stated[LEVELS] = {"6", NULL, NULL};
static const char *const words[][4] = {
    {"6", "7", "a/b", NULL}, {"MPI", "", "x\ny", NULL}, {"ta", "\xc3\xa4", "\xff", NULL}};

static const esdm_meta_view free_view = {level_names, any, LEVELS, "esdm_query"};
static const esdm_meta_view stated_view = {level_names, stated, LEVELS, "esdm_query"};

typedef struct model {
    bool there[CONTAINERS];  /* under its name */
    bool former[CONTAINERS]; /* under a name of the engine's own */
    bool query[CONTAINERS];  /* it has the attribute that keeps it out */
    unsigned word[CONTAINERS][LEVELS];
    uint64_t number[CONTAINERS];
} model;

typedef struct level {
    char *values[64]; /* owned; NULL: missing */
    uint64_t counts[64];
    size_t count;
} level;

static bool
same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
add_value(const char *value, uint64_t containers, void *user)
{
    level *l = user;
    for (size_t i = 0; i < l->count; i++) {
        if (same(l->values[i], value)) {
            l->counts[i] += containers;
            return true;
        }
    }
    assert_true(l->count < 64);
    l->values[l->count] = value != NULL ? strdup(value) : NULL;
    l->counts[l->count++] = containers;
    return true;
}

static void
clear_level(level *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->values[i]);
    *l = (level){.count = 0};
}

/* What the model says of a place. */
static void
expected_level(const model *m, const esdm_meta_view *view, const char *const *path, size_t depth,
               level *ret)
{
    *ret = (level){.count = 0};
    for (size_t i = 0; i < CONTAINERS; i++) {
        bool in = m->there[i] && !m->query[i] && words[0][m->word[i][0]] != NULL;
        for (size_t k = 0; k < LEVELS && in; k++) {
            const char *value = words[k][m->word[i][k]];
            in = (k >= depth || same(value, path[k])) &&
                 (view->values[k] == NULL || same(value, view->values[k]));
        }
        if (in)
            (void) add_value(words[depth][m->word[i][depth]], 1, ret);
    }
}

static void
check_place(const fixture *f, const model *m, const esdm_meta_view *view, const char *const *path,
            size_t depth)
{
    level want, got = {.count = 0};
    expected_level(m, view, path, depth, &want);
    assert_ok(meta()->view_level(f->store, view, path, depth, add_value, &got, &place_error));
    assert_int_equal(got.count, want.count);
    for (size_t i = 0; i < want.count; i++) {
        bool found = false;
        for (size_t k = 0; k < got.count; k++)
            found |= same(want.values[i], got.values[k]) && want.counts[i] == got.counts[k];
        if (!found)
            fail_msg("level %zu: %llu times '%s' are not told", depth,
                     (unsigned long long) want.counts[i],
                     want.values[i] != NULL ? want.values[i] : "(missing)");
    }
    if (depth + 1 < LEVELS) {
        for (size_t i = 0; i < want.count; i++) {
            const char *below[LEVELS] = {depth > 0 ? path[0] : NULL, depth > 1 ? path[1] : NULL};
            below[depth] = want.values[i];
            check_place(f, m, view, below, depth + 1);
        }
    }
    clear_level(&want);
    clear_level(&got);
}

/* How many have a value of an attribute, of those that have another one. */
static uint64_t
expected_count(const model *m, size_t asked, size_t name, const char *value)
{
    uint64_t count = 0;
    for (size_t i = 0; i < CONTAINERS; i++) {
        const char *own = words[name][m->word[i][name]];
        bool in = m->there[i] && words[asked][m->word[i][asked]] != NULL;
        count += in && own != NULL && strcmp(own, value) == 0;
    }
    return count;
}

typedef struct facets {
    level of[LEVELS];
} facets;

static bool
add_count(size_t name, const char *value, uint64_t containers, void *user)
{
    facets *all = user;
    return add_value(value, containers, &all->of[name]);
}

/* Facets of the first attributes that views name, of all that have one of them. */
static void
check_facets_of(const fixture *f, const model *m, size_t asked, size_t nnames)
{
    const esdm_meta_condition c = {
        .attribute = level_names[asked], .variable = "", .op = ESDM_META_GLOB, .text = "*"};
    const esdm_meta_node node = {ESDM_META_HOLDS, 0, 1};
    const esdm_meta_expression e = {&c, 1, &node, 1, 0};
    facets all = {0};
    assert_ok(meta()->facets(f->store, &e, level_names, nnames, add_count, &all, &place_error));
    for (size_t k = 0; k < LEVELS; k++) {
        size_t values = 0;
        for (size_t w = 0; w < 3 && k < nnames; w++)
            values += expected_count(m, asked, k, words[k][w]) > 0;
        assert_int_equal(all.of[k].count, values);
        for (size_t i = 0; i < values; i++)
            assert_int_equal(all.of[k].counts[i], expected_count(m, asked, k, all.of[k].values[i]));
        clear_level(&all.of[k]);
    }
}

static void
check_facets(const fixture *f, const model *m)
{
    for (size_t asked = 0; asked < LEVELS && meta()->facets != NULL; asked++)
        check_facets_of(f, m, asked, LEVELS);
    if (meta()->facets != NULL)
        check_facets_of(f, m, 0, 1); /* its own values alone */
    for (size_t asked = 1; asked < LEVELS && meta()->facets != NULL; asked++)
        check_facets_of(f, m, asked, 1); /* those of another one */
}

static void
put(const fixture *f, model *m, size_t i, esdm_meta_commit_kind kind, const char *keep_as)
{
    char name[32];
    esdm_meta_attribute list[LEVELS + 2];
    esdm_meta_committed committed = {0};
    esdm_meta_commit commit = meta_new_commit(kind);
    size_t count = 0;
    (void) snprintf(name, sizeof name, "in/%zu", i);
    for (size_t k = 0; k < LEVELS; k++) {
        m->word[i][k] = (unsigned) rand() % 4;
        const char *word = words[k][m->word[i][k]];
        if (word != NULL)
            list[count++] = (esdm_meta_attribute){.name = level_names[k],
                                                  .text = word,
                                                  .has_number = word[0] == '6' || word[0] == '7',
                                                  .number = atof(word)};
    }
    m->query[i] = rand() % 8 == 0;
    if (m->query[i])
        list[count++] = (esdm_meta_attribute){.name = "esdm_query", .text = "?a=b"};
    list[count++] = (esdm_meta_attribute){
        .dataset = 1, .dataset_path = "/v", .name = "era", .text = "of a dataset"};
    commit.name = name;
    commit.attributes = list;
    commit.nattributes = count;
    commit.keep_as = keep_as;
    if (kind == ESDM_META_UPDATE) {
        commit.container = m->number[i];
        commit.document = "{\"format\": 1}"; /* the attributes belong to it */
        commit.document_bytes = strlen(commit.document);
        commit.datasets = 1;
        commit.structure = meta_record(f, name).structure;
    }
    assert_ok(meta()->commit(f->store, &commit, &committed, &place_error));
    m->number[i] = committed.container;
    m->there[i] = true;
}

/* Something happens to one of the containers. */
static void
change(const fixture *f, model *m)
{
    size_t i = (size_t) rand() % CONTAINERS;
    uint64_t number = 0;
    char name[32], former[64];
    (void) snprintf(name, sizeof name, "in/%zu", i);
    (void) snprintf(former, sizeof former, "/former/in/%zu//1-r", i);
    int what = rand() % 8;
    if (!m->there[i] && m->former[i] && what < 4) { /* it comes back */
        assert_ok(
            meta()->container_move(f->store, former, name, false, NULL, &number, &place_error));
        m->there[i] = true;
        m->former[i] = false;
    } else if (!m->there[i]) {
        if (m->former[i])
            assert_ok(meta()->container_remove(f->store, former, &number, &place_error));
        m->former[i] = false;
        put(f, m, i, ESDM_META_CREATE, NULL);
    } else if (what < 4) {
        put(f, m, i, ESDM_META_UPDATE, NULL);
    } else if (what == 4) {
        assert_ok(meta()->container_remove(f->store, name, &number, &place_error));
        m->there[i] = false;
    } else if (what == 5 && !m->former[i]) {
        assert_ok(
            meta()->container_move(f->store, name, former, false, NULL, &number, &place_error));
        m->there[i] = false;
        m->former[i] = true;
    } else if (what == 6 && !m->former[i]) { /* the one that was there before is kept */
        put(f, m, i, ESDM_META_REPLACE, former);
        assert_ok(meta()->container_remove(f->store, former, &number, &place_error));
    } else {
        put(f, m, i, ESDM_META_REPLACE, NULL);
    }
}

static void
test_views__counts_follow_every_change(void **state)
{
    fixture *f = *state;
    const esdm_meta_view both[] = {free_view, stated_view};
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    if (meta()->view_set == NULL)
        skip();
    srand(20261127);
    for (size_t i = 0; i < CONTAINERS / 2; i++)
        put(f, m, i, ESDM_META_CREATE, NULL);
    assert_ok(meta()->view_set(f->store, both, 2, false, &place_error));
    for (size_t i = CONTAINERS / 2; i < CONTAINERS; i++)
        put(f, m, i, ESDM_META_CREATE, NULL);
    for (int round = 0; round < 12; round++) {
        for (int k = 0; k < 25; k++)
            change(f, m);
        for (size_t v = 0; v < 2; v++)
            check_place(f, m, &both[v], NULL, 0);
        check_facets(f, m);
        if (round == 8)
            assert_ok(meta()->view_set(f->store, both, 2, round % 2 == 0, &place_error));
    }
    free(m);
}

static void
test_views__only_those_that_are_set_are_kept(void **state)
{
    fixture *f = *state;
    level got = {.count = 0};
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    if (meta()->view_level == NULL)
        skip();
    put(f, m, 0, ESDM_META_CREATE, NULL);
    assert_int_equal(
        meta()->view_level(f->store, &free_view, NULL, 0, add_value, &got, &place_error),
        ESDM_ENOENT);
    assert_ok(meta()->view_set(f->store, &free_view, 1, false, &place_error));
    check_place(f, m, &free_view, NULL, 0);
    assert_int_equal(
        meta()->view_level(f->store, &stated_view, NULL, 0, add_value, &got, &place_error),
        ESDM_ENOENT);
    assert_ok(meta()->view_set(f->store, &stated_view, 1, false, &place_error));
    check_place(f, m, &stated_view, NULL, 0);
    assert_int_equal(
        meta()->view_level(f->store, &free_view, NULL, 0, add_value, &got, &place_error),
        ESDM_ENOENT);
    assert_ok(meta()->view_set(f->store, NULL, 0, false, &place_error));
    assert_int_equal(
        meta()->view_level(f->store, &stated_view, NULL, 0, add_value, &got, &place_error),
        ESDM_ENOENT);
    assert_int_equal(got.count, 0);
    free(m);
}

const struct CMUnitTest meta_view_tests[] = {
    WITH_STORE(test_views__counts_follow_every_change),
    WITH_STORE(test_views__only_those_that_are_set_are_kept),
};
const size_t meta_view_count = sizeof meta_view_tests / sizeof *meta_view_tests;
