/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "placement/placement.h"

#include <math.h>

#include "placement/learned.h"

/* Differences in predicted time below this share count as none. */
#define SAME 1e-9

/* Of what is under way, with `beside` requests at once. */
static double
queued_of(const esdm__place_target *t, double beside)
{
    double queued = t->queued_requests * t->write->service_s +
                    (double) t->queued_bytes * t->write->shared_s_per_byte;
    if (t->write->learned != NULL && t->queued_requests > 0)
        queued *= esdm__learned_factor(t->write->learned,
                                       (double) t->queued_bytes / t->queued_requests, beside);
    return queued;
}

/* Time until the target has worked off what is under way. */
static double
wait_of(const esdm__place_target *t)
{
    return t->owed_s + queued_of(t, t->queued_requests);
}

/* Of a request that joins what is under way. */
static double
busy_of(const esdm__place_target *t, double bytes)
{
    return esdm__perf_busy_at(t->write, bytes, t->queued_requests + 1.0);
}

static double
completion_of(const esdm__place_target *t, double bytes)
{
    double beside = t->queued_requests + 1.0;
    double alone = t->write->latency_s + bytes * t->write->stream_s_per_byte;
    alone *= esdm__learned_factor(t->write->learned, bytes, beside);
    return fmax(alone, t->owed_s + queued_of(t, beside) + busy_of(t, bytes));
}

/* Sharing a target is what every request costs the others. Where it was learned that one more makes
 * all of them slower than that, whoever joins would gain less than they lose. */
static double
harm_of(const esdm__place_target *t, double bytes)
{
    double n = t->queued_requests;
    if (t->write->learned == NULL || !(n > 0))
        return 0;
    double before = esdm__perf_seconds(t->write, bytes, n);
    double after = esdm__perf_seconds(t->write, bytes, n + 1);
    return n * fmax(0, after - before * (n + 1) / n);
}

/* What may take part in the contest for the first place. */
static bool
contends(const esdm__place_target *t, const esdm__place_request *request, double cheapest)
{
    return t->allowed && !t->failed && t->write != NULL &&
           (request->prefer == ESDM__PREFER_SPEED || t->cost <= cheapest);
}

static double
cheapest_of(const esdm__place_target *targets, size_t count)
{
    double cheapest = INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (targets[i].allowed && !targets[i].failed)
            cheapest = fmin(cheapest, targets[i].cost);
    }
    return cheapest;
}

/* The earliest time at which the request and all behind it can be done when every target takes
 * fragments of this size as fast as it can: where the sum of (T - wait) / busy reaches their
 * number. Targets join in the order of their waits. */
static double
horizon_of(const esdm__place_target *targets, size_t count, const esdm__place_request *request,
           double cheapest)
{
    double bytes = (double) request->bytes;
    double fragments = 1 + (bytes > 0 ? (double) request->behind / bytes : 0);
    double rate = 0;   /* fragments per second of those that joined */
    double missed = 0; /* fragments that they would have done in their waits */
    double horizon = INFINITY;
    double joined_below = -1;
    for (size_t round = 0; round < count; round++) {
        double next = INFINITY; /* wait of those that join now */
        for (size_t i = 0; i < count; i++) {
            if (contends(&targets[i], request, cheapest) && wait_of(&targets[i]) > joined_below)
                next = fmin(next, wait_of(&targets[i]));
        }
        if (next >= horizon)
            break;
        for (size_t i = 0; i < count; i++) {
            if (!contends(&targets[i], request, cheapest) || wait_of(&targets[i]) != next)
                continue;
            double speed = 1 / fmax(busy_of(&targets[i], bytes), 1e-12);
            rate += speed;
            missed += next * speed;
        }
        horizon = rate > 0 ? (fragments + missed) / rate : INFINITY;
        joined_below = next;
    }
    return horizon;
}

static esdm__place_why
obstacle_of(const esdm__place_target *t, const esdm__place_request *request, double cheapest,
            bool measured)
{
    if (!t->allowed)
        return ESDM__PLACE_FORBIDDEN;
    if (t->failed)
        return ESDM__PLACE_FAILED;
    if (t->write == NULL && measured)
        return ESDM__PLACE_UNMEASURED;
    if (request->prefer == ESDM__PREFER_COST && t->cost > cheapest)
        return ESDM__PLACE_COSTLY;
    return t->write != NULL ? ESDM__PLACE_LATER : ESDM__PLACE_TURN;
}

