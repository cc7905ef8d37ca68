/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Numbers that were read are written again under the same statement: they keep their bits, so that
 * they never get further from what they were first. And a bound of just so many decimals costs no
 * more than a little less. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "encode.h"
#include "esdm/types.h"
#include "some_cases.h"

static const uint64_t shape[] = {4, 48, 96};
#define ELEMENTS ((size_t) 4 * 48 * 96)

/* Every how many-th of the bounds is tried, and how often it is written again: sanitizers make the
 * codec slow. */
enum { EVERY = 3 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TURNS = 1, SMALL_EVERY = 10 };
#else
enum { TURNS = 3, SMALL_EVERY = 4 };
#endif

/* Smooth, from `low` up to nearly `high`, with noise. Owned. */
static float *
make_values(double low, double high)
{
    float *values = malloc(ELEMENTS * sizeof *values);
    uint32_t random = 7;
    assert_non_null(values);
    for (size_t i = 0; i < ELEMENTS; i++) {
        double x = (double) (i % 96);
        double y = (double) (i / 96 % 48);
        random = random * 1664525u + 1013904223u;
        double wave = 0.5 + 0.25 * sin(x / 9) + 0.2 * cos(y / 7 + (double) (i / 4608));
        wave += 0.02 * ((double) (random >> 8) * 0x1p-24);
        values[i] = (float) (low + (high - low) * wave);
    }
    return values;
}

/* Bytes; `values` become what is read. */
static size_t
store_shaped(const esdm_codec_accuracy *accuracy, esdm_codec_effort effort, uint32_t rank,
             const uint64_t *extent, float *values)
{
    field__block block = {
        .type = ESDM_TYPE_FLOAT32, .rank = rank, .shape = extent, .elements = extent[0]};
    esdm__buffer out;
    esdm_error err = {0};
    esdm__buffer_init(&out);
    for (uint32_t i = 1; i < rank; i++)
        block.elements *= extent[i];
    assert_int_equal(field__encode(&block, accuracy, effort, values, &out, &err), ESDM_OK);
    size_t bytes = out.bytes;
    assert_int_equal(
        field__decode(ESDM_TYPE_FLOAT32, block.elements, out.data, out.bytes, values, &err),
        ESDM_OK);
    esdm__buffer_clear(&out);
    return bytes;
}

static size_t
store(const esdm_codec_accuracy *accuracy, esdm_codec_effort effort, float *values)
{
    return store_shaped(accuracy, effort, 3, shape, values);
}

static esdm_codec_accuracy
bounds(double absolute, double relative, double sum)
{
    return (esdm_codec_accuracy){.absolute = absolute,
                                 .relative = relative,
                                 .exact_below = -INFINITY,
                                 .exact_above = INFINITY,
                                 .sum_bound = sum};
}

static void
expect_same(const esdm_codec_accuracy *accuracy, esdm_codec_effort effort, float *values)
{
    float before[ELEMENTS];
    (void) store(accuracy, effort, values);
    for (int turn = 0; turn < TURNS; turn++) {
        memcpy(before, values, sizeof before);
        (void) store(accuracy, effort, values);
        assert_memory_equal(values, before, sizeof before);
    }
}

static void
test_again__numbers_keep_their_bits(void **state)
{
    /* The smallest and the largest number are on both sides of powers of two, also of what is read.
     */
    static const double ends[][2] = {
        {0.9, 4.04}, {220, 310}, {-1, 1.07}, {1e-6, 2.1e-3}, {-70, 64.4}};
    static const double shares[] = {0.08, 0.01, 1e-3, 1e-4, 2e-5, 4e-6};
    const size_t every = (size_t) each_nth(EVERY);
    (void) state;
    for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
        for (size_t s = (size_t) first_of((int) every, e); s < sizeof shares / sizeof shares[0];
             s += every) {
            double span = ends[e][1] - ends[e][0];
            const esdm_codec_accuracy all[] = {
                bounds(shares[s] * span, INFINITY, INFINITY),
                bounds(INFINITY, shares[s], INFINITY),
                bounds(shares[s] * span, shares[s] / 2, INFINITY),
                bounds(shares[s] * span, INFINITY, 0.01 * span),
                bounds(INFINITY, shares[s], 0.01 * span),
            };
            for (size_t a = 0; a < sizeof all / sizeof all[0]; a++) {
                for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE;
                     effort++) {
                    float *values = make_values(ends[e][0], ends[e][1]);
                    expect_same(&all[a], effort, values);
                    free(values);
                }
            }
        }
    }
}

