/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Parts of a read are those of the whole: random writes over each other, holes, own and committed
 * data, conversions, virtual containers; order, ends and bounds of memory. */

#include "testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { ROWS = 90, COLUMNS = 700, LEVELS = 3 };

static esdm_session *session;
static uint64_t state = 11;

typedef struct gathered {
    double *values; /* of the box */
    const uint64_t *lo, *n;
    _Atomic(uint64_t) elements;
    uint64_t reduced; /* parts, by the one that reduces */
    uint64_t out_of_range;
    atomic_int discarded, made, at_once, most_at_once;
    uint64_t fails_at; /* index of the part; UINT64_MAX: none */
    esdm_status failure;
    const char *words;
    bool in_reduce;
} gathered;

/* Values of a part, where they belong. */
static esdm_status
take(const esdm_stream_part *part, void *user, void **ret_result, esdm_error *err)
{
    gathered *g = user;
    const double *from = part->values;
    int now = atomic_fetch_add(&g->at_once, 1) + 1;
    int most = atomic_load(&g->most_at_once);
    while (now > most && !atomic_compare_exchange_weak(&g->most_at_once, &most, now))
        continue;
    check(part->rank == 3 && part->elements == part->size[0] * part->size[1] * part->size[2]);
    for (uint64_t x = 0; x < part->size[0]; x++) {
        for (uint64_t y = 0; y < part->size[1]; y++) {
            uint64_t row = (part->offset[0] - g->lo[0] + x) * g->n[1] + part->offset[1] - g->lo[1];
            memcpy(g->values + (row + y) * g->n[2] + part->offset[2] - g->lo[2], from,
                   part->size[2] * sizeof *from);
            from += part->size[2];
        }
    }
    atomic_fetch_add(&g->elements, part->elements);
    atomic_fetch_sub(&g->at_once, 1);
    if (!g->in_reduce && part->index == g->fails_at) {
        if (g->words != NULL)
            snprintf(err->message, sizeof err->message, "%s", g->words);
        return g->failure;
    }
    uint64_t *own = malloc(sizeof *own);
    *own = part->index;
    atomic_fetch_add(&g->made, 1);
    *ret_result = own;
    return ESDM_OK;
}

static esdm_status
put_in_order(const esdm_stream_part *part, void *result, void *user, esdm_error *err)
{
    gathered *g = user;
    (void) err;
    check(*(uint64_t *) result == part->index && part->index == g->reduced);
    check(part->values == NULL);
    free(result);
    atomic_fetch_sub(&g->made, 1);
    g->reduced++;
    g->out_of_range += part->out_of_range;
    return g->in_reduce && part->index == g->fails_at ? g->failure : ESDM_OK;
}

static void
discard(void *result, void *user)
{
    gathered *g = user;
    free(result);
    atomic_fetch_sub(&g->made, 1);
    atomic_fetch_add(&g->discarded, 1);
}

static uint64_t
below(uint64_t n)
{
    return next_random(&state) % n;
}

static esdm_stream
stream_into(gathered *g, uint64_t part_bytes)
{
    g->fails_at = UINT64_MAX;
    return (esdm_stream){.type = ESDM_TYPE_FLOAT64,
                         .part_bytes = part_bytes,
                         .work = take,
                         .reduce = put_in_order,
                         .discard = discard,
                         .user = g};
}

static void
compare(esdm_dataset *v)
{
    const uint64_t length[3] = {esdm_dimension_length(esdm_dataset_dimension(v, 0)), COLUMNS,
                                LEVELS};
    uint64_t lo[3], n[3];
    for (int d = 0; d < 3; d++) {
        lo[d] = below(length[d]);
        n[d] = below(5) == 0 ? length[d] - lo[d] : below(length[d] - lo[d] + 1);
    }
    uint64_t count = n[0] * n[1] * n[2];
    double *whole = malloc(count * sizeof *whole + 1);
    double *parts = malloc(count * sizeof *parts + 1);
    esdm_dataspace space;
    uint64_t misfits = 0;
    gathered g = {.values = parts, .lo = lo, .n = n};
    const esdm_stream stream = stream_into(&g, below(3) == 0 ? 0 : 8 + below(20000));
    ok(esdm_dataspace_init(&space, 3, lo, n, ERR));
    ok(esdm_read(v, &space, ESDM_TYPE_FLOAT64, whole, &misfits, ERR));
    ok(esdm_read_stream(v, &space, &stream, ERR));
    check(atomic_load(&g.elements) == count && atomic_load(&g.made) == 0);
    check(memcmp(whole, parts, count * sizeof *whole) == 0);
    check(g.out_of_range == misfits);
    free(whole);
    free(parts);
}

