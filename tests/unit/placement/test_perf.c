/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Synthetic measurements with known numbers behind them. */
#include "placement/perf.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB (1024.0 * 1024.0)

static uint64_t
random_u64(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* In (-1, 1); mean 0. */
static double
noise(uint64_t *seed)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double) (random_u64(seed) >> 11) / (double) (1ull << 53) - 0.5;
    return sum / 2;
}

typedef struct sampling {
    double noise;      /* relative */
    unsigned outliers; /* one sample in so many is ten times as slow; 0: none */
    unsigned repeat;
    double most_concurrent;
} sampling;

static size_t
measure(const esdm__perf *perf, const sampling *how, esdm__perf_sample *samples)
{
    uint64_t seed = 88172645463325252ull;
    size_t n = 0;
    for (double bytes = 4096; bytes <= 256 * MIB; bytes *= 4) {
        for (double c = 1; c <= how->most_concurrent; c *= 2) {
            for (unsigned r = 0; r < how->repeat; r++) {
                double seconds = esdm__perf_seconds(perf, bytes, c);
                seconds *= 1 + how->noise * noise(&seed);
                if (how->outliers > 0 && random_u64(&seed) % how->outliers == 0)
                    seconds *= 10;
                samples[n++] = (esdm__perf_sample){bytes, c, seconds};
            }
        }
    }
    return n;
}

static void
assert_near(const char *what, double found, double wanted, double tolerance)
{
    if (fabs(found - wanted) > tolerance * wanted)
        fail_msg("%s: %g, expected %g (± %g %%)", what, found, wanted, 100 * tolerance);
}

static void
assert_recovered(const esdm__perf *truth, const sampling *how, double tolerance)
{
    esdm__perf_sample samples[1024];
    size_t n = measure(truth, how, samples);
    assert_true(n <= 1024);
    esdm__perf found;
    esdm_error err = {0};
    assert_int_equal(esdm__perf_fit(samples, n, &found, &err), ESDM_OK);
    assert_near("latency", found.latency_s, truth->latency_s, tolerance);
    assert_near("stream", found.stream_s_per_byte, truth->stream_s_per_byte, tolerance);
    if (how->most_concurrent > 1)
        assert_near("shared", found.shared_s_per_byte, truth->shared_s_per_byte, tolerance);
    if (how->most_concurrent > 1 && truth->service_s * how->most_concurrent > truth->latency_s)
        assert_near("service", found.service_s, truth->service_s, tolerance);
}

static const esdm__perf disk = {2e-4, 1 / (500 * MIB), 1.5e-4, 1 / (900 * MIB), NULL};
static const esdm__perf object_store = {3e-2, 1 / (60 * MIB), 3e-3, 1 / (800 * MIB), NULL};
static const esdm__perf one_at_a_time = {1e-3, 1 / (100 * MIB), 1e-3, 1 / (100 * MIB), NULL};

static void
test_perf__exact_samples_give_the_exact_model(void **state)
{
    (void) state;
    const sampling how = {.repeat = 1, .most_concurrent = 16};
    assert_recovered(&disk, &how, 0.02);
    assert_recovered(&object_store, &how, 0.02);
    assert_recovered(&one_at_a_time, &how, 0.02);
}

static void
test_perf__noise_averages_out(void **state)
{
    (void) state;
    const sampling how = {.noise = 0.4, .repeat = 5, .most_concurrent = 16};
    assert_recovered(&disk, &how, 0.12);
    assert_recovered(&object_store, &how, 0.12);
    assert_recovered(&one_at_a_time, &how, 0.12);
}

static void
test_perf__outliers_do_not_count(void **state)
{
    (void) state;
    const sampling how = {.noise = 0.1, .outliers = 8, .repeat = 5, .most_concurrent = 16};
    assert_recovered(&disk, &how, 0.15);
    assert_recovered(&object_store, &how, 0.15);
    assert_recovered(&one_at_a_time, &how, 0.15);
}

static void
test_perf__without_concurrency_more_at_once_gains_nothing(void **state)
{
    (void) state;
    const sampling how = {.noise = 0.1, .repeat = 3, .most_concurrent = 1};
    assert_recovered(&disk, &how, 0.1);
    esdm__perf_sample samples[64];
    esdm__perf found;
    size_t n = measure(&disk, &how, samples);
    assert_int_equal(esdm__perf_fit(samples, n, &found, NULL), ESDM_OK);
    double one = esdm__perf_seconds(&found, MIB, 1);
    assert_near("four at once", esdm__perf_seconds(&found, MIB, 4), 4 * one, 1e-6);
    assert_near("saturation", esdm__perf_saturation(&found, MIB), 1, 1e-6);
}

static void
test_perf__saturation_is_where_the_bounds_meet(void **state)
{
    (void) state;
    double at = esdm__perf_saturation(&object_store, 4 * MIB);
    double alone = esdm__perf_bandwidth(&object_store, 4 * MIB, 1);
    assert_near("below", esdm__perf_bandwidth(&object_store, 4 * MIB, at / 2), alone * at / 2,
                1e-9);
    assert_near("above", esdm__perf_bandwidth(&object_store, 4 * MIB, 2 * at), alone * at, 1e-9);
}

