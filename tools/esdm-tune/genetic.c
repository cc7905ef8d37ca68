/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A genetic search, to compare with: settings are a population, of which pairs that did well in
 * tournaments have children with the values of both, some of them changed. It knows nothing of what
 * values mean, and needs many runs. Then the search with a model does the same work; what the
 * genetic one has run already is not run again.
 */
#include "esdm-tune/esdm-tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define POPULATION 10u
#define ELITE      2u   /* that live on as they are */
#define MUTATES    0.25 /* of a value */
#define NEW_TRIES  200u /* children that were run before, until it ends */

typedef struct member {
    tune_setting setting;
    double seconds;
} member;

typedef struct breeding {
    tune_search *search;
    guint64 seed;
    guint64 drawn;
    member now[POPULATION];
    guint count;
} breeding;

static double
chance(breeding *b)
{
    return tool_unit(tool_scramble(b->seed * UINT64_C(0x9e3779b97f4a7c15) + b->drawn++));
}

static guint
chance_of(breeding *b, guint count)
{
    return MIN((guint) (chance(b) * count), count - 1);
}

static gint
by_seconds(const void *a, const void *b)
{
    double x = ((const member *) a)->seconds;
    double y = ((const member *) b)->seconds;
    return x < y ? -1 : x > y;
}

static tune_setting
any_setting(breeding *b)
{
    tune_setting setting = {{0}};
    for (guint i = 0; i < b->search->space->count; i++)
        setting.value[i] = (guint8) chance_of(b, b->search->space->parameters[i].count);
    return setting;
}

/* A neighbour, or any value of what has no order. */
static void
mutate(breeding *b, tune_setting *setting)
{
    for (guint i = 0; i < b->search->space->count; i++) {
        const tune_parameter *p = &b->search->space->parameters[i];
        bool changes = chance(b) < MUTATES;
        bool up = chance(b) < 0.5;
        guint value = setting->value[i];
        if (!changes || p->count < 2)
            continue;
        if (p->category)
            value = chance_of(b, p->count);
        else
            value = up ? MIN(value + 1, p->count - 1) : value - (value > 0);
        setting->value[i] = (guint8) value;
    }
}

static const tune_setting *
parent(breeding *b)
{
    const member *one = &b->now[chance_of(b, b->count)];
    const member *other = &b->now[chance_of(b, b->count)];
    return one->seconds <= other->seconds ? &one->setting : &other->setting;
}

static tune_setting
child(breeding *b)
{
    const tune_setting *mother = parent(b);
    const tune_setting *father = parent(b);
    tune_setting setting = {{0}};
    for (guint i = 0; i < b->search->space->count; i++)
        setting.value[i] = chance(b) < 0.5 ? mother->value[i] : father->value[i];
    mutate(b, &setting);
    return setting;
}

/* One that was not run yet, and that can be. false: they are rare by now. */
static bool
fresh(breeding *b, bool first, tune_setting *ret)
{
    for (guint i = 0; i < NEW_TRIES; i++) {
        *ret = first ? any_setting(b) : child(b);
        if (tune_search_can_run(b->search, ret))
            return true;
    }
    return false;
}

static tool_exit
run_member(breeding *b, const tune_setting *setting, member *ret)
{
    tune_search *s = b->search;
    guint before = s->trials->len;
    tool_exit result = tune_search_trial(s, setting, NAN);
    if (s->trials->len > before)
        *ret = (member){*setting, g_array_index(s->trials, tune_trial, before).seconds};
    return result;
}

/* The best of both live on. */
static void
select_members(breeding *b, member *children, guint count)
{
    member all[2 * POPULATION];
    memcpy(all, b->now, b->count * sizeof *all);
    qsort(all, b->count, sizeof *all, by_seconds);
    guint kept = MIN(ELITE, b->count);
    memcpy(all + kept, children, count * sizeof *all);
    qsort(all, kept + count, sizeof *all, by_seconds);
    b->count = MIN(kept + count, POPULATION);
    memcpy(b->now, all, b->count * sizeof *all);
}

