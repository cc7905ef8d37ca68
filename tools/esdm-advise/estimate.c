/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Estimates from samples, with their intervals. */

#include "esdm-advise/esdm-advise.h"

#include <math.h>

/* Bytes of a whole variable differ so much from those of its blocks together when these are of
 * usual size: programs write, and fragments are cut, in other pieces, and codecs may be chosen anew
 * in between. Found by storing real fields, as that smaller blocks make as much more of it as they
 * are smaller. */
#define CUT_SHARE 0.01

/* ---- distributions -------------------------------------------------------------------------- */

double
advise_quantile(double confidence)
{
    double low = 0, high = 40;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (erf(middle / G_SQRT2) < confidence)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* Probability that |t| is less: finite series (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4). */
static double
within(double t, guint degrees)
{
    double angle = atan(t / sqrt(degrees)), cosine = cos(angle), term, sum;
    bool odd = degrees % 2 == 1;
    sum = term = odd ? cosine : 1;
    for (guint k = odd ? 3 : 2; k < degrees; k += 2) {
        term *= cosine * cosine * (double) (k - 1) / k;
        sum += term;
    }
    if (!odd)
        return sin(angle) * sum;
    return 2 / G_PI * (angle + (degrees > 1 ? sin(angle) * sum : 0));
}

double
advise_student(double confidence, guint degrees)
{
    double low = 0, high = 1;
    if (degrees == 0)
        return INFINITY;
    if (degrees > 200)
        return advise_quantile(confidence);
    while (within(high, degrees) < confidence && high < 1e12)
        high *= 2;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (within(middle, degrees) < confidence)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

double
advise_cut_share(const advise_study *study)
{
    return CUT_SHARE * fmax((double) ADVISE_BLOCK_BYTES / (double) study->block_bytes, 1);
}

/* ---- ratios --------------------------------------------------------------------------------- */

typedef struct ratio {
    const advise_study *study;
    const char *variable; /* NULL: all */
    guint candidate;
    bool of_now; /* by bytes as they are stored now, else by raw bytes */
} ratio;

static bool
counts(const ratio *r, const advise_sample *sample)
{
    return !sample->again && (r->variable == NULL || g_str_equal(r->variable, sample->variable));
}

/* Of the block: how probable it is that any of the draws hits it. */
static double
probability(const ratio *r, const advise_sample *sample)
{
    return -expm1(r->study->samples->len * log1p(-fmin(sample->chance, 1 - 1e-12)));
}

static double
denominator(const ratio *r, const advise_sample *sample)
{
    double raw = (double) sample->raw_bytes;
    return r->of_now ? raw / sample->raw_share : raw;
}

/*
 * Hajek's estimate of a ratio from blocks that were drawn with unequal probabilities, each counted
 * once (Särndal, Swensson and Wretman 1992, 5.6 and 5.7); the variance is that of its residuals.
 * What is not left to be drawn makes no error.
 */
static advise_estimate
estimate(const ratio *r, double blocks)
{
    double numbers = 0, base = 0, squares = 0;
    guint drawn = 0;
    for (guint i = 0; i < r->study->samples->len; i++) {
        const advise_sample *sample = g_ptr_array_index(r->study->samples, i);
        if (!counts(r, sample))
            continue;
        double weight = 1 / probability(r, sample);
        numbers += weight * (double) sample->results[r->candidate].stored_bytes;
        base += weight * denominator(r, sample);
        drawn++;
    }
    if (drawn == 0)
        return (advise_estimate){.mean = NAN, .half = NAN};
    bool all = drawn >= blocks;
    double mean = 0, sum = 0;
    /* When all were drawn they are simply added. */
    for (guint i = 0; i < r->study->samples->len; i++) {
        const advise_sample *sample = g_ptr_array_index(r->study->samples, i);
        if (!counts(r, sample))
            continue;
        mean += all ? (double) sample->results[r->candidate].stored_bytes : 0;
        sum += denominator(r, sample);
    }
    mean = all ? mean / sum : numbers / base;
    if (all)
        return (advise_estimate){.mean = mean, .half = advise_cut_share(r->study) * mean};
    for (guint i = 0; i < r->study->samples->len; i++) {
        const advise_sample *sample = g_ptr_array_index(r->study->samples, i);
        if (!counts(r, sample))
            continue;
        double residual =
            (double) sample->results[r->candidate].stored_bytes - mean * denominator(r, sample);
        squares += pow(residual / probability(r, sample), 2);
    }
    double left = fmax(1 - drawn / blocks, 0);
    double deviation = drawn > 1 ? sqrt(squares * left * drawn / (drawn - 1)) / base : INFINITY;
    return (advise_estimate){.mean = mean,
                             .half = drawn > 1 ? advise_student(r->study->confidence, drawn - 1) *
                                                         deviation +
                                                     advise_cut_share(r->study) * mean
                                               : INFINITY};
}

advise_estimate
advise_share(const advise_study *study, const char *variable, guint candidate)
{
    const ratio r = {.study = study, .variable = variable, .candidate = candidate};
    const double *blocks =
        variable != NULL ? g_hash_table_lookup(study->blocks_of, variable) : NULL;
    return estimate(&r, blocks != NULL ? *blocks : study->blocks);
}

advise_estimate
advise_total(const advise_study *study, guint candidate)
{
    const ratio r = {.study = study, .candidate = candidate, .of_now = true};
    return estimate(&r, study->blocks);
}
