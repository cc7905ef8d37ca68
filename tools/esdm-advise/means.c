/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Choices that are compared over cases: how near each comes to the best one of each case. */

#include "esdm-advise/esdm-advise.h"

#include <math.h>
#include <stdio.h>

/* A default is changed for more than that. */
#define WORTH 1.02

void
advise_means_init(advise_means *means, const char *const *choices, guint nchoices, GPtrArray *cases,
                  const double *cost, guint usual)
{
    *means = (advise_means){.choices = g_ptr_array_new_with_free_func(g_free),
                            .cases = g_ptr_array_new_with_free_func(g_free),
                            .usual = usual};
    means->relative = g_new(double, (gsize) nchoices *MAX(cases->len, 1));
    for (guint i = 0; i < nchoices; i++)
        g_ptr_array_add(means->choices, g_strdup(choices[i]));
    for (guint k = 0; k < cases->len; k++) {
        double least = INFINITY;
        g_ptr_array_add(means->cases, g_strdup(g_ptr_array_index(cases, k)));
        for (guint i = 0; i < nchoices; i++)
            least = fmin(least, cost[i * cases->len + k]);
        for (guint i = 0; i < nchoices; i++)
            means->relative[i * cases->len + k] = least / cost[i * cases->len + k];
    }
}

void
advise_means_clear(advise_means *means)
{
    if (means->choices == NULL)
        return;
    g_ptr_array_unref(means->choices);
    g_ptr_array_unref(means->cases);
    g_free(means->relative);
}

static double
relative_at(const advise_means *means, guint choice, guint which)
{
    return means->relative[choice * means->cases->len + which];
}

double
advise_arithmetic(const advise_means *means, guint choice)
{
    double sum = 0;
    for (guint k = 0; k < means->cases->len; k++)
        sum += relative_at(means, choice, k);
    return sum / means->cases->len;
}

double
advise_harmonic(const advise_means *means, guint choice)
{
    double sum = 0;
    for (guint k = 0; k < means->cases->len; k++)
        sum += 1 / relative_at(means, choice, k);
    return means->cases->len / sum;
}

guint
advise_best(const advise_means *means)
{
    guint best = means->usual;
    double most = advise_harmonic(means, best) * WORTH;
    for (guint i = 0; i < means->choices->len; i++) {
        if (i != means->usual && advise_harmonic(means, i) > most) {
            best = i;
            most = advise_harmonic(means, i);
        }
    }
    return best;
}

/* The case for which a choice is worst. */
static guint
worst_case(const advise_means *means, guint choice)
{
    guint worst = 0;
    for (guint k = 1; k < means->cases->len; k++)
        if (relative_at(means, choice, k) < relative_at(means, choice, worst))
            worst = k;
    return worst;
}

static guint
times_best(const advise_means *means, guint choice)
{
    guint count = 0;
    for (guint k = 0; k < means->cases->len; k++)
        count += relative_at(means, choice, k) > 1 - 1e-9;
    return count;
}

void
advise_means_print(const advise_means *means, const char *title, const char *what)
{
    guint best = advise_best(means), usual = means->usual, worst = worst_case(means, best);
    (void) printf("%s\n  %-34s  %10s  %8s  %7s\n", title, "", "arithmetic", "harmonic", "best of");
    for (guint i = 0; i < means->choices->len; i++)
        (void) printf("  %-34s  %10.2f  %8.2f  %7u%s\n", (char *) means->choices->pdata[i],
                      advise_arithmetic(means, i), advise_harmonic(means, i), times_best(means, i),
                      i == usual ? "  as when nothing is stated" : "");
    (void) printf(
        "  With '%s' for all, %u %s come to %.0f %% of what the best choice for each gives "
        "(harmonic mean)",
        (char *) means->choices->pdata[best], means->cases->len, what,
        100 * advise_harmonic(means, best));
    if (best != usual)
        (void) printf("; with '%s', as now when nothing is stated, to %.0f %%",
                      (char *) means->choices->pdata[usual], 100 * advise_harmonic(means, usual));
    (void) printf(".\n  It serves '%s' worst: %.0f %% of its best.%s\n\n",
                  (char *) means->cases->pdata[worst], 100 * relative_at(means, best, worst),
                  best == usual ? " No other one is better by 2 %: leave it." : "");
}

json_t *
advise_means_json(const advise_means *means)
{
    guint best = advise_best(means);
    json_t *object = json_object(), *choices = json_array();
    for (guint i = 0; i < means->choices->len; i++) {
        json_t *one = json_object(), *cases = json_object();
        tool_json_set(one, "name", tool_json_text(means->choices->pdata[i]));
        tool_json_set(one, "arithmetic", json_real(advise_arithmetic(means, i)));
        tool_json_set(one, "harmonic", json_real(advise_harmonic(means, i)));
        for (guint k = 0; k < means->cases->len; k++)
            tool_json_set(cases, means->cases->pdata[k], json_real(relative_at(means, i, k)));
        tool_json_set(one, "cases", cases);
        tool_json_append(choices, one);
    }
    tool_json_set(object, "choices", choices);
    tool_json_set(object, "best", tool_json_text(means->choices->pdata[best]));
    tool_json_set(object, "usual", tool_json_text(means->choices->pdata[means->usual]));
    return object;
}