static tool_exit
generation(breeding *b, bool first, bool *ret_more)
{
    tune_search *s = b->search;
    member children[POPULATION];
    guint count = 0;
    tool_exit result = TOOL_OK;
    while (result == TOOL_OK && count < POPULATION && *ret_more) {
        tune_setting setting = tune_space_current(s->space);
        guint before = s->trials->len;
        *ret_more = !tune_stopped() && tune_search_has_time(s) && before < s->genetic_most &&
                    (before == 0 || fresh(b, first, &setting));
        if (*ret_more)
            result = run_member(b, &setting, &children[count]);
        count += s->trials->len > before;
    }
    select_members(b, children, count);
    return result;
}

/* The fastest of all runs; of the genetic search one is enough, as nothing else tells. */
static const tune_trial *
fastest(const GArray *trials)
{
    const tune_trial *found = &g_array_index(trials, tune_trial, 0);
    for (guint i = 1; i < trials->len; i++) {
        const tune_trial *t = &g_array_index(trials, tune_trial, i);
        found = t->seconds < found->seconds ? t : found;
    }
    return found;
}

tool_exit
tune_genetic_run(tune_search *s)
{
    breeding b = {.search = s, .seed = s->seed};
    bool more = true;
    tool_exit result = generation(&b, true, &more);
    while (result == TOOL_OK && more)
        result = generation(&b, false, &more);
    if (s->trials->len == 0 || tune_stopped())
        return result; /* what was run is told as it is */
    s->known = s->trials;
    s->genetic_best = fastest(s->known)->setting;
    s->trials = g_array_new(FALSE, FALSE, sizeof(tune_trial));
    return result;
}

/* ---- which was better -------------------------------------------------------------------------
 */

tool_exit
tune_genetic_compare(tune_search *s)
{
    if (tune_setting_equal(s->space, &s->best, &s->genetic_best)) {
        s->genetic_ratio = 1;
        return TOOL_OK;
    }
    s->genetic_ratio = NAN;
    if (s->pairs == 0)
        return TOOL_OK;
    bool better = false;
    g_autofree char *text = tune_setting_text(s->space, &s->genetic_best);
    if (!s->quiet)
        (void) fprintf(stderr,
                       "what the genetic search found (%s), paired with what the model "
                       "found\n",
                       text);
    tune_way genetic = tune_space_way(s->space, &s->genetic_best);
    tune_way model = tune_space_way(s->space, &s->best);
    g_autoptr(GArray) one = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) two = g_array_new(FALSE, FALSE, sizeof(double));
    tool_exit result = tune_compare(s->workload, &genetic, &model, s->pairs, s->quiet, one, two,
                                    &s->genetic_ratio, &better);
    tune_way_clear(&genetic);
    tune_way_clear(&model);
    if (result == TOOL_OK && s->genetic_ratio > 1)
        s->best = s->genetic_best;
    return result;
}

void
tune_genetic_report(const tune_search *s)
{
    guint again = 0;
    for (guint i = 0; i < s->trials->len; i++)
        again += g_array_index(s->trials, tune_trial, i).known;
    g_autofree char *text = tune_setting_text(s->space, &s->genetic_best);
    (void) printf("The genetic search (seed %" G_GUINT64_FORMAT ") ran %u of %" G_GUINT64_FORMAT
                  " settings; the fastest took %.3f s: %s.\nThe model-driven search took %u, %u of "
                  "which the genetic one had run. ",
                  s->seed, s->known->len, tune_space_size(s->space), fastest(s->known)->seconds,
                  text, s->trials->len, again);
    if (isnan(s->genetic_ratio))
        (void) printf("Which of both is faster was not tested (--pairs=0).\n\n");
    else if (s->genetic_ratio == 1)
        (void) printf("It found the same.\n\n");
    else
        (void) printf("What it found takes %.2f of the time of what the genetic search found, in "
                      "pairs of runs.\n\n",
                      s->genetic_ratio);
}

json_t *
tune_genetic_json(const tune_search *s)
{
    json_t *object = json_object();
    tool_json_set(object, "seed", tool_json_u64(s->seed));
    tool_json_set(object, "trials", json_integer(s->known->len));
    tool_json_set(object, "seconds", json_real(fastest(s->known)->seconds));
    tool_json_set(object, "model_trials", json_integer(s->trials->len));
    tool_json_set(object, "model_to_genetic",
                  isfinite(s->genetic_ratio) ? json_real(s->genetic_ratio) : json_null());
    return object;
}