static void
test_perf__beats_the_naive_mean_on_what_it_has_not_seen(void **state)
{
    (void) state;
    const sampling how = {.noise = 0.3, .outliers = 20, .repeat = 3, .most_concurrent = 8};
    const esdm__perf *const all[] = {&disk, &object_store, &one_at_a_time};
    for (size_t i = 0; i < 3; i++) {
        esdm__perf_sample samples[1024];
        size_t n = measure(all[i], &how, samples);
        esdm__perf_error error = {0};
        assert_int_equal(esdm__perf_validate(samples, n, &error, NULL), ESDM_OK);
        assert_int_equal(error.samples, n);
        assert_true(error.model < 0.3);
        assert_true(error.median < 0.15);
        assert_true(error.model < 0.5 * error.naive);
    }
}

static void
test_perf__bad_samples_are_left_out(void **state)
{
    (void) state;
    esdm__perf_sample samples[128];
    const sampling how = {.repeat = 1, .most_concurrent = 8};
    size_t n = measure(&disk, &how, samples);
    samples[n++] = (esdm__perf_sample){4096, 1, 0};
    samples[n++] = (esdm__perf_sample){4096, 1, (double) NAN};
    samples[n++] = (esdm__perf_sample){(double) INFINITY, 1, 1};
    samples[n++] = (esdm__perf_sample){4096, 0, 1};
    esdm__perf found;
    assert_int_equal(esdm__perf_fit(samples, n, &found, NULL), ESDM_OK);
    assert_near("latency", found.latency_s, disk.latency_s, 0.03);
}

/* Measured on a busy machine, where more at once took hardly longer than one. */
static void
test_perf__what_limits_nothing_is_zero(void **state)
{
    (void) state;
    static const esdm__perf_sample samples[] = {
        {4096, 1, 1.86659375e-05},    {4096, 4, 2.00525625e-05},   {4096, 16, 1.98534765e-05},
        {32768, 1, 2.05669375e-05},   {32768, 4, 2.06121563e-05},  {32768, 16, 2.1595293e-05},
        {262144, 1, 0.00039088675},   {262144, 4, 4.98617031e-05}, {262144, 16, 9.86116094e-05},
        {2097152, 1, 0.000527907375}, {2097152, 4, 0.00116274581}, {16777216, 1, 0.020440937},
        {16777216, 4, 0.0436923368},  {4096, 1, 1.868225e-05}};
    esdm__perf perf;
    assert_int_equal(esdm__perf_fit(samples, sizeof samples / sizeof samples[0], &perf, NULL),
                     ESDM_OK);
    assert_true(perf.stream_s_per_byte == 0 || perf.stream_s_per_byte > 1e-12);
    assert_true(perf.shared_s_per_byte == 0 || perf.shared_s_per_byte > 1e-12);
    assert_true(esdm__perf_valid(&perf));
}

static void
test_perf__too_few_samples_are_an_error(void **state)
{
    (void) state;
    esdm__perf found = {.latency_s = 7};
    esdm_error err = {0};
    const esdm__perf_sample samples[3] = {{1, 1, 1}, {2, 1, 1}, {3, 1, 2}};
    assert_int_equal(esdm__perf_fit(samples, 3, &found, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "3 usable measurements; a model needs at least 6");
    assert_true(found.latency_s == 7);
}

static void
test_perf__invalid_models_are_told(void **state)
{
    (void) state;
    assert_true(esdm__perf_valid(&disk));
    assert_false(esdm__perf_valid(&(esdm__perf){0}));
    assert_false(esdm__perf_valid(&(esdm__perf){.latency_s = -1, .stream_s_per_byte = 1}));
    assert_false(esdm__perf_valid(&(esdm__perf){.latency_s = (double) NAN}));
    assert_false(esdm__perf_valid(&(esdm__perf){.latency_s = (double) INFINITY}));
    assert_false(esdm__perf_valid(&(esdm__perf){.latency_s = 1e300, .shared_s_per_byte = 1e-9}));
    assert_false(esdm__perf_valid(&(esdm__perf){.latency_s = 1e-3, .stream_s_per_byte = 1e300}));
    /* The slowest that is taken, at its worst, still takes some time. */
    const esdm__perf slowest = {2.6e6, 1e3, 2.6e6, 1e3, NULL};
    assert_true(esdm__perf_valid(&slowest));
    assert_true(isfinite(100 * esdm__perf_seconds(&slowest, 0x1p64, 0x1p64)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_perf__exact_samples_give_the_exact_model),
        cmocka_unit_test(test_perf__noise_averages_out),
        cmocka_unit_test(test_perf__outliers_do_not_count),
        cmocka_unit_test(test_perf__without_concurrency_more_at_once_gains_nothing),
        cmocka_unit_test(test_perf__saturation_is_where_the_bounds_meet),
        cmocka_unit_test(test_perf__beats_the_naive_mean_on_what_it_has_not_seen),
        cmocka_unit_test(test_perf__bad_samples_are_left_out),
        cmocka_unit_test(test_perf__what_limits_nothing_is_zero),
        cmocka_unit_test(test_perf__too_few_samples_are_an_error),
        cmocka_unit_test(test_perf__invalid_models_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
