/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file The copy against a loop over single elements, with random ranks, strides and types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "esdm/container.h"
#include "model/copy.h"
#include "random.h"

#define ARENA 65536 /* bytes on either side */

static uint8_t source_arena[ARENA + 8];
static uint8_t expected_arena[ARENA + 8];
static uint8_t target_arena[ARENA + 8];

typedef struct layout {
    uint64_t n[ESDM_MAX_RANK];
    int64_t stride[ESDM_MAX_RANK];
    int64_t base;   /* element (0,…,0) in elements of the arena */
    int64_t extent; /* elements between the lowest and the highest */
} layout;

/* Random order of the axes in memory, random gaps and directions. Every element has its place. */
static void
random_layout(random_source *source, uint32_t rank, const uint64_t *n, bool is_source, layout *ret)
{
    uint32_t order[ESDM_MAX_RANK];
    uint64_t step = 1;
    uint64_t style = random_below(source, 4);

    for (uint32_t i = 0; i < rank; i++)
        order[i] = rank - 1 - i;
    for (uint32_t i = rank; style >= 2 && i > 1; i--) {
        uint32_t j = (uint32_t) random_below(source, i);
        uint32_t keep = order[i - 1];
        order[i - 1] = order[j];
        order[j] = keep;
    }
    ret->base = 0;
    ret->extent = 0;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t a = order[i];
        uint64_t gap = style == 0 || random_below(source, 2) ? 1 : 1 + random_below(source, 3);
        int64_t reach;
        ret->n[a] = n[a];
        ret->stride[a] = (int64_t) (step * gap);
        step *= gap * n[a];
        if (is_source && style != 0 && random_below(source, 12) == 0)
            ret->stride[a] = 0;
        reach = (int64_t) (n[a] - 1) * ret->stride[a];
        ret->extent += reach;
        if (style != 0 && random_below(source, 4) == 0) {
            ret->base += reach;
            ret->stride[a] = -ret->stride[a];
        }
    }
}

static void
naive_copy(uint32_t rank, const uint64_t *n, esdm_type from, const uint8_t *source,
           const int64_t *source_stride, esdm_type to, uint8_t *target,
           const int64_t *target_stride, uint64_t *ret_out_of_range)
{
    uint64_t index[ESDM_MAX_RANK] = {0};
    for (;;) {
        int64_t s = 0, t = 0;
        uint64_t here;
        for (uint32_t i = 0; i < rank; i++) {
            s += (int64_t) index[i] * source_stride[i];
            t += (int64_t) index[i] * target_stride[i];
        }
        assert_int_equal(esdm_convert(from, source + s * (int64_t) esdm_type_size(from), to,
                                      target + t * (int64_t) esdm_type_size(to), 1, &here, NULL),
                         ESDM_OK);
        *ret_out_of_range += here;
        uint32_t i = rank;
        for (; i > 0; i--) {
            if (++index[i - 1] < n[i - 1])
                break;
            index[i - 1] = 0;
        }
        if (i == 0)
            return;
    }
}

static esdm_type
random_type(random_source *source)
{
    for (;;) {
        esdm_type type = 1 + (esdm_type) random_below(source, 11);
        if (esdm__type_is_numeric(type))
            return type;
    }
}

