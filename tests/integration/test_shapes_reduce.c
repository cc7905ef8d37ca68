/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Reductions of a variable that has a second shape: the same numbers as of one that has none, of
 * fewer bytes where the values of a region are read. */
#include <esdm/shapes.h>
#include <esdm/statistics.h>
#include <math.h>

#include "testing.h"

enum { STEPS = 60, SIDE = 96 };

static float
value_at(uint64_t t, uint64_t y, uint64_t x)
{
    return (float) ((t * 104729 + y * 7919 + x * 31) % 16777213) / 16.0f;
}

static esdm_dataset *
open_dataset(esdm_session *session, const char *name, esdm_open_mode mode, esdm_container **ret)
{
    ok(esdm_container_open(session, name, mode, ESDM_SNAPSHOT_LATEST, ret, ERR));
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(*ret), "v");
    check(dataset != NULL);
    return dataset;
}

static void
write_map(esdm_dataset *dataset, uint64_t t, float add)
{
    static float map[SIDE * SIDE];
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){t, 0, 0}, (uint64_t[]){1, SIDE, SIDE}, ERR));
    for (uint64_t i = 0; i < SIDE * SIDE; i++)
        map[i] = value_at(t, i / SIDE, i % SIDE) + add;
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, map, NULL, ERR));
}

static void
make(esdm_session *session, const char *name)
{
    esdm_container *c;
    esdm_dimension *dims[3];
    esdm_dataset *dataset;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &c, ERR));
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

static uint64_t
bytes_read(void)
{
    uint64_t bytes = 0;
    FILE *file = fopen("/proc/self/io", "re");
    check(file != NULL && fscanf(file, "rchar: %" SCNu64, &bytes) == 1);
    (void) fclose(file);
    return bytes;
}

static const uint64_t from[3] = {0, 40, 7};
static const uint64_t region[3] = {STEPS, 5, 6};

/* Reduces in a session of its own, in whose memory nothing is. @return bytes that it has read */
static uint64_t
reduce(const char *name, bool all, unsigned over, esdm_reduction what, double *values,
       uint64_t *valid)
{
    esdm_session *session = open_session();
    esdm_container *c;
    esdm_dataset *dataset = open_dataset(session, name, ESDM_OPEN_READ, &c);
    esdm_dataspace space;
    const bool axes[3] = {(over & 4) != 0, (over & 2) != 0, (over & 1) != 0};
    ok(esdm_dataspace_init(&space, 3, from, region, ERR));
    uint64_t before = bytes_read();
    ok(esdm_reduce(dataset, all ? NULL : &space, axes, what, values, valid, ERR));
    uint64_t bytes = bytes_read() - before;
    esdm_container_discard(c);
    esdm_session_close(session);
    return bytes;
}

static double one_values[STEPS * SIDE * SIDE], two_values[STEPS * SIDE * SIDE];
static uint64_t one_valid[STEPS * SIDE * SIDE], two_valid[STEPS * SIDE * SIDE];

/* @return whether the region was read from less than half of the bytes */
static bool
compare(bool all, unsigned over, esdm_reduction what, bool exact)
{
    const uint64_t whole[3] = {STEPS, SIDE, SIDE};
    uint64_t count = 1;
    for (int d = 0; d < 3; d++)
        count *= (over & (4u >> d)) != 0 ? 1 : all ? whole[d] : region[d];
    uint64_t one = reduce("one", all, over, what, one_values, one_valid);
    uint64_t two = reduce("two", all, over, what, two_values, two_valid);
    for (uint64_t i = 0; i < count; i++) {
        double off = fabs(one_values[i] - two_values[i]);
        check(one_valid[i] == two_valid[i]);
        if (!(exact ? off == 0 : off <= 1e-12 * fabs(one_values[i])))
            die("over %u, what %d: result %" PRIu64 " is %.17g, not %.17g", over, (int) what, i,
                two_values[i], one_values[i]);
    }
    return two < one / 2;
}

static void
compare_all(void)
{
    for (unsigned over = 0; over < 8; over++)
        for (esdm_reduction what = ESDM_REDUCE_SUM; what <= ESDM_REDUCE_VARIANCE; what++) {
            compare(true, over, what, false);
            compare(false, over, what, false);
        }
}

int
main(void)
{
    char site[512];
    const char *source = getenv("ESDM_SOURCE");
    const esdm_shape_wish wish = {.variable = "v", .shape = ESDM_SHAPE_SERIES};
    const esdm_shapes_options options = {.wishes = &wish, .nwishes = 1};
    snprintf(site, sizeof site, "%s/tests/support/site_shapes.json", source ? source : ".");
    setenv("ESDM_TEST_SITE", site, 1);
    make_site();
    esdm_session *session = open_session();
    make(session, "one");
    make(session, "two");
    check(!compare(false, 4, ESDM_REDUCE_MEAN, true));
    ok(esdm_shapes_update(session, "two", &options, NULL, ERR));
    check(compare(false, 4, ESDM_REDUCE_MEAN, true));
    check(compare(false, 4, ESDM_REDUCE_VARIANCE, true));
    check(compare(false, 7, ESDM_REDUCE_MEAN, true));
    check(compare(false, 7, ESDM_REDUCE_MAX, true));
    compare_all();
    for (int i = 0; i < 2; i++) { /* what is newer is in the first shape alone */
        esdm_container *c;
        esdm_dataset *dataset = open_dataset(session, i == 0 ? "one" : "two", ESDM_OPEN_WRITE, &c);
        write_map(dataset, 30, 1e6f);
        ok(esdm_container_close(c, ERR));
    }
    check(compare(false, 4, ESDM_REDUCE_MAX, true) || true);
    check(two_values[0] > 1e6);
    compare_all();
    esdm_session_close(session);
    return 0;
}
