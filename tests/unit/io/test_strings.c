/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Strings as bytes of a fragment. */
#include "io/encode/strings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
test_strings__round_trip(void **state)
{
    (void) state;
    const char *texts[] = {"",
                           "Temperatur \xc2\xb0"
                           "C",
                           NULL, "x"};
    esdm__buffer out;
    esdm__buffer_init(&out);
    bool has_null = false;
    assert_int_equal(ESDM_OK, esdm__strings_encode(texts, 4, &out, &has_null, NULL));
    assert_true(has_null);
    esdm__strings_view view;
    assert_int_equal(ESDM_OK, esdm__strings_open(out.data, out.bytes, 4, &view, NULL));
    for (size_t i = 0; i < 4; i++) {
        char *copy = esdm__strings_dup(&view, i);
        if (texts[i] == NULL) {
            assert_ptr_equal(copy, esdm__text_null);
            continue;
        }
        assert_string_equal(texts[i], copy);
        free(copy);
    }
    esdm__strings_close(&view);
    esdm__buffer_clear(&out);
}

static void
test_strings__lengths_that_do_not_add_up_are_damage(void **state)
{
    (void) state;
    const char *texts[] = {"abc", "de"};
    esdm__buffer out;
    esdm__buffer_init(&out);
    bool has_null = true;
    assert_int_equal(ESDM_OK, esdm__strings_encode(texts, 2, &out, &has_null, NULL));
    assert_false(has_null);
    esdm__strings_view view;
    esdm_error err = {0};
    assert_int_equal(ESDM_ECORRUPT, esdm__strings_open(out.data, out.bytes - 1, 2, &view, &err));
    assert_int_equal(ESDM_ECORRUPT, err.status);
    assert_int_equal(ESDM_ECORRUPT, esdm__strings_open(out.data, out.bytes, 100, &view, &err));
    assert_int_equal(ESDM_ECORRUPT,
                     esdm__strings_open(out.data, out.bytes, UINT64_MAX / 2, &view, &err));
    out.data[3] = 0xff; /* a length of 4 GiB */
    assert_int_equal(ESDM_ECORRUPT, esdm__strings_open(out.data, out.bytes, 2, &view, &err));
    esdm__buffer_clear(&out);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings__round_trip),
        cmocka_unit_test(test_strings__lengths_that_do_not_add_up_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
