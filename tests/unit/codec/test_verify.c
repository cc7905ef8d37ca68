/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The check of decoded numbers against one that is written apart, and all kernels of it and
 *  of `bitround` against each other. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../backends/codec/bitround/round.h"
#include "codec/verify.h"
#include "codec/verify_kernels.h"
#include "support/accuracy_check.h"
#include "support/number_fields.h"

#define ELEMENTS 1003u

static const esdm_codec_accuracy plain = {.absolute = INFINITY,
                                          .relative = INFINITY,
                                          .exact_below = -INFINITY,
                                          .exact_above = INFINITY,
                                          .sum_bound = INFINITY};

static esdm_codec_accuracy
accuracy(size_t which)
{
    static const double absolutes[] = {0.01, INFINITY, 0.5, 1, 1e30};
    static const double relatives[] = {INFINITY, 0.01, 0.001, 0x1p-8, INFINITY};
    static const double finests[] = {0, 0, 0.1, 0, 0};
    esdm_codec_accuracy a = plain;
    a.absolute = absolutes[which % 5];
    a.relative = relatives[which % 5];
    a.finest = finests[which % 5];
    if (which % 3 == 1)
        a.exact_below = 265;
    if (which % 3 == 2)
        a.exact_above = 290;
    return a;
}

/* Changes of about the bounds: some within, some exactly at them, some beyond. */
static void
disturb(esdm_type type, const void *raw, void *decoded, uint64_t *random)
{
    static const double changes[] = {0, 0.005, 0.01, 0.0100001, -0.5, 0.5000001, 1, -1, 2, 0x1p-8};
    size_t bytes = field_type_bytes(type);
    memcpy(decoded, raw, ELEMENTS * bytes);
    for (size_t i = 0; i < ELEMENTS; i++) {
        double change = changes[field_random(random) % 10];
        char *at = (char *) decoded + i * bytes;
        if (field_random(random) % 4 != 0)
            continue;
        double value = (double) accuracy_value(type, at);
        field_put(type, field_random(random) % 2 == 0 ? value + change : value * (1 + change / 10),
                  at);
    }
}

/* One number at a time, so that each verdict is compared. */
static void
test_verify__agrees_with_another_check(void **state)
{
    (void) state;
    uint64_t random = 1;
    uint8_t *raw = malloc(ELEMENTS * 8);
    uint8_t *decoded = malloc(ELEMENTS * 8);
    uint64_t missed = 0;
    assert_true(raw != NULL && decoded != NULL);
    for (size_t t = 0; t < FIELD_TYPES; t++) {
        esdm_type type = field_types[t];
        size_t bytes = field_type_bytes(type);
        for (field_kind kind = 0; kind < FIELD_KINDS; kind++) {
            field_make(kind, type, ELEMENTS, raw);
            for (size_t which = 0; which < 15; which++) {
                esdm_codec_accuracy a = accuracy(which);
                esdm__accuracy_facts facts = {0};
                disturb(type, raw, decoded, &random);
                uint8_t fill[16];
                memcpy(fill, decoded + 17 * bytes, bytes);
                memcpy(fill + bytes, raw + 500 * bytes, bytes);
                a.exact_values = fill;
                a.exact_count = (uint32_t) (which % 3);
                for (size_t i = 0; i < ELEMENTS; i++) {
                    const uint8_t *x = raw + i * bytes;
                    const uint8_t *y = decoded + i * bytes;
                    bool kept = esdm__accuracy_verify(&a, type, x, y, 1, &facts);
                    assert_int_equal(kept, accuracy_point_kept(&a, type, bytes, x, y));
                    missed += !kept;
                }
                bool all =
                    accuracy_first_violation(&a, type, bytes, raw, decoded, ELEMENTS) == ELEMENTS;
                assert_int_equal(esdm__accuracy_verify(&a, type, raw, decoded, ELEMENTS, &facts),
                                 all);
            }
        }
    }
    assert_true(missed > 1000);
    free(raw);
    free(decoded);
}

static void
test_verify__a_changed_sum_is_found(void **state)
{
    (void) state;
    float raw[100];
    float decoded[100];
    esdm_codec_accuracy a = plain;
    esdm__accuracy_facts facts = {0};
    a.absolute = 1;
    for (size_t i = 0; i < 100; i++) {
        raw[i] = (float) i;
        decoded[i] = raw[i] + 0.25f;
    }
    a.sum_bound = 25;
    assert_true(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT32, raw, decoded, 100, &facts));
    assert_true(facts.sum_change == 25 && facts.largest_error == 0.25);
    a.sum_bound = 24.99;
    assert_false(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT32, raw, decoded, 100, &facts));
    assert_true(facts.points == 100); /* as they were */
    size_t points = 0;
    assert_true(esdm__accuracy_magnitude(&a, ESDM_TYPE_FLOAT32, raw, 100, &points) == 4950);
    assert_true(points > 0 && points <= 100);
}

