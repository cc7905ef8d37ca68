/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Overlapping writes in every order, strides on both sides and all memory types, compared with a
 * plain array that sees the same operations one by one. */

#include "testing.h"

enum { MAX_RANK = 4, MAX_ELEMENTS = 4096 };

/** The array that does it right, element by element. */
typedef struct model {
    uint32_t rank;
    uint64_t shape[MAX_RANK];
    uint64_t strides[MAX_RANK];
    int32_t values[MAX_ELEMENTS];
} model;

static const int32_t fill = -7;

static void
model_init(model *m, uint32_t rank, const uint64_t *shape)
{
    uint64_t elements = 1;
    m->rank = rank;
    for (uint32_t i = rank; i-- > 0;) {
        m->shape[i] = shape[i];
        m->strides[i] = elements;
        elements *= shape[i];
    }
    check(elements <= MAX_ELEMENTS);
    for (uint64_t i = 0; i < elements; i++)
        m->values[i] = fill;
}

/* Index of selected element number `k` (C order) of the space, in the model's array. */
static uint64_t
model_index(const model *m, const esdm_dataspace *space, uint64_t k, int64_t *ret_memory)
{
    uint64_t index = 0;
    int64_t memory = 0;
    int64_t dense = 1;
    for (uint32_t i = m->rank; i-- > 0;) {
        uint64_t step = k % space->size[i];
        k /= space->size[i];
        index +=
            (space->offset[i] + step * (space->has_stride ? space->stride[i] : 1)) * m->strides[i];
        memory += (int64_t) step * (space->has_memory_stride ? space->memory_stride[i] : dense);
        dense *= (int64_t) space->size[i];
    }
    *ret_memory = memory;
    return index;
}

/* A hyperslab inside the shape, strided in half of the cases. */
static void
random_space(const model *m, uint64_t *random, esdm_dataspace *space)
{
    uint64_t offset[MAX_RANK];
    uint64_t size[MAX_RANK];
    uint64_t stride[MAX_RANK];
    bool strided = next_random(random) % 2;
    for (uint32_t i = 0; i < m->rank; i++) {
        offset[i] = next_random(random) % m->shape[i];
        stride[i] = strided ? 1 + next_random(random) % 3 : 1;
        uint64_t most = (m->shape[i] - offset[i] + stride[i] - 1) / stride[i];
        size[i] = 1 + next_random(random) % most;
    }
    ok(esdm_dataspace_init(space, m->rank, offset, size, ERR));
    ok(esdm_dataspace_set_stride(space, stride, ERR));
}

/* Memory axes in reverse order, so that the buffer is transposed. */
static void
transpose_memory(esdm_dataspace *space)
{
    int64_t stride[MAX_RANK];
    int64_t step = 1;
    for (uint32_t i = 0; i < space->rank; i++) {
        stride[i] = step;
        step *= (int64_t) space->size[i];
    }
    ok(esdm_dataspace_set_memory_stride(space, stride, ERR));
}

static void
write_both(model *m, esdm_dataset *dataset, uint64_t *random, int32_t *value)
{
    static int32_t buffer[MAX_ELEMENTS];
    esdm_dataspace space;
    random_space(m, random, &space);
    if (next_random(random) % 4 == 0)
        transpose_memory(&space);
    uint64_t n = esdm_dataspace_elements(&space);
    for (uint64_t k = 0; k < n; k++)
        buffer[k] = (*value)++;
    for (uint64_t k = 0; k < n; k++) {
        int64_t memory;
        uint64_t index = model_index(m, &space, k, &memory);
        m->values[index] = buffer[memory];
    }
    ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, buffer, NULL, ERR));
}

static void
compare_slab(const model *m, esdm_dataset *dataset, const esdm_dataspace *space)
{
    static int32_t buffer[MAX_ELEMENTS];
    uint64_t n = esdm_dataspace_elements(space);
    memset(buffer, 0x55, sizeof buffer);
    ok(esdm_read(dataset, space, ESDM_TYPE_INT32, buffer, NULL, ERR));
    for (uint64_t k = 0; k < n; k++) {
        int64_t memory;
        uint64_t index = model_index(m, space, k, &memory);
        if (buffer[memory] != m->values[index])
            die("element %" PRIu64 ": read %d, written %d", index, buffer[memory],
                m->values[index]);
    }
}

static void
compare_all(const model *m, esdm_dataset *dataset, uint64_t *random)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, m->rank, NULL, m->shape, ERR));
    compare_slab(m, dataset, &space);
    for (int i = 0; i < 3; i++) {
        random_space(m, random, &space);
        if (i == 2)
            transpose_memory(&space);
        compare_slab(m, dataset, &space);
    }
}

