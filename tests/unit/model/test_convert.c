/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file
 * Conversion of numbers against a slow model in 128-bit integers and long doubles, and against
 * values taken from stock netCDF-C 4.9.0.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "esdm/container.h"
#include "model/copy.h"
#include "random.h"

__extension__ typedef __int128 wide;

typedef struct integer_type {
    esdm_type type;
    wide low, high;
} integer_type;

static const integer_type integers[] = {
    {ESDM_TYPE_INT8, INT8_MIN, INT8_MAX},    {ESDM_TYPE_UINT8, 0, UINT8_MAX},
    {ESDM_TYPE_INT16, INT16_MIN, INT16_MAX}, {ESDM_TYPE_UINT16, 0, UINT16_MAX},
    {ESDM_TYPE_INT32, INT32_MIN, INT32_MAX}, {ESDM_TYPE_UINT32, 0, UINT32_MAX},
    {ESDM_TYPE_INT64, INT64_MIN, INT64_MAX}, {ESDM_TYPE_UINT64, 0, UINT64_MAX},
};
#define INTEGERS (sizeof integers / sizeof integers[0])

static uint64_t
random_bits(random_source *source)
{
    uint64_t bits = random_next(source);
    switch (random_below(source, 4)) {
    case 0:
        return bits >> random_below(source, 64);
    case 1:
        return 0 - (bits >> random_below(source, 64));
    case 2: /* around the powers of two */
        return (UINT64_C(1) << random_below(source, 64)) + random_below(source, 5) - 2;
    default:
        return bits;
    }
}

static double
random_double(random_source *source)
{
    uint64_t bits = random_bits(source);
    double value;
    switch (random_below(source, 4)) {
    case 0:
        memcpy(&value, &bits, sizeof value);
        return value;
    case 1:
        return (double) (int64_t) bits + (double) random_below(source, 3) / 2;
    case 2:
        return ldexp((double) (int64_t) bits, (int) random_below(source, 130) - 90);
    default:
        value = ldexp(random_below(source, 2) ? 1 : -1, (int) random_below(source, 66));
        return nextafter(value, random_below(source, 2) ? INFINITY : 0);
    }
}

/* Runs one conversion of one element in a dense run, at the end of a full block. */
static void
check(esdm_type from, const void *value, esdm_type to, const void *expected, bool outside)
{
    unsigned char source[65 * 8] = {0};
    unsigned char target[65 * 8];
    size_t from_bytes = esdm_type_size(from);
    size_t to_bytes = esdm_type_size(to);
    uint64_t count = 99;
    memcpy(source + 63 * from_bytes, value, from_bytes);
    memcpy(source + 64 * from_bytes, value, from_bytes);
    assert_int_equal(esdm_convert(from, source, to, target, 65, &count, NULL), ESDM_OK);
    assert_memory_equal(target + 63 * to_bytes, expected, to_bytes);
    assert_memory_equal(target + 64 * to_bytes, expected, to_bytes);
    assert_int_equal(count, outside ? 2 : 0);
}

static wide
value_of(const integer_type *type, uint64_t bits)
{
    unsigned shift = 64 - 8 * (unsigned) esdm_type_size(type->type);
    return type->low < 0 ? (wide) ((int64_t) (bits << shift) >> shift)
                         : (wide) ((bits << shift) >> shift);
}

static void
test_convert__integers_agree_with_wide_arithmetic(void **state)
{
    random_source source = {11};
    (void) state;
    for (int round = 0; round < 60000; round++) {
        const integer_type *from = &integers[random_below(&source, INTEGERS)];
        const integer_type *to = &integers[random_below(&source, INTEGERS)];
        uint64_t bits = random_bits(&source);
        wide value = value_of(from, bits);
        uint64_t wrapped = (uint64_t) value;
        check(from->type, &bits, to->type, &wrapped, value < to->low || value > to->high);
    }
}