/* Small blocks, of which some numbers are 0: a few numbers lie on steps of any kind by chance, and
 * what stands apart before it is rounded may not do so behind. */
enum { SMALL_ROWS = 12, SMALL_COLUMNS = 56 };

static double
draw(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return (double) (*random >> 8) * 0x1p-24;
}

static void
make_small(uint32_t *random, double low, double span, uint64_t extent[2], float *values)
{
    double zeros = draw(random) < 0.5 ? draw(random) : 0;
    double length = 3 + 12 * draw(random);
    double noise = draw(random) < 0.5 ? 0 : 0.05 * draw(random);
    extent[0] = 1 + (uint64_t) (draw(random) * SMALL_ROWS);
    extent[1] = 16 + (uint64_t) (draw(random) * (SMALL_COLUMNS - 16));
    for (size_t i = 0; i < extent[0] * extent[1]; i++) {
        double x = (double) (i % extent[1]);
        double wave = 0.5 + 0.3 * sin(x / length) + 0.2 * cos((double) (i / extent[1]) / 5);
        bool zero = x < zeros * (double) extent[1];
        values[i] = zero ? 0 : (float) (low + span * (wave + noise * draw(random)));
    }
}

static void
test_again__small_blocks_keep_their_bits(void **state)
{
    const int every = each_nth(SMALL_EVERY);
    (void) state;
    for (int k = first_of(every, 0); k < 24000; k += every) {
        uint32_t random = 7 + (uint32_t) k * 2654435761u;
        esdm_codec_effort effort = (esdm_codec_effort) (ESDM_EFFORT_FAST + k % 3);
        float first[SMALL_ROWS * SMALL_COLUMNS], once[SMALL_ROWS * SMALL_COLUMNS];
        double low = draw(&random) < 0.3 ? pow(10, draw(&random) * 8 - 4) : 0;
        double span = pow(10, draw(&random) * 6 - 3);
        double share = pow(10, -1 - 4 * draw(&random));
        bool relative = draw(&random) < 0.3;
        const esdm_codec_accuracy accuracy =
            bounds(relative ? INFINITY : share * span, relative ? share : INFINITY, INFINITY);
        uint64_t extent[2];
        make_small(&random, low, span, extent, first);
        size_t n = extent[0] * extent[1];
        memcpy(once, first, n * sizeof once[0]);
        (void) store_shaped(&accuracy, effort, 2, extent, once);
        for (size_t i = 0; i < n; i++) {
            double bound = fmin(accuracy.absolute, accuracy.relative * fabs((double) first[i]));
            assert_true(fabs((double) once[i] - (double) first[i]) <= bound);
        }
        memcpy(first, once, n * sizeof once[0]);
        (void) store_shaped(&accuracy, effort, 2, extent, once);
        if (memcmp(first, once, n * sizeof once[0]) != 0)
            fail_msg("%d: effort %d changes %zu numbers once more", k, (int) effort, n);
    }
}

/* Whole numbers have steps of their own, which some miss by a tie: these are kept exactly, and lie
 * on no fine steps when all are read again. */