static esdm_dataset *
make(const char *name, esdm_container **ret)
{
    esdm_dimension *d[3];
    esdm_dataset *v;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, ret, ERR));
    esdm_group *root = esdm_container_root(*ret);
    ok(esdm_dimension_create(root, "row", ESDM_UNLIMITED, &d[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &d[1], ERR));
    ok(esdm_dimension_create(root, "level", LEVELS, &d[2], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 3, d, &v, ERR));
    return v;
}

static void
write_somewhere(esdm_dataset *v)
{
    uint64_t lo[3] = {below(ROWS), below(COLUMNS), below(LEVELS)};
    uint64_t n[3] = {1 + below(ROWS - lo[0]), 1 + below(COLUMNS - lo[1]),
                     1 + below(LEVELS - lo[2])};
    uint64_t stride[3] = {1, 1 + below(2), 1};
    n[1] = (n[1] - 1) / stride[1] + 1;
    uint64_t count = n[0] * n[1] * n[2];
    int32_t *values = malloc(count * sizeof *values);
    esdm_dataspace space;
    for (uint64_t i = 0; i < count; i++)
        values[i] = (int32_t) next_random(&state);
    ok(esdm_dataspace_init(&space, 3, lo, n, ERR));
    ok(esdm_dataspace_set_stride(&space, stride, ERR));
    ok(esdm_write(v, &space, ESDM_TYPE_INT32, values, NULL, ERR));
    free(values);
}

static void
parts_are_those_of_the_whole(void)
{
    static const char *const codecs[] = {"none", "lz4", "shuffle+zstd"};
    for (int round = 0; round < (int) by_size(6, 30, 200); round++) {
        esdm_container *c;
        esdm_dataset *v = make("random", &c);
        if (below(2))
            ok(esdm_dataset_set_chunk(v, (uint64_t[]){1 + below(20), 1 + below(COLUMNS), 1}, ERR));
        ok(esdm_dataset_set_codec(v, codecs[below(3)], ERR));
        ok(esdm_dataset_set_fill(v, &(int32_t){-7}, ERR));
        for (int i = 0; i < 6; i++) {
            write_somewhere(v);
            compare(v);
            if (below(2))
                ok(esdm_container_commit(c, NULL, ERR));
        }
        ok(esdm_container_close(c, ERR));
        ok(esdm_container_open(session, "random", ESDM_OPEN_READ, 0, &c, ERR));
        v = esdm_group_dataset_find(esdm_container_root(c), "v");
        for (int i = 0; i < 6; i++)
            compare(v);
        ok(esdm_container_close(c, ERR));
    }
}

/* Values that the type in memory cannot hold are counted, part by part. */
static esdm_status
count_misfits(const esdm_stream_part *part, void *user, void **ret_result, esdm_error *err)
{
    (void) ret_result;
    (void) err;
    atomic_fetch_add((_Atomic(uint64_t) *) user, part->out_of_range);
    return ESDM_OK;
}

static void
conversions_and_scalars(void)
{
    esdm_container *c;
    esdm_dataset *v = make("misfits", &c), *scalar, *text;
    _Atomic(uint64_t) misfits = 0;
    uint64_t wanted = 0;
    int8_t *bytes = malloc((size_t) ROWS * COLUMNS * LEVELS);
    esdm_dataspace space;
    ok(esdm_dataset_set_fill(v, &(int32_t){7}, ERR)); /* one that fits: holes count as one */
    for (int i = 0; i < 4; i++)
        write_somewhere(v);
    uint64_t rows = esdm_dimension_length(esdm_dataset_dimension(v, 0));
    ok(esdm_dataspace_init(&space, 3, NULL, (uint64_t[]){rows, COLUMNS, LEVELS}, ERR));
    ok(esdm_read(v, &space, ESDM_TYPE_INT8, bytes, &wanted, ERR));
    const esdm_stream stream = {
        .type = ESDM_TYPE_INT8, .part_bytes = 3000, .work = count_misfits, .user = &misfits};
    ok(esdm_read_stream(v, NULL, &stream, ERR));
    check(wanted > 0 && atomic_load(&misfits) == wanted);
    free(bytes);

    ok(esdm_dataset_create(esdm_container_root(c), "scalar", ESDM_TYPE_FLOAT32, 0, NULL, &scalar,
                           ERR));
    ok(esdm_read_stream(scalar, NULL, &stream, ERR)); /* the fill value, which is out of range */
    check(atomic_load(&misfits) == wanted + 1);
    ok(esdm_dataset_create(esdm_container_root(c), "text", ESDM_TYPE_STRING, 0, NULL, &text, ERR));
    const esdm_stream own = {.work = count_misfits, .user = &misfits};
    fails(esdm_read_stream(text, NULL, &own, ERR), ESDM_ENOTSUP, "esdm_read()");
    fails(esdm_read_stream(text, NULL, &stream, ERR), ESDM_EINVAL, "convert");
    fails(esdm_read_stream(v, NULL, &(esdm_stream){0}, ERR), ESDM_EINVAL, "function");
    ok(esdm_dataspace_set_stride(&space, (uint64_t[]){2, 1, 1}, ERR));
    fails(esdm_read_stream(v, &space, &stream, ERR), ESDM_EINVAL, "strides");
    ok(esdm_dataspace_init(&space, 3, (uint64_t[]){0, 1, 0}, (uint64_t[]){1, COLUMNS, 1}, ERR));
    fails(esdm_read_stream(v, &space, &stream, ERR), ESDM_EINVAL, "");
    ok(esdm_dataspace_init(&space, 3, NULL, (uint64_t[]){0, COLUMNS, 1}, ERR));
    ok(esdm_read_stream(v, &space, &stream, ERR)); /* nothing */
    ok(esdm_container_close(c, ERR));
}

