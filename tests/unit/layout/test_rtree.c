/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Trees of boxes against a search through all. */
#include "layout_support.h"

#include "layout/forest.h"
#include "layout/rtree.h"
#include "layout/shadow.h"

/* A column of random boxes: small ones in a wide space, large ones in a narrow one, or on a line.
 */
static uint64_t *
random_column(rng *r, uint32_t rank, uint32_t count)
{
    uint64_t *bounds = malloc(((size_t) count * 2 * rank + 1) * sizeof *bounds);
    uint64_t space = 1 + rng_below(r, rng_below(r, 2) ? 1000 : 20);
    uint64_t size = 1 + rng_below(r, rng_below(r, 2) ? 3 : 40);
    bool line = rng_below(r, 3) == 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *b = bounds + (size_t) i * 2 * rank;
        for (uint32_t d = 0; d < rank; d++) {
            b[d] = line && d != rank / 2 ? 0 : rng_below(r, space);
            b[rank + d] = b[d] + 1 + rng_below(r, size);
        }
    }
    return bounds;
}

static bool
note(uint32_t box, void *user)
{
    uint8_t *found = user;
    found[box]++;
    return true;
}

static bool
stop_at_third(uint32_t box, void *user)
{
    (void) box;
    return ++*(int *) user < 3;
}

static void
test_rtree__queries_find_what_a_scan_finds(void **state)
{
    (void) state;
    rng r = {5};
    for (int round = 0; round < 300; round++) {
        uint32_t rank = (uint32_t) rng_below(&r, 5);
        uint32_t count = (uint32_t) rng_below(&r, 3) ? (uint32_t) rng_below(&r, 600)
                                                     : (uint32_t) rng_below(&r, 40);
        uint64_t *bounds = random_column(&r, rank, count);
        uint64_t *requests = random_column(&r, rank, 10);
        esdm__rtree tree;
        assert_true(esdm__rtree_build(&tree, rank, bounds, count));
        for (uint32_t q = 0; q < 10; q++) {
            const uint64_t *request = esdm__bounds_at(rank, requests, q);
            uint8_t *found = calloc(count + 1, 1);
            assert_true(esdm__rtree_query(&tree, bounds, request, note, found));
            for (uint32_t i = 0; i < count; i++)
                assert_int_equal(
                    found[i], esdm__bounds_meet(rank, esdm__bounds_at(rank, bounds, i), request));
            free(found);
        }
        esdm__rtree_clear(&tree);
        free(bounds);
        free(requests);
    }
}

static void
test_rtree__a_visit_can_stop_the_search(void **state)
{
    (void) state;
    rng r = {5};
    uint64_t *bounds = random_column(&r, 1, 500);
    const uint64_t all[2] = {0, UINT64_MAX};
    esdm__rtree tree;
    int visits = 0;
    assert_true(esdm__rtree_build(&tree, 1, bounds, 500));
    assert_false(esdm__rtree_query(&tree, bounds, all, stop_at_third, &visits));
    assert_int_equal(visits, 3);
    esdm__rtree_clear(&tree);
    free(bounds);
}

static void
test_rtree__sorting_is_a_permutation_and_deterministic(void **state)
{
    (void) state;
    rng r = {6};
    for (int round = 0; round < 50; round++) {
        uint32_t rank = 1 + (uint32_t) rng_below(&r, 4);
        uint32_t count = (uint32_t) rng_below(&r, 3000);
        uint64_t *bounds = random_column(&r, rank, count);
        uint32_t *order[2];
        uint8_t *seen = calloc(count + 1, 1);
        for (int k = 0; k < 2; k++) {
            order[k] = malloc((count + 1) * sizeof *order[k]);
            for (uint32_t i = 0; i < count; i++)
                order[k][i] = i;
            assert_true(esdm__rtree_sort(rank, bounds, order[k], count));
        }
        assert_memory_equal(order[0], order[1], count * sizeof *order[0]);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(seen[order[0][i]]++, 0);
        free(order[0]);
        free(order[1]);
        free(seen);
        free(bounds);
    }
}

/* 64 x 64 unit cells in random order: each full page, node and leaf must be a compact tile. */
static void
test_rtree__aligned_runs_are_compact(void **state)
{
    (void) state;
    enum { SIDE = 64, COUNT = SIDE * SIDE };
    uint64_t *bounds = malloc(COUNT * 4 * sizeof *bounds);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t k = (uint32_t) (i * UINT64_C(2654435761) % COUNT);
        bounds[4 * i] = k / SIDE;
        bounds[4 * i + 1] = k % SIDE;
        bounds[4 * i + 2] = k / SIDE + 1;
        bounds[4 * i + 3] = k % SIDE + 1;
    }
    esdm__rtree tree;
    assert_true(esdm__rtree_build(&tree, 2, bounds, COUNT));
    assert_int_equal(tree.levels, 3);
    for (uint32_t level = 0; level < 2; level++) {
        double expected = level == 0 ? 16 : 256;
        for (uint32_t n = 0; n < esdm__rtree_nodes(&tree, level); n++)
            assert_true(esdm__bounds_volume(2, esdm__rtree_hull(&tree, level, n)) == expected);
    }
    esdm__rtree_clear(&tree);
    free(bounds);
}