static void
test_convert__integers_round_to_floats_without_counts(void **state)
{
    random_source source = {12};
    (void) state;
    for (int round = 0; round < 20000; round++) {
        const integer_type *from = &integers[random_below(&source, INTEGERS)];
        uint64_t bits = random_bits(&source);
        wide value = value_of(from, bits);
        float f32 = (float) value;
        double f64 = (double) value;
        check(from->type, &bits, ESDM_TYPE_FLOAT32, &f32, false);
        check(from->type, &bits, ESDM_TYPE_FLOAT64, &f64, false);
    }
}

/* What the processor makes of a cast: the lowest integer when it does not fit. The upper half of
 * uint64 is moved down, and its first bit turned over. */
static uint64_t
cast_of(long double value, const integer_type *to)
{
    if (to->type == ESDM_TYPE_UINT64 && value >= 0x1p63L) {
        const integer_type lower = {.type = ESDM_TYPE_INT64};
        return cast_of(value - 0x1p63L, &lower) ^ (uint64_t) 1 << 63;
    }
    bool narrow = esdm_type_size(to->type) < 4 || to->type == ESDM_TYPE_INT32;
    long double limit = narrow ? 0x1p31L : 0x1p63L;
    long double whole = truncl(value);
    if (!(whole >= -limit && whole < limit))
        whole = -limit;
    return (uint64_t) (int64_t) whole;
}

static void
test_convert__floats_agree_with_the_model_of_the_processor(void **state)
{
    random_source source = {13};
    (void) state;
    for (int round = 0; round < 60000; round++) {
        const integer_type *to = &integers[random_below(&source, INTEGERS)];
        double f64 = random_double(&source);
        uint64_t expected = cast_of(f64, to);
        check(ESDM_TYPE_FLOAT64, &f64, to->type, &expected,
              f64 < (double) to->low || f64 > (double) to->high);

        float f32 = (float) f64;
        /* Stock compares int32 in double, so that 2^31 counts; the wider ones in float. */
        bool above = to->type == ESDM_TYPE_INT32 ? f32 > (double) to->high : f32 > (float) to->high;
        expected = cast_of(f32, to);
        check(ESDM_TYPE_FLOAT32, &f32, to->type, &expected, f32 < (float) to->low || above);
    }
}

static void
test_convert__doubles_overflow_to_infinite_floats(void **state)
{
    const double source[6] = {3.5e38,       -INFINITY, NAN, 1e-300, 3.4028234663852886e38,
                              3.40282351e38 /* rounds to the largest float, but is larger */};
    float target[6];
    uint64_t count;
    (void) state;
    assert_int_equal(
        esdm_convert(ESDM_TYPE_FLOAT64, source, ESDM_TYPE_FLOAT32, target, 6, &count, NULL),
        ESDM_OK);
    assert_int_equal(count, 3);
    assert_true(isinf(target[0]) && target[1] == -INFINITY && isnan(target[2]));
    assert_true(target[3] == 0.0f && target[4] == 0x1.fffffep127f && target[5] == target[4]);
}