static void
test_again__whole_numbers_keep_their_bits(void **state)
{
    const int every = each_nth(EVERY);
    (void) state;
    for (int bound = 110 + 10 * first_of(every, 0); bound < 210; bound += 10 * every) {
        const esdm_codec_accuracy accuracy = bounds(bound, INFINITY, INFINITY);
        float *values = make_values(-7117, 3962);
        for (size_t i = 0; i < ELEMENTS; i++)
            values[i] = rintf(values[i]);
        expect_same(&accuracy, ESDM_EFFORT_ARCHIVE, values);
        free(values);
    }
}

/* A bound that follows from the values may be an eighth of an octave less or more the next time
 * (two and three less, where the largest numbers were rounded to beyond `exact_above`), and half of
 * it the first time, where errors were too large on the whole. */
static void
test_again__bounds_that_follow_from_values(void **state)
{
    static const double others[] = {
        1.0905077326652577,     1 / 1.0905077326652577, 2,
        2 * 1.0905077326652577, 2 / 1.0905077326652577, 0.8408964152537145,
        0.7711054127039704};
    (void) state;
    for (size_t o = 0; o < sizeof others / sizeof others[0]; o++) {
        for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_BALANCED;
             effort++) {
            const esdm_codec_accuracy first[] = {bounds(0.03, INFINITY, INFINITY),
                                                 bounds(0.03, 0.02, INFINITY),
                                                 bounds(0.92, INFINITY, INFINITY)};
            for (size_t k = 0; k < 3; k++) {
                float before[ELEMENTS];
                esdm_codec_accuracy then = first[k];
                float *values = k < 2 ? make_values(0.3, 4.1) : make_values(210, 310);
                then.absolute *= others[o];
                (void) store(&first[k], effort, values);
                memcpy(before, values, sizeof before);
                (void) store(&then, effort, values);
                assert_memory_equal(values, before, sizeof before);
                free(values);
            }
        }
    }
}

/* Relative and absolute bounds together, of numbers many of which are where the one begins to be
 * the finer one: all of them have a step within their bound. */
static void
test_again__bounds_that_meet(void **state)
{
    static const double relatives[] = {0.06, 0.02, 5e-4};
    (void) state;
    for (size_t r = 0; r < sizeof relatives / sizeof relatives[0]; r++) {
        for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
            for (int k = 0; k < 8; k++) {
                double cap = 0.6 + 0.05 * k;
                double sum = k % 2 == 0 ? INFINITY : 1e-9;
                const esdm_codec_accuracy accuracy =
                    bounds(cap * relatives[r], relatives[r], sum * (double) ELEMENTS);
                /* Some steps to both sides of where the bounds meet. */
                float *values =
                    make_values(cap * (1 - 12 * relatives[r]), cap * (1 + 12 * relatives[r]));
                for (size_t i = 0; i < ELEMENTS; i += 3)
                    values[i] = i % 9 == 0 ? 0 : values[i] * 0.01F;
                float before[ELEMENTS];
                size_t kept = 0;
                memcpy(before, values, sizeof before);
                (void) store(&accuracy, effort, values);
                for (size_t i = 0; i < ELEMENTS; i++)
                    kept += values[i] != 0 && values[i] == before[i];
                assert_true(kept < ELEMENTS / 500);
                expect_same(&accuracy, effort, values);
                free(values);
            }
        }
    }
}

/* The same of bounds of decimals. */
static void
test_again__decimals_keep_their_bits(void **state)
{
    static const double others[] = {1.0905077326652577, 1 / 1.0905077326652577, 2};
    (void) state;
    for (size_t o = 0; o < sizeof others / sizeof others[0]; o++) {
        for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_BALANCED;
             effort++) {
            for (int k = 0; k < 6; k++) {
                float before[ELEMENTS];
                esdm_codec_accuracy accuracy = bounds(0.0101 + 0.0013 * k, INFINITY, INFINITY);
                float *values = make_values(31, 36);
                for (size_t i = 0; i < ELEMENTS; i++)
                    values[i] = (float) (rint(1000.0 * values[i]) / 1000);
                (void) store(&accuracy, effort, values);
                memcpy(before, values, sizeof before);
                accuracy.absolute *= others[o];
                (void) store(&accuracy, effort, values);
                assert_memory_equal(values, before, sizeof before);
                free(values);
            }
        }
    }
}

