/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* How a box that is written is cut into fragments. */
#include "layout_support.h"

#include "layout/fragmenter.h"

static uint64_t
box_bytes(const esdm__layout *layout, const esdm__box *box)
{
    return esdm__box_elements(box) * layout->element_bytes;
}

/* Whether `part` is one range of the C order of `box`. */
static bool
is_contiguous(const esdm__box *box, const esdm__box *part)
{
    uint32_t d = 0;
    while (d < box->rank && part->n[d] == 1)
        d++;
    for (d++; d < box->rank; d++) {
        if (part->n[d] != box->n[d])
            return false;
    }
    return true;
}

/* C order of lower corners. */
static bool
comes_after(const esdm__box *a, const esdm__box *b)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->lo[d] != b->lo[d])
            return a->lo[d] > b->lo[d];
    }
    return false;
}

/* Boundaries inside the box lie on the chunk grid. */
static void
check_alignment(const esdm__layout *layout, const esdm__box *box, const esdm__box *part)
{
    for (uint32_t d = 0; d < box->rank; d++) {
        uint64_t end = part->lo[d] + part->n[d];
        assert_true(part->lo[d] == box->lo[d] || part->lo[d] % layout->chunk[d] == 0);
        assert_true(end == box->lo[d] + box->n[d] || end % layout->chunk[d] == 0);
    }
}

static bool
within_one_chunk(const esdm__layout *layout, const esdm__box *part)
{
    for (uint32_t d = 0; d < part->rank; d++) {
        if (part->lo[d] / layout->chunk[d] != (part->lo[d] + part->n[d] - 1) / layout->chunk[d])
            return false;
    }
    return true;
}

/*
 * Disjoint and complete: in C order, inside the box, with as many elements as the box, and
 * (contiguous pieces) each where the one before ends, or (chunks) none painted twice.
 */
static uint64_t
check_cut(const esdm__layout *layout, const esdm__box *box)
{
    esdm__cutter cutter;
    esdm__box part, last = {0};
    uint64_t count = 0;
    uint64_t elements = 0;
    uint64_t all = esdm__box_elements(box);
    uint8_t *painted = calloc(all + 1, 1);
    esdm__cutter_init(&cutter, layout, box);
    while (esdm__cutter_next(&cutter, &part)) {
        uint64_t bytes = box_bytes(layout, &part);
        assert_false(esdm__box_is_empty(&part));
        assert_true(esdm__box_contains(box, &part));
        assert_true(count == 0 || comes_after(&part, &last));
        uint64_t at[6] = {0};
        for (uint64_t k = 0; k < esdm__box_elements(&part); k++) {
            uint64_t cell = 0;
            for (uint32_t d = 0; d < box->rank; d++)
                cell = cell * box->n[d] + (part.lo[d] - box->lo[d]) + at[d];
            assert_int_equal(painted[cell], 0);
            painted[cell] = 1;
            for (uint32_t d = box->rank; d > 0 && ++at[d - 1] == part.n[d - 1]; d--)
                at[d - 1] = 0;
        }
        if (layout->chunk == NULL) {
            assert_true(is_contiguous(box, &part));
            assert_true(bytes <= layout->preferred_bytes || esdm__box_elements(&part) == 1);
        } else {
            check_alignment(layout, box, &part);
            assert_true(bytes <= layout->preferred_bytes || within_one_chunk(layout, &part));
        }
        elements += esdm__box_elements(&part);
        last = part;
        count++;
    }
    free(painted);
    assert_int_equal(elements, all);
    assert_int_equal(count, esdm__cutter_count(layout, box));
    assert_false(esdm__cutter_next(&cutter, &part));
    return count;
}

static void
test_fragmenter__random_boxes_are_covered_exactly(void **state)
{
    (void) state;
    rng r = {11};
    for (int round = 0; round < 20000; round++) {
        uint64_t chunk[6];
        esdm__layout layout = {.rank = (uint32_t) rng_below(&r, 6),
                               .element_bytes = 1 + rng_below(&r, 8),
                               .preferred_bytes = 1 + rng_below(&r, 1u << rng_below(&r, 14)),
                               .minimum_bytes = rng_below(&r, 1u << rng_below(&r, 12))};
        esdm__box box = {.rank = layout.rank};
        for (uint32_t d = 0; d < layout.rank; d++) {
            box.lo[d] = rng_below(&r, 30);
            box.n[d] = 1 + rng_below(&r, layout.rank < 3 ? 40 : 7);
            chunk[d] = 1 + rng_below(&r, layout.rank < 3 ? 20 : 8);
        }
        layout.chunk = rng_below(&r, 2) ? chunk : NULL;
        (void) check_cut(&layout, &box);
    }
}

