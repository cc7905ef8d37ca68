/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Ranks that disagree, and ranks that fail: all hear of it, and nothing is published. */
#include "ranks.h"

/* The rank that does otherwise than the others. */
static bool
is_odd(const rank_state *r)
{
    return r->size > 1 && r->rank == r->size - 1;
}

static const char *
odd_rank(const rank_state *r)
{
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "rank %d", r->size - 1);
    return text;
}

static void
must_differ(rank_state *r, esdm_container *c, const char *words)
{
    esdm_container_info info;
    if (r->size > 1) {
        fails(esdm_container_align(c, ERR), ESDM_EINVAL, words);
        check(strstr(ERR->message, odd_rank(r)) != NULL);
        fails(esdm_container_commit(c, NULL, ERR), ESDM_EINVAL, words);
        check(esdm_container_stat(r->session, "differ", &info, ERR) == ESDM_ENOENT);
    } else {
        ok(esdm_container_align(c, ERR));
    }
    esdm_container_discard(c);
    meet(r);
}

static void
definitions_that_differ_are_told(rank_state *r)
{
    esdm_container *c = create(r, "differ", ESDM_CREATE_REPLACE);
    esdm_group *root = esdm_container_root(c);
    esdm_dimension *d;
    ok(esdm_dimension_create(root, "z", is_odd(r) ? 12 : 10, &d, ERR));
    must_differ(r, c, "the length of '/z' is 10 on rank 0 and 12 on rank");

    c = create(r, "differ", ESDM_CREATE_REPLACE);
    root = esdm_container_root(c);
    ok(esdm_dimension_create(root, is_odd(r) ? "w" : "z", 10, &d, ERR));
    must_differ(r, c, "a dimension of '/' is called 'z' on rank 0 and 'w' on rank");

    c = create(r, "differ", ESDM_CREATE_REPLACE);
    esdm_attributes *list = esdm_dataset_attributes(find(c, "v"));
    ok(esdm_attribute_set(list, "esdm_x", ESDM_TYPE_CHAR, 1, is_odd(r) ? "C" : "K", ERR));
    must_differ(r, c, "attribute 'esdm_x' of '/v' has another value");

    c = create(r, "differ", ESDM_CREATE_REPLACE);
    list = esdm_dataset_attributes(find(c, "v"));
    if (is_odd(r))
        ok(esdm_attribute_set(list, "n", ESDM_TYPE_INT8, 1, &(int8_t){1}, ERR));
    else
        ok(esdm_attribute_set(list, "n", ESDM_TYPE_INT16, 1, &(int16_t){1}, ERR));
    must_differ(r, c, "attribute 'n' of '/v' has another value");

    c = create(r, "differ", ESDM_CREATE_REPLACE);
    list = esdm_group_attributes(esdm_container_root(c));
    if (!is_odd(r))
        ok(esdm_attribute_set(list, "title", ESDM_TYPE_CHAR, 1, "x", ERR));
    must_differ(r, c, "attribute 'title' of '/' is defined on rank 0 but not on rank");

    c = create(r, "differ", ESDM_CREATE_REPLACE);
    d = find_dimension(c, "x");
    esdm_dataset *v;
    if (is_odd(r))
        ok(esdm_dataset_create(esdm_container_root(c), "extra", ESDM_TYPE_INT8, 1, &d, &v, ERR));
    must_differ(r, c, "dataset 'extra' of '/' is defined on rank");

    c = create(r, "differ", ESDM_CREATE_REPLACE);
    ok(esdm_dataset_set_chunk(find(c, "v"), (uint64_t[]){1, is_odd(r) ? 2 : 4, 6}, ERR));
    must_differ(r, c, "the chunk shape of '/v' is 4 on rank 0 and 2 on rank");

    c = create(r, "differ", ESDM_CREATE_REPLACE);
    ok(esdm_dataset_set_fill(find(c, "v"), &(int32_t){is_odd(r) ? 1 : 2}, ERR));
    must_differ(r, c, "the fill value of '/v'");

    c = create(r, "differ", ESDM_CREATE_REPLACE);
    esdm_type type;
    ok(esdm_opaque_create(esdm_container_root(c), "blob", is_odd(r) ? 5 : 4, &type, ERR));
    must_differ(r, c, "the size of '/blob' is 4 on rank 0 and 5 on rank");

    c = create(r, "differ", ESDM_CREATE_REPLACE);
    ok(esdm_dataset_set_hint(find(c, "v"), "netcdf.deflate", is_odd(r) ? "1 5" : "1 1", ERR));
    must_differ(r, c, "netcdf.deflate of '/v' is '1 1' on rank 0 and '1 5' on rank");
}

