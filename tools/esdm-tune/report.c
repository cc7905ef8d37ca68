/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What was tried, what was found, and how sure it is. */
#include "esdm-tune/esdm-tune.h"

#include <math.h>
#include <stdio.h>

static const tune_trial *
trial_at(const tune_search *s, guint i)
{
    return &g_array_index(s->trials, tune_trial, i);
}

/* ---- effects -------------------------------------------------------------------------------- */

/* By how much the time changes when only the value of one parameter is another one. */
typedef struct effect {
    double factor;
    double low, high; /* of 95 % */
} effect;

static effect
effect_of(const tune_search *s, guint parameter, guint value)
{
    double deviations[2];
    tune_setting setting = s->best;
    double here = tune_model_predict(&s->model, s->space, &setting, &s->expectation, deviations);
    setting.value[parameter] = (guint8) value;
    double there =
        tune_model_predict(&s->model, s->space, &setting, &s->expectation, deviations + 1);
    double deviation = sqrt(deviations[0] * deviations[0] + deviations[1] * deviations[1]);
    return (effect){exp(there - here), exp(there - here - 1.96 * deviation),
                    exp(there - here + 1.96 * deviation)};
}

static bool
value_was_tried(const tune_search *s, guint parameter, guint value)
{
    for (guint i = 0; i < s->trials->len; i++) {
        if (trial_at(s, i)->setting.value[parameter] == value)
            return true;
    }
    return false;
}

static void
print_effects(const tune_search *s)
{
    (void) printf("\nWhat the model has learned; the time with another value, of the time with the "
                  "best setting:\n");
    bool guessed = false;
    for (guint i = 0; i < s->space->count; i++) {
        const tune_parameter *p = &s->space->parameters[i];
        (void) printf("  %-9s", p->name);
        for (guint k = 0; k < p->count; k++) {
            effect e = effect_of(s, i, k);
            if (k == s->best.value[i])
                (void) printf(" %s 1", p->texts[k]);
            else if (value_was_tried(s, i, k))
                (void) printf(" %s %.2f", p->texts[k], e.factor);
            else
                (void) printf(" %s %.2f?", p->texts[k], e.factor);
            guessed |= k != s->best.value[i] && !value_was_tried(s, i, k);
            (void) printf("%s", k + 1 < p->count ? "," : "\n");
        }
    }
    if (guessed)
        (void) printf("  (?: no run had this value: the model's guess; more --trials try it)\n");
}

/* Median of |predicted / seen - 1|; NAN: nothing was predicted. */
static double
prediction_error(const tune_search *s)
{
    double sum = 0;
    guint count = 0;
    for (guint i = 0; i < s->trials->len; i++) {
        const tune_trial *t = trial_at(s, i);
        if (isnan(t->predicted) || !isfinite(t->seconds))
            continue;
        sum += fabs(t->predicted / t->seconds - 1);
        count++;
    }
    return count > 0 ? sum / count : NAN;
}

static void
print_trials(const tune_search *s)
{
    const double today = trial_at(s, 0)->seconds;
    (void) printf("%5s  %10s  %9s  %10s  %s\n", "trial", "seconds", "of today", "expected",
                  "setting");
    for (guint i = 0; i < s->trials->len; i++) {
        const tune_trial *t = trial_at(s, i);
        g_autofree char *text = tune_setting_text(s->space, &t->setting);
        g_autofree char *expected =
            isnan(t->predicted) ? g_strdup("") : g_strdup_printf("%.3f", t->predicted);
        if (isfinite(t->seconds))
            (void) printf("%5u  %10.3f  %9.2f  %10s  %s\n", i + 1, t->seconds, t->seconds / today,
                          expected, text);
        else
            (void) printf("%5u  %10s  %9s  %10s  %s\n", i + 1, "failed", "", expected, text);
    }
}

