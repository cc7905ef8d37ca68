/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The model of a target, fitted to measurements, and its error on what it has not seen. */

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "placement/perf.h"

#define ROUNDS  20u   /* of reweighting, and of assigning samples to bounds */
#define HUBER_K 1.345 /* residuals beyond this many scales count less (Huber, 1964) */
#define FOLDS   5u
/* Residuals are never taken to be smaller than this: measurements repeat no better. */
#define LEAST_SCALE 0.01

static bool
usable(const esdm__perf_sample *s)
{
    return isfinite(s->bytes) && isfinite(s->concurrency) && isfinite(s->seconds) &&
           s->bytes >= 0 && s->concurrency >= 1 && s->seconds > 0;
}

/* No target moves a terabyte a second: less than that is what the search has made of a number that
 * limits nothing. */
#define BYTE_LEAST_S 1e-12

/* ---- one line ----------------------------------------------------------------------------- */

/* seconds = a * scale + b * scale * bytes, where scale is 1 or the concurrency. */
typedef struct line {
    double a;
    double b;
} line;

/* The samples that a line is fitted to. */
typedef struct subset {
    const esdm__perf_sample *samples;
    const bool *in;
    size_t count;
    bool shared; /* scale is the concurrency */
    double *scratch;
} subset;

static double
line_at(const subset *set, const line *l, size_t i)
{
    const esdm__perf_sample *s = &set->samples[i];
    return (set->shared ? s->concurrency : 1) * (l->a + l->b * s->bytes);
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;
    return x < y ? -1 : x > y;
}

static double
median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Standard deviation of the relative residuals, from the median of their sizes. */
static double
scale_of(const subset *set, const line *l)
{
    size_t n = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->in[i])
            set->scratch[n++] = fabs(line_at(set, l, i) / set->samples[i].seconds - 1);
    }
    return fmax(median(set->scratch, n) / 0.6745, LEAST_SCALE);
}

/* Least squares of weighted relative residuals with a, b ≥ 0. False: there is nothing to fit. */
static bool
solve(const subset *set, const line *weighted_by, line *ret_line)
{
    double scale = weighted_by != NULL ? scale_of(set, weighted_by) : 0;
    double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
    for (size_t i = 0; i < set->count; i++) {
        const esdm__perf_sample *s = &set->samples[i];
        if (!set->in[i])
            continue;
        double x = (set->shared ? s->concurrency : 1) / s->seconds;
        double y = x * s->bytes;
        double w = 1;
        if (weighted_by != NULL) {
            double r = fabs(line_at(set, weighted_by, i) / s->seconds - 1);
            w = r > HUBER_K * scale ? HUBER_K * scale / r : 1;
        }
        xx += w * x * x;
        xy += w * x * y;
        yy += w * y * y;
        x1 += w * x;
        y1 += w * y;
    }
    if (xx <= 0)
        return false;
    double det = xx * yy - xy * xy;
    line l = {.a = x1 / xx};
    if (det > 1e-12 * xx * yy) {
        l.a = (x1 * yy - y1 * xy) / det;
        l.b = (xx * y1 - xy * x1) / det;
    }
    if (l.b < 0)
        l = (line){.a = x1 / xx};
    else if (l.a < 0)
        l = (line){.b = y1 / yy};
    *ret_line = l;
    return true;
}

static bool
fit_line(const subset *set, line *ret_line)
{
    line l;
    if (!solve(set, NULL, &l))
        return false;
    for (unsigned round = 0; round < ROUNDS; round++) {
        line next;
        if (!solve(set, &l, &next))
            break;
        l = next;
    }
    *ret_line = l;
    return true;
}

/* ---- both bounds -------------------------------------------------------------------------- */

/* Huber's loss of the logarithms of predicted / measured: half and double are as bad. */
static double
loss_of(const esdm__perf *perf, const esdm__perf_sample *samples, size_t count)
{
    const double k = 0.2;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double predicted = esdm__perf_seconds(perf, samples[i].bytes, samples[i].concurrency);
        double r = fabs(log(fmax(predicted, 1e-12) / samples[i].seconds));
        sum += r <= k ? r * r / 2 : k * (r - k / 2);
    }
    return sum;
}

