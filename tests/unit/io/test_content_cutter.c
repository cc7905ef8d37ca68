/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Where values say that a write is cut: all of it, within limits, and the same after a
 * shift.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/write/content_cutter.h"

#define COUNT  400000u
#define PIECES 1024u

static esdm_error error;
static double values[COUNT];

static void
fill(void)
{
    uint64_t state = 1;
    for (size_t i = 0; i < COUNT; i++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        values[i] = (double) (state >> 11);
    }
}

/* Ends of the pieces of values from one on, counted from the begin of all. */
static size_t
cut(uint64_t from, int64_t step, uint64_t *ends)
{
    const esdm__elements elements = {.type = ESDM_TYPE_FLOAT64, .bytes = sizeof(double)};
    const int64_t stride[] = {step};
    const esdm__transfer transfer = {.elements = &elements,
                                     .memory = {ESDM_TYPE_FLOAT64, values + from, stride}};
    esdm__content_cutter cutter;
    esdm__box box, piece;
    const uint64_t lo[] = {77}, n[] = {(COUNT - from) / (uint64_t) step};
    uint64_t next = 77;
    size_t count = 0;
    esdm__box_set(&box, 1, lo, n);
    assert_true(esdm__content_can_cut(&transfer, &box));
    assert_int_equal(esdm__content_cutter_init(&cutter, &transfer, &box, &error), ESDM_OK);
    while (esdm__content_cutter_next(&cutter, &piece)) {
        assert_int_equal(piece.lo[0], next);
        next += piece.n[0];
        bool last = next == 77 + n[0];
        assert_true(piece.n[0] <= 4 * ESDM__CONTENT_BYTES / sizeof(double));
        assert_true(last || piece.n[0] >= ESDM__CONTENT_BYTES / 4 / sizeof(double));
        assert_true(count < PIECES);
        ends[count++] = next - 77 + from;
    }
    assert_int_equal(next, 77 + n[0]);
    esdm__content_cutter_clear(&cutter);
    return count;
}

static void
test_content_cutter__a_shift_changes_few_pieces(void **state)
{
    static uint64_t before[PIECES], after[PIECES];
    (void) state;
    fill();
    size_t many = cut(0, 1, before);
    size_t others = cut(12345, 1, after);
    size_t same = 0;
    for (size_t i = 0, k = 0; i < many && k < others;) {
        same += before[i] == after[k];
        if (before[i] <= after[k])
            i++;
        else
            k++;
    }
    assert_in_range(many, 20, 200);
    assert_true(same + 8 >= others);
}

static void
test_content_cutter__equal_values_are_cut_by_length(void **state)
{
    static uint64_t ends[PIECES];
    (void) state;
    for (size_t i = 0; i < COUNT; i++)
        values[i] = 1.5;
    size_t count = cut(0, 1, ends);
    assert_in_range(count, COUNT * sizeof(double) / (4 * ESDM__CONTENT_BYTES),
                    COUNT * sizeof(double) / (ESDM__CONTENT_BYTES / 4) + 1);
}

static void
test_content_cutter__few_values_are_one_piece(void **state)
{
    static uint64_t ends[PIECES];
    (void) state;
    fill();
    assert_int_equal(cut(COUNT - 100, 1, ends), 1);
    assert_int_equal(cut(COUNT - 1, 1, ends), 1);
}

/* Rows of three values, and lists of them behind an index of the slowest axis: all of it once, in
 * whole rows, and cut alike. */
static void
test_content_cutter__rows_are_whole_and_lists_apart(void **state)
{
    const esdm__elements elements = {.type = ESDM_TYPE_FLOAT64, .bytes = sizeof(double)};
    const int64_t strides[2][2] = {{3, 1}, {COUNT / 4, 1}};
    const uint64_t sizes[2][2] = {{COUNT / 3, 3}, {4, COUNT / 4}};
    (void) state;
    fill();
    for (int k = 0; k < 2; k++) {
        const esdm__transfer transfer = {.elements = &elements,
                                         .memory = {ESDM_TYPE_FLOAT64, values, strides[k]}};
        esdm__content_cutter cutter;
        esdm__box box, piece;
        uint64_t elements_cut = 0, pieces = 0;
        esdm__box_set(&box, 2, NULL, sizes[k]);
        assert_true(esdm__content_can_cut(&transfer, &box));
        assert_int_equal(esdm__content_cutter_init(&cutter, &transfer, &box, &error), ESDM_OK);
        while (esdm__content_cutter_next(&cutter, &piece)) {
            assert_int_equal(piece.lo[0] * sizes[k][1] + piece.lo[1], elements_cut);
            assert_true(k == 0 ? piece.n[1] == 3 : piece.n[0] == 1);
            elements_cut += esdm__box_elements(&piece);
            pieces++;
        }
        assert_int_equal(elements_cut, esdm__box_elements(&box));
        assert_in_range(pieces, 20, 200);
        esdm__content_cutter_clear(&cutter);
    }
}

static void
test_content_cutter__what_varies_or_has_long_rows_is_not_cut_so(void **state)
{
    const esdm__elements texts = {.type = ESDM_TYPE_STRING, .bytes = 8};
    const esdm__elements numbers = {.type = ESDM_TYPE_FLOAT64, .bytes = 8};
    esdm__transfer transfer = {.elements = &texts};
    esdm__box line, rows, plane, levels, short_ones;
    (void) state;
    esdm__box_set(&line, 1, NULL, (uint64_t[]){9});
    esdm__box_set(&rows, 2, NULL, (uint64_t[]){9, 9});
    esdm__box_set(&plane, 2, NULL, (uint64_t[]){900, 900});
    esdm__box_set(&levels, 2, NULL, (uint64_t[]){3, 90000});
    esdm__box_set(&short_ones, 2, NULL, (uint64_t[]){90, 900});
    assert_false(esdm__content_can_cut(&transfer, &line));
    transfer.elements = &numbers;
    assert_true(esdm__content_can_cut(&transfer, &line));
    assert_true(esdm__content_can_cut(&transfer, &rows));
    assert_true(esdm__content_can_cut(&transfer, &levels));
    assert_false(esdm__content_can_cut(&transfer, &plane));
    assert_false(esdm__content_can_cut(&transfer, &short_ones));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content_cutter__a_shift_changes_few_pieces),
        cmocka_unit_test(test_content_cutter__equal_values_are_cut_by_length),
        cmocka_unit_test(test_content_cutter__few_values_are_one_piece),
        cmocka_unit_test(test_content_cutter__rows_are_whole_and_lists_apart),
        cmocka_unit_test(test_content_cutter__what_varies_or_has_long_rows_is_not_cut_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
