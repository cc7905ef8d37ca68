/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The measured model of a site: as text, damaged, and as it follows changes. */
#include "placement/site_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (1024.0 * 1024.0)

static const esdm__perf disk = {2e-4, 1 / (500 * MIB), 1.5e-4, 1 / (900 * MIB), NULL};

static esdm__site_model
new_model(void)
{
    esdm__site_model model = {0};
    const char *const names[] = {"fast", "slow"};
    for (size_t i = 0; i < 2; i++) {
        esdm__target_model *t = esdm__site_model_add(&model, names[i]);
        assert_non_null(t);
        t->measured_ns = 1700000000123456789u + i;
        t->quick = i == 1;
        t->write = (esdm__measured){.perf = disk,
                                    .error = {0.1, 3, 0.05, 2},
                                    .samples = calloc(2, sizeof(esdm__perf_sample))};
        t->write.samples[0] = (esdm__perf_sample){4096, 1, 1e-4};
        t->write.samples[1] = (esdm__perf_sample){1 << 20, 8, 0.25};
        t->write.nsamples = 2;
        t->read = (esdm__measured){.perf = disk, .drift = {0.5, -0.25, 77}};
    }
    return model;
}

static void
test_site_model__survives_text(void **state)
{
    (void) state;
    esdm__site_model model = new_model();
    esdm__site_model copy = {0};
    char *text = NULL;
    char *observed = NULL;
    model.observed_ns = 99;
    assert_int_equal(esdm__site_model_encode(&model, &text, NULL), ESDM_OK);
    assert_int_equal(esdm__site_drifts_encode(&model, &observed, NULL), ESDM_OK);
    assert_int_equal(esdm__site_model_decode(text, observed, &copy, NULL), ESDM_OK);
    assert_int_equal(copy.count, 2);
    assert_int_equal(copy.observed_ns, 99);
    const esdm__target_model *t = esdm__site_model_find(&copy, "slow");
    assert_non_null(t);
    assert_true(t->quick);
    assert_true(t->measured_ns == 1700000000123456790u);
    assert_int_equal(t->write.nsamples, 2);
    assert_true(t->write.samples[1].bytes == 1 << 20 && t->write.samples[1].concurrency == 8 &&
                t->write.samples[1].seconds == 0.25);
    assert_true(fabs(t->write.perf.latency_s - disk.latency_s) < 1e-12);
    assert_true(t->read.drift.observations == 77 && t->read.drift.latency == 0.5);
    assert_null(esdm__site_model_find(&copy, "other"));
    free(text);
    free(observed);
    esdm__site_model_clear(&model);
    esdm__site_model_clear(&copy);
}

static void
test_site_model__drifts_of_an_earlier_measurement_do_not_count(void **state)
{
    (void) state;
    esdm__site_model model = new_model();
    esdm__site_model copy = {0};
    char *text = NULL;
    char *observed = NULL;
    assert_int_equal(esdm__site_drifts_encode(&model, &observed, NULL), ESDM_OK);
    model.targets[0].measured_ns++;
    assert_int_equal(esdm__site_model_encode(&model, &text, NULL), ESDM_OK);
    assert_int_equal(esdm__site_model_decode(text, observed, &copy, NULL), ESDM_OK);
    assert_true(copy.targets[0].read.drift.observations == 0);
    assert_true(copy.targets[1].read.drift.observations == 77);
    esdm__site_model_clear(&copy);
    assert_int_equal(esdm__site_model_decode(text, "{\"format\": 1, \"targets\": 7", &copy, NULL),
                     ESDM_OK);
    assert_true(copy.targets[1].read.drift.observations == 0);
    free(text);
    free(observed);
    esdm__site_model_clear(&model);
    esdm__site_model_clear(&copy);
}

static void
test_site_model__damage_is_told_and_never_crashes(void **state)
{
    (void) state;
    esdm__site_model model = new_model();
    esdm__site_model copy = {0};
    esdm_error err = {0};
    char *text = NULL;
    assert_int_equal(esdm__site_model_decode("no JSON", NULL, &copy, &err), ESDM_ECORRUPT);
    assert_non_null(strstr(err.message, "esdm-mkfs --calibrate"));
    assert_int_equal(esdm__site_model_decode("{\"format\": 2, \"targets\": {}}", NULL, &copy, &err),
                     ESDM_ENOTSUP);
    assert_int_equal(esdm__site_model_encode(&model, &text, NULL), ESDM_OK);
    size_t bytes = strlen(text);
    for (size_t i = 0; i < bytes; i++) { /* one character is another one, or the text ends */
        for (unsigned k = 0; k < 3; k++) {
            char was = text[i];
            text[i] = k == 0 ? '\0' : k == 1 ? '-' : '9';
            esdm_status status = esdm__site_model_decode(text, text, &copy, &err);
            assert_true(status == ESDM_OK || status == ESDM_ECORRUPT || status == ESDM_ENOTSUP);
            if (status == ESDM_OK)
                esdm__site_model_clear(&copy);
            text[i] = was;
        }
    }
    free(text);
    esdm__site_model_clear(&model);
}