/* Results of netCDF-C 4.9.0 (Debian 12, x86-64); uint64 is CDF-5's. */
static void
test_convert__known_values_of_stock_netcdf(void **state)
{
    const double source[7] = {NAN, INFINITY, -INFINITY, 2147483648.0, 4294967296.0, -1.5, 300.0};
    const double large[4] = {1e19, 0x1p63, 0x1.8p63, 0x1.fffffffffffffp63};
    const uint64_t large_u64[4] = {10000000000000000000u, 0x8000000000000000u, 0xc000000000000000u,
                                   0xfffffffffffff800u};
    const uint8_t u8[7] = {0, 0, 0, 0, 0, 255, 44};
    const int32_t i32[7] = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, -1, 300};
    const uint32_t u32[7] = {0, 0, 0, 0x80000000u, 0, UINT32_MAX, 300};
    const int64_t u64[7] = {INT64_MIN, 0, INT64_MIN, 2147483648, 4294967296, -1, 300};
    union {
        uint8_t u8[7];
        int32_t i32[7];
        uint32_t u32[7];
        int64_t u64[7];
    } got;
    uint64_t count;
    (void) state;
    assert_int_equal(esdm_convert(6, source, ESDM_TYPE_UINT8, &got, 7, &count, NULL), ESDM_OK);
    assert_memory_equal(&got, u8, sizeof u8);
    assert_int_equal(count, 6);
    assert_int_equal(esdm_convert(6, source, ESDM_TYPE_INT32, &got, 7, &count, NULL), ESDM_OK);
    assert_memory_equal(&got, i32, sizeof i32);
    assert_int_equal(count, 4);
    assert_int_equal(esdm_convert(6, source, ESDM_TYPE_UINT32, &got, 7, &count, NULL), ESDM_OK);
    assert_memory_equal(&got, u32, sizeof u32);
    assert_int_equal(count, 4);
    assert_int_equal(esdm_convert(6, source, ESDM_TYPE_UINT64, &got, 7, &count, NULL), ESDM_OK);
    assert_memory_equal(&got, u64, sizeof u64);
    assert_int_equal(count, 3);
    assert_int_equal(esdm_convert(6, large, ESDM_TYPE_UINT64, &got, 4, &count, NULL), ESDM_OK);
    assert_memory_equal(&got, large_u64, sizeof large_u64);
    assert_int_equal(count, 0);
}

static void
test_convert__netcdf3_has_rules_of_its_own(void **state)
{
    const float floats[4] = {0x1p32f, INFINITY, 0x1p63f, 0x1p64f};
    const double doubles[3] = {0x1p63, 1e300, -INFINITY};
    const esdm_conversion rules = ESDM_CONVERSION_NETCDF3;
    union {
        uint32_t u32[4];
        double f64[4];
        int64_t i64[4];
        uint64_t u64[4];
        float f32[4];
    } got;
    uint64_t count;
    (void) state;
    assert_int_equal(esdm_convert_as(rules, true, ESDM_TYPE_FLOAT32, floats, ESDM_TYPE_UINT32,
                                     got.u32, 1, &count, NULL),
                     ESDM_OK);
    assert_int_equal(count, 1);
    assert_int_equal(esdm_convert_as(rules, true, ESDM_TYPE_FLOAT32, floats, ESDM_TYPE_FLOAT64,
                                     got.f64, 4, &count, NULL),
                     ESDM_OK);
    assert_int_equal(count, 1);
    assert_true(isinf(got.f64[1]));
    assert_int_equal(esdm_convert_as(rules, false, ESDM_TYPE_FLOAT32, floats, ESDM_TYPE_FLOAT64,
                                     got.f64, 4, &count, NULL),
                     ESDM_OK);
    assert_int_equal(count, 0);
    assert_int_equal(esdm_convert_as(rules, false, ESDM_TYPE_FLOAT32, floats + 2, ESDM_TYPE_UINT64,
                                     got.u64, 2, &count, NULL),
                     ESDM_OK);
    assert_int_equal(count, 0);
    assert_true(got.u64[0] == (uint64_t) 1 << 63 && got.u64[1] == UINT64_MAX);
    assert_int_equal(esdm_convert_as(rules, false, ESDM_TYPE_FLOAT64, doubles, ESDM_TYPE_INT64,
                                     got.i64, 1, &count, NULL),
                     ESDM_OK);
    assert_true(got.i64[0] == INT64_MAX && count == 0);
    assert_int_equal(esdm_convert_as(rules, false, ESDM_TYPE_FLOAT64, doubles, ESDM_TYPE_FLOAT32,
                                     got.f32, 3, &count, NULL),
                     ESDM_OK);
    assert_int_equal(count, 2);
    assert_true(got.f32[1] == FLT_MAX && got.f32[2] == -FLT_MAX);
}

