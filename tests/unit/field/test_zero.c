/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Zeros keep their sign in the codec "field". */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "esdm/types.h"
#include "field.h"

#define ELEMENTS 1000u

/* Encodes and decodes. */
static void
round_trip(const esdm_codec_accuracy *accuracy, esdm_codec_effort effort, const double *raw,
           double *back)
{
    const uint64_t n = ELEMENTS;
    const field__block block = {
        .type = ESDM_TYPE_FLOAT64, .rank = 1, .shape = &n, .elements = ELEMENTS};
    esdm__buffer out;
    esdm__buffer_init(&out);
    assert_int_equal(field__encode(&block, accuracy, effort, raw, &out, NULL), ESDM_OK);
    assert_int_equal(field__decode(block.type, ELEMENTS, out.data, out.bytes, back, NULL), ESDM_OK);
    esdm__buffer_clear(&out);
}

/* Numbers on a grid with one negative zero: on a grid its sign is lost unless it is looked for. */
static void
make_grid(double *raw)
{
    for (size_t i = 0; i < ELEMENTS; i++)
        raw[i] = (double) (i * 7919 % 200) * 0.25;
    raw[500] = -0.0;
}

static const esdm_codec_accuracy plain = {.absolute = INFINITY,
                                          .relative = INFINITY,
                                          .exact_below = -INFINITY,
                                          .exact_above = INFINITY,
                                          .sum_bound = INFINITY};

/* Half of the least bound that there is rounds to 0: then nothing may change. */
static void
test_zero__a_bound_of_zero_keeps_its_sign(void **state)
{
    (void) state;
    double raw[ELEMENTS];
    double back[ELEMENTS];
    esdm_codec_accuracy a = plain;
    a.absolute = 0;
    make_grid(raw);
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
        round_trip(&a, effort, raw, back);
        assert_memory_equal(raw, back, sizeof raw);
        round_trip(NULL, effort, raw, back);
        assert_memory_equal(raw, back, sizeof raw);
    }
}

static void
test_zero__relative_bounds_keep_its_sign(void **state)
{
    (void) state;
    double raw[ELEMENTS];
    double back[ELEMENTS];
    esdm_codec_accuracy a = plain;
    a.relative = 0.01;
    make_grid(raw);
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
        round_trip(&a, effort, raw, back);
        for (size_t i = 0; i < ELEMENTS; i++)
            assert_true(fabs(back[i] - raw[i]) <= 0.01 * fabs(raw[i]));
        assert_memory_equal(raw + 500, back + 500, sizeof raw[0]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero__a_bound_of_zero_keeps_its_sign),
        cmocka_unit_test(test_zero__relative_bounds_keep_its_sign),
    };
    return cmocka_run_group_tests_name("field.zero", tests, NULL, NULL);
}
