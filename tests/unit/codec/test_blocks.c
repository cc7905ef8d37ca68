/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* How a fragment is cut into blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codec/blocks.h"

/* Every byte lies in the block that begins at or before it, and shapes have the blocks' bytes. */
static void
check(const esdm__blocks *blocks, uint32_t element_bytes)
{
    uint64_t shape[ESDM_MAX_RANK];
    assert_int_equal(esdm__blocks_start(blocks, 0), 0);
    assert_int_equal(esdm__blocks_start(blocks, blocks->blocks), blocks->raw_bytes);
    for (uint32_t b = 0; b < blocks->blocks; b++) {
        uint64_t from = esdm__blocks_start(blocks, b);
        uint64_t to = esdm__blocks_start(blocks, b + 1);
        assert_true(from < to && to - from <= blocks->block_bytes);
        assert_int_equal(esdm__blocks_at(blocks, from), b);
        assert_int_equal(esdm__blocks_at(blocks, to - 1), b);
        uint64_t bytes = element_bytes;
        esdm__blocks_shape(blocks, b, shape);
        for (uint32_t d = 0; d < blocks->rank; d++)
            bytes *= shape[d];
        if (blocks->group_bytes > 0)
            assert_int_equal(bytes, to - from);
    }
}

static void
test_blocks__boxes_whole_in_the_fastest_axes(void **state)
{
    static const struct {
        uint32_t rank;
        uint64_t shape[5];
        uint64_t target;
        uint32_t blocks;
        uint32_t axis;
        uint64_t extent;
    } cases[] = {
        {0, {0}, 1 << 20, 1, 0, 0},        {1, {1}, 1 << 20, 1, 0, 1},
        {1, {1000}, 400, 10, 0, 100},      {1, {1001}, 400, 11, 0, 91},
        {2, {10, 100}, 1 << 20, 1, 0, 10}, {2, {10, 100}, 1200, 4, 0, 3},
        {2, {3, 1000}, 400, 30, 1, 100},   {3, {4, 6, 100}, 1000, 12, 1, 2},
        {3, {4, 7, 100}, 1200, 12, 1, 3},  {5, {1, 2, 1, 7, 100}, 1200, 6, 3, 3},
        {2, {1, 3}, 1, 3, 1, 1},
    };
    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        esdm__blocks blocks;
        assert_true(esdm__blocks_cut(cases[i].rank, cases[i].shape, 4, cases[i].target, &blocks));
        assert_int_equal(blocks.blocks, cases[i].blocks);
        assert_int_equal(blocks.axis, cases[i].axis);
        if (cases[i].rank > 0)
            assert_int_equal(blocks.extent, cases[i].extent);
        check(&blocks, 4);
    }
}

static void
test_blocks__plain_ones_have_a_power_of_two(void **state)
{
    (void) state;
    esdm__blocks blocks;
    esdm__blocks_plain(100000, 2, 16, &blocks);
    check(&blocks, 1);
    esdm__blocks_plain(100000, 1, 26, &blocks);
    check(&blocks, 1);
}

static void
test_blocks__nonsense_is_refused(void **state)
{
    (void) state;
    const uint64_t shape[3] = {4, 7, 100};
    const uint64_t zero[2] = {0, 5};
    const uint64_t huge[3] = {UINT64_C(1) << 40, UINT64_C(1) << 40, 4};
    const uint64_t many[1] = {UINT64_C(1) << 40};
    esdm__blocks b;
    memset(&b, 0x5A, sizeof b);
    const esdm__blocks before = b;
    assert_false(esdm__blocks_shaped(3, shape, 3, 1, 4, 11200, &b)); /* axis */
    assert_false(esdm__blocks_shaped(3, shape, 1, 0, 4, 11200, &b)); /* extent */
    assert_false(esdm__blocks_shaped(3, shape, 1, 8, 4, 11200, &b));
    assert_false(esdm__blocks_shaped(3, shape, 1, 3, 4, 11204, &b)); /* bytes */
    assert_false(esdm__blocks_shaped(3, shape, 1, 3, 8, 11200, &b));
    assert_false(esdm__blocks_shaped(33, shape, 1, 3, 4, 11200, &b));
    assert_false(esdm__blocks_shaped(2, zero, 1, 1, 4, 0, &b));
    assert_false(esdm__blocks_shaped(3, huge, 0, 1, 4, 0, &b));
    assert_false(esdm__blocks_shaped(0, NULL, 1, 1, 4, 4, &b));
    assert_false(esdm__blocks_shaped(1, many, 0, 1, 4, UINT64_C(4) << 40, &b)); /* blocks */
    assert_false(esdm__blocks_shaped(1, many, 0, UINT64_C(1) << 40, 4, UINT64_C(4) << 40, &b));
    assert_memory_equal(&b, &before, sizeof b);
    assert_true(esdm__blocks_shaped(3, shape, 1, 3, 4, 11200, &b));
}

/* A head alone must not make a reader allocate as much as the fragment has. */
static void
test_blocks__are_no_larger_than_a_reader_believes(void **state)
{
    (void) state;
    const uint64_t n = UINT64_C(1) << 26;
    const uint64_t most = (UINT64_C(1) << ESDM__BLOCK_LOG2_MAX) / 4;
    const uint64_t plane[2] = {n / 8, 8};
    esdm__blocks b;
    assert_false(esdm__blocks_shaped(1, &n, 0, n, 4, n * 4, &b));
    assert_false(esdm__blocks_shaped(1, &n, 0, most + 1, 4, n * 4, &b));
    assert_true(esdm__blocks_shaped(1, &n, 0, most, 4, n * 4, &b));
    assert_int_equal(b.blocks, 16);
    assert_false(esdm__blocks_shaped(2, plane, 0, most / 8 + 1, 4, n * 4, &b));
    assert_true(esdm__blocks_shaped(2, plane, 0, most / 8, 4, n * 4, &b));
    assert_true(esdm__blocks_cut(1, &n, 4, 1 << 20, &b)); /* a writer has no trouble with it */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks__boxes_whole_in_the_fastest_axes),
        cmocka_unit_test(test_blocks__plain_ones_have_a_power_of_two),
        cmocka_unit_test(test_blocks__nonsense_is_refused),
        cmocka_unit_test(test_blocks__are_no_larger_than_a_reader_believes),
    };
    return cmocka_run_group_tests_name("codec.blocks", tests, NULL, NULL);
}
