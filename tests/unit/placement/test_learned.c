/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What is learned from requests, on an emulated target with a bend that the four numbers of a
 * calibration cannot have: small requests take long when more than two are under way.
 */
#include "placement/learned.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "placement/placement.h"
#include "placement/site_model.h"

#define KIB     1024.0
#define MIB     (1024 * KIB)
#define SAMPLES 3000
#define PIECES  400u
#define STREAMS 8u
#define BYTES   (64 * KIB)

static uint64_t chance;

static double
random_share(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (double) (chance >> 11) / 9007199254740992.0;
}

/* Target 0 bends, target 1 is steady and slower. */
static double
true_seconds(size_t target, double bytes, double concurrency)
{
    static const esdm__perf bent = {5e-4, 1 / (400 * MIB), 1e-4, 1 / (400 * MIB), NULL};
    static const esdm__perf steady = {2e-3, 1 / (100 * MIB), 8e-4, 1 / (100 * MIB), NULL};
    if (target == 1)
        return esdm__perf_seconds(&steady, bytes, concurrency);
    return esdm__perf_seconds(&bent, bytes, concurrency) *
           (bytes < 256 * KIB && concurrency > 2 ? 12 : 1);
}

/* As a calibration does: sizes from 4 KiB to 64 MiB, one and several at once. */
static esdm__perf
calibrated(size_t target)
{
    esdm__perf_sample samples[40];
    esdm__perf perf;
    size_t n = 0;
    for (double bytes = 4 * KIB; bytes <= 64 * MIB; bytes *= 4)
        for (double concurrency = 1; concurrency <= 8; concurrency *= 2)
            samples[n++] =
                (esdm__perf_sample){bytes, concurrency, true_seconds(target, bytes, concurrency)};
    assert_int_equal(esdm__perf_fit(samples, n, &perf, NULL), ESDM_OK);
    return perf;
}

/* As a program does: mostly small ones, with noise of a tenth. */
static void
requests_of(size_t target, esdm__perf_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double bytes = 4 * KIB * pow(2, floor(random_share() * 11));
        double concurrency = 1 + floor(random_share() * 8);
        samples[i] = (esdm__perf_sample){bytes, concurrency,
                                         true_seconds(target, bytes, concurrency) *
                                             (0.9 + 0.2 * random_share())};
    }
}

static esdm__learned
learn(size_t target, const esdm__perf *perf, bool *ret_better)
{
    static esdm__perf_sample samples[SAMPLES];
    esdm__learned learned;
    chance = 88172645463325252u + target;
    requests_of(target, samples, SAMPLES);
    assert_int_equal(esdm__learned_fit(perf, samples, SAMPLES, &learned, ret_better, NULL),
                     ESDM_OK);
    return learned;
}

/* ---- what it is worth ------------------------------------------------------------------------ */

typedef struct emulation {
    double left[2 * STREAMS]; /* seconds of work of each request, alone on the target */
    size_t target[2 * STREAMS];
    size_t running;
    size_t on[2];
} emulation;

/* To the end of the request that is done first; all progress at the speed of their number. */
static double
step(emulation *e)
{
    double soonest = INFINITY;
    size_t first = 0;
    double speed[2];
    for (size_t t = 0; t < 2; t++)
        speed[t] = e->on[t] > 0 ? 1 / true_seconds(t, BYTES, (double) e->on[t]) : 0;
    for (size_t i = 0; i < e->running; i++) {
        double seconds = e->left[i] / speed[e->target[i]];
        if (seconds < soonest) {
            soonest = seconds;
            first = i;
        }
    }
    for (size_t i = 0; i < e->running; i++)
        e->left[i] -= soonest * speed[e->target[i]];
    e->on[e->target[first]]--;
    e->running--;
    e->left[first] = e->left[e->running];
    e->target[first] = e->target[e->running];
    return soonest;
}

/* Seconds of PIECES requests, STREAMS at once: placed by models; or at most `most` at once on the
 * target that bends, the others on the steady one. */
static double
emulate(const esdm__perf *perfs, size_t most, bool one_by_one)
{
    emulation e = {.running = 0};
    double now = 0;
    for (uint64_t i = 0; i < PIECES; i++) {
        if (e.running == STREAMS)
            now += step(&e);
        size_t chosen = e.on[0] < most ? 0 : 1;
        if (perfs != NULL) {
            const esdm__place_target targets[2] = {
                {&perfs[0], 1, true, false, e.on[0] * (uint64_t) BYTES, (uint32_t) e.on[0], 0},
                {&perfs[1], 1, true, false, e.on[1] * (uint64_t) BYTES, (uint32_t) e.on[1], 0}};
            const esdm__place_request request = {
                .bytes = (uint64_t) BYTES,
                .behind = one_by_one ? 0 : (PIECES - 1 - i) * (uint64_t) BYTES,
                .turn = i};
            esdm__place_choice order[2];
            assert_int_equal(esdm__placement_order(targets, 2, &request, order), 2);
            chosen = order[0].target;
        }
        e.left[e.running] = 1;
        e.target[e.running++] = chosen;
        e.on[chosen]++;
    }
    while (e.running > 0)
        now += step(&e);
    return now;
}