/* 0.01 in single precision is not always 0.01: what is rounded to the third decimal neighbour
 * misses it. */
static void
test_again__a_bound_of_decimals_costs_no_more(void **state)
{
    (void) state;
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
        const esdm_codec_accuracy loose = bounds(0.01, INFINITY, INFINITY);
        const esdm_codec_accuracy strict = bounds(0.0099, INFINITY, INFINITY);
        size_t bytes[2];
        for (int k = 0; k < 2; k++) {
            float *values = make_values(20, 38);
            for (size_t i = 0; i < ELEMENTS; i++)
                values[i] = (float) (rint(values[i] * 100.0) / 100);
            bytes[k] = store(k == 0 ? &loose : &strict, effort, values);
            free(values);
        }
        assert_true((double) bytes[0] <= 1.02 * (double) bytes[1]);
    }
}

/* Steps evade a value that must be exact where many numbers are near it: a looser bound, which more
 * of them would share a code with, takes no more bytes. */
static void
test_again__exact_values_cost_no_more(void **state)
{
    const float exact[] = {0, 2.5F};
    (void) state;
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
        size_t before = SIZE_MAX;
        for (double bound = 0.002; bound < 0.3; bound *= 2) {
            esdm_codec_accuracy accuracy = bounds(bound, INFINITY, INFINITY);
            float *values = make_values(-3, 5);
            accuracy.exact_values = exact;
            accuracy.exact_count = 2;
            for (size_t i = 0; i < ELEMENTS; i += 7)
                values[i] = 0;
            size_t bytes = store(&accuracy, effort, values);
            for (size_t i = 0; i < ELEMENTS; i++) /* none became exact */
                assert_true((values[i] != 0) == (i % 7 != 0));
            if ((double) bytes > 1.02 * (double) before)
                fail_msg("within %g %zu bytes, within the half %zu", bound, bytes, before);
            before = bytes;
            expect_same(&accuracy, effort, values);
            free(values);
        }
    }
}

/* Frequent zeros with sharp edges are left out with absolute bounds, too: to say that they must be
 * exact saves nothing. */
static void
test_again__zeros_with_edges_cost_no_more(void **state)
{
    static const float exact = 0;
    (void) state;
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
        for (double bound = 1e-4; bound < 0.02; bound *= 4) {
            size_t bytes[2];
            for (int k = 0; k < 2; k++) {
                esdm_codec_accuracy accuracy = bounds(bound, INFINITY, INFINITY);
                float *values = make_values(0.4, 1.1);
                for (size_t i = 0; i < ELEMENTS; i++)
                    values[i] = i % 96 / 7 * 5 % 11 < i / 96 % 48 / 5 ? 0 : values[i];
                accuracy.exact_values = k == 0 ? &exact : NULL;
                accuracy.exact_count = k == 0 ? 1 : 0;
                bytes[k] = store(&accuracy, effort, values);
                expect_same(&accuracy, effort, values);
                free(values);
            }
            if ((double) bytes[1] > 1.02 * (double) bytes[0])
                fail_msg("within %g %zu bytes, %zu with exact zeros", bound, bytes[1], bytes[0]);
        }
    }
}

/* Decimals that are coarser than the steps of a relative bound are kept as they are. */
static void
test_again__decimals_within_relative_bounds_cost_no_more(void **state)
{
    (void) state;
    for (esdm_codec_effort effort = ESDM_EFFORT_BALANCED; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
        size_t bytes[2];
        for (int k = 0; k < 2; k++) {
            const esdm_codec_accuracy accuracy = bounds(INFINITY, 1e-5, INFINITY);
            float *values = make_values(31, 36);
            for (size_t i = 0; i < ELEMENTS; i++)
                values[i] = (float) (rint(1000.0 * values[i]) / 1000);
            bytes[k] = store(k == 0 ? NULL : &accuracy, effort, values);
            free(values);
        }
        if ((double) bytes[1] > 1.02 * (double) bytes[0])
            fail_msg("%zu bytes, %zu without loss", bytes[1], bytes[0]);
    }
}

