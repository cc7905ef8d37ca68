/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The bytes of a seal. */
#include "base/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char values[] = "what was encoded";

static void
make_sealed(uint8_t sealed[20])
{
    memset(sealed, 0xA5, 20);
    esdm__seal_write(sealed, 7, 20, values, sizeof values);
}

static void
test_seal__head_has_these_bytes(void **state)
{
    (void) state;
    uint8_t sealed[20];
    make_sealed(sealed);
    assert_memory_equal(sealed, "\x01\x07\0\0\x14\0\0\0", 8);
    assert_memory_equal(sealed + 16, "\xA5\xA5\xA5\xA5", 4);
}

static void
test_seal__tells_its_variant_and_knows_the_values(void **state)
{
    (void) state;
    uint8_t sealed[20];
    uint8_t variant = 0;
    esdm_error err = {0};
    make_sealed(sealed);
    assert_int_equal(esdm__seal_read("x", sealed, 20, &variant, &err), ESDM_OK);
    assert_int_equal(variant, 7);
    assert_int_equal(esdm__seal_check("x", sealed, values, sizeof values, &err), ESDM_OK);
    assert_int_equal(esdm__seal_check("x", sealed, values, sizeof values - 1, &err), ESDM_ECORRUPT);
    assert_string_equal(err.message, "x: what was decoded is not what was encoded");
}

static void
test_seal__refuses_missing_bytes_and_other_versions(void **state)
{
    (void) state;
    uint8_t sealed[20];
    uint8_t variant = 99;
    esdm_error err = {0};
    make_sealed(sealed);
    assert_int_equal(esdm__seal_read("x", sealed, 19, &variant, &err), ESDM_ECORRUPT);
    assert_string_equal(err.message, "x: 19 bytes are not all, or too many");
    assert_int_equal(esdm__seal_read("x", sealed, 15, &variant, &err), ESDM_ECORRUPT);
    assert_int_equal(esdm__seal_read("x", sealed, 0, &variant, &err), ESDM_ECORRUPT);
    sealed[0] = 2;
    assert_int_equal(esdm__seal_read("x", sealed, 20, &variant, &err), ESDM_ENOTSUP);
    assert_int_equal(variant, 99);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seal__head_has_these_bytes),
        cmocka_unit_test(test_seal__tells_its_variant_and_knows_the_values),
        cmocka_unit_test(test_seal__refuses_missing_bytes_and_other_versions),
    };
    return cmocka_run_group_tests_name("base.seal", tests, NULL, NULL);
}