static void
test_site_model__observations_move_the_model(void **state)
{
    (void) state;
    const esdm__perf now = {4e-4, 1 / (250 * MIB), 3e-4, 1 / (450 * MIB), NULL}; /* half as fast */
    esdm__drift drift = {0};
    for (int i = 0; i < 400; i++) {
        double bytes = i % 2 == 0 ? 4096 : 16 * MIB;
        double concurrency = 1 + i % 4;
        double seconds = esdm__perf_seconds(&now, bytes, concurrency) * (i % 10 == 0 ? 20 : 1);
        esdm__drift_observe(&drift, &disk, bytes, concurrency, seconds);
    }
    esdm__perf found = esdm__perf_drifted(&disk, &drift);
    assert_true(fabs(found.latency_s / now.latency_s - 1) < 0.5);
    assert_true(fabs(found.stream_s_per_byte / now.stream_s_per_byte - 1) < 0.5);
    assert_true(drift.observations == 400);
    esdm__drift before = drift;
    esdm__drift_observe(&drift, &disk, 4096, 1, 0);
    esdm__drift_observe(&drift, &disk, 4096, 1, (double) NAN);
    assert_memory_equal(&before, &drift, sizeof drift);
    for (int i = 0; i < 10000; i++)
        esdm__drift_observe(&drift, &disk, 4096, 1, 1e9);
    assert_true(exp(drift.latency) < 101);
}

/* A target that is ten times as slow, or as fast, from some moment on: requests of any size. */
static void
test_site_model__changes_are_followed_within_64_mb(void **state)
{
    (void) state;
    for (int slower = 0; slower < 2; slower++) {
        double factor = slower ? 10 : 0.1;
        const esdm__perf now = {disk.latency_s * factor, disk.stream_s_per_byte * factor,
                                disk.service_s * factor, disk.shared_s_per_byte * factor, NULL};
        for (double bytes = MIB; bytes <= 64 * MIB; bytes *= 2) {
            esdm__drift drift = {0};
            for (double sent = 0; sent < 64 * MIB; sent += bytes)
                esdm__drift_observe(&drift, &disk, bytes, 2, esdm__perf_seconds(&now, bytes, 2));
            esdm__perf found = esdm__perf_drifted(&disk, &drift);
            double ratio =
                esdm__perf_seconds(&found, bytes, 2) / esdm__perf_seconds(&now, bytes, 2);
            assert_true(ratio > 0.67 && ratio < 1.5);
        }
    }
}

/* What cannot be written in JSON, or is no number, does not cost the whole document. */
static void
test_site_model__odd_numbers_leave_it_readable(void **state)
{
    (void) state;
    esdm__site_model model = new_model();
    esdm__site_model copy = {0};
    char *text = NULL;
    char *observed = NULL;
    esdm__measured *write = &model.targets[0].write;
    write->error = (esdm__perf_error){(double) INFINITY, (double) NAN, 1e300, 2};
    write->samples[0].seconds = (double) INFINITY;
    write->drift = (esdm__drift){23, -1e300, 8};
    model.targets[0].read.drift = (esdm__drift){(double) NAN, 0.25, 3};
    assert_int_equal(esdm__site_model_encode(&model, &text, NULL), ESDM_OK);
    assert_int_equal(esdm__site_drifts_encode(&model, &observed, NULL), ESDM_OK);
    assert_int_equal(esdm__site_model_decode(text, observed, &copy, NULL), ESDM_OK);
    const esdm__measured *back = &copy.targets[0].write;
    assert_true(back->error.model == 1e9 && back->error.naive == 1e9 && back->error.median == 1e9);
    assert_int_equal(back->nsamples, 1);
    assert_true(back->samples[0].seconds == 0.25);
    assert_true(back->drift.observations == 8); /* far off is at its limit, not forgotten */
    assert_true(exp(back->drift.latency) > 99 && exp(back->drift.latency) < 101);
    assert_true(exp(back->drift.bandwidth) > 0.0099 && exp(back->drift.bandwidth) < 0.0101);
    assert_true(copy.targets[0].read.drift.observations == 0);
    assert_true(copy.targets[1].read.drift.observations == 77);
    free(text);
    free(observed);
    esdm__site_model_clear(&model);
    esdm__site_model_clear(&copy);
}

/* Sessions beside each other add what each of them saw. */
static void
test_site_model__sums_of_drifts_have_a_limit(void **state)
{
    (void) state;
    const esdm__drift before = {0.5, -0.5, 10};
    const esdm__drift now = {4.5, -4.5, 110};
    esdm__drift drift = before;
    esdm__drift_add(&drift, &before, &now);
    assert_true(drift.latency == 4.5 && drift.bandwidth == -4.5 && drift.observations == 110);
    for (int i = 0; i < 5; i++)
        esdm__drift_add(&drift, &before, &now);
    assert_true(exp(drift.latency) < 101 && exp(-drift.bandwidth) < 101);
    assert_true(drift.observations == 610);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_site_model__survives_text),
        cmocka_unit_test(test_site_model__drifts_of_an_earlier_measurement_do_not_count),
        cmocka_unit_test(test_site_model__damage_is_told_and_never_crashes),
        cmocka_unit_test(test_site_model__observations_move_the_model),
        cmocka_unit_test(test_site_model__changes_are_followed_within_64_mb),
        cmocka_unit_test(test_site_model__odd_numbers_leave_it_readable),
        cmocka_unit_test(test_site_model__sums_of_drifts_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
