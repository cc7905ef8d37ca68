/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a variable's attribute esdm_access means for the shapes of its fragments. */

#include "testing.h"

#define STEPS UINT64_C(100)
#define LAT   UINT64_C(96)
#define LON   UINT64_C(512)

static const uint64_t sizes[] = {STEPS, LAT, LON};

static esdm_container *
create(esdm_session *session, const char *name, esdm_type type, const void *access, size_t count,
       esdm_dataset **ret_dataset)
{
    static const char *const names[] = {"time", "lat", "lon"};
    esdm_container *container;
    esdm_dimension *dims[3];
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    for (int i = 0; i < 3; i++)
        ok(esdm_dimension_create(root, names[i], sizes[i], &dims[i], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 3, dims, ret_dataset, ERR));
    if (access != NULL)
        ok(esdm_attribute_set(esdm_dataset_attributes(*ret_dataset), ESDM_ACCESS_ATTRIBUTE, type,
                              count, access, ERR));
    return container;
}

static bool
take_first(const esdm_fragment_info *info, void *user)
{
    memcpy(user, info->size, 3 * sizeof(uint64_t));
    return false;
}

/* Writes everything at once, reads it back, and looks at the first fragment. */
static void
expect_shape(esdm_session *session, const char *name, esdm_type type, const void *access,
             size_t count, uint64_t ret_shape[3])
{
    uint64_t elements = STEPS * LAT * LON;
    float *values = malloc(elements * sizeof *values);
    float *copy = malloc(elements * sizeof *copy);
    esdm_dataset *dataset;
    esdm_dataspace space;
    check(values != NULL && copy != NULL);
    for (uint64_t i = 0; i < elements; i++)
        values[i] = (float) i;
    esdm_container *container = create(session, name, type, access, count, &dataset);
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){0, 0, 0}, sizes, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, ERR));
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_dataset_fragments(dataset, take_first, ret_shape, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, copy, NULL, ERR));
    check(memcmp(values, copy, elements * sizeof *values) == 0);
    ok(esdm_container_close(container, ERR));
    free(values);
    free(copy);
}

int
main(void)
{
    make_site();
    esdm_session *session = open_session();
    uint64_t shape[3] = {0};
    const char *both = "both";
    expect_shape(session, "none", ESDM_TYPE_NONE, NULL, 0, shape);
    check(shape[1] == LAT && shape[2] == LON && shape[0] < STEPS);
    expect_shape(session, "maps", ESDM_TYPE_CHAR, "maps", 4, shape);
    check(shape[1] == LAT && shape[2] == LON && shape[0] < STEPS);
    expect_shape(session, "series", ESDM_TYPE_CHAR, "time-series", 11, shape);
    check(shape[0] == STEPS && shape[2] < LON);
    expect_shape(session, "both", ESDM_TYPE_STRING, &both, 1, shape);
    check(shape[0] < STEPS && shape[0] > 20 && shape[2] < LON && shape[1] > 20);

    esdm_dataset *dataset;
    esdm_dataspace space;
    float *values = calloc(STEPS * LAT * LON, sizeof *values);
    esdm_container *container = create(session, "bad", ESDM_TYPE_CHAR, "often", 5, &dataset);
    check(values != NULL);
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){0, 0, 0}, sizes, ERR));
    fails(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, ERR), ESDM_EINVAL,
          "\"often\"; it can be \"maps\"");
    esdm_container_discard(container);
    free(values);
    esdm_session_close(session);
    return 0;
}