/* A target is not busy for longer than the request takes. */
static void
set_line(esdm__perf *perf, bool shared, const line *l)
{
    if (shared) {
        perf->service_s = l->a;
        perf->shared_s_per_byte = l->b;
    } else {
        perf->latency_s = l->a;
        perf->stream_s_per_byte = l->b;
    }
    perf->service_s = fmin(perf->service_s, perf->latency_s);
    perf->shared_s_per_byte = fmin(perf->shared_s_per_byte, perf->stream_s_per_byte);
}

/* Takes the samples in turn for those that the first or the second bound explains, until nothing
 * changes; keeps what was best. */
static void
alternate(subset *set, bool *in, esdm__perf *perf)
{
    esdm__perf now = *perf;
    double best = loss_of(perf, set->samples, set->count);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned shared = 0; shared < 2; shared++) {
            line l;
            for (size_t i = 0; i < set->count; i++) {
                const esdm__perf_sample *s = &set->samples[i];
                double alone = now.latency_s + s->bytes * now.stream_s_per_byte;
                double busy = now.service_s + s->bytes * now.shared_s_per_byte;
                in[i] = (s->concurrency > 1 && s->concurrency * busy > alone) == (shared == 1);
            }
            set->shared = shared == 1;
            if (fit_line(set, &l))
                set_line(&now, shared == 1, &l);
        }
        double loss = loss_of(&now, set->samples, set->count);
        if (loss >= best)
            break;
        best = loss;
        *perf = now;
    }
}

/* Moves one number at a time as long as the loss gets smaller, in finer and finer steps. */
static void
polish(const esdm__perf_sample *samples, size_t count, esdm__perf *perf)
{
    static const double steps[] = {1.5, 1.15, 1.05, 1.01};
    double best = loss_of(perf, samples, count);
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        bool moved = true;
        for (unsigned round = 0; moved && round < 4 * ROUNDS; round++) {
            moved = false;
            for (unsigned j = 0; j < 8; j++) {
                esdm__perf next = *perf;
                double *const numbers[] = {&next.latency_s, &next.stream_s_per_byte,
                                           &next.service_s, &next.shared_s_per_byte};
                *numbers[j / 2] *= j % 2 == 0 ? steps[k] : 1 / steps[k];
                next.service_s = fmin(next.service_s, next.latency_s);
                next.shared_s_per_byte = fmin(next.shared_s_per_byte, next.stream_s_per_byte);
                double loss = loss_of(&next, samples, count);
                if (loss < best * (1 - 1e-9)) {
                    best = loss;
                    *perf = next;
                    moved = true;
                }
            }
        }
    }
}

static esdm_status
fit(const esdm__perf_sample *samples, size_t count, bool *in, double *scratch, esdm__perf *ret_perf,
    esdm_error *err)
{
    subset set = {.samples = samples, .in = in, .count = count, .scratch = scratch};
    esdm__perf perf = {0};
    double least = INFINITY;
    line l = {0};
    for (size_t i = 0; i < count; i++)
        least = fmin(least, samples[i].concurrency);
    for (size_t i = 0; i < count; i++)
        in[i] = samples[i].concurrency <= least;
    if (!fit_line(&set, &l))
        return esdm__error_set(err, ESDM_EINVAL, "the samples cannot be fitted");
    set_line(&perf, false, &l);
    perf.service_s = perf.latency_s; /* if nothing was measured: more at once gains nothing */
    perf.shared_s_per_byte = perf.stream_s_per_byte;
    for (size_t i = 0; i < count; i++)
        in[i] = samples[i].concurrency > least;
    set.shared = true;
    if (fit_line(&set, &l))
        set_line(&perf, true, &l);
    alternate(&set, in, &perf);
    polish(samples, count, &perf);
    if (perf.stream_s_per_byte < BYTE_LEAST_S)
        perf.stream_s_per_byte = 0;
    if (perf.shared_s_per_byte < BYTE_LEAST_S)
        perf.shared_s_per_byte = 0;
    if (!esdm__perf_valid(&perf))
        return esdm__error_set(err, ESDM_EINVAL, "the samples cannot be fitted");
    *ret_perf = perf;
    return ESDM_OK;
}

/* Memory for `count` samples. */
typedef struct space {
    esdm__perf_sample *samples;
    bool *in;
    double *scratch;
} space;

