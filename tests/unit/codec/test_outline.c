/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Outlines of fragments: of which blocks they are made, what they verify, and hostile ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/outline.h"
#include "codec/raw_blocks.h"
#include "esdm/types.h"

static const esdm__chain none;

static uint8_t *
noise(size_t bytes)
{
    uint8_t *raw = malloc(bytes);
    uint64_t x = 1;
    for (size_t i = 0; i < bytes; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        raw[i] = (uint8_t) (x >> 33);
    }
    return raw;
}

/* Every byte of raw data counts, in each group, and only there. */
static void
test_outline__verifies_groups_of_raw_blocks(void **state)
{
    (void) state;
    static const size_t lengths[] = {300000, 1 << 20, (1 << 20) + 1, 5000003};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t bytes = lengths[k];
        uint8_t *raw = noise(bytes);
        uint8_t outline[1024];
        esdm__blob blob;
        esdm__blocks blocks;
        assert_int_equal(esdm__blob_encode(&none, ESDM_TYPE_INT8, 1, 1, raw, bytes, &blob, NULL),
                         ESDM_OK);
        uint32_t head = (uint32_t) blob.head_bytes;
        assert_int_equal(esdm__raw_blocks_init(bytes, head, &blocks, NULL), ESDM_OK);
        uint32_t length = esdm__outline_bytes(blob.head, head, head + bytes);
        assert_int_equal(length, 8 * ((bytes - 1) / ESDM__OUTLINE_GROUP_BYTES + 1));
        assert_true(esdm__outline_is_raw(blob.head) && esdm__outline_fits(&blocks, length));
        assert_false(esdm__outline_fits(&blocks, length + 8) || esdm__outline_fits(&blocks, 0));
        esdm__outline_make(blob.head, head, outline);
        assert_int_equal(esdm__outline_verify(&blocks, 0, blocks.blocks, outline, raw, NULL),
                         ESDM_OK);
        uint32_t group = esdm__outline_group(&blocks);
        assert_int_equal(group, 64);
        for (uint32_t first = 0; first < blocks.blocks; first += group) {
            uint32_t count = blocks.blocks - first < group ? blocks.blocks - first : group;
            uint8_t *at = raw + esdm__blocks_start(&blocks, first);
            uint8_t *last = raw + esdm__blocks_start(&blocks, first + count) - 1;
            assert_int_equal(esdm__outline_verify(&blocks, first, count, outline, at, NULL),
                             ESDM_OK);
            *last ^= 1;
            assert_int_equal(esdm__outline_verify(&blocks, first, count, outline, at, NULL),
                             ESDM_ECORRUPT);
            *last ^= 1;
            outline[8 * (first / group) + 3] ^= 4;
            assert_int_equal(esdm__outline_verify(&blocks, first, count, outline, at, NULL),
                             ESDM_ECORRUPT);
            outline[8 * (first / group) + 3] ^= 4;
        }
        esdm__blob_clear(&blob);
        free(raw);
    }
}

/* Of what is small, or has a long table for what is stored, none is kept. */
static void
test_outline__stays_small(void **state)
{
    (void) state;
    uint8_t *raw = noise(1 << 20);
    esdm__blob blob;
    assert_int_equal(esdm__blob_encode(&none, ESDM_TYPE_INT8, 1, 1, raw, 1000, &blob, NULL),
                     ESDM_OK);
    uint32_t head = (uint32_t) blob.head_bytes;
    assert_int_equal(esdm__outline_bytes(blob.head, head, head + 1000), 0);
    assert_int_equal(esdm__outline_bytes(blob.head, head, head - 1), 0);
    assert_int_equal(esdm__outline_bytes(blob.head, 63, 1 << 20), 0);
    blob.head[10] = 1; /* as with a codec: the head itself */
    assert_int_equal(esdm__outline_bytes(blob.head, head, (uint64_t) head * 1024 - 1), 0);
    assert_int_equal(esdm__outline_bytes(blob.head, head, (uint64_t) head * 1024), head);
    assert_int_equal(esdm__outline_bytes(blob.head, ESDM__OUTLINE_MOST + 1, UINT64_MAX), 0);
    uint8_t copy[256];
    esdm__outline_make(blob.head, head, copy);
    assert_memory_equal(copy, blob.head, head);
    esdm__blob_clear(&blob);
    free(raw);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outline__verifies_groups_of_raw_blocks),
        cmocka_unit_test(test_outline__stays_small),
    };
    return cmocka_run_group_tests_name("codec.outline", tests, NULL, NULL);
}
