/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Data of user-defined types: random writes and reads of every class compared with a plain array.
 */

#include "usertypes.h"

/* ---- a plain array of the numbers ---------------------------------------------------------- */

enum { ROWS = 12, COLUMNS = 17, FILL_KEY = 3 };

typedef struct world {
    esdm_session *session;
    esdm_container *container;
    types t;
    const char *name;
    uint32_t keys[ROWS][COLUMNS];
    uint64_t random;
} world;

static esdm_dataset *
dataset_of(const world *w, const char *name)
{
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(w->container), name);
    check(dataset != NULL);
    return dataset;
}

/* A hyperslab, with strides on both sides in some cases. The memory has `ret_room` elements, the
 * first of them is number `ret_first`. */
static void
random_space(world *w, esdm_dataspace *space, size_t *ret_room, size_t *ret_first)
{
    static const uint64_t shape[] = {ROWS, COLUMNS};
    uint64_t offset[2], size[2], stride[2];
    for (int i = 0; i < 2; i++) {
        stride[i] = next_random(&w->random) % 3 == 0 ? 1 + next_random(&w->random) % 3 : 1;
        offset[i] = next_random(&w->random) % shape[i];
        size[i] =
            1 + next_random(&w->random) % ((shape[i] - offset[i] + stride[i] - 1) / stride[i]);
    }
    ok(esdm_dataspace_init(space, 2, offset, size, ERR));
    ok(esdm_dataspace_set_stride(space, stride, ERR));
    *ret_room = size[0] * size[1];
    *ret_first = 0;
    uint64_t form = next_random(&w->random) % 4;
    if (form == 1) { /* transposed, with gaps */
        ok(esdm_dataspace_set_memory_stride(space, (int64_t[]){2, 2 * (int64_t) size[0]}, ERR));
        *ret_room *= 2;
    } else if (form == 2) { /* backwards */
        ok(esdm_dataspace_set_memory_stride(space, (int64_t[]){-(int64_t) size[1], 1}, ERR));
        *ret_first = (size[0] - 1) * size[1];
    }
}

/* Index of selected element (i, j) in memory. */
static size_t
memory_index(const esdm_dataspace *space, uint64_t i, uint64_t j, size_t first)
{
    if (!space->has_memory_stride)
        return i * space->size[1] + j;
    return (size_t) ((int64_t) first + (int64_t) i * space->memory_stride[0] +
                     (int64_t) j * space->memory_stride[1]);
}

static uint32_t *
key_at(world *w, const esdm_dataspace *space, uint64_t i, uint64_t j)
{
    uint64_t row = space->offset[0] + i * (space->has_stride ? space->stride[0] : 1);
    uint64_t column = space->offset[1] + j * (space->has_stride ? space->stride[1] : 1);
    return &w->keys[row][column];
}

static void
random_write(world *w, esdm_dataset *dataset)
{
    esdm_type type = esdm_dataset_type(dataset);
    size_t bytes = esdm_container_type_size(w->container, type);
    esdm_dataspace space;
    size_t room, first;
    random_space(w, &space, &room, &first);
    char *memory = calloc(room, bytes);
    for (uint64_t i = 0; i < space.size[0]; i++) {
        for (uint64_t j = 0; j < space.size[1]; j++) {
            uint32_t key = (uint32_t) next_random(&w->random) % 100000;
            *key_at(w, &space, i, j) = key;
            make_value(&w->t, type, key, memory + memory_index(&space, i, j, first) * bytes);
        }
    }
    ok(esdm_write(dataset, &space, type, memory + first * bytes, NULL, ERR));
    esdm_values_clear(w->container, type, room, memory);
    free(memory);
}

static void
random_read(world *w, esdm_dataset *dataset)
{
    esdm_type type = esdm_dataset_type(dataset);
    size_t bytes = esdm_container_type_size(w->container, type);
    esdm_dataspace space;
    size_t room, first;
    random_space(w, &space, &room, &first);
    char *memory = calloc(room, bytes);
    memset(memory, 0xEE, room * bytes); /* what was there before does not count */
    ok(esdm_read(dataset, &space, type, memory + first * bytes, NULL, ERR));
    for (uint64_t i = 0; i < space.size[0]; i++) {
        for (uint64_t j = 0; j < space.size[1]; j++) {
            char *value = memory + memory_index(&space, i, j, first) * bytes;
            if (!is_value(w->container, &w->t, type, *key_at(w, &space, i, j), value))
                die("%s: wrong value at %d, %d", esdm_dataset_name(dataset), (int) i, (int) j);
            esdm_values_clear(w->container, type, 1, value);
        }
    }
    free(memory);
}

static void
reopen(world *w, esdm_open_mode mode)
{
    ok(esdm_container_close(w->container, ERR));
    ok(esdm_container_open(w->session, w->name, mode, ESDM_SNAPSHOT_LATEST, &w->container, ERR));
}