static void
state(esdm_dataset *dataset, const char *text, const char *units)
{
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    ok(esdm_accuracy_parse(&accuracy, text, units, ERR));
    ok(esdm_dataset_set_accuracy(dataset, &accuracy, ERR));
}

/* The same accuracy in other words is the same; one that ended with its units is none. */
static void
accuracies_are_compared(rank_state *r)
{
    static const char *const words[][2] = {
        {"abs=1.1 hPa; exact=1 0", "abs=110 Pa; exact=0 1"},
        {"rel=1.1 %", "rel=0.011"},
        {"abs=3; box=0,0,9,9: rel=1%", "regions=box=0,0, 9,9: rel=0.01; abs=3"},
        {"abs=3; box=-9.9,0,5.3,9: rel=1%", "abs=3; box=350.1,-0,365.3,9: rel=1%"},
        {"abs=3; box=-180,0,180,9: rel=1%", "abs=3; box=0,0,360,9: rel=1%"},
        {"abs=3; level=850..300 hPa: abs=1; box=0,0,9,9: abs=2",
         "abs=3; level=30000..85000 Pa: abs=0.01 hPa; box=360,0,9,9: abs=2 Pa"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        esdm_container *c = create(r, "words", ESDM_CREATE_REPLACE);
        state(find(c, "v"), words[i][is_odd(r) ? 1 : 0], "Pa");
        ok(esdm_container_commit(c, NULL, ERR));
        ok(esdm_container_close(c, ERR));
    }
    esdm_container *c = create(r, "differ", ESDM_CREATE_REPLACE);
    state(find(c, "v"), is_odd(r) ? "abs=2" : "abs=3", NULL);
    must_differ(r, c, "the accuracy of '/v' is another one");
    c = create(r, "differ", ESDM_CREATE_REPLACE);
    esdm_attributes *list = esdm_dataset_attributes(find(c, "v"));
    ok(esdm_attribute_set(list, "units", ESDM_TYPE_CHAR, 1, "K", ERR));
    state(find(c, "v"), "abs=2", "K");
    ok(esdm_attribute_set(list, "units", ESDM_TYPE_CHAR, 2, "kW", ERR));
    ok(esdm_dataset_set_hint(find(c, "v"), "netcdf.deflate", is_odd(r) ? "1 5" : "1 1", ERR));
    must_differ(r, c, "netcdf.deflate of '/v' is '1 1' on rank 0 and '1 5' on rank");
}

static void
must_be(esdm_attributes *list, const char *name, const char *text)
{
    esdm_attribute a;
    check(esdm_attribute_find(list, name, &a, NULL));
    check(a.count == strlen(text) && memcmp(a.values, text, a.count) == 0);
}

/* Times and hosts are not the same on all ranks: rank 0's are kept, and all are told once. */
static void
attributes_with_other_values_follow_rank_0(rank_state *r)
{
    char text[100];
    char host[32];
    esdm_container *c = create(r, "follow", ESDM_CREATE_REPLACE);
    esdm_attributes *global = esdm_group_attributes(esdm_container_root(c));
    esdm_attributes *list = esdm_dataset_attributes(find(c, "v"));
    snprintf(host, sizeof host, "%.*shost %d", r->rank, "aaaaaaaaaaaaaaaaaaaa", r->rank);
    ok(esdm_attribute_set(global, "host", ESDM_TYPE_CHAR, strlen(host), host, ERR));
    ok(esdm_attribute_set(list, "units", ESDM_TYPE_CHAR, 1, is_odd(r) ? "C" : "K", ERR));
    check(!esdm_container_settled(c, text, sizeof text));
    ok(esdm_container_align(c, ERR));
    check(esdm_container_settled(c, text, sizeof text) == (r->size > 1));
    check(r->size == 1 || strcmp(text, "attribute 'host' of '/'") == 0);
    must_be(global, "host", "host 0");
    must_be(list, "units", "K");
    put(find(c, "v"), box3(0, 0, 0, 1, 1, 1), 1, false);
    ok(esdm_container_commit(c, NULL, ERR));
    check(!esdm_container_settled(c, text, sizeof text));
    ok(esdm_attribute_set(global, "host", ESDM_TYPE_CHAR, strlen(host), host, ERR));
    ok(esdm_container_commit(c, NULL, ERR));
    check(esdm_container_settled(c, text, sizeof text) == (r->size > 1));
    must_be(global, "host", "host 0");
    ok(esdm_container_close(c, ERR));
    meet(r);
}

/* A change that one rank alone made after a commit is found, too. */
static void
later_definitions_are_compared(rank_state *r)
{
    esdm_container *c = create(r, "later", ESDM_CREATE_REPLACE);
    ok(esdm_container_commit(c, NULL, ERR));
    put(find(c, "v"), box3(0, 0, 0, 1, 1, 1), 1, false);
    esdm_attributes *list = esdm_group_attributes(esdm_container_root(c));
    if (is_odd(r))
        ok(esdm_attribute_set(list, "mine", ESDM_TYPE_CHAR, 1, "x", ERR));
    if (r->size > 1) {
        fails(esdm_container_commit(c, NULL, ERR), ESDM_EINVAL, "attribute 'mine' of '/'");
        check(esdm_container_snapshot(c) == 1);
        if (is_odd(r)) /* can be put right */
            ok(esdm_attribute_remove(list, "mine", ERR));
    }
    ok(esdm_container_commit(c, NULL, ERR));
    check(esdm_container_snapshot(c) == 2);
    ok(esdm_container_close(c, ERR));
}

static void
arguments_that_differ_are_told(rank_state *r)
{
    esdm_container *c;
    if (r->size == 1)
        return;
    fails(esdm_container_create_collective(r->session, r->comm, is_odd(r) ? "one" : "two",
                                           ESDM_CREATE_REPLACE, &c, ERR),
          ESDM_EINVAL, "different names");
    fails(esdm_container_create_collective(r->session, r->comm, "one",
                                           is_odd(r) ? ESDM_CREATE_REPLACE : ESDM_CREATE_NEW, &c,
                                           ERR),
          ESDM_EINVAL, "different modes");
    fails(esdm_container_create_collective(r->session, r->comm, is_odd(r) ? "a/../b" : "one",
                                           ESDM_CREATE_NEW, &c, ERR),
          ESDM_EINVAL, odd_rank(r));
    fails(
        esdm_container_open_collective(r->session, r->comm, "nowhere", ESDM_OPEN_READ, 0, &c, ERR),
        ESDM_ENOENT, "nowhere");
    c = create(r, "one", ESDM_CREATE_REPLACE);
    esdm_dimension *x = find_dimension(c, "x");
    esdm_dataset *other;
    ok(esdm_dataset_create(esdm_container_root(c), "w", ESDM_TYPE_INT32, 1, &x, &other, ERR));
    fails(esdm_write_collective(is_odd(r) ? other : find(c, "v"), NULL, ESDM_TYPE_INT32, NULL, NULL,
                                ERR),
          ESDM_EINVAL, "different datasets");
    ok(esdm_container_close(c, ERR));
    fails(esdm_container_open_collective(r->session, r->comm, "one",
                                         is_odd(r) ? ESDM_OPEN_WRITE : ESDM_OPEN_READ, 0, &c, ERR),
          ESDM_EINVAL, "different modes");
}

/* Another site on one rank. */
static void
sites_that_differ_are_told(rank_state *r)
{
    static const char text[] =
        "{\"site\": {\"name\": \"other\"}, \"targets\": [{\"name\": \"disk\", \"plugin\": "
        "\"posix\", \"directory\": \"%s/other/packs\"}], \"metadata\": {\"plugin\": \"sqlite\", "
        "\"directory\": \"%s/other/metadata\"}}";
    char config[1024];
    char folder[256];
    const char *path = getenv("ESDM_CONFIG");
    esdm_container *c;
    if (r->size == 1)
        return;
    snprintf(folder, sizeof folder, "%.*s", (int) (strrchr(path, '/') - path), path);
    snprintf(config, sizeof config, text, folder, folder);
    esdm_session *session = r->session;
    if (is_odd(r)) {
        esdm_site_options site = {.config_json = config};
        esdm_session_options options = {.config_json = config};
        ok(esdm_site_create(&site, ERR));
        ok(esdm_session_open(&options, &session, ERR));
    }
    fails(esdm_container_create_collective(session, r->comm, "one", ESDM_CREATE_REPLACE, &c, ERR),
          ESDM_EINVAL, "different sites");
    if (is_odd(r))
        esdm_session_close(session);
}

/* The memory of a process cannot be read by others. */
static void
volatile_targets_are_refused(rank_state *r)
{
    static const char text[] =
        "{\"site\": {\"name\": \"memory\"}, \"targets\": [{\"name\": \"m\", \"plugin\": \"mem\"}], "
        "\"metadata\": {\"plugin\": \"sqlite\", \"directory\": \"%s/memory\"}}";
    char config[1024];
    const char *path = getenv("ESDM_CONFIG");
    esdm_session *session;
    esdm_container *c;
    char folder[256];
    snprintf(folder, sizeof folder, "%.*s", (int) (strrchr(path, '/') - path), path);
    snprintf(config, sizeof config, text, folder);
    esdm_session_options options = {.config_json = config};
    esdm_site_options site = {.config_json = config};
    for (int rank = 0; rank < r->size; rank++) { /* each process has its own memory */
        if (rank == r->rank)
            ok(esdm_site_create(&site, ERR));
        meet(r);
    }
    ok(esdm_session_open(&options, &session, ERR));
    if (r->size > 1) {
        fails(esdm_container_create_collective(session, r->comm, "c", ESDM_CREATE_REPLACE, &c, ERR),
              ESDM_ENOTSUP, "target 'm' lies in the memory of one process");
    } else {
        ok(esdm_container_create_collective(session, r->comm, "c", ESDM_CREATE_REPLACE, &c, ERR));
        ok(esdm_container_close(c, ERR));
    }
    esdm_session_close(session);
}

/* ---- a rank that fails ---------------------------------------------------------------------- */

/* Its own mistake is its own failure; the others' data is written. */
static void
wrong_selections_fail_alone(rank_state *r)
{
    esdm_container *c = create(r, "wrong", ESDM_CREATE_REPLACE);
    esdm_dataset *v = find(c, "v");
    uint64_t row = (uint64_t) ROWS * (uint64_t) r->rank;
    int32_t data[COLUMNS] = {0};
    esdm_dataspace space = box3(0, row, is_odd(r) ? 3 : 0, 1, 1, COLUMNS);
    if (is_odd(r))
        fails(esdm_write_collective(v, &space, ESDM_TYPE_INT32, data, NULL, ERR), ESDM_EINVAL,
              "past the end of dimension 'x'");
    else
        ok(esdm_write_collective(v, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    if (is_odd(r))
        fails(esdm_read_collective(v, &space, ESDM_TYPE_CHAR, data, NULL, ERR), ESDM_EINVAL,
              "do not convert");
    else
        ok(esdm_read_collective(v, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    ok(esdm_container_commit(c, NULL, ERR));
    ok(esdm_container_close(c, ERR));
}

static void
ordinary_containers_are_not_shared(rank_state *r)
{
    char name[32];
    esdm_container *c;
    snprintf(name, sizeof name, "alone%d", r->rank);
    ok(esdm_container_create(r->session, name, ESDM_CREATE_REPLACE, &c, ERR));
    check(esdm_container_comm(c) == NULL);
    fails(esdm_container_align(c, ERR), ESDM_EINVAL, "not opened with");
    ok(esdm_container_close(c, ERR));
    fails(esdm_container_create_collective(r->session, NULL, "x", ESDM_CREATE_NEW, &c, ERR),
          ESDM_EINVAL, "NULL");
    esdm_comm wrong = {.ops = r->comm->ops, .rank = 3, .size = 2};
    fails(esdm_container_create_collective(r->session, &wrong, "x", ESDM_CREATE_NEW, &c, ERR),
          ESDM_EINVAL, "no rank 3 of 2");
}

/* ---- less accurate reading ------------------------------------------------------------------ */

/* Each rank reads its part of what is stored in layers; a wrong accuracy is wrong for all. */
static void
layers_are_read_coarsely(rank_state *r)
{
    enum { PART = 8192 };
    static _Thread_local float before[PART], after[PART];
    const uint64_t part = PART;
    const uint64_t first = (uint64_t) r->rank * PART;
    esdm_container *c = create(r, "coarse", ESDM_CREATE_REPLACE);
    esdm_dimension *cells;
    esdm_dataset *v;
    esdm_accuracy accuracy = {.stated = ESDM_ACCURACY_MODE, .mode = ESDM_MODE_PROGRESSIVE};
    ok(esdm_dimension_create(esdm_container_root(c), "cells", PART * (uint64_t) r->size, &cells,
                             ERR));
    ok(esdm_dataset_create(esdm_container_root(c), "t", ESDM_TYPE_FLOAT32, 1, &cells, &v, ERR));
    ok(esdm_dataset_set_accuracy(v, &accuracy, ERR));
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, &first, &part, ERR));
    for (size_t i = 0; i < PART; i++) {
        double x = (double) (i % 6000) / 3000 - 1;
        before[i] = (float) (280 + 40 * x * x + 1e-4 * (double) (i * 7919 % 97));
    }
    ok(esdm_write_collective(v, &space, ESDM_TYPE_FLOAT32, before, NULL, ERR));
    ok(esdm_container_commit(c, NULL, ERR));
    ok(esdm_container_close(c, ERR));
    static const struct {
        const char *name;
        double from, to; /* largest error */
    } cases[] = {{"coarse", 0, 0}, {"coarse?accuracy=1%", 0.002, 0.4}};
    for (size_t k = 0; k < 2; k++) {
        double largest = 0;
        c = open_all(r, cases[k].name, ESDM_OPEN_READ);
        v = find(c, "t");
        ok(esdm_read_collective(v, &space, ESDM_TYPE_FLOAT32, after, NULL, ERR));
        for (size_t i = 0; i < PART; i++) {
            double error = (double) after[i] - (double) before[i];
            error = error < 0 ? -error : error;
            largest = error > largest ? error : largest;
        }
        check(largest >= cases[k].from && largest <= cases[k].to);
        ok(esdm_container_close(c, ERR));
    }
    fails(esdm_container_open_collective(r->session, r->comm, "coarse?accuracy=1%", ESDM_OPEN_WRITE,
                                         ESDM_SNAPSHOT_LATEST, &c, ERR),
          ESDM_EACCES, "is for reading");
    fails(esdm_container_open_collective(r->session, r->comm, "coarse?accuracy=x:1%",
                                         ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &c, ERR),
          ESDM_EINVAL, "no such variable");
    fails(esdm_container_open_collective(r->session, r->comm, "none?accuracy=1%", ESDM_OPEN_READ,
                                         ESDM_SNAPSHOT_LATEST, &c, ERR),
          ESDM_ENOENT, "none");
}

const named_scenario difference_scenarios[] = {
    {"differ.layers_are_read_coarsely", layers_are_read_coarsely},
    {"differ.definitions_that_differ_are_told", definitions_that_differ_are_told},
    {"differ.accuracies_are_compared", accuracies_are_compared},
    {"differ.attributes_with_other_values_follow_rank_0",
     attributes_with_other_values_follow_rank_0},
    {"differ.later_definitions_are_compared", later_definitions_are_compared},
    {"differ.arguments_that_differ_are_told", arguments_that_differ_are_told},
    {"differ.sites_that_differ_are_told", sites_that_differ_are_told},
    {"differ.volatile_targets_are_refused", volatile_targets_are_refused},
    {"differ.wrong_selections_fail_alone", wrong_selections_fail_alone},
    {"differ.ordinary_containers_are_not_shared", ordinary_containers_are_not_shared},
    {NULL, NULL},
};