static void
print_verdict(const tune_search *s)
{
    g_autofree char *text = tune_setting_text(s->space, &s->best);
    tune_setting current = tune_space_current(s->space);
    if (tune_setting_equal(s->space, &s->best, &current)) {
        (void) printf("\nThe site is best as it is: nothing that was tried was faster.\n");
    } else if (s->better) {
        (void) printf("\nFound: %s. In %u pairs of runs, one after the other, it took %.2f of the "
                      "time that the site takes as it is.\n",
                      text, s->after->len, s->ratio);
    } else if (s->after->len > 0 && s->ratio >= 1) {
        (void) printf("\nThe site stays as it is: %s seemed faster in the search, but was not when "
                      "both ran in turn: it took %.2f times as long (median, pairs of runs: %u).\n",
                      text, s->ratio, s->after->len);
    } else if (s->after->len > 0) {
        (void) printf("\nThe site stays as it is: %s seemed faster, but is not surely so: it "
                      "took %.2f of the time (median of %u pairs of runs, one after the other).\n",
                      text, s->ratio, s->after->len);
    } else {
        (void) printf("\nThe site stays as it is: %s seemed faster, but was not tested in pairs "
                      "(%s).\n",
                      text, tune_stopped() ? "interrupted" : "--pairs=0");
    }
    if (trial_at(s, 0)->seconds < 0.2)
        (void) printf("A run takes less than 0.2 s: differences are small beside chance. Let it "
                      "do more (--size).\n");
}

void
tune_report(const tune_search *s)
{
    double error = prediction_error(s);
    if (s->trials->len == 0)
        return;
    if (s->known != NULL)
        tune_genetic_report(s);
    print_trials(s);
    if (s->trials->len > 1)
        print_effects(s);
    if (!isnan(error))
        (void) printf("  runs were predicted with a mean error of %.0f %%%s\n", error * 100,
                      s->expectation.prior != NULL ? ", first from the site's measured model"
                                                   : "; esdm-mkfs --calibrate helps to predict");
    print_verdict(s);
}

static json_t *
setting_json(const tune_space *space, const tune_setting *setting)
{
    json_t *object = json_object();
    for (guint i = 0; i < space->count; i++) {
        const tune_parameter *p = &space->parameters[i];
        tool_json_set(object, p->name, json_incref(p->json[setting->value[i]]));
    }
    return object;
}

static json_t *
number_json(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *
numbers_json(const GArray *numbers)
{
    json_t *list = json_array();
    for (guint i = 0; i < numbers->len; i++)
        tool_json_append(list, number_json(g_array_index(numbers, double, i)));
    return list;
}

static json_t *
command_json(const tune_workload *workload, char *const *options)
{
    g_autoptr(GPtrArray) words = tune_command(workload, options);
    json_t *list = json_array();
    for (guint i = 0; i < words->len; i++)
        tool_json_append(list, json_string(g_ptr_array_index(words, i)));
    return list;
}

json_t *
tune_report_json(const tune_search *s)
{
    json_t *root = json_object();
    json_t *trials = json_array();
    tune_setting current = tune_space_current(s->space);
    for (guint i = 0; i < s->trials->len; i++) {
        const tune_trial *t = trial_at(s, i);
        json_t *object = json_object();
        tool_json_set(object, "setting", setting_json(s->space, &t->setting));
        tool_json_set(object, "seconds", number_json(t->seconds));
        tool_json_set(object, "expected_seconds", number_json(t->predicted));
        tool_json_append(trials, object);
    }
    tool_json_set(root, "trials", trials);
    tool_json_set(root, "settings", tool_json_u64(tune_space_size(s->space)));
    tool_json_set(root, "prediction_error", number_json(prediction_error(s)));
    tool_json_set(root, "from_model", json_boolean(s->expectation.prior != NULL));
    tool_json_set(root, "current", setting_json(s->space, &current));
    tool_json_set(root, "best", setting_json(s->space, &s->best));
    if (s->known != NULL)
        tool_json_set(root, "genetic", tune_genetic_json(s));
    tool_json_set(root, "better", json_boolean(s->better));
    tune_way best = tune_space_way(s->space, &s->best);
    if (s->better && best.options[0] != NULL)
        tool_json_set(root, "command", command_json(s->workload, best.options));
    tune_way_clear(&best);
    tool_json_set(root, "ratio", number_json(s->ratio));
    tool_json_set(root, "seconds_as_it_is", numbers_json(s->before));
    tool_json_set(root, "seconds_best", numbers_json(s->after));
    return root;
}
