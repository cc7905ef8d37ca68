/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Ranks that read series of a variable that has a second shape. */
#include <esdm/shapes.h>

#include "ranks.h"

enum { STEPS = 48, SIDE = 96, SERIES = 4 };

static float
value_at(uint64_t t, uint64_t y, uint64_t x)
{
    return (float) ((t * 104729 + y * 7919 + x * 31) % 16777213);
}

static void
write_map(esdm_dataset *dataset, uint64_t t, float add)
{
    static _Thread_local float map[SIDE * SIDE];
    esdm_dataspace space = box3(t, 0, 0, 1, SIDE, SIDE);
    for (uint64_t i = 0; i < SIDE * SIDE; i++)
        map[i] = value_at(t, i / SIDE, i % SIDE) + add;
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, map, NULL, ERR));
}

/* A map a step, as models do. */
static void
make(rank_state *r, const char *name)
{
    esdm_container *c;
    esdm_dimension *dims[3];
    esdm_dataset *dataset;
    ok(esdm_container_create(r->session, name, ESDM_CREATE_REPLACE, &c, ERR));
    esdm_group *root = esdm_container_root(c);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "y", SIDE, &dims[1], ERR));
    ok(esdm_dimension_create(root, "x", SIDE, &dims[2], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 3, dims, &dataset, ERR));
    ok(esdm_dataset_set_chunk(dataset, (uint64_t[]){1, SIDE, SIDE}, ERR));
    for (uint64_t t = 0; t < STEPS; t++)
        write_map(dataset, t, 0);
    ok(esdm_container_close(c, ERR));
}

/* Bytes that this process has read from files. */
static uint64_t
bytes_read(void)
{
    uint64_t bytes = 0;
    FILE *file = fopen("/proc/self/io", "re");
    check(file != NULL && fscanf(file, "rchar: %" SCNu64, &bytes) == 1);
    (void) fclose(file);
    return bytes;
}

/* Series of each rank elsewhere, some by the collective call; step `changed` has 1 more. */
static void
read_series(rank_state *r, esdm_dataset *dataset, uint64_t steps, uint64_t changed)
{
    float series[STEPS + 1];
    for (uint64_t i = 0; i < SERIES; i++) {
        uint64_t y = (7 * (uint64_t) r->rank + i) % SIDE;
        uint64_t x = (11 * (uint64_t) r->rank + 5 * i) % SIDE;
        esdm_dataspace space = box3(0, y, x, steps, 1, 1);
        ok(i % 2 == 0
               ? esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, series, NULL, ERR)
               : esdm_read_collective(dataset, &space, ESDM_TYPE_FLOAT32, series, NULL, ERR));
        for (uint64_t t = 0; t < steps; t++)
            check(series[t] == value_at(t, y, x) + (t == changed ? 1.0f : 0.0f));
    }
}

/* @return bytes that the process of rank 0 has read, on this rank alone. */
static uint64_t
count(rank_state *r, const char *name, uint64_t steps, uint64_t changed)
{
    esdm_container *c = open_all(r, name, ESDM_OPEN_READ);
    meet(r);
    uint64_t before = bytes_read();
    meet(r);
    read_series(r, find(c, "v"), steps, changed);
    meet(r);
    uint64_t bytes = bytes_read() - before;
    esdm_container_discard(c);
    return bytes;
}

/* Where the site allows two shapes; tests/support/site_shapes.json does. */
static bool
update(rank_state *r, const char *name, bool first)
{
    esdm_error err = {0};
    const esdm_shape_wish wish = {.variable = "v", .shape = ESDM_SHAPE_SERIES};
    const esdm_shapes_options options = {.wishes = &wish, .nwishes = first ? 1 : 0};
    uint64_t refused = 0;
    if (r->rank == 0) {
        esdm_status status = esdm_shapes_update(r->session, name, &options, NULL, &err);
        check(status == ESDM_OK || status == ESDM_EACCES);
        refused = status == ESDM_EACCES;
    }
    ok(r->comm->ops->maximum(r->comm, &refused, 1, ERR));
    return refused == 0;
}

static void
series_come_from_the_second_shape(rank_state *r)
{
    const char *name = "shapes/series";
    const char *site = getenv("ESDM_TEST_SITE");
    if (r->rank == 0) {
        make(r, name);
        make(r, "shapes/other"); /* nothing of both is in memory when it is read */
    }
    meet(r);
    uint64_t one = count(r, "shapes/other", STEPS, STEPS);
    if (!update(r, name, true)) {
        check(site == NULL || strstr(site, "shapes") == NULL);
        return;
    }
    uint64_t two = count(r, name, STEPS, STEPS);
    if (r->rank == 0)
        printf("%" PRIu64 " and %" PRIu64 " bytes\n", one, two);
    check(two < one / 2);

    /* A map that is written anew, and one more, are read from the container itself. */
    esdm_container *held = open_all(r, name, ESDM_OPEN_READ);
    read_series(r, find(held, "v"), STEPS, STEPS);
    if (r->rank == 0) {
        esdm_container *c;
        ok(esdm_container_open(r->session, name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &c, ERR));
        write_map(find(c, "v"), 20, 1);
        write_map(find(c, "v"), STEPS, 0);
        ok(esdm_container_close(c, ERR));
    }
    meet(r);
    read_series(r, find(held, "v"), STEPS, STEPS);
    ok(esdm_container_refresh(held, ERR));
    read_series(r, find(held, "v"), STEPS + 1, 20);
    esdm_container_discard(held);
    (void) count(r, name, STEPS + 1, 20);
    check(update(r, name, false));
    uint64_t again = count(r, name, STEPS + 1, 20);
    if (r->rank == 0)
        printf("%" PRIu64 " bytes\n", again);
    check(again < one / 2);
}

const named_scenario shape_scenarios[] = {
    {"shapes.series", series_come_from_the_second_shape},
    {NULL, NULL},
};