static void
test_learned__placement_is_nearer_to_the_best(void **state)
{
    (void) state;
    bool better[2];
    const esdm__perf measured[2] = {calibrated(0), calibrated(1)};
    esdm__learned learned[2] = {learn(0, &measured[0], &better[0]),
                                learn(1, &measured[1], &better[1])};
    assert_true(better[0]);
    assert_true(learned[0].error < 0.3);
    assert_true(learned[0].calibrated_error > 2 * learned[0].error);
    esdm__perf with[2] = {measured[0], measured[1]};
    for (size_t t = 0; t < 2; t++)
        with[t].learned = better[t] ? &learned[t] : NULL;
    double best = INFINITY;
    for (size_t most = 0; most <= STREAMS; most++)
        best = fmin(best, emulate(NULL, most, true));
    for (int way = 0; way < 2; way++) { /* pieces of one write, and a write each */
        double before = emulate(measured, 0, way == 1);
        double after = emulate(with, 0, way == 1);
        print_message("best %.3f s, calibrated %.3f s, learned %.3f s\n", best, before, after);
        assert_true(after < 1.2 * best);
        assert_true(before > 1.5 * after);
    }
}

static void
test_learned__forecasts_follow(void **state)
{
    (void) state;
    bool better;
    esdm__perf perf = calibrated(0);
    const esdm__learned learned = learn(0, &perf, &better);
    const double sizes[] = {16 * KIB, 64 * KIB, MIB, 2 * MIB};
    perf.learned = &learned;
    for (size_t i = 0; i < 4; i++) {
        for (double concurrency = 1; concurrency <= 8; concurrency *= 2) {
            double predicted = esdm__perf_seconds(&perf, sizes[i], concurrency);
            double seen = true_seconds(0, sizes[i], concurrency);
            assert_true(predicted < 1.4 * seen && seen < 1.4 * predicted);
        }
    }
}

/* Where the four numbers are right nothing is gained, and chance is not taken for it. */
static void
test_learned__nothing_where_calibration_is_right(void **state)
{
    (void) state;
    static esdm__perf_sample samples[SAMPLES];
    const esdm__perf right = {2e-3, 1 / (100 * MIB), 8e-4, 1 / (100 * MIB), NULL};
    unsigned wrong = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        esdm__learned learned;
        bool better;
        chance = seed * 0x9e3779b97f4a7c15u;
        requests_of(1, samples, 500);
        for (size_t i = 0; i < 500; i++) /* all twice as slow: that is the drift's */
            samples[i].seconds *= 2;
        assert_int_equal(esdm__learned_fit(&right, samples, 500, &learned, &better, NULL), ESDM_OK);
        wrong += better;
    }
    assert_int_equal(wrong, 0);
}

static void
test_learned__few_or_senseless_requests(void **state)
{
    (void) state;
    static esdm__perf_sample samples[200];
    const esdm__perf perf = calibrated(1);
    esdm__learned learned = {.count = 7};
    bool better = true;
    esdm_error err = {0};
    chance = 1;
    requests_of(1, samples, 200);
    assert_int_equal(esdm__learned_fit(&perf, samples, 99, &learned, &better, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "99 requests are too few to learn from; it takes 100");
    assert_int_equal(learned.count, 7);
    for (size_t i = 0; i < 200; i += 2) {
        samples[i].seconds = i % 4 == 0 ? 0 : (double) NAN;
        samples[i].bytes = i % 8 == 0 ? -1 : samples[i].bytes;
    }
    assert_int_equal(esdm__learned_fit(&perf, samples, 200, &learned, &better, NULL), ESDM_OK);
    assert_int_equal(learned.requests, 100);
    assert_true(esdm__learned_valid(&learned));
    learned.nodes[0] = (esdm__learned_node){.by = ESDM__LEARNED_BYTES, .less = 0, .more = 1};
    assert_false(esdm__learned_valid(&learned)); /* it would never end */
}

/* With the drifts, in the fact of what was observed. */
static void
test_learned__is_kept_and_read_again(void **state)
{
    (void) state;
    bool better;
    const esdm__perf perf = calibrated(0);
    esdm__site_model model = {0};
    esdm__site_model again = {0};
    char *text = NULL;
    char *observed = NULL;
    esdm__target_model *t = esdm__site_model_add(&model, "bent");
    t->measured_ns = 77;
    t->write = (esdm__measured){.perf = perf, .learned = learn(0, &perf, &better)};
    t->read.perf = perf;
    assert_int_equal(esdm__site_model_encode(&model, &text, NULL), ESDM_OK);
    assert_int_equal(esdm__site_drifts_encode(&model, &observed, NULL), ESDM_OK);
    assert_int_equal(esdm__site_model_decode(text, observed, &again, NULL), ESDM_OK);
    const esdm__learned *one = &t->write.learned;
    const esdm__learned *other = &again.targets[0].write.learned;
    assert_int_equal(other->count, one->count);
    assert_int_equal(again.targets[0].read.learned.count, 0);
    for (double bytes = KIB; bytes < 8 * MIB; bytes *= 1.7)
        for (double concurrency = 1; concurrency < 9; concurrency++)
            assert_true(fabs(esdm__learned_factor(one, bytes, concurrency) /
                                 esdm__learned_factor(other, bytes, concurrency) -
                             1) < 1e-6);
    esdm__site_model_clear(&again);
    /* It is not of what was measured anew. */
    again = (esdm__site_model){0};
    free(text);
    t->measured_ns = 78;
    assert_int_equal(esdm__site_model_encode(&model, &text, NULL), ESDM_OK);
    assert_int_equal(esdm__site_model_decode(text, observed, &again, NULL), ESDM_OK);
    assert_int_equal(again.targets[0].write.learned.count, 0);
    free(text);
    free(observed);
    esdm__site_model_clear(&again);
    esdm__site_model_clear(&model);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learned__placement_is_nearer_to_the_best),
        cmocka_unit_test(test_learned__forecasts_follow),
        cmocka_unit_test(test_learned__nothing_where_calibration_is_right),
        cmocka_unit_test(test_learned__few_or_senseless_requests),
        cmocka_unit_test(test_learned__is_kept_and_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