static void
test_rtree__self_join_marks_what_pairs_mark(void **state)
{
    (void) state;
    rng r = {8};
    for (int round = 0; round < 300; round++) {
        uint32_t rank = (uint32_t) rng_below(&r, 4);
        uint32_t count = (uint32_t) rng_below(&r, 400);
        uint64_t *bounds = random_column(&r, rank, count);
        uint8_t *mark = calloc(count + 1, 1);
        esdm__rtree tree;
        assert_true(esdm__rtree_build(&tree, rank, bounds, count));
        assert_true(esdm__rtree_self_join(&tree, bounds, 100000, mark));
        for (uint32_t i = 0; i < count; i++) {
            bool meets = false;
            for (uint32_t k = 0; k < count && !meets; k++)
                meets = k != i && esdm__bounds_meet(rank, esdm__bounds_at(rank, bounds, i),
                                                    esdm__bounds_at(rank, bounds, k));
            assert_int_equal(mark[i], meets);
        }
        esdm__rtree_clear(&tree);
        free(mark);
        free(bounds);
    }
}

static void
test_forest__a_growing_column_is_searched_like_a_scan(void **state)
{
    (void) state;
    rng r = {9};
    for (int round = 0; round < 40; round++) {
        uint32_t rank = (uint32_t) rng_below(&r, 4);
        enum { COUNT = 2000 };
        uint64_t *bounds = random_column(&r, rank, COUNT);
        uint64_t *requests = random_column(&r, rank, COUNT);
        uint8_t *found = malloc(COUNT);
        esdm__forest forest = {0};
        for (uint32_t count = 0; count < COUNT; count += 1 + (uint32_t) rng_below(&r, 90)) {
            const uint64_t *request = esdm__bounds_at(rank, requests, count);
            memset(found, 0, COUNT);
            assert_true(esdm__forest_query(&forest, rank, bounds, count, request, note, found));
            for (uint32_t i = 0; i < COUNT; i++)
                assert_int_equal(
                    found[i], i < count && esdm__bounds_meet(rank, esdm__bounds_at(rank, bounds, i),
                                                             request));
            assert_true(forest.nruns <= 8); /* log2(2000 / 32) and a few */
            if (rng_below(&r, 30) == 0)
                esdm__forest_clear(&forest);
        }
        esdm__forest_clear(&forest);
        free(found);
        free(bounds);
        free(requests);
    }
}

/* Parts are disjoint, lie in their owners, and a point belongs to the newest box there. */
static void
check_shadow(rng *r, uint32_t rank, uint32_t count)
{
    uint64_t *bounds = random_column(r, rank, count);
    uint64_t *sequence = malloc((count + 1) * sizeof *sequence);
    for (uint32_t i = 0; i < count; i++)
        sequence[i] = rng_below(r, count * 2); /* some are equal */
    esdm__parts parts = {0};
    assert_int_equal(esdm__shadow_parts(rank, bounds, sequence, NULL, count, &parts, NULL),
                     ESDM_OK);
    for (size_t p = 0; p < parts.count; p++) {
        const uint64_t *part = esdm__bounds_at(rank, parts.bounds, p);
        assert_true(
            esdm__bounds_contain(rank, esdm__bounds_at(rank, bounds, parts.owner[p]), part));
        for (size_t q = 0; q < p; q++)
            assert_false(esdm__bounds_meet(rank, part, esdm__bounds_at(rank, parts.bounds, q)));
    }
    for (uint32_t i = 0; i < count; i++) { /* sample points: the corners of all boxes */
        uint64_t point[2 * ESDM_MAX_RANK];
        for (uint32_t d = 0; d < rank; d++) {
            point[d] = esdm__bounds_at(rank, bounds, i)[d];
            point[rank + d] = point[d] + 1;
        }
        uint32_t newest = i;
        for (uint32_t k = 0; k < count; k++) {
            if (esdm__bounds_meet(rank, point, esdm__bounds_at(rank, bounds, k)) &&
                (sequence[k] > sequence[newest] || (sequence[k] == sequence[newest] && k > newest)))
                newest = k;
        }
        size_t owners = 0;
        for (size_t p = 0; p < parts.count; p++) {
            if (esdm__bounds_meet(rank, point, esdm__bounds_at(rank, parts.bounds, p))) {
                assert_int_equal(parts.owner[p], newest);
                owners++;
            }
        }
        assert_int_equal(owners, 1);
    }
    esdm__parts_clear(&parts);
    free(sequence);
    free(bounds);
}

static void
test_shadow__every_point_belongs_to_its_newest_box(void **state)
{
    (void) state;
    rng r = {10};
    for (int round = 0; round < 150; round++)
        check_shadow(&r, (uint32_t) rng_below(&r, 4), 1 + (uint32_t) rng_below(&r, 120));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rtree__queries_find_what_a_scan_finds),
        cmocka_unit_test(test_rtree__a_visit_can_stop_the_search),
        cmocka_unit_test(test_rtree__sorting_is_a_permutation_and_deterministic),
        cmocka_unit_test(test_rtree__aligned_runs_are_compact),
        cmocka_unit_test(test_rtree__self_join_marks_what_pairs_mark),
        cmocka_unit_test(test_forest__a_growing_column_is_searched_like_a_scan),
        cmocka_unit_test(test_shadow__every_point_belongs_to_its_newest_box),
    };
    return cmocka_run_group_tests_name("layout.rtree", tests, NULL, NULL);
}