static esdm_container *
create(esdm_session *session, const char *name, uint32_t rank, const uint64_t *shape,
       const uint64_t *chunk, esdm_dataset **ret_dataset)
{
    esdm_container *container;
    esdm_dimension *dims[MAX_RANK];
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    for (uint32_t i = 0; i < rank; i++) {
        char dim[16];
        snprintf(dim, sizeof dim, "d%u", i);
        ok(esdm_dimension_create(root, dim, shape[i], &dims[i], ERR));
    }
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, rank, dims, ret_dataset, ERR));
    ok(esdm_dataset_set_fill(*ret_dataset, &fill, ERR));
    ok(esdm_dataset_set_chunk(*ret_dataset, chunk, ERR));
    return container;
}

static esdm_dataset *
reopen(esdm_session *session, const char *name, esdm_open_mode mode, esdm_container **container)
{
    ok(esdm_container_open(session, name, mode, ESDM_SNAPSHOT_LATEST, container, ERR));
    return esdm_group_dataset_find(esdm_container_root(*container), "v");
}

/* One history: random writes with commits, reopenings and new sessions between them. */
static void
run_history(uint64_t seed, uint32_t rank, const uint64_t *shape, const uint64_t *chunk,
            const char *codec)
{
    static model m;
    uint64_t random = seed;
    int32_t value = 1;
    char name[64];
    esdm_container *container;
    esdm_dataset *dataset;
    esdm_session *session = open_session();

    snprintf(name, sizeof name, "history/%" PRIu64, seed);
    model_init(&m, rank, shape);
    container = create(session, name, rank, shape, chunk, &dataset);
    ok(esdm_dataset_set_codec(dataset, codec, ERR));
    for (int step = 0; step < 24; step++) {
        write_both(&m, dataset, &random, &value);
        switch (next_random(&random) % 6) {
        case 0:
            ok(esdm_container_commit(container, NULL, ERR));
            break;
        case 1:
            ok(esdm_container_close(container, ERR));
            dataset = reopen(session, name, ESDM_OPEN_WRITE, &container);
            break;
        case 2:
            ok(esdm_container_close(container, ERR));
            esdm_session_close(session);
            session = open_session();
            dataset = reopen(session, name, ESDM_OPEN_WRITE, &container);
            break;
        case 3:
            compare_all(&m, dataset, &random); /* its own writes, not committed yet */
            break;
        default:
            break;
        }
    }
    compare_all(&m, dataset, &random);
    ok(esdm_container_close(container, ERR));
    dataset = reopen(session, name, ESDM_OPEN_READ, &container);
    compare_all(&m, dataset, &random);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

static void
test_overlaps__match_a_plain_array(void)
{
    static const uint64_t shapes[][MAX_RANK] = {
        {97, 0, 0, 0}, {23, 31, 0, 0}, {7, 11, 13, 0}, {5, 6, 7, 8}};
    static const uint64_t chunks[][MAX_RANK] = {
        {10, 0, 0, 0}, {5, 8, 0, 0}, {2, 3, 13, 0}, {1, 6, 3, 4}};
    uint64_t histories = by_size(12, 60, 600);
    for (uint64_t seed = 0; seed < histories; seed++) {
        uint32_t rank = 1 + (uint32_t) (seed % MAX_RANK);
        const uint64_t *chunk = seed / MAX_RANK % 2 ? chunks[rank - 1] : NULL;
        const char *const codecs[] = {NULL, "lz4", "shuffle+zstd"};
        run_history(seed, rank, shapes[rank - 1], chunk, codecs[seed / 8 % 3]);
    }
}

static bool
count_strided(const esdm_fragment_info *info, void *user)
{
    uint64_t *counts = user;
    counts[info->stride != NULL]++;
    return true;
}

/* A scattered selection becomes strided fragments; what repeats one replaces it, and hidden values
 * do not count as out of range. */
static void
test_strided__is_kept_as_strided_fragments(void)
{
    enum { N = 100, EVERY = 3, PICKED = 34 };
    static int32_t values[N * N];
    static int8_t bytes[N * N];
    esdm_dataset *dataset;
    esdm_dataspace all;
    esdm_dataspace picked;
    esdm_session *session = open_session();
    esdm_container *container =
        create(session, "strided", 2, (const uint64_t[]){N, N}, NULL, &dataset);
    ok(esdm_dataspace_init(&all, 2, NULL, (const uint64_t[]){N, N}, ERR));
    ok(esdm_dataspace_init(&picked, 2, NULL, (const uint64_t[]){PICKED, PICKED}, ERR));
    ok(esdm_dataspace_set_stride(&picked, (const uint64_t[]){EVERY, EVERY}, ERR));
    for (int i = 0; i < N * N; i++)
        values[i] = i % N % EVERY == 0 && i / N % EVERY == 0 ? 1000 : 7;
    ok(esdm_write(dataset, &all, ESDM_TYPE_INT32, values, NULL, ERR));
    for (int again = 0; again < 5; again++) {
        for (int i = 0; i < PICKED * PICKED; i++)
            values[i] = again == 4 ? i % 100 : 1000;
        ok(esdm_write(dataset, &picked, ESDM_TYPE_INT32, values, NULL, ERR));
    }
    for (int reopened = 0; reopened < 2; reopened++) {
        uint64_t out_of_range = 1;
        ok(esdm_read(dataset, &all, ESDM_TYPE_INT8, bytes, &out_of_range, ERR));
        if (out_of_range != 0)
            die("%" PRIu64 " hidden values count as out of range", out_of_range);
        for (int i = 0; i < N * N; i++) {
            int row = i / N;
            int column = i % N;
            int expected = row % EVERY == 0 && column % EVERY == 0
                               ? (row / EVERY * PICKED + column / EVERY) % 100
                               : 7;
            if (bytes[i] != expected)
                die("element %d: %d, written %d", i, bytes[i], expected);
        }
        ok(esdm_container_close(container, ERR));
        dataset = reopen(session, "strided", ESDM_OPEN_READ, &container);
    }
    uint64_t counts[2] = {0, 0};
    ok(esdm_dataset_fragments(dataset, count_strided, counts, ERR));
    if (counts[0] != 1 || counts[1] != 1)
        die("%" PRIu64 " dense and %" PRIu64 " strided fragments instead of one each", counts[0],
            counts[1]);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

enum { STEPS = 40, ROWS = 128, COLUMNS = 256 };

static int32_t
interleaved_value(uint64_t step, uint64_t row, uint64_t column)
{
    return (int32_t) ((step * ROWS + row) * COLUMNS + column);
}

/* Reads from `first` on with a stride along all axes, in a type of memory. */
static void
check_interleaved(esdm_dataset *dataset, uint64_t first, uint64_t stride, esdm_type type)
{
    static union {
        int32_t ints[STEPS * ROWS * COLUMNS];
        double numbers[STEPS * ROWS * COLUMNS];
    } memory;
    const uint64_t size[] = {(STEPS - first - 1) / stride + 1, (ROWS - first - 1) / stride + 1,
                             (COLUMNS - first - 1) / stride + 1};
    esdm_dataspace space;
    uint64_t at = 0;
    ok(esdm_dataspace_init(&space, 3, (const uint64_t[]){first, first, first}, size, ERR));
    ok(esdm_dataspace_set_stride(&space, (const uint64_t[]){stride, stride, stride}, ERR));
    ok(esdm_read(dataset, &space, type, &memory, NULL, ERR));
    for (uint64_t s = first; s < STEPS; s += stride)
        for (uint64_t r = first; r < ROWS; r += stride)
            for (uint64_t c = first; c < COLUMNS; c += stride, at++) {
                double found = type == ESDM_TYPE_INT32 ? memory.ints[at] : memory.numbers[at];
                if (found != interleaved_value(s, r, c))
                    die("element %" PRIu64 ": %g, written %d", at, found,
                        interleaved_value(s, r, c));
            }
}

/* Large enough that they are read in bands. */
static void
test_strided__quarters_make_a_whole(void)
{
    static int32_t values[STEPS * ROWS / 2 * COLUMNS / 2];
    const uint64_t size[] = {STEPS, ROWS / 2, COLUMNS / 2};
    uint64_t counts[2] = {0, 0};
    esdm_dataset *dataset;
    esdm_session *session = open_session();
    esdm_container *container =
        create(session, "quarters", 3, (const uint64_t[]){STEPS, ROWS, COLUMNS}, NULL, &dataset);
    ok(esdm_dataset_set_codec(dataset, "none", ERR));
    for (uint64_t quarter = 0; quarter < 4; quarter++) {
        const uint64_t first[] = {0, quarter / 2, quarter % 2};
        esdm_dataspace space;
        int32_t *at = values;
        for (uint64_t s = 0; s < STEPS; s++)
            for (uint64_t r = first[1]; r < ROWS; r += 2)
                for (uint64_t c = first[2]; c < COLUMNS; c += 2)
                    *at++ = interleaved_value(s, r, c);
        ok(esdm_dataspace_init(&space, 3, first, size, ERR));
        ok(esdm_dataspace_set_stride(&space, (const uint64_t[]){1, 2, 2}, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, values, NULL, ERR));
    }
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_dataset_fragments(dataset, count_strided, counts, ERR));
    check(counts[0] == 0 && counts[1] >= 4);
    check_interleaved(dataset, 0, 1, ESDM_TYPE_INT32);
    check_interleaved(dataset, 1, 1, ESDM_TYPE_INT32);
    check_interleaved(dataset, 3, 2, ESDM_TYPE_INT32);
    check_interleaved(dataset, 0, 3, ESDM_TYPE_INT32);
    check_interleaved(dataset, 2, 3, ESDM_TYPE_FLOAT64);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* Three overlapping slabs in all six orders, each order committed at once and one by one. */
static void
test_overlaps__every_order(void)
{
    static const uint64_t shape[] = {12, 12};
    static const uint64_t slabs[3][2][2] = {{{0, 0}, {8, 8}}, {{4, 4}, {8, 8}}, {{2, 0}, {6, 12}}};
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static model m;
    esdm_session *session = open_session();
    for (int variant = 0; variant < 12; variant++) {
        char name[32];
        esdm_dataset *dataset;
        uint64_t random = 1;
        snprintf(name, sizeof name, "order/%d", variant);
        model_init(&m, 2, shape);
        esdm_container *container = create(session, name, 2, shape, NULL, &dataset);
        for (int i = 0; i < 3; i++) {
            int slab = orders[variant % 6][i];
            int32_t buffer[144];
            esdm_dataspace space;
            ok(esdm_dataspace_init(&space, 2, slabs[slab][0], slabs[slab][1], ERR));
            for (uint64_t k = 0; k < esdm_dataspace_elements(&space); k++) {
                int64_t memory;
                buffer[k] = slab * 1000 + (int32_t) k;
                m.values[model_index(&m, &space, k, &memory)] = buffer[k];
            }
            ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, buffer, NULL, ERR));
            if (variant >= 6)
                ok(esdm_container_commit(container, NULL, ERR));
        }
        ok(esdm_container_close(container, ERR));
        dataset = reopen(session, name, ESDM_OPEN_READ, &container);
        compare_all(&m, dataset, &random);
        ok(esdm_container_close(container, ERR));
    }
    esdm_session_close(session);
}

