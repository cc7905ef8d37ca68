/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Boxes against brute force: every operation is checked on the bitmap of a small world. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/box.h"
#include "random.h"

#define SIDE  6
#define CELLS (SIDE * SIDE * SIDE)

/* Adds 1 to every cell of the box; unused axes of the world have index 0. */
static void
paint(const esdm__box *box, uint8_t cells[CELLS])
{
    uint64_t lo[3] = {0, 0, 0};
    uint64_t n[3] = {1, 1, 1};
    for (uint32_t i = 0; i < box->rank; i++) {
        lo[i] = box->lo[i];
        n[i] = box->n[i];
    }
    for (uint64_t x = lo[0]; x < lo[0] + n[0]; x++) {
        for (uint64_t y = lo[1]; y < lo[1] + n[1]; y++) {
            for (uint64_t z = lo[2]; z < lo[2] + n[2]; z++)
                cells[(x * SIDE + y) * SIDE + z]++;
        }
    }
}

static void
random_box(random_source *source, uint32_t rank, esdm__box *box)
{
    memset(box, 0xEE, sizeof *box); /* entries past the rank must not matter */
    box->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        box->lo[i] = random_below(source, SIDE);
        box->n[i] = random_below(source, SIDE - box->lo[i] + 1);
    }
}

static void
check_pair(const esdm__box *a, const esdm__box *b)
{
    uint8_t in_a[CELLS] = {0};
    uint8_t in_b[CELLS] = {0};
    uint8_t in_result[CELLS] = {0};
    uint64_t elements = 0;
    bool meets = false;
    bool contains = true;
    esdm__box result;
    esdm__box parts[2 * ESDM_MAX_RANK];

    paint(a, in_a);
    paint(b, in_b);
    for (size_t i = 0; i < CELLS; i++) {
        elements += in_a[i];
        meets = meets || (in_a[i] && in_b[i]);
        contains = contains && (in_a[i] || !in_b[i]);
    }
    assert_int_equal(esdm__box_elements(a), elements);
    assert_int_equal(esdm__box_is_empty(a), elements == 0);
    assert_int_equal(esdm__box_meets(a, b), meets);
    assert_int_equal(esdm__box_contains(a, b), contains);

    memset(&result, 0x55, sizeof result);
    esdm__box before = result;
    assert_int_equal(esdm__box_intersect(a, b, &result), meets);
    if (meets) {
        paint(&result, in_result);
        for (size_t i = 0; i < CELLS; i++)
            assert_int_equal(in_result[i], in_a[i] && in_b[i]);
        result = *b; /* the result may be an argument */
        assert_true(esdm__box_intersect(a, &result, &result));
    } else {
        assert_memory_equal(&result, &before, sizeof result);
    }

    size_t count = esdm__box_subtract(a, b, parts);
    assert_true(count <= 2 * (size_t) a->rank || count == 1);
    memset(in_result, 0, sizeof in_result);
    for (size_t i = 0; i < count; i++) {
        assert_true(!meets || !esdm__box_is_empty(&parts[i]));
        paint(&parts[i], in_result);
    }
    for (size_t i = 0; i < CELLS; i++)
        assert_int_equal(in_result[i], in_a[i] && !in_b[i]); /* 1 at most: disjoint */
}

static void
test_box__operations_agree_with_brute_force(void **state)
{
    random_source source = {0x1234567};
    (void) state;
    for (int round = 0; round < 20000; round++) {
        esdm__box a, b;
        uint32_t rank = (uint32_t) random_below(&source, 4);
        random_box(&source, rank, &a);
        random_box(&source, rank, &b);
        check_pair(&a, &b);
    }
}

