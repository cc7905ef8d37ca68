/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "ranks.h"

static const named_scenario *const groups[] = {order_scenarios, commit_scenarios,
                                               difference_scenarios, shape_scenarios};

void
run_scenarios(rank_state *r, const char *only)
{
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        for (const named_scenario *s = groups[g]; s->name != NULL; s++) {
            if (only != NULL && strncmp(s->name, only, strlen(only)) != 0)
                continue;
            if (r->rank == 0) {
                printf("%s\n", s->name);
                fflush(stdout);
            }
            s->run(r);
            meet(r);
        }
    }
}

void
meet(rank_state *r)
{
    uint64_t nothing = 0;
    ok(r->comm->ops->maximum(r->comm, &nothing, 1, ERR));
}

esdm_container *
create(rank_state *r, const char *name, esdm_create_mode mode)
{
    esdm_container *container;
    esdm_dimension *dims[3];
    esdm_dataset *dataset;
    ok(esdm_container_create_collective(r->session, r->comm, name, mode, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "time", ESDM_UNLIMITED, &dims[0], ERR));
    ok(esdm_dimension_create(root, "y", (uint64_t) ROWS * (uint64_t) r->size, &dims[1], ERR));
    ok(esdm_dimension_create(root, "x", COLUMNS, &dims[2], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 3, dims, &dataset, ERR));
    return container;
}

esdm_container *
open_all(rank_state *r, const char *name, esdm_open_mode mode)
{
    esdm_container *container;
    ok(esdm_container_open_collective(r->session, r->comm, name, mode, ESDM_SNAPSHOT_LATEST,
                                      &container, ERR));
    return container;
}

esdm_container *
open_alone(rank_state *r, const char *name)
{
    esdm_container *container;
    ok(esdm_container_open(r->session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                           ERR));
    return container;
}

esdm_dataset *
find(esdm_container *container, const char *name)
{
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), name);
    check(dataset != NULL);
    return dataset;
}

esdm_dimension *
find_dimension(esdm_container *container, const char *name)
{
    esdm_dimension *dimension = esdm_group_dimension_find(esdm_container_root(container), name);
    check(dimension != NULL);
    return dimension;
}

esdm_dataspace
box3(uint64_t t, uint64_t y, uint64_t x, uint64_t nt, uint64_t ny, uint64_t nx)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){t, y, x}, (uint64_t[]){nt, ny, nx}, ERR));
    return space;
}

void
put(esdm_dataset *dataset, esdm_dataspace space, int32_t value, bool collective)
{
    uint64_t count = esdm_dataspace_elements(&space);
    int32_t *data = malloc((size_t) count * sizeof *data + 1);
    check(data != NULL);
    for (uint64_t i = 0; i < count; i++)
        data[i] = value;
    if (collective)
        ok(esdm_write_collective(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    else
        ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    free(data);
}

void
put_nothing(esdm_dataset *dataset)
{
    ok(esdm_write_collective(dataset, NULL, ESDM_TYPE_INT32, NULL, NULL, ERR));
}

void
expect(esdm_dataset *dataset, esdm_dataspace space, int32_t value, bool collective)
{
    uint64_t count = esdm_dataspace_elements(&space);
    int32_t *data = malloc((size_t) count * sizeof *data + 1);
    check(data != NULL);
    if (collective)
        ok(esdm_read_collective(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    else
        ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    for (uint64_t i = 0; i < count; i++)
        if (data[i] != value)
            die("element %" PRIu64 " of [%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]+[%" PRIu64 ",%" PRIu64
                ",%" PRIu64 "] is %d, not %d",
                i, space.offset[0], space.offset[1], space.offset[2], space.size[0], space.size[1],
                space.size[2], data[i], value);
    free(data);
}