/* Groups in the order in which they are asked. */
static int
rank_of(const esdm__place_choice *c)
{
    switch (c->why) {
    case ESDM__PLACE_SOONEST:
    case ESDM__PLACE_SHARE:
        return 0;
    case ESDM__PLACE_TURN:
    case ESDM__PLACE_LATER:
        return 1;
    case ESDM__PLACE_COSTLY:
    case ESDM__PLACE_UNMEASURED:
        return 2;
    case ESDM__PLACE_FAILED:
        return 3;
    case ESDM__PLACE_FORBIDDEN:
        break;
    }
    return 4;
}

/* Place of a target in this turn. */
static size_t
turn_of(size_t target, size_t count, uint64_t turn)
{
    return (target + count - (size_t) (turn % count)) % count;
}

static bool
same(double a, double b)
{
    return fabs(a - b) <= SAME * fmax(fabs(a), fabs(b));
}

static bool
comes_before(const esdm__place_choice *a, const esdm__place_choice *b, size_t count, uint64_t turn)
{
    if (rank_of(a) != rank_of(b))
        return rank_of(a) < rank_of(b);
    double wait[2] = {a->wait_s + a->harm_s, b->wait_s + b->harm_s};
    double price[2] = {a->completion_s + a->harm_s, b->completion_s + b->harm_s};
    if (a->why == ESDM__PLACE_SHARE && b->why == ESDM__PLACE_SHARE && !same(wait[0], wait[1]))
        return wait[0] < wait[1];
    if (!same(price[0], price[1]))
        return price[0] < price[1];
    return turn_of(a->target, count, turn) < turn_of(b->target, count, turn);
}

static void
sort(esdm__place_choice *order, size_t count, uint64_t turn)
{
    for (size_t i = 1; i < count; i++) { /* few targets */
        esdm__place_choice c = order[i];
        size_t at = i;
        for (; at > 0 && comes_before(&c, &order[at - 1], count, turn); at--)
            order[at] = order[at - 1];
        order[at] = c;
    }
}

size_t
esdm__placement_order(const esdm__place_target *targets, size_t count,
                      const esdm__place_request *request, esdm__place_choice *ret_order)
{
    double bytes = (double) request->bytes;
    double cheapest = cheapest_of(targets, count);
    double soonest = INFINITY;
    size_t asked = 0;
    bool measured = false;
    for (size_t i = 0; i < count; i++) {
        asked += targets[i].allowed;
        measured = measured || (targets[i].allowed && targets[i].write != NULL);
        if (contends(&targets[i], request, cheapest))
            soonest =
                fmin(soonest, completion_of(&targets[i], bytes) + harm_of(&targets[i], bytes));
    }
    double horizon = fmax(horizon_of(targets, count, request, cheapest), soonest) * (1 + SAME);
    for (size_t i = 0; i < count; i++) {
        const esdm__place_target *t = &targets[i];
        esdm__place_choice *c = &ret_order[i];
        *c = (esdm__place_choice){.target = i};
        if (t->write != NULL) {
            c->wait_s = wait_of(t);
            c->completion_s = completion_of(t, bytes);
            c->harm_s = harm_of(t, bytes);
        }
        c->why = obstacle_of(t, request, cheapest, measured);
        if (!contends(t, request, cheapest))
            continue;
        double price = c->completion_s + c->harm_s;
        if (request->behind == 0 ? same(price, soonest) : price <= horizon)
            c->why = request->behind == 0 ? ESDM__PLACE_SOONEST : ESDM__PLACE_SHARE;
    }
    sort(ret_order, count, request->turn);
    for (size_t i = 1; i < count; i++) { /* one is chosen */
        if (ret_order[i].why == ESDM__PLACE_SOONEST || ret_order[i].why == ESDM__PLACE_SHARE)
            ret_order[i].why = ESDM__PLACE_LATER;
    }
    return asked;
}

const char *
esdm__place_why_text(esdm__place_why why)
{
    switch (why) {
    case ESDM__PLACE_SOONEST:
        return "done soonest";
    case ESDM__PLACE_SHARE:
        return "does its share";
    case ESDM__PLACE_TURN:
        return "targets take turns";
    case ESDM__PLACE_LATER:
        return "would be done later";
    case ESDM__PLACE_COSTLY:
        return "costs more";
    case ESDM__PLACE_UNMEASURED:
        return "was not measured";
    case ESDM__PLACE_FAILED:
        return "was full or failing";
    case ESDM__PLACE_FORBIDDEN:
        break;
    }
    return "is not allowed by the site's policies";
}
