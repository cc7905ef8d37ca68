/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_PLACEMENT_PERF_H
#define ESDM_PLACEMENT_PERF_H

/**
 * @file
 * How long a request to a target takes: four numbers for reads, four for writes.
 *
 *     seconds(bytes, concurrency) = max(latency + bytes * stream,
 *                                       concurrency * (service + bytes * shared))
 *
 * These are the asymptotic bounds of a closed queueing network (Lazowska et al., Quantitative
 * System Performance, 1984, chapter 5): a request alone needs its latency and the bandwidth of one
 * stream; `concurrency` requests at once cannot be served faster than the whole target serves.
 * Where the two meet the target is saturated. Pure functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esdm/status.h"

typedef struct esdm__perf {
    double latency_s;         /* of one request alone, without its bytes */
    double stream_s_per_byte; /* of one request alone */
    double service_s;         /* the target is busy with a request, without its bytes */
    double shared_s_per_byte; /* the target is busy with a byte */
    /* Factors on these times, by what requests of programs took (placement/learned.h); NULL: none.
     * Borrowed. */
    const struct esdm__learned *learned;
} esdm__perf;

/** What was measured: `concurrency` requests of `bytes` at once took `seconds` each. */
typedef struct esdm__perf_sample {
    double bytes;
    double concurrency; /* ≥ 1 */
    double seconds;     /* > 0 */
} esdm__perf_sample;

/** How far the model is from what it has not seen. Mean relative errors |predicted - s| / s. */
typedef struct esdm__perf_error {
    double model;  /* cross-validated */
    double naive;  /* of the mean time of the other samples, whatever the size */
    double median; /* of the model's relative errors */
    size_t samples;
} esdm__perf_error;

/** Seconds that one of `concurrency` (≥ 1) equal requests takes. */
double esdm__perf_seconds(const esdm__perf *perf, double bytes, double concurrency);
/** Seconds that the target is busy with a request, when it has as many as saturate it. */
double esdm__perf_busy(const esdm__perf *perf, double bytes);
/** The same, `concurrency` (≥ 1) of them at once: these times differ by what was learned alone. */
double esdm__perf_busy_at(const esdm__perf *perf, double bytes, double concurrency);
/** Bytes per second when one request of `bytes` follows another, `concurrency` at once. */
double esdm__perf_bandwidth(const esdm__perf *perf, double bytes, double concurrency);
/** Requests of `bytes` at once from which on more of them gain nothing; ≥ 1. */
double esdm__perf_saturation(const esdm__perf *perf, double bytes);
/** Whether all numbers are plausible times: none is negative or absurdly large, and not all are 0.
 */
bool esdm__perf_valid(const esdm__perf *perf);

/** Fewest samples that a model can be made of: it has four numbers, and some have to contradict. */
#define ESDM__PERF_LEAST_SAMPLES 6u

/**
 * Fits the model: iteratively reweighted least squares of relative residuals with Huber's weights,
 * so that a few wild samples do not count, in turn for the samples that either bound explains.
 * Deterministic.
 * @return ESDM_EINVAL: fewer than ESDM__PERF_LEAST_SAMPLES usable samples.
 */
esdm_status esdm__perf_fit(const esdm__perf_sample *samples, size_t count, esdm__perf *ret_perf,
                           esdm_error *err);
/** Fits the model to four fifths of the samples, asks it about the rest, and so on in turn. */
esdm_status esdm__perf_validate(const esdm__perf_sample *samples, size_t count,
                                esdm__perf_error *ret_error, esdm_error *err);

#endif
