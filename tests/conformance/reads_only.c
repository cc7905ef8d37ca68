/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The codec fpzip as it is built without libfpzip: it reads, and says that it cannot write.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/chain.h"
#include "esdm/types.h"
#include "plugin/registry.h"

enum { ROWS = 4, COLUMNS = 8, NUMBERS = ROWS * COLUMNS };

/* What the whole plug-in, with libfpzip 1.3, makes of the numbers below. */
static const uint8_t stored[] = {
    0x01, 0x00, 0x00, 0x00, 0x45, 0x00, 0x00, 0x00, 0xf2, 0x44, 0x21, 0x44, 0xc0, 0x61,
    0xa6, 0x32, 0xf8, 0x1f, 0x08, 0x17, 0xd9, 0xf2, 0xe0, 0x9e, 0x57, 0xfa, 0x77, 0x45,
    0x39, 0xad, 0x3f, 0x14, 0x03, 0x24, 0x90, 0x14, 0xe8, 0x72, 0xb4, 0xfa, 0x28, 0x1b,
    0x18, 0xe1, 0xb1, 0x1b, 0x0a, 0x1a, 0x5f, 0xc8, 0x5e, 0x38, 0x57, 0xbd, 0x8d, 0x8d,
    0xda, 0x70, 0x04, 0x0f, 0xf6, 0x68, 0x16, 0xb6, 0x15, 0x8b, 0x82, 0xef, 0xb4,
};

static void
fill(float numbers[NUMBERS])
{
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = 280.0f + (float) (i % COLUMNS) * 0.25f - (float) (i / COLUMNS);
    memcpy(&numbers[5], &(uint32_t){0x7fc00000}, sizeof numbers[5]);
}

static const uint64_t shape[2] = {ROWS, COLUMNS};
static const esdm_codec_input input = {
    .type = ESDM_TYPE_FLOAT32, .element_bytes = sizeof(float), .rank = 2, .shape = shape};

static const esdm_codec_plugin *
find(void)
{
    const esdm_plugin *plugin = NULL;
    esdm_error err = {0};
    if (esdm__plugin_find(ESDM_PLUGIN_CODEC, "fpzip", &plugin, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    return (const esdm_codec_plugin *) plugin;
}

static void
test_reads_only__decodes(void **state)
{
    (void) state;
    float numbers[NUMBERS];
    float back[NUMBERS];
    esdm_error err = {0};
    fill(numbers);
    if (find()->decode(&input, stored, sizeof stored, back, sizeof back, &err) != ESDM_OK)
        fail_msg("%s", err.message);
    assert_memory_equal(numbers, back, sizeof back);
    assert_ptr_equal(esdm__plugin_codec_by_id(7), find());
}

static void
test_reads_only__does_not_encode(void **state)
{
    (void) state;
    float numbers[NUMBERS];
    uint8_t out[sizeof numbers];
    size_t bytes = 42;
    esdm__chain chain = {.count = 0};
    esdm_error err = {0};
    fill(numbers);
    assert_int_equal(find()->encode(&input, numbers, sizeof numbers, out, sizeof out, &bytes, &err),
                     ESDM_ENOTSUP);
    assert_int_equal(bytes, 42);
    assert_non_null(strstr(err.message, "without libfpzip"));
    assert_int_equal(esdm__chain_parse("fpzip", &chain, &err), ESDM_OK);
    assert_int_equal(esdm__chain_check_writes(&chain, "fpzip", &err), ESDM_ENOTSUP);
    assert_non_null(strstr(err.message, "codec chain 'fpzip': 'fpzip' reads"));
    assert_int_equal(esdm__chain_parse("shuffle+lz4", &chain, &err), ESDM_OK);
    assert_int_equal(esdm__chain_check_writes(&chain, "shuffle+lz4", &err), ESDM_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_only__decodes),
        cmocka_unit_test(test_reads_only__does_not_encode),
    };
    return cmocka_run_group_tests_name("reads_only", tests, NULL, NULL);
}