static void
ends_are_told_and_nothing_leaks(void)
{
    const uint64_t lo[3] = {0}, n[3] = {ROWS, COLUMNS, LEVELS};
    double *values = malloc((size_t) ROWS * COLUMNS * LEVELS * sizeof *values);
    int32_t *numbers = calloc((size_t) ROWS * COLUMNS * LEVELS, sizeof *numbers);
    esdm_container *c;
    esdm_dataset *v = make("ends", &c);
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 3, lo, n, ERR));
    ok(esdm_write(v, &space, ESDM_TYPE_INT32, numbers, NULL, ERR));
    for (int in_reduce = 0; in_reduce < 2; in_reduce++) {
        for (uint64_t at = 0; at < 120; at += 17) {
            gathered g = {.values = values, .lo = lo, .n = n, .in_reduce = in_reduce};
            esdm_stream stream = stream_into(&g, 8 * COLUMNS * LEVELS);
            g.fails_at = at;
            g.failure = at % 2 ? ESDM_ECANCELED : ESDM_EIO;
            g.words = at % 3 && !in_reduce ? "the disk of the program is full" : NULL;
            fails(esdm_read_stream(v, &space, &stream, ERR), at < ROWS ? g.failure : ESDM_OK,
                  at >= ROWS        ? ""
                  : g.words != NULL ? g.words
                                    : "function");
            check(atomic_load(&g.made) == 0);
            check(g.reduced == (at >= ROWS ? ROWS : at + (uint64_t) in_reduce) ||
                  (!in_reduce && g.reduced < at));
        }
    }
    free(values);
    free(numbers);
    ok(esdm_container_close(c, ERR));
}

/* The first part lasts until nothing else can begin: then so many parts are there as are allowed.
 */
typedef struct held {
    pthread_mutex_t lock;
    atomic_int begun;
    int reduced;
} held;

static esdm_status
hold_first(const esdm_stream_part *part, void *user, void **ret_result, esdm_error *err)
{
    held *h = user;
    (void) ret_result;
    (void) err;
    int begun = atomic_fetch_add(&h->begun, 1) + 1;
    if (part->index == 0) {
        for (int still = 0; still < 20; still++) { /* as long as others begin */
            usleep(5000);
            if (atomic_load(&h->begun) != begun)
                still = 0;
            begun = atomic_load(&h->begun);
        }
    }
    return ESDM_OK;
}

static esdm_status
count_reduced(const esdm_stream_part *part, void *result, void *user, esdm_error *err)
{
    held *h = user;
    (void) result;
    (void) err;
    if (part->index == 0) /* nothing was let out before it */
        check(atomic_load(&h->begun) <= 2 * 64);
    h->reduced++;
    return ESDM_OK;
}

static void
parts_in_memory_are_bounded(void)
{
    esdm_container *c;
    esdm_dataset *v = make("bounded", &c);
    held h = {.begun = 0};
    for (int i = 0; i < 3; i++)
        write_somewhere(v);
    esdm_dataspace space;
    uint64_t rows = esdm_dimension_length(esdm_dataset_dimension(v, 0));
    ok(esdm_dataspace_init(&space, 3, NULL, (uint64_t[]){rows, COLUMNS, LEVELS}, ERR));
    const esdm_stream stream = {
        .part_bytes = 64, .work = hold_first, .reduce = count_reduced, .user = &h};
    ok(esdm_read_stream(v, &space, &stream, ERR));
    check(h.reduced == atomic_load(&h.begun));
    check((uint64_t) h.reduced >= rows * COLUMNS * LEVELS / 16);
    ok(esdm_container_close(c, ERR));
}

int
main(void)
{
    make_site();
    session = open_session();
    parts_are_those_of_the_whole();
    conversions_and_scalars();
    ends_are_told_and_nothing_leaks();
    parts_in_memory_are_bounded();
    esdm_session_close(session);
    return 0;
}