static void
test_fragmenter__an_empty_box_gives_nothing_and_a_scalar_one(void **state)
{
    (void) state;
    esdm__layout layout = {.rank = 2, .element_bytes = 4, .preferred_bytes = 100};
    esdm__box box;
    esdm__box_set(&box, 2, NULL, (const uint64_t[]){5, 0});
    assert_int_equal(esdm__cutter_count(&layout, &box), 0);
    assert_int_equal(check_cut(&layout, &box), 0);
    layout.rank = 0;
    esdm__box_set(&box, 0, NULL, NULL);
    assert_int_equal(check_cut(&layout, &box), 1);
    layout.chunk = (const uint64_t[]){1};
    assert_int_equal(check_cut(&layout, &box), 1);
}

static void
test_fragmenter__pieces_are_equal_in_size(void **state)
{
    (void) state;
    /* 1000 bytes hold two rows of 400; 16 elements of 17 would leave one over */
    const esdm__layout rows = {.rank = 2, .element_bytes = 4, .preferred_bytes = 1000};
    esdm__box box, part;
    esdm__cutter cutter;
    esdm__box_set(&box, 2, NULL, (const uint64_t[]){100, 100});
    esdm__cutter_init(&cutter, &rows, &box);
    assert_true(esdm__cutter_next(&cutter, &part));
    assert_int_equal(part.n[0], 2);
    assert_int_equal(part.n[1], 100);
    const esdm__layout parts = {.rank = 1, .element_bytes = 1, .preferred_bytes = 16};
    esdm__box_set(&box, 1, NULL, (const uint64_t[]){17});
    assert_int_equal(check_cut(&parts, &box), 2);
    esdm__cutter_init(&cutter, &parts, &box);
    assert_true(esdm__cutter_next(&cutter, &part));
    assert_int_equal(part.n[0], 9);
}

static void
test_fragmenter__small_chunks_are_grouped_along_the_fastest_dimension(void **state)
{
    (void) state;
    static const uint64_t chunk[3] = {1, 10, 10};
    const esdm__layout layout = {.rank = 3,
                                 .element_bytes = 4,
                                 .chunk = chunk,
                                 .preferred_bytes = 1 << 20,
                                 .minimum_bytes = 1200};
    esdm__box box, part;
    esdm__cutter cutter;
    esdm__box_set(&box, 3, (const uint64_t[]){0, 5, 0}, (const uint64_t[]){4, 40, 120});
    esdm__cutter_init(&cutter, &layout, &box);
    assert_true(esdm__cutter_next(&cutter, &part));
    assert_int_equal(part.n[0], 1);
    assert_int_equal(part.n[1], 5); /* up to the grid line at 10 */
    assert_int_equal(part.n[2], 30);
    assert_int_equal(esdm__cutter_count(&layout, &box), 4 * 5 * 4);

    /* Fewer chunks there than needed: whole in that dimension, then the next slower one. */
    esdm__box_set(&box, 3, NULL, (const uint64_t[]){4, 40, 20});
    esdm__cutter_init(&cutter, &layout, &box);
    assert_true(esdm__cutter_next(&cutter, &part));
    assert_int_equal(part.n[0], 1);
    assert_int_equal(part.n[1], 20);
    assert_int_equal(part.n[2], 20);
}

/* Cut along the slowest dimension that is longer than 1, each chunk by itself. */
static void
test_fragmenter__few_large_chunks_are_cut_for_several_processors(void **state)
{
    (void) state;
    static const uint64_t chunk[3] = {1, 100, 100};
    static const uint64_t low[3] = {3, 0, 0};
    static const uint64_t one[3] = {1, 100, 100};
    static const uint64_t some[3] = {1, 30, 100};
    static const uint64_t many[3] = {4, 100, 100};
    const esdm__layout layout = {.rank = 3,
                                 .element_bytes = 8,
                                 .chunk = chunk,
                                 .preferred_bytes = 20000,
                                 .minimum_bytes = 1000,
                                 .parts = 4,
                                 .part_bytes = 10000};
    esdm__cutter cutter;
    esdm__box box;
    esdm__box part;
    esdm__box_set(&box, 3, low, one);
    assert_int_equal(esdm__cutter_count(&layout, &box), 4);
    esdm__cutter_init(&cutter, &layout, &box);
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(esdm__cutter_next(&cutter, &part));
        assert_int_equal(part.lo[0], 3);
        assert_int_equal(part.lo[1], 25 * i);
        assert_int_equal(part.n[1], 25);
        assert_int_equal(part.n[2], 100);
    }
    assert_false(esdm__cutter_next(&cutter, &part));
    esdm__box_set(&box, 3, low, some); /* of 24,000 bytes: two parts */
    assert_int_equal(esdm__cutter_count(&layout, &box), 2);
    esdm__box_set(&box, 3, low, many);
    assert_int_equal(esdm__cutter_count(&layout, &box), 4);
}

static void
test_fragmenter__a_large_chunk_is_one_fragment(void **state)
{
    (void) state;
    static const uint64_t chunk[2] = {100, 100};
    const esdm__layout layout = {.rank = 2,
                                 .element_bytes = 8,
                                 .chunk = chunk,
                                 .preferred_bytes = 1000,
                                 .minimum_bytes = 500};
    esdm__box box;
    esdm__box_set(&box, 2, (const uint64_t[]){50, 0}, (const uint64_t[]){100, 200});
    assert_int_equal(check_cut(&layout, &box), 4);
}