static bool
random_case(random_source *source, bool same_type)
{
    uint32_t rank = (uint32_t) random_below(source, 6);
    uint64_t n[ESDM_MAX_RANK];
    uint64_t most = random_below(source, 3) == 0 ? 70 : 9;
    layout s, t;
    esdm_type from = random_type(source);
    esdm_type to = same_type ? from : random_type(source);
    uint64_t out_expected = 3, out_got = 3; /* counts are added */

    for (uint32_t i = 0; i < rank; i++)
        n[i] = 1 + random_below(source, most);
    random_layout(source, rank, n, true, &s);
    random_layout(source, rank, n, false, &t);
    if ((s.extent + 1) * (int64_t) esdm_type_size(from) > ARENA ||
        (t.extent + 1) * (int64_t) esdm_type_size(to) > ARENA)
        return false;

    for (size_t i = 0; i < ARENA + 8; i++)
        source_arena[i] = (uint8_t) random_next(source);
    memset(expected_arena, 0x77, sizeof expected_arena);
    memset(target_arena, 0x77, sizeof target_arena);
    size_t skew = (size_t) random_below(source, 2); /* buffers may be unaligned */
    const uint8_t *from_base = source_arena + skew + s.base * (int64_t) esdm_type_size(from);
    int64_t to_offset = (int64_t) skew + t.base * (int64_t) esdm_type_size(to);
    naive_copy(rank, n, from, from_base, s.stride, to, expected_arena + to_offset, t.stride,
               &out_expected);
    esdm__copy_nd(rank, n, from, from_base, s.stride, to, target_arena + to_offset, t.stride,
                  &out_got);
    assert_memory_equal(target_arena, expected_arena, sizeof target_arena);
    assert_int_equal(out_got, out_expected);
    return true;
}

static void
test_copy__equal_types_agree_with_a_loop(void **state)
{
    random_source source = {20240101};
    int done = 0;
    (void) state;
    for (int round = 0; done < 1000 && round < 100000; round++)
        done += random_case(&source, true);
    assert_int_equal(done, 1000);
}

static void
test_copy__conversions_agree_with_a_loop(void **state)
{
    random_source source = {20240102};
    int done = 0;
    (void) state;
    for (int round = 0; done < 1000 && round < 100000; round++)
        done += random_case(&source, false);
    assert_int_equal(done, 1000);
}

/* Large enough for several tiles and ragged edges in every element size. */
static void
test_copy__transposes_every_element_size(void **state)
{
    static const esdm_type types[] = {ESDM_TYPE_UINT8, ESDM_TYPE_INT16, ESDM_TYPE_FLOAT32,
                                      ESDM_TYPE_FLOAT64};
    const uint64_t n[3] = {101, 3, 77};
    const int64_t source_stride[3] = {3 * 77, 77, 1};
    const int64_t target_stride[3] = {1, 101, 303};
    random_source source = {5};
    (void) state;
    for (size_t k = 0; k < 4; k++) {
        size_t bytes = esdm_type_size(types[k]);
        uint8_t *from = malloc(101 * 3 * 77 * bytes);
        uint8_t *to = malloc(101 * 3 * 77 * bytes);
        assert_true(from != NULL && to != NULL);
        for (size_t i = 0; i < 101 * 3 * 77 * bytes; i++)
            from[i] = (uint8_t) random_next(&source);
        esdm__copy_nd(3, n, types[k], from, source_stride, types[k], to, target_stride, NULL);
        for (size_t x = 0; x < 101; x++) {
            for (size_t y = 0; y < 3; y++) {
                for (size_t z = 0; z < 77; z++)
                    assert_memory_equal(to + (x + 101 * y + 303 * z) * bytes,
                                        from + (x * 231 + y * 77 + z) * bytes, bytes);
            }
        }
        free(from);
        free(to);
    }
}

/* Elements of 2, 4 and 8 bytes to every second, third and fourth place, in runs of every length:
 * what lies between stays. */
static void
test_copy__spread_runs_leave_the_gaps(void **state)
{
    static const esdm_type types[] = {ESDM_TYPE_INT16, ESDM_TYPE_FLOAT32, ESDM_TYPE_FLOAT64};
    random_source source = {11};
    (void) state;
    for (size_t i = 0; i < ARENA; i++)
        source_arena[i] = (uint8_t) random_next(&source);
    for (uint64_t at = 0; at < 3 * 3 * 70; at++) {
        esdm_type type = types[at % 3];
        size_t bytes = esdm_type_size(type);
        int64_t step = 2 + (int64_t) (at / 3 % 3);
        const uint64_t n[2] = {3, at / 9};
        const int64_t dense[2] = {(int64_t) n[1], 1};
        const int64_t spread[2] = {300, step};
        size_t skew = at % 7;
        memset(target_arena, 0x77, sizeof target_arena);
        memset(expected_arena, 0x77, sizeof expected_arena);
        for (uint64_t i = 0; i < 3 * n[1]; i++)
            memcpy(expected_arena + skew +
                       (300 * (i / n[1]) + (uint64_t) step * (i % n[1])) * bytes,
                   source_arena + skew + i * bytes, bytes);
        esdm__copy_nd(2, n, type, source_arena + skew, dense, type, target_arena + skew, spread,
                      NULL);
        assert_memory_equal(target_arena, expected_arena, sizeof target_arena);
    }
}