static void
test_box__hull_is_the_smallest_box_around_both(void **state)
{
    random_source source = {0x7654321};
    (void) state;
    for (int round = 0; round < 5000; round++) {
        esdm__box a, b, hull;
        uint32_t rank = 1 + (uint32_t) random_below(&source, 3);
        random_box(&source, rank, &a);
        random_box(&source, rank, &b);
        esdm__box_copy(&hull, &a);
        esdm__box_hull(&hull, &b);
        if (esdm__box_is_empty(&a)) {
            assert_true(esdm__box_is_empty(&b) || esdm__box_equal(&hull, &b));
            continue;
        }
        if (esdm__box_is_empty(&b)) {
            assert_true(esdm__box_equal(&hull, &a));
            continue;
        }
        assert_true(esdm__box_contains(&hull, &a) && esdm__box_contains(&hull, &b));
        for (uint32_t i = 0; i < rank; i++) {
            uint64_t end = hull.lo[i] + hull.n[i];
            assert_true(hull.lo[i] == a.lo[i] || hull.lo[i] == b.lo[i]);
            assert_true(end == a.lo[i] + a.n[i] || end == b.lo[i] + b.n[i]);
        }
    }
}

static void
test_box__scalars_are_one_point(void **state)
{
    esdm__box a, b, parts[2 * ESDM_MAX_RANK];
    (void) state;
    esdm__box_set(&a, 0, NULL, NULL);
    esdm__box_set(&b, 0, NULL, NULL);
    assert_int_equal(esdm__box_elements(&a), 1);
    assert_true(esdm__box_meets(&a, &b) && esdm__box_equal(&a, &b));
    assert_true(esdm__box_contains(&a, &b));
    assert_int_equal(esdm__box_subtract(&a, &b, parts), 0);
}

static void
test_box__limits_of_64_bits_do_not_overflow(void **state)
{
    const uint64_t big[2] = {UINT64_MAX, UINT64_MAX};
    const uint64_t last[2] = {UINT64_MAX - 1, UINT64_MAX - 1};
    const uint64_t one[2] = {1, 1};
    esdm__box whole, corner, parts[2 * ESDM_MAX_RANK];
    (void) state;
    esdm__box_set(&whole, 2, NULL, big);
    esdm__box_set(&corner, 2, last, one);
    assert_true(esdm__box_elements(&whole) == UINT64_MAX);
    assert_true(esdm__box_meets(&whole, &corner) && esdm__box_contains(&whole, &corner));
    assert_int_equal(esdm__box_subtract(&whole, &corner, parts), 2);
    whole.n[1] = 0;
    assert_int_equal(esdm__box_elements(&whole), 0);
}

static void
test_box__of_space_covers_the_strided_selection(void **state)
{
    const uint64_t offset[3] = {5, 0, 7};
    const uint64_t size[3] = {4, 1, 0};
    const uint64_t stride[3] = {3, 9, 2};
    esdm_dataspace space;
    esdm__box box;
    (void) state;
    assert_int_equal(esdm_dataspace_init(&space, 3, offset, size, NULL), ESDM_OK);
    assert_int_equal(esdm_dataspace_set_stride(&space, stride, NULL), ESDM_OK);
    esdm__box_of_space(&box, &space);
    assert_int_equal(box.rank, 3);
    assert_int_equal(box.lo[0], 5);
    assert_int_equal(box.n[0], 10);
    assert_int_equal(box.n[1], 1);
    assert_int_equal(box.n[2], 0);
}

static void
test_box__print_writes_ranges_and_is_cut(void **state)
{
    const uint64_t lo[2] = {0, 3};
    const uint64_t n[2] = {12, 6};
    esdm__box box;
    char text[32];
    (void) state;
    esdm__box_set(&box, 2, lo, n);
    assert_string_equal(esdm__box_print(&box, text, sizeof text), "[0:12, 3:9]");
    assert_string_equal(esdm__box_print(&box, text, 8), "[0:12, ");
    assert_string_equal(esdm__box_print(&box, text, 1), "");
    text[0] = 'x';
    assert_int_equal(esdm__box_print(&box, text, 0)[0], 'x');
    esdm__box_set(&box, 0, NULL, NULL);
    assert_string_equal(esdm__box_print(&box, text, sizeof text), "[]");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_box__operations_agree_with_brute_force),
        cmocka_unit_test(test_box__hull_is_the_smallest_box_around_both),
        cmocka_unit_test(test_box__scalars_are_one_point),
        cmocka_unit_test(test_box__limits_of_64_bits_do_not_overflow),
        cmocka_unit_test(test_box__of_space_covers_the_strided_selection),
        cmocka_unit_test(test_box__print_writes_ranges_and_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
