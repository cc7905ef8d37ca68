/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The search: runs today's setting, then the one of which the model expects most (expected
 * improvement; Jones, Schonlau, Welch 1998), fits again, and so on. What seems best has to be
 * faster than today's in a paired test, else nothing changes.
 */
#include "esdm-tune/esdm-tune.h"

#include <math.h>
#include <stdio.h>

/* Less than that is no reason to go on, as a share of the time. */
#define WORTH_A_TRIAL 0.01
/* A setting is kept when its pairs are faster by that. */
#define WORTH_A_CHANGE 0.03
/* Times as many pairs as were asked for, where these contradict each other. */
#define MORE_PAIRS 3
/* A trial is ended when it takes that many times as long as today's setting. */
#define LIMIT_TIMES  5
#define LIMIT_MORE_S 5.0

static tune_trial *
trial_at(const tune_search *s, guint i)
{
    return &g_array_index(s->trials, tune_trial, i);
}

static bool
was_tried(const tune_search *s, const tune_setting *setting)
{
    for (guint i = 0; i < s->trials->len; i++) {
        if (tune_setting_equal(s->space, &trial_at(s, i)->setting, setting))
            return true;
    }
    return false;
}

/* The best of what was tried, by what the model thinks of it: one lucky run does not count. */
static tune_setting
best_of(const tune_search *s, double *ret_log)
{
    tune_setting best = tune_space_current(s->space);
    *ret_log = INFINITY;
    for (guint i = 0; i < s->trials->len; i++) {
        const tune_trial *t = trial_at(s, i);
        double deviation;
        double mean =
            tune_model_predict(&s->model, s->space, &t->setting, &s->expectation, &deviation);
        if (!isfinite(t->seconds))
            continue;
        /* Between what was seen and what its neighbours say. */
        double share =
            deviation * deviation / (deviation * deviation + s->model.noise * s->model.noise);
        double value = share * log(t->seconds) + (1 - share) * mean;
        if (value < *ret_log) {
            *ret_log = value;
            best = t->setting;
        }
    }
    return best;
}

/* What to run next. false: nothing is worth it. */
static bool
next_of(const tune_search *s, tune_setting *ret, double *ret_predicted)
{
    double best, deviation;
    double most = s->exhaustive ? -1 : WORTH_A_TRIAL;
    bool found = false;
    (void) best_of(s, &best);
    for (guint64 n = 0; n < tune_space_size(s->space); n++) {
        tune_setting setting = tune_space_at(s->space, n);
        if (was_tried(s, &setting) || !tune_space_can_be(s->space, &setting))
            continue;
        double gain = tune_model_gain(&s->model, s->space, &setting, &s->expectation, best);
        if (gain > most) {
            most = gain;
            *ret = setting;
            found = true;
        }
    }
    if (found)
        *ret_predicted =
            exp(tune_model_predict(&s->model, s->space, ret, &s->expectation, &deviation));
    return found;
}

static void
tell_trial(const tune_search *s, const tune_trial *t)
{
    g_autofree char *text = tune_setting_text(s->space, &t->setting);
    if (s->quiet)
        return;
    if (!isfinite(t->seconds))
        (void) fprintf(stderr, "  trial %u: %s: %s\n", s->trials->len, text,
                       "failed, or took more than five times as long");
    else if (isnan(t->predicted))
        (void) fprintf(stderr, "  trial %u: %s: %.3f s\n", s->trials->len, text, t->seconds);
    else
        (void) fprintf(stderr, "  trial %u: %s: %.3f s (%.3f s expected)\n", s->trials->len, text,
                       t->seconds, t->predicted);
}

/* What the genetic search has run is not run again. */
static bool
find_known(const tune_search *s, tune_trial *trial)
{
    for (guint i = 0; s->known != NULL && i < s->known->len; i++) {
        const tune_trial *t = &g_array_index(s->known, tune_trial, i);
        if (tune_setting_equal(s->space, &t->setting, &trial->setting)) {
            trial->seconds = t->seconds;
            trial->known = true;
            return true;
        }
    }
    return false;
}

bool
tune_search_can_run(const tune_search *s, const tune_setting *setting)
{
    return !was_tried(s, setting) && tune_space_can_be(s->space, setting);
}

