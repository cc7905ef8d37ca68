/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Parts of a box are disjoint, cover it, are small enough, and end where fragments do. */
#include "layout_support.h"

#include "layout/cuts.h"

#define SIDE 12u

static esdm__box
box_at(uint32_t rank, const uint64_t *lo, const uint64_t *n)
{
    esdm__box box;
    esdm__box_set(&box, rank, lo, n);
    return box;
}

/* How often each point of [0, SIDE)^3 lies in a part. */
static void
count_points(const esdm__cuts *cuts, uint8_t seen[SIDE][SIDE][SIDE])
{
    memset(seen, 0, (size_t) SIDE * SIDE * SIDE);
    for (size_t i = 0; i < cuts->count; i++) {
        esdm__box b;
        esdm__cuts_at(cuts, i, &b);
        for (uint64_t x = b.lo[0]; x < b.lo[0] + b.n[0]; x++)
            for (uint64_t y = b.lo[1]; y < b.lo[1] + b.n[1]; y++)
                for (uint64_t z = b.lo[2]; z < b.lo[2] + b.n[2]; z++)
                    seen[x][y][z]++;
    }
}

static void
test_cuts__cover_a_box_once_whatever_the_fragments(void **state)
{
    (void) state;
    rng r = {5};
    uint8_t seen[SIDE][SIDE][SIDE];
    for (int round = 0; round < 3000; round++) {
        uint64_t lo[3], n[3];
        esdm__piece pieces[40];
        size_t npieces = (size_t) rng_below(&r, 40);
        for (int d = 0; d < 3; d++) {
            lo[d] = rng_below(&r, SIDE);
            n[d] = rng_below(&r, SIDE - lo[d] + 1);
        }
        esdm__box whole = box_at(3, lo, n);
        for (size_t i = 0; i < npieces; i++) {
            uint64_t from[3], size[3];
            for (int d = 0; d < 3; d++) {
                from[d] = rng_below(&r, SIDE);
                size[d] = 1 + rng_below(&r, SIDE);
            }
            pieces[i].part = box_at(3, from, size);
        }
        uint64_t most = 1 + rng_below(&r, 200);
        esdm__cuts cuts;
        assert_int_equal(esdm__cuts_make(&whole, pieces, npieces, most, &cuts, NULL), ESDM_OK);
        count_points(&cuts, seen);
        for (uint64_t x = 0; x < SIDE; x++)
            for (uint64_t y = 0; y < SIDE; y++)
                for (uint64_t z = 0; z < SIDE; z++)
                    assert_int_equal(seen[x][y][z],
                                     x - lo[0] < n[0] && y - lo[1] < n[1] && z - lo[2] < n[2]);
        for (size_t i = 0; i < cuts.count; i++) {
            esdm__box b;
            esdm__cuts_at(&cuts, i, &b);
            assert_true(esdm__box_elements(&b) <= most && !esdm__box_is_empty(&b));
        }
        esdm__cuts_clear(&cuts);
    }
}

/* Fragments of 7 x 50 in 700 x 200, four of them in a row. */
static void
test_cuts__do_not_cut_fragments_of_a_grid(void **state)
{
    (void) state;
    enum { ROWS = 100, COLUMNS = 4 };
    static esdm__piece pieces[ROWS * COLUMNS];
    const uint64_t zero[2] = {0, 0}, size[2] = {7, 50}, all[2] = {700, 200};
    esdm__box whole = box_at(2, zero, all);
    for (uint64_t i = 0; i < ROWS * COLUMNS; i++)
        pieces[i].part = box_at(2, (uint64_t[]){i / COLUMNS * 7, i % COLUMNS * 50}, size);
    for (uint64_t most = 350; most < 100000; most = most * 3 / 2) {
        esdm__cuts cuts;
        assert_int_equal(esdm__cuts_make(&whole, pieces, ROWS * COLUMNS, most, &cuts, NULL),
                         ESDM_OK);
        uint64_t before = 0;
        for (size_t i = 0; i < cuts.count; i++) {
            esdm__box b;
            esdm__cuts_at(&cuts, i, &b);
            assert_true(b.lo[0] % 7 == 0 && b.n[0] % 7 == 0);
            assert_true(b.lo[1] % 50 == 0 && b.n[1] % 50 == 0);
            assert_true(b.lo[0] >= before); /* in their order */
            before = b.lo[0];
        }
        assert_true(cuts.count <= 4 * (140000 / most + 1) || most < 700);
        esdm__cuts_clear(&cuts);
    }
}

static void
test_cuts__of_scalars_and_of_bounds_at_one_end(void **state)
{
    (void) state;
    enum { MANY = 20000 };
    esdm__cuts cuts;
    esdm__box scalar = box_at(0, NULL, NULL);
    assert_int_equal(esdm__cuts_make(&scalar, NULL, 0, 1, &cuts, NULL), ESDM_OK);
    assert_int_equal(cuts.count, 1);
    esdm__cuts_clear(&cuts);
    /* Fragments of one element at the end of a row, and one of all the rest: a deep search. */
    esdm__piece *pieces = calloc(MANY, sizeof *pieces);
    const uint64_t lo[1] = {0}, n[1] = {UINT64_C(1) << 40};
    esdm__box row = box_at(1, lo, n);
    for (uint64_t i = 0; i < MANY; i++)
        pieces[i].part = box_at(1, (uint64_t[]){n[0] - MANY + i}, (uint64_t[]){1});
    assert_int_equal(esdm__cuts_make(&row, pieces, MANY, n[0] / 4, &cuts, NULL), ESDM_OK);
    assert_true(cuts.count > 3 && cuts.count < MANY + 8);
    esdm__cuts_clear(&cuts);
    free(pieces);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts__cover_a_box_once_whatever_the_fragments),
        cmocka_unit_test(test_cuts__do_not_cut_fragments_of_a_grid),
        cmocka_unit_test(test_cuts__of_scalars_and_of_bounds_at_one_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