static void
test_fragmenter__extreme_numbers_do_not_overflow(void **state)
{
    (void) state;
    static const uint64_t chunk[2] = {UINT64_MAX, 3};
    esdm__layout layout = {
        .rank = 2, .element_bytes = 8, .preferred_bytes = UINT64_MAX, .minimum_bytes = UINT64_MAX};
    esdm__box box, part;
    esdm__cutter cutter;
    esdm__box_set(&box, 2, (const uint64_t[]){UINT64_MAX - 10, UINT64_MAX - 5},
                  (const uint64_t[]){10, 5});
    assert_int_equal(check_cut(&layout, &box), 1);
    layout.chunk = chunk;
    assert_true(check_cut(&layout, &box) >= 1);
    layout.preferred_bytes = 1;
    assert_int_equal(check_cut(&layout, &box), 2);

    layout.chunk = NULL;
    esdm__box_set(&box, 2, NULL, (const uint64_t[]){UINT64_MAX, UINT64_MAX});
    assert_int_equal(esdm__cutter_count(&layout, &box), UINT64_MAX);
    layout.preferred_bytes = 1 << 20;
    esdm__cutter_init(&cutter, &layout, &box);
    assert_true(esdm__cutter_next(&cutter, &part));
    assert_true(esdm__cutter_next(&cutter, &part));
    assert_int_equal(part.n[1] * 8 <= 1 << 20, 1);
}

/* Cuts a box of float32 and checks that its pieces cover it; the first one is *ret_part. */
static void
cut_as(esdm__cut cut, uint64_t preferred, uint32_t rank, const uint64_t *n, esdm__box *ret_part)
{
    esdm__box box, part;
    esdm__cutter cutter;
    const esdm__layout layout = {
        .rank = rank, .element_bytes = 4, .preferred_bytes = preferred, .cut = cut};
    uint64_t elements = 0;
    uint64_t count = 0;
    esdm__box_set(&box, rank, NULL, n);
    esdm__cutter_init(&cutter, &layout, &box);
    while (esdm__cutter_next(&cutter, &part)) {
        if (count++ == 0)
            esdm__box_copy(ret_part, &part);
        assert_true(box_bytes(&layout, &part) <= preferred);
        elements += esdm__box_elements(&part);
    }
    assert_true(elements == esdm__box_elements(&box));
    assert_true(count == esdm__cutter_count(&layout, &box));
    if (esdm__box_elements(&box) * 4 > preferred)
        assert_true(box_bytes(&layout, ret_part) * 9 / 4 >= preferred);
}

static void
test_fragmenter__shapes_follow_the_access_pattern(void **state)
{
    (void) state;
    esdm__box part;
    const uint64_t n[] = {1000, 180, 360};
    cut_as(ESDM__CUT_CONTIGUOUS, 1 << 20, 3, n, &part);
    assert_true(part.n[1] == 180 && part.n[2] == 360 && part.n[0] <= 4);
    cut_as(ESDM__CUT_SERIES, 1 << 20, 3, n, &part);
    assert_true(part.n[0] == 1000 && part.n[2] >= 128);
    cut_as(ESDM__CUT_EQUALIZED, 1 << 20, 3, n, &part);
    assert_true(part.n[0] >= 16 && part.n[0] <= 128 && part.n[1] >= 16 && part.n[2] >= 128);
    const uint64_t step[] = {1, 10, 20}; /* nothing to cut */
    cut_as(ESDM__CUT_SERIES, 1 << 20, 3, step, &part);
    assert_int_equal(esdm__box_elements(&part), 200);
    const uint64_t column[] = {5000000};
    cut_as(ESDM__CUT_SERIES, 1 << 20, 1, column, &part);
    cut_as(ESDM__CUT_EQUALIZED, 1 << 20, 1, column, &part);
    const uint64_t narrow[] = {100000, 3, 3};
    cut_as(ESDM__CUT_SERIES, 4096, 3, narrow, &part);
    cut_as(ESDM__CUT_EQUALIZED, 4096, 3, narrow, &part);
    cut_as(ESDM__CUT_EQUALIZED, 1 << 20, 0, NULL, &part);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fragmenter__random_boxes_are_covered_exactly),
        cmocka_unit_test(test_fragmenter__an_empty_box_gives_nothing_and_a_scalar_one),
        cmocka_unit_test(test_fragmenter__pieces_are_equal_in_size),
        cmocka_unit_test(test_fragmenter__small_chunks_are_grouped_along_the_fastest_dimension),
        cmocka_unit_test(test_fragmenter__few_large_chunks_are_cut_for_several_processors),
        cmocka_unit_test(test_fragmenter__a_large_chunk_is_one_fragment),
        cmocka_unit_test(test_fragmenter__extreme_numbers_do_not_overflow),
        cmocka_unit_test(test_fragmenter__shapes_follow_the_access_pattern),
    };
    return cmocka_run_group_tests_name("layout.fragmenter", tests, NULL, NULL);
}