/* What acts by records of earlier runs gets them first. */
static tool_exit
run_trial(tune_search *s, tune_trial *trial, bool may_fail)
{
    tune_way way = tune_space_way(s->space, &trial->setting);
    tool_exit result = TOOL_OK;
    guint before = tune_space_runs_before(s->space, &trial->setting);
    for (guint i = 0; i < before && result == TOOL_OK && !tune_stopped(); i++) {
        result = tune_run(s->workload, &way, may_fail, &trial->seconds);
        if (!s->quiet && isfinite(trial->seconds))
            (void) fprintf(stderr, "  a run for later ones to learn from: %.3f s\n",
                           trial->seconds);
    }
    if (result == TOOL_OK && !tune_stopped())
        result = tune_run(s->workload, &way, may_fail, &trial->seconds);
    tune_way_clear(&way);
    return result;
}

tool_exit
tune_search_trial(tune_search *s, const tune_setting *setting, double predicted)
{
    tune_trial trial = {.setting = *setting, .predicted = predicted};
    bool first = s->trials->len == 0;
    tool_exit result = find_known(s, &trial) ? TOOL_OK : run_trial(s, &trial, !first);
    if (result != TOOL_OK || tune_stopped())
        return result;
    if (first && !trial.known)
        s->workload->limit_s = trial.seconds * LIMIT_TIMES + LIMIT_MORE_S;
    g_array_append_val(s->trials, trial);
    tune_model_fit(&s->model, s->space, s->trials, &s->expectation);
    tell_trial(s, &trial);
    return TOOL_OK;
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static double
median_of(const GArray *numbers)
{
    g_autoptr(GArray) sorted = g_array_sized_new(FALSE, FALSE, sizeof(double), numbers->len);
    g_array_append_vals(sorted, numbers->data, numbers->len);
    g_array_sort(sorted, tool_by_number);
    guint n = sorted->len;
    if (n == 0)
        return NAN;
    return (g_array_index(sorted, double, (n - 1) / 2) + g_array_index(sorted, double, n / 2)) / 2;
}

/* Deviation of the ratio of two runs, as its logarithm, where pairs happen to differ by less. */
#define PAIR_NOISE 0.05
/* Times the deviation of a mean that it must be away from no difference. */
#define SURE 2

/* Whether chance would seldom make the second one so much faster. @param ratios at least one. */
static bool
is_sure(const GArray *ratios)
{
    double sum = 0, squares = 0, count = ratios->len;
    for (guint i = 0; i < ratios->len; i++) {
        double ratio = log(g_array_index(ratios, double, i));
        sum += ratio;
        squares += ratio * ratio;
    }
    double mean = sum / count;
    double variance = count > 1 ? fmax(squares - sum * mean, 0) / (count - 1) : 0;
    return mean + SURE * fmax(sqrt(variance), PAIR_NOISE) / sqrt(count) < 0;
}

/* Of all pairs but a quarter the second must be faster, the median by WORTH_A_CHANGE, and the mean
 * by more than chance makes. */
static void
judge(const GArray *one, const GArray *other, double *ret_ratio, bool *ret_better)
{
    g_autoptr(GArray) ratios = g_array_new(FALSE, FALSE, sizeof(double));
    guint faster = 0;
    for (guint i = 0; i < other->len; i++) {
        double ratio = g_array_index(other, double, i) / g_array_index(one, double, i);
        g_array_append_val(ratios, ratio);
        faster += ratio < 1;
    }
    *ret_ratio = median_of(ratios);
    *ret_better = ratios->len > 0 && *ret_ratio <= 1 - WORTH_A_CHANGE &&
                  faster >= ratios->len - ratios->len / 4 && is_sure(ratios);
}

tool_exit
tune_compare(tune_workload *workload, const tune_way *one, const tune_way *other, guint pairs,
             bool quiet, GArray *ret_one, GArray *ret_other, double *ret_ratio, bool *ret_better)
{
    tool_exit result = TOOL_OK;
    for (guint i = 0; i < pairs * MORE_PAIRS && result == TOOL_OK && !tune_stopped(); i++) {
        judge(ret_one, ret_other, ret_ratio, ret_better);
        if (i >= pairs && (*ret_better || *ret_ratio > 1 - WORTH_A_CHANGE))
            break; /* it is decided */
        double a = INFINITY;
        double b = INFINITY;
        bool turned = i % 2 == 1; /* whoever comes second may find warmer caches */
        result = tune_run(workload, turned ? other : one, turned, turned ? &b : &a);
        if (result == TOOL_OK && !tune_stopped())
            result = tune_run(workload, turned ? one : other, !turned, turned ? &a : &b);
        if (result != TOOL_OK || tune_stopped())
            break;
        g_array_append_val(ret_one, a);
        g_array_append_val(ret_other, b);
        if (!quiet)
            (void) fprintf(stderr, "  pair %u: %.3f s as it is, %.3f s\n", i + 1, a, b);
    }
    judge(ret_one, ret_other, ret_ratio, ret_better);
    return result;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* INFINITY: it failed, or was not run. */
static double
seconds_of(const tune_search *s, const tune_setting *setting)
{
    for (guint i = 0; i < s->trials->len; i++) {
        if (tune_setting_equal(s->space, &trial_at(s, i)->setting, setting))
            return trial_at(s, i)->seconds;
    }
    return INFINITY;
}

/* Takes less memory while that costs no time that can be told from noise. */
static tool_exit
lower(tune_search *s, guint parameter)
{
    tool_exit result = TOOL_OK;
    double most = seconds_of(s, &s->best) * exp(s->model.noise);
    tune_setting less = s->best;
    while (isfinite(most) && less.value[parameter] > 0) {
        less.value[parameter]--;
        if (!tune_space_can_be(s->space, &less))
            break;
        bool may = tune_search_has_time(s) && s->trials->len < s->trials_most;
        if (!was_tried(s, &less) && may)
            result = tune_search_trial(s, &less, NAN);
        if (result != TOOL_OK || tune_stopped() || !(seconds_of(s, &less) <= most))
            break;
        s->best = less;
    }
    return result;
}

/* Of sizes of memory that are as fast the least is best: the model has no opinion there. */
static tool_exit
spare_memory(tune_search *s)
{
    tune_setting current = tune_space_current(s->space);
    tool_exit result = TOOL_OK;
    bool stays = tune_setting_equal(s->space, &s->best, &current);
    for (guint i = 0; i < s->space->count && !stays && result == TOOL_OK; i++)
        if (tune_is_memory(&s->space->parameters[i]))
            result = lower(s, i);
    return result;
}

/* ---- all of it ------------------------------------------------------------------------------ */

bool
tune_search_has_time(const tune_search *s)
{
    double spent = (double) (g_get_monotonic_time() - s->started_us) / 6e7;
    return !(s->minutes > 0) || spent < s->minutes;
}

static tool_exit
test_best(tune_search *s)
{
    tune_setting current = tune_space_current(s->space);
    s->ratio = 1;
    if (tune_setting_equal(s->space, &s->best, &current) || s->pairs == 0)
        return TOOL_OK;
    g_autofree char *text = tune_setting_text(s->space, &s->best);
    if (!s->quiet)
        (void) fprintf(stderr, "paired with the site as it is: %s\n", text);
    tune_way today = tune_space_way(s->space, &current);
    tune_way best = tune_space_way(s->space, &s->best);
    tool_exit result = tune_compare(s->workload, &today, &best, s->pairs, s->quiet, s->before,
                                    s->after, &s->ratio, &s->better);
    tune_way_clear(&today);
    tune_way_clear(&best);
    s->better = s->better && !tune_stopped();
    return result;
}

tool_exit
tune_search_run(tune_search *s)
{
    double value;
    tune_setting setting = tune_space_current(s->space);
    double predicted = NAN;
    s->trials = g_array_new(FALSE, FALSE, sizeof(tune_trial));
    s->before = g_array_new(FALSE, FALSE, sizeof(double));
    s->after = g_array_new(FALSE, FALSE, sizeof(double));
    s->started_us = g_get_monotonic_time();
    tool_exit result = s->genetic_most > 0 ? tune_genetic_run(s) : TOOL_OK;
    if (result == TOOL_OK && !tune_stopped())
        result = tune_search_trial(s, &setting, predicted);
    while (result == TOOL_OK && !tune_stopped() && tune_search_has_time(s) &&
           (s->exhaustive || s->trials->len < s->trials_most) && next_of(s, &setting, &predicted))
        result = tune_search_trial(s, &setting, predicted);
    s->best = best_of(s, &value);
    if (result == TOOL_OK && !tune_stopped() && s->known != NULL)
        result = tune_genetic_compare(s);
    if (result == TOOL_OK && !tune_stopped())
        result = spare_memory(s);
    if (result == TOOL_OK && !tune_stopped())
        result = test_best(s);
    return result;
}