static void
test_copy__empty_arrays_touch_nothing(void **state)
{
    const uint64_t n[2] = {5, 0};
    const int64_t stride[2] = {1, 1};
    uint64_t out_of_range = 7;
    (void) state;
    esdm__copy_nd(2, n, ESDM_TYPE_INT32, NULL, stride, ESDM_TYPE_INT8, NULL, stride, &out_of_range);
    assert_int_equal(out_of_range, 7);
}

static void
test_copy__nan_payloads_survive(void **state)
{
    const uint32_t bits[3] = {0x7FA12345, 0xFF800001, 0x80000000};
    const uint64_t n[1] = {3};
    const int64_t forward[1] = {1};
    const int64_t backward[1] = {-1};
    uint32_t got[3];
    (void) state;
    esdm__copy_nd(1, n, ESDM_TYPE_FLOAT32, bits, forward, ESDM_TYPE_FLOAT32, got + 2, backward,
                  NULL);
    assert_int_equal(got[2], bits[0]);
    assert_int_equal(got[1], bits[1]);
    assert_int_equal(got[0], bits[2]);
}

static void
test_copy__strings_copy_pointers(void **state)
{
    char one[] = "one";
    char *source[2] = {one, NULL};
    char *target[4] = {NULL, NULL, NULL, one};
    const uint64_t n[1] = {2};
    const int64_t dense[1] = {1};
    const int64_t sparse[1] = {3};
    (void) state;
    esdm__copy_nd(1, n, ESDM_TYPE_STRING, source, dense, ESDM_TYPE_STRING, target, sparse, NULL);
    assert_ptr_equal(target[0], one);
    assert_null(target[3]);
}

static void
test_copy__fill_writes_the_selected_elements_only(void **state)
{
    const uint64_t n[2] = {3, 150};
    const int64_t stride[2] = {200, 1};
    const double value = -0.0;
    double target[600];
    (void) state;
    for (size_t i = 0; i < 600; i++)
        target[i] = 1.0;
    esdm__fill_nd(2, n, ESDM_TYPE_FLOAT64, &value, target, stride);
    for (size_t i = 0; i < 600; i++) {
        double expected = i % 200 < 150 ? value : 1.0;
        assert_memory_equal(&target[i], &expected, sizeof expected);
    }
}

static void
test_copy__dense_strides_are_recognised(void **state)
{
    const uint64_t n[3] = {4, 1, 6};
    const int64_t odd[3] = {6, 99, 1}; /* the step of a single element does not matter */
    const int64_t gap[3] = {7, 7, 1};
    int64_t stride[3];
    (void) state;
    esdm__dense_strides(3, n, stride);
    assert_int_equal(stride[0], 6);
    assert_int_equal(stride[1], 6);
    assert_int_equal(stride[2], 1);
    assert_true(esdm__strides_are_dense(3, n, stride));
    assert_true(esdm__strides_are_dense(3, n, odd));
    assert_false(esdm__strides_are_dense(3, n, gap));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy__equal_types_agree_with_a_loop),
        cmocka_unit_test(test_copy__conversions_agree_with_a_loop),
        cmocka_unit_test(test_copy__transposes_every_element_size),
        cmocka_unit_test(test_copy__spread_runs_leave_the_gaps),
        cmocka_unit_test(test_copy__empty_arrays_touch_nothing),
        cmocka_unit_test(test_copy__nan_payloads_survive),
        cmocka_unit_test(test_copy__strings_copy_pointers),
        cmocka_unit_test(test_copy__fill_writes_the_selected_elements_only),
        cmocka_unit_test(test_copy__dense_strides_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
