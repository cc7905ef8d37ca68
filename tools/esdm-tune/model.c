/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * How long a run takes with settings that were not tried: Bayesian linear regression of the
 * logarithm of seconds (Bishop, Pattern Recognition and Machine Learning, 2006, section 3.3) over
 * positions of values, their squares and products, and one indicator for each codec. What theory
 * expects is the mean before anything was tried; few trials move it a little, many a lot.
 */
#include <math.h>
#include <string.h>

#include "esdm-tune/esdm-tune.h"
#include "learn/solve.h"

/* Deviations of the weights before anything was tried: logarithms of seconds. Codecs and sizes of
 * fragments matter by factors of two or three; who expects something is surprised by less: by how
 * much was chosen on 1,000 emulated back ends, other ones than those that tests have. */
typedef struct surprise {
    double level, slope, bend, together, codec;
} surprise;

static const surprise unknown = {3.0, 0.6, 0.3, 0.2, 0.6};
static const surprise foretold = {3.0, 0.24, 0.24, 0.08, 0.16};
/* Deviation of runs of one setting, where it is not known: a quiet machine has less. */
#define NOISE       0.05
#define NOISE_LEAST 0.01

/* Values of the features of a setting; how many. */
static guint
features_of(const tune_space *space, const tune_setting *setting, double *ret)
{
    guint n = 0;
    ret[n++] = 1;
    for (guint i = 0; i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
        double z = p->position[setting->value[i]];
        if (p->category) {
            for (guint k = 0; k < p->count; k++)
                if (k != p->current)
                    ret[n++] = setting->value[i] == k;
            continue;
        }
        ret[n++] = z;
        ret[n++] = z * z;
        for (guint k = 0; k < i; k++)
            if (!space->parameters[k].category)
                ret[n++] = z * space->parameters[k].position[setting->value[k]];
    }
    return n;
}

/* Deviations of their weights, in the same order. */
static void
deviations_of(const tune_space *space, bool expects, double *ret)
{
    guint n = 0;
    ret[n++] = unknown.level;
    for (guint i = 0; i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
        const surprise *s = expects && tune_expects(p) ? &foretold : &unknown;
        if (p->category) {
            for (guint k = 0; k + 1 < p->count; k++)
                ret[n++] = s->codec;
            continue;
        }
        ret[n++] = s->slope;
        ret[n++] = s->bend;
        for (guint k = 0; k < i; k++)
            if (!space->parameters[k].category)
                ret[n++] = s->together;
    }
}

/* Deviation of the logarithm among trials of equal settings. */
static double
noise_of(const tune_space *space, const GArray *trials)
{
    double squares = 0;
    guint pairs = 0;
    for (guint i = 0; i < trials->len; i++) {
        const tune_trial *a = &g_array_index(trials, tune_trial, i);
        for (guint k = 0; k < i; k++) {
            const tune_trial *b = &g_array_index(trials, tune_trial, k);
            if (!tune_setting_equal(space, &a->setting, &b->setting) ||
                !isfinite(a->seconds + b->seconds))
                continue;
            squares += pow(log(a->seconds / b->seconds), 2) / 2;
            pairs++;
        }
    }
    /* As if two more pairs had been usual. */
    double variance = (squares + 2 * NOISE * NOISE) / (pairs + 2);
    return fmax(sqrt(variance), NOISE_LEAST);
}

static double
expected(const tune_space *space, const tune_setting *setting, const tune_expectation *e,
         guint guess)
{
    return e->prior != NULL ? e->prior(space, setting, e->user, guess) : 0;
}

/* A run that failed says that its setting is bad, not how bad. */
#define FAILED_TIMES 10.0
static double
seconds_for_fit(const tune_trial *trial, const GArray *trials)
{
    double most = 0;
    if (isfinite(trial->seconds))
        return trial->seconds;
    for (guint i = 0; i < trials->len; i++) {
        double s = g_array_index(trials, tune_trial, i).seconds;
        most = isfinite(s) && s > most ? s : most;
    }
    return most > 0 ? most * FAILED_TIMES : 1;
}

/* The weights beside a guess. @return logarithm of how likely what was seen is then, but for what
 * is the same of all guesses. */
static double
fit_guess(const tune_model *model, const tune_space *space, const GArray *trials,
          const tune_expectation *expectation, guint guess)
{
    double x[MODEL_FEATURES];
    double *weights = model->weights + (gsize) guess * model->features;
    const double *precision = &model->precision[0][0];
    const double weight = 1 / (model->noise * model->noise);
    double squares = 0;
    memset(weights, 0, model->features * sizeof *weights);
    for (guint t = 0; t < trials->len; t++) {
        const tune_trial *trial = &g_array_index(trials, tune_trial, t);
        double y = log(seconds_for_fit(trial, trials)) -
                   expected(space, &trial->setting, expectation, guess);
        (void) features_of(space, &trial->setting, x);
        for (guint i = 0; i < model->features; i++)
            weights[i] += weight * x[i] * y;
        squares += weight * y * y;
    }
    learn_solve_lower(precision, model->features, MODEL_FEATURES, weights);
    for (guint i = 0; i < model->features; i++)
        squares -= weights[i] * weights[i];
    learn_solve_upper(precision, model->features, MODEL_FEATURES, weights);
    return -squares / 2;
}

