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
    const surprise *s = expects ? &foretold : &unknown;
    guint n = 0;
    ret[n++] = s->level;
    for (guint i = 0; i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
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
expected(const tune_space *space, const tune_setting *setting, const tune_expectation *e)
{
    return e->prior != NULL ? e->prior(space, setting, e->user) : 0;
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

void
tune_model_fit(tune_model *model, const tune_space *space, const GArray *trials,
               const tune_expectation *expectation)
{
    double deviations[MODEL_FEATURES];
    double x[MODEL_FEATURES];
    memset(model, 0, sizeof *model);
    tune_setting current = tune_space_current(space);
    model->features = features_of(space, &current, x);
    model->noise = noise_of(space, trials);
    deviations_of(space, expectation->prior != NULL, deviations);
    for (guint i = 0; i < model->features; i++)
        model->precision[i][i] = 1 / (deviations[i] * deviations[i]);
    const double weight = 1 / (model->noise * model->noise);
    for (guint t = 0; t < trials->len; t++) {
        const tune_trial *trial = &g_array_index(trials, tune_trial, t);
        double y =
            log(seconds_for_fit(trial, trials)) - expected(space, &trial->setting, expectation);
        (void) features_of(space, &trial->setting, x);
        for (guint i = 0; i < model->features; i++) {
            for (guint k = 0; k < model->features; k++)
                model->precision[i][k] += weight * x[i] * x[k];
            model->weights[i] += weight * x[i] * y;
        }
    }
    double *precision = &model->precision[0][0];
    learn_factor(precision, model->features, MODEL_FEATURES);
    learn_solve_lower(precision, model->features, MODEL_FEATURES, model->weights);
    learn_solve_upper(precision, model->features, MODEL_FEATURES, model->weights);
}

double
tune_model_predict(const tune_model *model, const tune_space *space, const tune_setting *setting,
                   const tune_expectation *expectation, double *ret_deviation)
{
    double x[MODEL_FEATURES];
    double mean = expected(space, setting, expectation);
    double variance = 0;
    (void) features_of(space, setting, x);
    for (guint i = 0; i < model->features; i++)
        mean += x[i] * model->weights[i];
    learn_solve_lower(&model->precision[0][0], model->features, MODEL_FEATURES, x);
    for (guint i = 0; i < model->features; i++)
        variance += x[i] * x[i];
    *ret_deviation = sqrt(variance);
    return mean;
}