static void
test_convert__netcdf3_keeps_memory_where_a_real_does_not_fit(void **state)
{
    const float source[4] = {1.5f, 1e30f, -300.0f, 7.0f};
    const int8_t expected[4] = {1, 77, 77, 7};
    const esdm_type form = ESDM_TYPE_INT8;
    int8_t got[4] = {77, 77, 77, 77};
    char apart[1 + sizeof source];
    uint64_t count;
    (void) state;
    assert_int_equal(esdm_convert_as(ESDM_CONVERSION_NETCDF3, false, ESDM_TYPE_FLOAT32, source,
                                     form, got, 4, &count, NULL),
                     ESDM_OK);
    assert_int_equal(count, 2);
    assert_memory_equal(got, expected, sizeof got);
    memcpy(apart + 1, source, sizeof source); /* without alignment */
    memset(got, 77, sizeof got);
    assert_int_equal(esdm_convert_as(ESDM_CONVERSION_NETCDF3, false, ESDM_TYPE_FLOAT32, apart + 1,
                                     form, got, 4, &count, NULL),
                     ESDM_OK);
    assert_memory_equal(got, expected, sizeof got);
    assert_int_equal(esdm_convert_as(ESDM_CONVERSION_NETCDF3, true, ESDM_TYPE_FLOAT32, source, form,
                                     got, 4, &count, NULL),
                     ESDM_OK);
    assert_int_equal(got[1], 0); /* stored as by netCDF-4 */
}

static void
test_convert__text_does_not_convert_to_numbers(void **state)
{
    const char text[4] = "abc";
    int32_t number = 5;
    uint64_t count = 8;
    esdm_error err;
    (void) state;
    assert_int_equal(esdm_convert(ESDM_TYPE_CHAR, text, ESDM_TYPE_INT32, &number, 1, &count, &err),
                     ESDM_EINVAL);
    assert_string_equal(err.message, "type char (2) does not convert to int32 (4)");
    assert_int_equal(esdm_convert(77, text, 77, &number, 1, &count, &err), ESDM_EINVAL);
    assert_int_equal(esdm_convert(ESDM_TYPE_INT8, NULL, ESDM_TYPE_INT32, &number, 1, &count, &err),
                     ESDM_EINVAL);
    assert_int_equal(number, 5);
    assert_int_equal(count, 8);
}

static void
test_convert__equal_types_copy_bits(void **state)
{
    const uint64_t source[2] = {0x7FF0000000000001, 0xFFF8DEADBEEF0001};
    uint64_t target[2];
    uint64_t count;
    (void) state;
    assert_int_equal(
        esdm_convert(ESDM_TYPE_FLOAT64, source, ESDM_TYPE_FLOAT64, target, 2, &count, NULL),
        ESDM_OK);
    assert_memory_equal(target, source, sizeof source);
    assert_int_equal(count, 0);
    assert_int_equal(esdm_convert(ESDM_TYPE_CHAR, "ab", ESDM_TYPE_CHAR, target, 0, NULL, NULL),
                     ESDM_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convert__integers_agree_with_wide_arithmetic),
        cmocka_unit_test(test_convert__integers_round_to_floats_without_counts),
        cmocka_unit_test(test_convert__floats_agree_with_the_model_of_the_processor),
        cmocka_unit_test(test_convert__doubles_overflow_to_infinite_floats),
        cmocka_unit_test(test_convert__known_values_of_stock_netcdf),
        cmocka_unit_test(test_convert__netcdf3_has_rules_of_its_own),
        cmocka_unit_test(test_convert__netcdf3_keeps_memory_where_a_real_does_not_fit),
        cmocka_unit_test(test_convert__text_does_not_convert_to_numbers),
        cmocka_unit_test(test_convert__equal_types_copy_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