/* Over the numbers that may be off: others would make the mean smaller. */
static void
test_verify__the_mean_square_of_errors_is_found(void **state)
{
    (void) state;
    static const double scales[] = {1e-300, 1, 1e300}; /* whose squares are no doubles */
    esdm_codec_accuracy a = plain;
    for (size_t k = 0; k < 3; k++) {
        double raw[100];
        double decoded[100];
        const double fill = -1;
        a.absolute = scales[k];
        a.exact_values = &fill;
        a.exact_count = 1;
        for (size_t i = 0; i < 100; i++) {
            raw[i] = i < 60 ? (double) i * scales[k] : i < 90 ? fill : (double) NAN;
            decoded[i] = i % 2 == 0 && i < 60 ? raw[i] + 0.5 * scales[k] : raw[i];
        }
        assert_true(esdm__accuracy_verify_noise(&a, ESDM_TYPE_FLOAT64, raw, decoded, 100,
                                                0.3536 * scales[k]));
        assert_false(esdm__accuracy_verify_noise(&a, ESDM_TYPE_FLOAT64, raw, decoded, 100,
                                                 0.3535 * scales[k]));
        assert_true(
            esdm__accuracy_verify_noise(&a, ESDM_TYPE_FLOAT64, raw, raw, 100, 0.1 * scales[k]));
    }
    const int16_t before[4] = {1, 2, 3, -30000};
    const int16_t after[4] = {2, 2, 3, -30001};
    a.exact_count = 0;
    a.absolute = 1;
    assert_true(esdm__accuracy_verify_noise(&a, ESDM_TYPE_INT16, before, after, 4, 0.7072));
    assert_false(esdm__accuracy_verify_noise(&a, ESDM_TYPE_INT16, before, after, 4, 0.7071));
}

/* The sign of a zero is covered by a bound, also where another number needs a closer look; without
 * one it is kept. */
static void
test_verify__a_bound_covers_the_sign_of_zero(void **state)
{
    (void) state;
    static const double before[16] = {-0.0, 1.0, 0.0};
    static const double tie[16] = {0.0, 1.5, -0.0};
    static const double same[16] = {0.0, 1.0, -0.0};
    const double zero = 0.0;
    for (size_t n = 3; n <= 16; n += 13) { /* one by one, and in vectors */
        esdm_codec_accuracy a = plain;
        esdm__accuracy_facts facts = {0};
        a.absolute = 0.5;
        assert_true(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT64, before, tie, n, &facts));
        assert_true(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT64, before, same, n, &facts));
        a.exact_values = &zero; /* unless one of the two is to be kept */
        a.exact_count = 1;
        assert_false(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT64, before, tie, n, &facts));
        assert_false(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT64, before, same, n, &facts));
        a = plain;
        a.relative = 0.5;
        assert_false(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT64, before, tie, n, &facts));
        assert_false(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT64, before, same, n, &facts));
        a.finest = 0x1p-1074;
        assert_true(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT64, before, tie, n, &facts));
        assert_true(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT64, before, same, n, &facts));
    }
}

static size_t
looks_here(const esdm__looks **list)
{
    size_t n = 0;
    list[n++] = &esdm__looks_base;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        list[n++] = &esdm__looks_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        list[n++] = &esdm__looks_avx512;
#endif
    return n;
}

/* Runs of numbers without a new largest error are glanced at in single precision: what is reported
 * is exact all the same, and one number that is off is found wherever it lies. */
