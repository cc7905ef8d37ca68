/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "placement/forecast.h"

#include <math.h>
#include <string.h>

#define STREAMS_MAX 256u
/* Batches that are played through; they repeat. */
#define BATCHES 4u

/* A request that is under way: a fragment, and its copies. */
typedef struct request {
    size_t targets[ESDM__FORECAST_COPIES];
    uint32_t count;
    double done_at;
} request;

/* The world of a forecast. Time begins at 0. */
typedef struct world {
    esdm__place_target targets[ESDM__FORECAST_TARGETS];
    double free_at[ESDM__FORECAST_TARGETS]; /* the target has worked off what it has */
    size_t count;
    request streams[STREAMS_MAX];
    uint32_t nstreams;
    uint32_t running;
} world;

/* Ends the request that is done first; returns when. */
static double
end_first(world *w, uint64_t bytes)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < w->running; i++) {
        if (w->streams[i].done_at < w->streams[first].done_at)
            first = i;
    }
    request r = w->streams[first];
    w->streams[first] = w->streams[--w->running];
    for (uint32_t i = 0; i < r.count; i++) {
        w->targets[r.targets[i]].queued_requests--;
        w->targets[r.targets[i]].queued_bytes -= bytes;
    }
    return r.done_at;
}

/* Stores one copy; returns when that is done. */
static double
store(world *w, size_t t, double now, uint64_t size, esdm__forecast_share *share)
{
    const esdm__perf *perf = w->targets[t].write;
    double bytes = (double) size;
    double beside = w->targets[t].queued_requests + 1.0;
    double busy = perf != NULL ? esdm__perf_busy_at(perf, bytes, beside) : 0;
    double alone = perf != NULL ? esdm__perf_seconds(perf, bytes, 1) : 0;
    w->free_at[t] = fmax(w->free_at[t], now) + busy;
    w->targets[t].queued_requests++;
    w->targets[t].queued_bytes += size;
    share->fragments++;
    share->bytes += size;
    share->busy_s += busy;
    return fmax(w->free_at[t], now + alone);
}

static void
start(world *w, double now, const esdm__place_request *request_, uint32_t copies,
      esdm__forecast_share *shares)
{
    esdm__place_choice order[ESDM__FORECAST_TARGETS];
    size_t asked = esdm__placement_order(w->targets, w->count, request_, order);
    if (asked == 0)
        return;
    request r = {.done_at = now};
    for (size_t i = 0; i < asked && r.count < copies; i++) {
        if (i > 0 && order[i].why == ESDM__PLACE_FAILED)
            continue;
        size_t t = order[i].target;
        r.done_at = store(w, t, r.done_at, request_->bytes, &shares[t]);
        r.targets[r.count++] = t;
    }
    w->streams[w->running++] = r;
}

/* One batch, which begins at `now`, to its end. */
static double
play_batch(world *w, const esdm__forecast_write *write, uint64_t count, uint64_t turn, double now,
           esdm__forecast_share *shares)
{
    uint32_t copies = write->copies < 1 ? 1 : write->copies;
    copies = copies < ESDM__FORECAST_COPIES ? copies : ESDM__FORECAST_COPIES;
    for (uint64_t i = 0; i < count; i++) {
        if (w->running == w->nstreams)
            now = fmax(now, end_first(w, write->bytes));
        const esdm__place_request next = {.bytes = write->bytes,
                                          .behind = (count - 1 - i) * write->bytes,
                                          .turn = turn + i,
                                          .prefer = write->prefer};
        start(w, now, &next, copies, shares);
    }
    while (w->running > 0)
        now = fmax(now, end_first(w, write->bytes));
    return now;
}

double
esdm__forecast(const esdm__place_target *targets, size_t ntargets,
               const esdm__forecast_write *write, esdm__forecast_share *shares)
{
    world w = {.count = ntargets < ESDM__FORECAST_TARGETS ? ntargets : ESDM__FORECAST_TARGETS};
    esdm__forecast_share some[ESDM__FORECAST_TARGETS];
    double now = 0;
    uint64_t played = 0;
    memset(some, 0, sizeof some);
    memcpy(w.targets, targets, w.count * sizeof *targets);
    for (size_t i = 0; i < w.count; i++) {
        w.targets[i].queued_bytes = 0;
        w.targets[i].queued_requests = 0;
    }
    w.nstreams = write->streams < STREAMS_MAX ? write->streams : STREAMS_MAX;
    for (unsigned k = 0; k < BATCHES && played < write->count; k++) {
        uint64_t left = write->count - played;
        uint64_t count = left < write->batch ? left : write->batch;
        now = play_batch(&w, write, count, write->turn + played, now, some);
        played += count;
    }
    double scale = played > 0 ? (double) write->count / (double) played : 0;
    for (size_t i = 0; i < w.count; i++) {
        shares[i].fragments += (uint64_t) llround((double) some[i].fragments * scale);
        shares[i].bytes += (uint64_t) llround((double) some[i].bytes * scale);
        shares[i].busy_s += some[i].busy_s * scale;
    }
    return now * scale;
}