static void
test_same_slab__second_write_wins_in_this_and_in_a_later_session(void)
{
    static const uint64_t shape[] = {64, 64};
    static int32_t buffer[64 * 64];
    esdm_dataspace space;
    esdm_dataset *dataset;
    esdm_session *session = open_session();
    esdm_container *container = create(session, "twice", 2, shape, NULL, &dataset);
    ok(esdm_dataspace_init(&space, 2, NULL, shape, ERR));
    for (int32_t round = 1; round <= 3; round++) {
        for (int i = 0; i < 64 * 64; i++)
            buffer[i] = round * 10000 + i;
        ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, buffer, NULL, ERR));
        if (round == 2) { /* the third one comes from another session */
            ok(esdm_container_close(container, ERR));
            esdm_session_close(session);
            session = open_session();
            dataset = reopen(session, "twice", ESDM_OPEN_WRITE, &container);
        }
        ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, buffer, NULL, ERR));
        for (int i = 0; i < 64 * 64; i++)
            check(buffer[i] == round * 10000 + i);
    }
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

static void
test_negative_memory_stride__reverses(void)
{
    static const uint64_t shape[] = {10};
    int32_t buffer[10];
    esdm_dataspace space;
    esdm_dataset *dataset;
    esdm_session *session = open_session();
    esdm_container *container = create(session, "reverse", 1, shape, NULL, &dataset);
    for (int i = 0; i < 10; i++)
        buffer[i] = i;
    ok(esdm_dataspace_init(&space, 1, NULL, shape, ERR));
    ok(esdm_dataspace_set_memory_stride(&space, (int64_t[]){-1}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, buffer + 9, NULL, ERR));
    ok(esdm_dataspace_init(&space, 1, NULL, shape, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, buffer, NULL, ERR));
    for (int i = 0; i < 10; i++)
        check(buffer[i] == 9 - i);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

int
main(void)
{
    make_site();
    test_same_slab__second_write_wins_in_this_and_in_a_later_session();
    test_overlaps__every_order();
    test_overlaps__match_a_plain_array();
    test_negative_memory_stride__reverses();
    test_strided__is_kept_as_strided_fragments();
    test_strided__quarters_make_a_whole();
    return 0;
}
