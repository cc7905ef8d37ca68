/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Parts of the head of an uncompressed blob agree with the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/raw_blocks.h"
#include "esdm/types.h"

static const esdm__chain none;

static void
check_blob(size_t raw_bytes)
{
    uint8_t *raw = malloc(raw_bytes);
    for (size_t i = 0; i < raw_bytes; i++)
        raw[i] = (uint8_t) (i * 7 + (i >> 9));
    esdm__blob blob;
    esdm__blob_view view;
    esdm__blocks blocks;
    assert_int_equal(esdm__blob_encode(&none, ESDM_TYPE_INT8, 1, 1, raw, raw_bytes, &blob, NULL),
                     ESDM_OK);
    assert_int_equal(esdm__blob_parse(blob.head, blob.head_bytes, NULL, &view, NULL), ESDM_OK);
    assert_int_equal(esdm__raw_blocks_init(raw_bytes, (uint32_t) blob.head_bytes, &blocks, NULL),
                     ESDM_OK);
    assert_int_equal(blocks.blocks, view.blocks);
    assert_int_equal(esdm__blocks_start(&blocks, blocks.blocks), raw_bytes);
    for (uint32_t b = 0; b < blocks.blocks; b++) {
        uint64_t offset, bytes;
        esdm__blob_range(&view, 0, b, 1, &offset, &bytes);
        assert_int_equal(esdm__blocks_start(&blocks, b), offset);
        assert_int_equal(esdm__blocks_start(&blocks, b + 1), offset + bytes);
        assert_int_equal(esdm__blocks_at(&blocks, offset), b);
        assert_int_equal(esdm__blocks_at(&blocks, offset + bytes - 1), b);
        const uint8_t *entries = view.table + (size_t) b * ESDM__BLOB_ENTRY_BYTES;
        assert_int_equal(
            esdm__raw_blocks_verify(&blocks, b, blocks.blocks - b, entries, raw + offset, NULL),
            ESDM_OK);
        raw[offset + bytes - 1] ^= 1;
        assert_int_equal(esdm__raw_blocks_verify(&blocks, b, 1, entries, raw + offset, NULL),
                         ESDM_ECORRUPT);
        raw[offset + bytes - 1] ^= 1;
        for (size_t i = 0; i < ESDM__BLOB_ENTRY_BYTES; i++) { /* every byte of the table counts */
            uint8_t entry[ESDM__BLOB_ENTRY_BYTES];
            memcpy(entry, entries, sizeof entry);
            entry[i] ^= 0x80;
            assert_int_equal(esdm__raw_blocks_verify(&blocks, b, 1, entry, raw + offset, NULL),
                             ESDM_ECORRUPT);
        }
    }
    esdm__blob_clear(&blob);
    free(raw);
}

static void
test_raw_blocks__agree_with_the_whole_head(void **state)
{
    (void) state;
    static const size_t sizes[] = {1, 64, 4095, 4096, 4097, 8192, 8193, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_blob(sizes[i]);
}

static void
test_raw_blocks__impossible_heads_are_corrupt(void **state)
{
    (void) state;
    esdm__blocks blocks;
    memset(&blocks, 0x5a, sizeof blocks);
    const esdm__blocks untouched = blocks;
    static const struct {
        uint64_t raw_bytes;
        uint32_t head_bytes;
    } cases[] = {{100, 0}, {100, 64}, {100, 81}, {0, 80}, {100, 64 + 16 * 50}, {7, UINT32_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            esdm__raw_blocks_init(cases[i].raw_bytes, cases[i].head_bytes, &blocks, NULL),
            ESDM_ECORRUPT);
    assert_memory_equal(&blocks, &untouched, sizeof blocks);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_raw_blocks__agree_with_the_whole_head),
        cmocka_unit_test(test_raw_blocks__impossible_heads_are_corrupt),
    };
    return cmocka_run_group_tests_name("codec.raw_blocks", tests, NULL, NULL);
}
