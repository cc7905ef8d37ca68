/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "placement/perf.h"

#include <math.h>

double
esdm__perf_busy(const esdm__perf *perf, double bytes)
{
    return perf->service_s + bytes * perf->shared_s_per_byte;
}

double
esdm__perf_seconds(const esdm__perf *perf, double bytes, double concurrency)
{
    double alone = perf->latency_s + bytes * perf->stream_s_per_byte;
    return fmax(alone, concurrency * esdm__perf_busy(perf, bytes));
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
    double busy = esdm__perf_busy(perf, bytes);
    return busy > 0 ? fmax(1, alone / busy) : 1;
}

bool
esdm__perf_valid(const esdm__perf *perf)
{
    const double numbers[] = {perf->latency_s, perf->stream_s_per_byte, perf->service_s,
                              perf->shared_s_per_byte};
    double sum = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (!isfinite(numbers[i]) || numbers[i] < 0)
            return false;
        sum += numbers[i];
    }
    return sum > 0 && esdm__perf_seconds(perf, 1, 1) > 0;
}