/* Whole numbers whose ties are as far off as the bound, with every effort. */
static void
test_again__a_bound_of_whole_numbers_costs_no_more(void **state)
{
    (void) state;
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
        for (double bound = 1; bound < 300; bound *= 2) {
            size_t bytes[2];
            for (int k = 0; k < 2; k++) {
                const esdm_codec_accuracy accuracy =
                    bounds(k == 0 ? bound * 0.98 : bound, INFINITY, INFINITY);
                float *values = make_values(-7117, 3962);
                for (size_t i = 0; i < ELEMENTS; i++)
                    values[i] = rintf(values[i]);
                bytes[k] = store(&accuracy, effort, values);
                free(values);
            }
            if ((double) bytes[1] > 1.02 * (double) bytes[0])
                fail_msg("within %g %zu bytes, within %g %zu", bound, bytes[1], 0.98 * bound,
                         bytes[0]);
        }
    }
}

/* Bytes; `values` become what is read. */
static size_t
store_integers(double bound, esdm_codec_effort effort, int32_t *values)
{
    const field__block block = {
        .type = ESDM_TYPE_INT32, .rank = 3, .shape = shape, .elements = ELEMENTS};
    const esdm_codec_accuracy accuracy = bounds(bound, INFINITY, INFINITY);
    esdm__buffer out;
    esdm_error err = {0};
    esdm__buffer_init(&out);
    assert_int_equal(field__encode(&block, &accuracy, effort, values, &out, &err), ESDM_OK);
    size_t bytes = out.bytes;
    assert_int_equal(field__decode(ESDM_TYPE_INT32, ELEMENTS, out.data, out.bytes, values, &err),
                     ESDM_OK);
    esdm__buffer_clear(&out);
    return bytes;
}

/* The same of integers: all were kept without loss, in up to 2.4 times the bytes. */
static void
test_again__a_bound_of_integers_costs_no_more(void **state)
{
    float *floats = make_values(-7117, 3962);
    int32_t values[ELEMENTS], before[ELEMENTS];
    (void) state;
    for (esdm_codec_effort effort = ESDM_EFFORT_FAST; effort <= ESDM_EFFORT_ARCHIVE; effort++) {
        for (int bound = 1; bound < 300; bound = 3 * bound + 1) {
            size_t bytes[2];
            for (int k = 0; k < 2; k++) {
                for (size_t i = 0; i < ELEMENTS; i++)
                    values[i] = (int32_t) lrintf(floats[i]);
                bytes[k] = store_integers(bound - (k == 0 ? 0.5 : 0), effort, values);
            }
            for (size_t i = 0; i < ELEMENTS; i++)
                assert_true(labs(values[i] - lrintf(floats[i])) <= bound);
            if ((double) bytes[1] > 1.02 * (double) bytes[0])
                fail_msg("within %d %zu bytes, less than that %zu", bound, bytes[1], bytes[0]);
            memcpy(before, values, sizeof before);
            (void) store_integers(bound, effort, values);
            assert_memory_equal(values, before, sizeof before);
        }
    }
    free(floats);
}

/* With relative bounds, too, archive predicts from coarse to fine where that is shorter: numbers of
 * one sign, whose logarithms have steps like those of absolute bounds. */
static void
test_again__relative_bounds_have_levels(void **state)
{
    const esdm_codec_accuracy accuracy = bounds(INFINITY, 1e-2, INFINITY);
    size_t bytes[2];
    (void) state;
    for (int k = 0; k < 2; k++) {
        float *values = make_values(220, 310);
        for (size_t i = 0; i < ELEMENTS; i++)
            values[i] =
                (float) (265 + 30 * sin((double) (i % 96) / 9) * cos((double) (i / 96) / 14));
        bytes[k] = store(&accuracy, k == 0 ? ESDM_EFFORT_BALANCED : ESDM_EFFORT_ARCHIVE, values);
        if (k == 1)
            expect_same(&accuracy, ESDM_EFFORT_ARCHIVE, values);
        free(values);
    }
    if (bytes[1] * 12 > bytes[0] * 5)
        fail_msg("archive takes %zu bytes, balanced %zu", bytes[1], bytes[0]);
}