static void
space_clear(space *s)
{
    free(s->samples);
    free(s->in);
    free(s->scratch);
}

static esdm_status
space_init(space *s, size_t count, esdm_error *err)
{
    s->samples = calloc(count + 1, sizeof *s->samples);
    s->in = calloc(count + 1, sizeof *s->in);
    s->scratch = calloc(count + 1, sizeof *s->scratch);
    if (s->samples != NULL && s->in != NULL && s->scratch != NULL)
        return ESDM_OK;
    space_clear(s);
    return esdm__error_nomem(err, count * sizeof *s->samples, "a model");
}

esdm_status
esdm__perf_fit(const esdm__perf_sample *samples, size_t count, esdm__perf *ret_perf,
               esdm_error *err)
{
    space s = {0};
    esdm_status status = space_init(&s, count, err);
    if (status != ESDM_OK)
        return status;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (usable(&samples[i]))
            s.samples[n++] = samples[i];
    }
    status = n < ESDM__PERF_LEAST_SAMPLES
                 ? esdm__error_set(err, ESDM_EINVAL,
                                   "%zu usable measurements; a model needs at least %u", n,
                                   ESDM__PERF_LEAST_SAMPLES)
                 : fit(s.samples, n, s.in, s.scratch, ret_perf, err);
    space_clear(&s);
    return status;
}

/* ---- validation --------------------------------------------------------------------------- */

/* Number of the point (bytes and concurrency) of a sample, in the order of their appearance: what
 * is held out is a whole point, not one of its repetitions. */
static size_t
point_of(const esdm__perf_sample *samples, size_t i)
{
    size_t points = 0;
    for (size_t k = 0; k <= i; k++) {
        size_t first = 0;
        while (samples[first].bytes != samples[k].bytes ||
               samples[first].concurrency != samples[k].concurrency)
            first++;
        if (samples[first].bytes == samples[i].bytes &&
            samples[first].concurrency == samples[i].concurrency)
            break;
        points += first == k;
    }
    return points;
}

typedef struct validation {
    double model;
    double naive;
    size_t tested;
    double *errors; /* of the model */
} validation;

static esdm_status
hold_out(const esdm__perf_sample *samples, size_t count, const size_t *fold, size_t held,
         esdm__perf_sample *rest, validation *v, esdm_error *err)
{
    size_t n = 0;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (fold[i] != held && usable(&samples[i])) {
            rest[n++] = samples[i];
            sum += samples[i].seconds;
        }
    }
    esdm__perf perf;
    esdm_status status = esdm__perf_fit(rest, n, &perf, err);
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        const esdm__perf_sample *s = &samples[i];
        if (fold[i] != held || !usable(s))
            continue;
        double predicted = esdm__perf_seconds(&perf, s->bytes, s->concurrency);
        v->errors[v->tested] = fabs(predicted - s->seconds) / s->seconds;
        v->model += v->errors[v->tested++];
        v->naive += fabs(sum / (double) n - s->seconds) / s->seconds;
    }
    return status;
}

esdm_status
esdm__perf_validate(const esdm__perf_sample *samples, size_t count, esdm__perf_error *ret_error,
                    esdm_error *err)
{
    size_t *fold = calloc(count + 1, sizeof *fold);
    esdm__perf_sample *rest = calloc(count + 1, sizeof *rest);
    validation v = {.errors = calloc(count + 1, sizeof(double))};
    esdm_status status = ESDM_OK;
    if (fold == NULL || rest == NULL || v.errors == NULL)
        status = esdm__error_nomem(err, count * sizeof *rest, "a validation");
    if (status == ESDM_OK) {
        for (size_t i = 0; i < count; i++)
            fold[i] = point_of(samples, i) % FOLDS;
        for (size_t held = 0; held < FOLDS && status == ESDM_OK; held++)
            status = hold_out(samples, count, fold, held, rest, &v, err);
    }
    if (status == ESDM_OK && v.tested > 0)
        *ret_error = (esdm__perf_error){.model = v.model / (double) v.tested,
                                        .naive = v.naive / (double) v.tested,
                                        .samples = v.tested,
                                        .median = median(v.errors, v.tested)};
    free(fold);
    free(rest);
    free(v.errors);
    return status;
}
