/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "placement/perf.h"

#include <math.h>

#include "placement/learned.h"

/* Requests that take a month, or bytes that take a quarter of an hour, are damage. Below that, no
 * number of bytes and requests makes a sum of times infinite, however far the model has drifted. */
#define SECONDS_MOST          2.6e6
#define SECONDS_PER_BYTE_MOST 1e3

/* As measured, without what was learned. */
static double
busy_measured(const esdm__perf *perf, double bytes)
{
    return perf->service_s + bytes * perf->shared_s_per_byte;
}

double
esdm__perf_busy_at(const esdm__perf *perf, double bytes, double concurrency)
{
    return busy_measured(perf, bytes) * esdm__learned_factor(perf->learned, bytes, concurrency);
}

double
esdm__perf_busy(const esdm__perf *perf, double bytes)
{
    if (perf->learned == NULL)
        return busy_measured(perf, bytes);
    return esdm__perf_busy_at(perf, bytes, esdm__perf_saturation(perf, bytes));
}

double
esdm__perf_seconds(const esdm__perf *perf, double bytes, double concurrency)
{
    double alone = perf->latency_s + bytes * perf->stream_s_per_byte;
    double seconds = fmax(alone, concurrency * busy_measured(perf, bytes));
    return seconds * esdm__learned_factor(perf->learned, bytes, concurrency);
}

double
esdm__perf_bandwidth(const esdm__perf *perf, double bytes, double concurrency)
{
    double seconds = esdm__perf_seconds(perf, bytes, concurrency);
    return seconds > 0 ? concurrency * bytes / seconds : 0;
}

double
esdm__perf_saturation(const esdm__perf *perf, double bytes)
{
    double alone = perf->latency_s + bytes * perf->stream_s_per_byte;
    double busy = busy_measured(perf, bytes);
    return busy > 0 ? fmax(1, alone / busy) : 1;
}

bool
esdm__perf_valid(const esdm__perf *perf)
{
    const struct {
        double value;
        double most;
    } numbers[] = {{perf->latency_s, SECONDS_MOST},
                   {perf->service_s, SECONDS_MOST},
                   {perf->stream_s_per_byte, SECONDS_PER_BYTE_MOST},
                   {perf->shared_s_per_byte, SECONDS_PER_BYTE_MOST}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (!(numbers[i].value >= 0 && numbers[i].value <= numbers[i].most))
            return false;
    }
    return esdm__perf_seconds(perf, 1, 1) > 0;
}