/* The sum stays though nobody asked for it: some numbers have two neighbours within their bounds.
 * (Levels: test_parts.c.) */
static void
test_again__sums_stay(void **state)
{
    static const double ends[][2] = {{220, 310}, {0.9, 4.04}, {-70, 64.4}};
    (void) state;
    for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
        double span = ends[e][1] - ends[e][0];
        const esdm_codec_accuracy all[] = {
            bounds(INFINITY, 1e-3, INFINITY),
            bounds(INFINITY, 1e-2, INFINITY),
            bounds(1e-4 * span, INFINITY, INFINITY),
        };
        for (size_t a = 0; a < sizeof all / sizeof all[0]; a++) {
            double change = 0;
            double sizes = 0;
            float before[ELEMENTS];
            float *values = make_values(ends[e][0], ends[e][1]);
            memcpy(before, values, sizeof before);
            (void) store(&all[a], ESDM_EFFORT_BALANCED, values);
            for (size_t i = 0; i < ELEMENTS; i++) {
                change += (double) values[i] - (double) before[i];
                sizes += fabs((double) before[i]);
            }
            assert_true(fabs(change) <= 1e-6 * sizes);
            free(values);
        }
    }
}

/* Errors of a few numbers add up by chance to more of them than those of many. */
static void
test_again__sums_of_few_numbers_stay(void **state)
{
    (void) state;
    for (uint32_t seed = 1; seed <= 24; seed++) {
        float *values = malloc(ELEMENTS * sizeof *values);
        double change = 0;
        double sizes = 0;
        float before[ELEMENTS];
        uint32_t random = seed * 2654435761u;
        const esdm_codec_accuracy accuracy = bounds(1e-3, INFINITY, INFINITY);
        assert_non_null(values);
        for (size_t i = 0; i < ELEMENTS; i++)
            values[i] = (float) (1.1 + draw(&random));
        memcpy(before, values, sizeof before);
        (void) store(&accuracy, ESDM_EFFORT_BALANCED, values);
        for (size_t i = 0; i < ELEMENTS; i++) {
            change += (double) values[i] - (double) before[i];
            sizes += fabs((double) before[i]);
        }
        if (fabs(change) > 1e-6 * sizes)
            fail_msg("%u: the sum changes by %g", seed, change / sizes);
        free(values);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again__numbers_keep_their_bits),
        cmocka_unit_test(test_again__small_blocks_keep_their_bits),
        cmocka_unit_test(test_again__whole_numbers_keep_their_bits),
        cmocka_unit_test(test_again__bounds_that_follow_from_values),
        cmocka_unit_test(test_again__bounds_that_meet),
        cmocka_unit_test(test_again__decimals_keep_their_bits),
        cmocka_unit_test(test_again__a_bound_of_decimals_costs_no_more),
        cmocka_unit_test(test_again__exact_values_cost_no_more),
        cmocka_unit_test(test_again__zeros_with_edges_cost_no_more),
        cmocka_unit_test(test_again__a_bound_of_whole_numbers_costs_no_more),
        cmocka_unit_test(test_again__a_bound_of_integers_costs_no_more),
        cmocka_unit_test(test_again__decimals_within_relative_bounds_cost_no_more),
        cmocka_unit_test(test_again__relative_bounds_have_levels),
        cmocka_unit_test(test_again__sums_stay),
        cmocka_unit_test(test_again__sums_of_few_numbers_stay),
    };
    return cmocka_run_group_tests_name("field.again", tests, NULL, NULL);
}