/* Random operations on one dataset of one type. */
static void
try_type(world *w, const char *name, esdm_type type, const uint64_t *chunk, const char *codec)
{
    max_align_t fill[16];
    esdm_dataset *dataset;
    esdm_dimension *dimensions[2];
    dimensions[0] = esdm_container_dimension(w->container, 0);
    dimensions[1] = esdm_container_dimension(w->container, 1);
    ok(esdm_dataset_create(esdm_container_root(w->container), name, type, 2, dimensions, &dataset,
                           ERR));
    make_value(&w->t, type, FILL_KEY, fill);
    ok(esdm_dataset_set_fill(dataset, fill, ERR));
    esdm_values_clear(w->container, type, 1, fill);
    ok(esdm_dataset_set_chunk(dataset, chunk, ERR));
    ok(esdm_dataset_set_codec(dataset, codec, ERR));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        w->keys[i / COLUMNS][i % COLUMNS] = FILL_KEY;
    random_read(w, dataset);
    for (uint64_t i = 0; i < by_size(10, 40, 400); i++) {
        random_write(w, dataset);
        random_read(w, dataset);
        if (next_random(&w->random) % 8 == 0)
            ok(esdm_container_commit(w->container, NULL, ERR));
        if (next_random(&w->random) % 8 == 0) {
            reopen(w, ESDM_OPEN_WRITE);
            dataset = dataset_of(w, name);
        }
        random_read(w, dataset);
    }
}

static void
test_random(esdm_session *session)
{
    static const uint64_t chunk[] = {5, 4};
    world w = {.session = session, .name = "random.nc", .random = 11};
    esdm_dimension *dimension;
    ok(esdm_container_create(session, w.name, ESDM_CREATE_NEW, &w.container, ERR));
    esdm_group *root = esdm_container_root(w.container);
    ok(esdm_dimension_create(root, "row", ROWS, &dimension, ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &dimension, ERR));
    define_types(root, &w.t);
    const esdm_type all[] = {w.t.plain, w.t.padded,  w.t.opaque, w.t.flag,
                             w.t.names, w.t.numbers, w.t.mixed};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char name[30];
        (void) snprintf(name, sizeof name, "v%zu", i);
        try_type(&w, name, all[i], NULL, NULL);
        (void) snprintf(name, sizeof name, "v%zu_lz4", i);
        try_type(&w, name, all[i], chunk, "lz4");
    }
    ok(esdm_container_close(w.container, ERR));
}

/* ---- large data: direct writes, fragments in packs, partial reads -------------------------- */

static void
test_large(esdm_session *session)
{
    enum { COUNT = 60000 };
    esdm_container *container;
    esdm_dimension *dimension;
    esdm_dataset *fixed, *varying;
    types t;
    uint64_t count = COUNT;
    esdm_dataspace space;
    ok(esdm_container_create(session, "large.nc", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    define_types(root, &t);
    ok(esdm_dimension_create(root, "n", ESDM_UNLIMITED, &dimension, ERR));
    ok(esdm_dataset_create(root, "fixed", t.padded, 1, &dimension, &fixed, ERR));
    ok(esdm_dataset_create(root, "varying", t.mixed, 1, &dimension, &varying, ERR));
    padded *a = malloc(COUNT * sizeof *a);
    mixed *b = malloc(COUNT * sizeof *b);
    for (uint32_t i = 0; i < COUNT; i++) {
        a[i] = make_padded(i);
        make_value(&t, t.mixed, i, &b[i]);
    }
    ok(esdm_dataspace_init(&space, 1, NULL, &count, ERR));
    ok(esdm_write(fixed, &space, t.padded, a, NULL, ERR));
    ok(esdm_write(varying, &space, t.mixed, b, NULL, ERR));
    esdm_values_clear(container, t.mixed, COUNT, b);
    ok(esdm_container_close(container, ERR));

    ok(esdm_container_open(session, "large.nc", ESDM_OPEN_READ, 0, &container, ERR));
    root = esdm_container_root(container);
    fixed = esdm_group_dataset_find(root, "fixed");
    varying = esdm_group_dataset_find(root, "varying");
    check(esdm_dimension_length(esdm_dataset_dimension(fixed, 0)) == COUNT);
    for (uint64_t step = 1; step < 20000; step *= 9) {
        uint64_t first = step * 2 % 1000, n = (COUNT - first + step - 1) / step;
        ok(esdm_dataspace_init(&space, 1, &first, &n, ERR));
        if (step > 1) {
            n = (COUNT - 1 - first) / step + 1;
            space.size[0] = n;
            ok(esdm_dataspace_set_stride(&space, &step, ERR));
        }
        ok(esdm_read(fixed, &space, t.padded, a, NULL, ERR));
        ok(esdm_read(varying, &space, t.mixed, b, NULL, ERR));
        for (uint64_t i = 0; i < n; i++) {
            check(is_value(container, &t, t.padded, (uint32_t) (first + i * step), &a[i]));
            check(is_value(container, &t, t.mixed, (uint32_t) (first + i * step), &b[i]));
        }
        esdm_values_clear(container, t.mixed, n, b);
    }
    free(a);
    free(b);
    ok(esdm_container_close(container, ERR));
}

int
main(void)
{
    make_site();
    esdm_session *session = open_session();
    test_random(session);
    test_large(session);
    esdm_session_close(session);
    return 0;
}