static void
test_verify__many_numbers_are_seen_exactly(void **state)
{
    (void) state;
    enum { MANY = 20011 };
    const double bound = 0.125;
    static float raw[MANY];
    static float decoded[MANY];
    esdm_codec_accuracy a = plain;
    esdm__accuracy_facts facts = {0};
    long double largest = 0;
    long double sum = 0;
    uint64_t random = 5;
    a.absolute = bound;
    for (size_t i = 0; i < MANY; i++) {
        double share = (double) (field_random(&random) % 2000001) / 1e6 - 1;
        raw[i] = (float) (220 + (double) (field_random(&random) % 1000000) / 1e4);
        if (i % 7 == 0)
            raw[i] = (float) ((double) raw[i] * 1e-4); /* differences that are rounded */
        decoded[i] = (float) ((double) raw[i] + share * bound * 0.999);
        long double change = (long double) decoded[i] - (long double) raw[i];
        largest = fabsl(change) > largest ? fabsl(change) : largest;
        sum += change;
    }
    assert_true(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT32, raw, decoded, MANY, &facts));
    assert_true((long double) facts.largest_error == largest);
    assert_true((long double) facts.largest_share == largest / (long double) bound);
    assert_true(facts.points == MANY && facts.exact_points == 0);
    assert_true(fabsl((long double) facts.sum_change - sum) < 1e-6L * (long double) bound * MANY);
    for (size_t k = 0; k < 2000; k++) {
        size_t at = field_random(&random) % MANY;
        float before = raw[at];
        float after = decoded[at];
        static const float odd[][2] = {{200, 200.12502f}, {200, 199.87498f},     {1, NAN},
                                       {NAN, 1},          {INFINITY, 1},         {1, -INFINITY},
                                       {3e38f, -3e38f},   {0.0625f, -0.0625004f}};
        raw[at] = odd[k % 8][0];
        decoded[at] = odd[k % 8][1];
        esdm__accuracy_facts none = {0};
        assert_false(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT32, raw, decoded, MANY, &none));
        decoded[at] = raw[at]; /* infinite and no number, too */
        assert_true(esdm__accuracy_verify(&a, ESDM_TYPE_FLOAT32, raw, decoded, MANY, &none));
        assert_int_equal(none.exact_points, !isfinite(raw[at]));
        raw[at] = before;
        decoded[at] = after;
    }
}

static size_t
rounders_here(const rounder **list)
{
    size_t n = 0;
    list[n++] = &bitround__base;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        list[n++] = &bitround__avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        list[n++] = &bitround__avx512;
#endif
    return n;
}

static void
test_verify__all_kernels_give_the_same(void **state)
{
    (void) state;
    enum { N = 1000 };
    const esdm__looks *looks[3];
    const rounder *rounders[3];
    size_t nlooks = looks_here(looks);
    size_t nrounders = rounders_here(rounders);
    uint64_t random = 9;
    static uint8_t raw[ELEMENTS * 8];
    static uint8_t decoded[ELEMENTS * 8];
    static uint8_t rounded[2][ELEMENTS * 8];
    for (int doubles = 0; doubles < 2; doubles++) {
        esdm_type type = doubles ? ESDM_TYPE_FLOAT64 : ESDM_TYPE_FLOAT32;
        for (field_kind kind = 0; kind < FIELD_KINDS; kind++) {
            field_make(kind, type, ELEMENTS, raw);
            for (size_t which = 0; which < 15; which++) {
                esdm_codec_accuracy a = accuracy(which);
                esdm__look first;
                disturb(type, raw, decoded, &random);
                memset(&first, 0, sizeof first);
                (doubles ? looks[0]->doubles : looks[0]->singles)(&a, raw, decoded, N, &first);
                for (size_t i = 1; i < nlooks; i++) {
                    esdm__look other;
                    memset(&other, 0, sizeof other);
                    (doubles ? looks[i]->doubles : looks[i]->singles)(&a, raw, decoded, N, &other);
                    if (!isnan(first.sum_change)) /* whose sign is anything */
                        assert_memory_equal(&first, &other, sizeof first);
                }
                for (size_t i = 0; i < nlooks && !doubles; i++) {
                    esdm__look other;
                    memset(&other, 0, sizeof other);
                    looks[i]->glance(0.25f, (const float *) (const void *) raw,
                                     (const float *) (const void *) decoded, N - N % 16, &other);
                    if (i == 0)
                        first = other;
                    if (!isnan(first.sum_change))
                        assert_memory_equal(&first, &other, sizeof first);
                }
                const limits l = {a.absolute, isinf(a.relative) ? 0 : a.relative,
                                  isinf(a.relative) ? INFINITY : a.finest, a.exact_below,
                                  a.exact_above};
                (doubles ? rounders[0]->doubles : rounders[0]->singles)(&l, raw, rounded[0], N);
                for (size_t i = 1; i < nrounders; i++) {
                    (doubles ? rounders[i]->doubles : rounders[i]->singles)(&l, raw, rounded[1], N);
                    assert_memory_equal(rounded[0], rounded[1], (doubles ? 8u : 4u) * N);
                }
            }
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verify__agrees_with_another_check),
        cmocka_unit_test(test_verify__a_changed_sum_is_found),
        cmocka_unit_test(test_verify__the_mean_square_of_errors_is_found),
        cmocka_unit_test(test_verify__a_bound_covers_the_sign_of_zero),
        cmocka_unit_test(test_verify__many_numbers_are_seen_exactly),
        cmocka_unit_test(test_verify__all_kernels_give_the_same),
    };
    return cmocka_run_group_tests_name("codec.verify", tests, NULL, NULL);
}