/* From logarithms of how likely they are. */
static void
share_out(double *shares, guint count)
{
    double most = -INFINITY, sum = 0;
    for (guint g = 0; g < count; g++)
        most = fmax(most, shares[g]);
    for (guint g = 0; g < count; g++)
        sum += shares[g] = exp(shares[g] - most);
    for (guint g = 0; g < count; g++)
        shares[g] /= sum;
}

void
tune_model_fit(tune_model *model, const tune_space *space, const GArray *trials,
               const tune_expectation *expectation)
{
    double deviations[MODEL_FEATURES];
    double x[MODEL_FEATURES];
    memset(model->precision, 0, sizeof model->precision);
    tune_setting current = tune_space_current(space);
    model->features = features_of(space, &current, x);
    model->noise = noise_of(space, trials);
    model->guesses = MAX(expectation->guesses, 1u);
    model->weights = g_renew(double, model->weights, (gsize) model->guesses * model->features);
    model->shares = g_renew(double, model->shares, model->guesses);
    deviations_of(space, expectation->prior != NULL, deviations);
    for (guint i = 0; i < model->features; i++)
        model->precision[i][i] = 1 / (deviations[i] * deviations[i]);
    const double weight = 1 / (model->noise * model->noise);
    for (guint t = 0; t < trials->len; t++) {
        (void) features_of(space, &g_array_index(trials, tune_trial, t).setting, x);
        for (guint i = 0; i < model->features; i++)
            for (guint k = 0; k < model->features; k++)
                model->precision[i][k] += weight * x[i] * x[k];
    }
    learn_factor(&model->precision[0][0], model->features, MODEL_FEATURES);
    for (guint g = 0; g < model->guesses; g++)
        model->shares[g] = fit_guess(model, space, trials, expectation, g);
    share_out(model->shares, model->guesses);
}

/* Deviation of what is predicted beside a guess, the same for all of them. @param x features. */
static double
deviation_of(const tune_model *model, const double *x)
{
    double solved[MODEL_FEATURES];
    double variance = 0;
    memcpy(solved, x, model->features * sizeof *x);
    learn_solve_lower(&model->precision[0][0], model->features, MODEL_FEATURES, solved);
    for (guint i = 0; i < model->features; i++)
        variance += solved[i] * solved[i];
    return sqrt(variance);
}

/* A guess that is less likely by that than all would be alike is left out. */
#define UNLIKELY 1e-3

static bool
counts(const tune_model *model, guint guess)
{
    return model->shares[guess] * model->guesses >= UNLIKELY;
}

static double
mean_of(const tune_model *model, const tune_space *space, const tune_setting *setting,
        const tune_expectation *expectation, const double *x, guint guess)
{
    const double *weights = model->weights + (gsize) guess * model->features;
    double mean = expected(space, setting, expectation, guess);
    for (guint i = 0; i < model->features; i++)
        mean += x[i] * weights[i];
    return mean;
}

double
tune_model_predict(const tune_model *model, const tune_space *space, const tune_setting *setting,
                   const tune_expectation *expectation, double *ret_deviation)
{
    double x[MODEL_FEATURES];
    double sum = 0, mean = 0, squares = 0;
    (void) features_of(space, setting, x);
    double deviation = deviation_of(model, x);
    for (guint g = 0; g < model->guesses; g++) {
        double of = counts(model, g) ? mean_of(model, space, setting, expectation, x, g) : 0;
        double share = counts(model, g) ? model->shares[g] : 0;
        sum += share;
        mean += share * of;
        squares += share * of * of;
    }
    mean /= sum;
    *ret_deviation = sqrt(deviation * deviation + fmax(squares / sum - mean * mean, 0));
    return mean;
}

static double
normal_density(double z)
{
    return exp(-z * z / 2) / sqrt(2 * G_PI);
}

static double
normal_share(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

/* All are logarithms. */
static double
improvement(double best, double mean, double deviation)
{
    double z = deviation > 0 ? (best - mean) / deviation : 0;
    if (!(deviation > 0))
        return fmax(best - mean, 0);
    return (best - mean) * normal_share(z) + deviation * normal_density(z);
}

double
tune_model_gain(const tune_model *model, const tune_space *space, const tune_setting *setting,
                const tune_expectation *expectation, double best)
{
    double x[MODEL_FEATURES];
    double gain = 0;
    (void) features_of(space, setting, x);
    double deviation = deviation_of(model, x);
    for (guint g = 0; g < model->guesses; g++)
        if (counts(model, g))
            gain += model->shares[g] *
                    improvement(best, mean_of(model, space, setting, expectation, x, g), deviation);
    return gain;
}
