/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Tables for people, and JSON, of what cases cost. */

#include "esdm-cost/esdm-cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DECIMALS     2
#define COLUMN_WIDTH 10

/* ---- what is told --------------------------------------------------------------------------- */

/* A row of the first table. */
typedef struct part {
    const char *label, *key;
    gsize offset;
} part;

static const part parts[] = {
    {"computing", "computing", offsetof(cost_sum, computing)},
    {"procurement of disks", "procurement", offsetof(cost_sum, procurement)},
    {"access", "access", offsetof(cost_sum, access)},
    {"catalogue", "metadata", offsetof(cost_sum, metadata)},
    {"archive", "archive", offsetof(cost_sum, archive)},
    {"total", "total", offsetof(cost_sum, total)},
};

static double
part_of(const cost_sum *sum, const part *p)
{
    return *(const double *) ((const char *) sum + p->offset);
}

/* How many times it could be computed for what disks and archive cost. */
static double
readings_of(const cost_sum *sum)
{
    return cost_readings(sum->procurement + sum->archive, sum->computing);
}

/* The same by the amounts that the table shows. */
static double
readings_as_shown(const cost_centre *centre, const cost_sum *sum)
{
    double kept = cost_rounded(sum->procurement / centre->unit, DECIMALS) +
                  cost_rounded(sum->archive / centre->unit, DECIMALS);
    return cost_readings(kept, cost_rounded(sum->computing / centre->unit, DECIMALS));
}

static const cost_way *
recompute_of(const GPtrArray *ways)
{
    return g_ptr_array_index(ways, ways->len - 1);
}

/* @param computed whether computing again counts. */
static const cost_way *
cheapest(const GPtrArray *ways, double readings, bool computed)
{
    const cost_way *best = NULL;
    for (guint i = 0; i < ways->len; i++) {
        const cost_way *way = g_ptr_array_index(ways, i);
        if (way->recomputes && !computed)
            continue;
        if (best == NULL || cost_of_way(way, readings) < cost_of_way(best, readings))
            best = way;
    }
    return best;
}

/* Readings up to which computing again is not dearer than any other way. */
static double
break_even(const GPtrArray *ways)
{
    double least = INFINITY;
    for (guint i = 0; i + 1 < ways->len; i++)
        least = fmin(least, cost_break_even(recompute_of(ways), g_ptr_array_index(ways, i)));
    return least;
}

static double
year_at(const cost_centre *centre, guint i)
{
    return g_array_index(centre->years, double, i);
}

/* ---- tables --------------------------------------------------------------------------------- */

static int label_width = 34; /* characters; the longest name of a way */

/* With blanks that bring it to the width, which is in characters. */
static void
put_label(const char *label)
{
    int missing = label_width - (int) g_utf8_strlen(label, -1);
    (void) printf("  %s%*s", label, MAX(missing, 0), "");
}

static void
put_years(const cost_centre *centre)
{
    put_label("");
    for (guint i = 0; i < centre->years->len; i++)
        (void) printf("%*g", COLUMN_WIDTH, year_at(centre, i));
    (void) printf("\n");
}

static void
put_amount(const cost_centre *centre, double amount)
{
    g_autofree char *text = cost_text(amount / centre->unit, DECIMALS);
    (void) printf("%*s", COLUMN_WIDTH, text);
}

static void
put_count(double count)
{
    if (count < 0)
        (void) printf("%*s", COLUMN_WIDTH, "none");
    else if (isinf(count))
        (void) printf("%*s", COLUMN_WIDTH, "all");
    else
        (void) printf("%*.0f", COLUMN_WIDTH, count);
}

static void
print_sums(const cost_centre *centre, const cost_sum *sums)
{
    put_years(centre);
    for (gsize p = 0; p < G_N_ELEMENTS(parts); p++) {
        put_label(parts[p].label);
        for (guint i = 0; i < centre->years->len; i++)
            put_amount(centre, part_of(&sums[i], &parts[p]));
        (void) printf("\n");
    }
    put_label("computing again pays up to");
    for (guint i = 0; i < centre->years->len; i++)
        put_count(readings_of(&sums[i]));
    (void) printf("  readings\n");
    put_label("by the rounded amounts above");
    for (guint i = 0; i < centre->years->len; i++)
        put_count(readings_as_shown(centre, &sums[i]));
    (void) printf("  readings\n");
}

static void
print_ways(const cost_centre *centre, const cost_case *one, GPtrArray *const *ways)
{
    guint count = ways[0]->len;
    (void) printf("\n  Kept for %g years and read %g times, after it was computed once:\n",
                  one->keep_years, one->readings);
    put_years(centre);
    for (guint w = 0; w < count; w++) {
        put_label(((cost_way *) ways[0]->pdata[w])->name);
        for (guint i = 0; i < centre->years->len; i++)
            put_amount(centre, cost_of_way(ways[i]->pdata[w], one->readings));
        (void) printf("\n");
    }
    put_label("computing again is cheapest up to");
    for (guint i = 0; i < centre->years->len; i++)
        put_count(break_even(ways[i]));
    (void) printf("  readings\n\n");
}

static void
print_sentence(const cost_centre *centre, const cost_case *one, double year, const GPtrArray *ways)
{
    const cost_way *best = cheapest(ways, one->readings, true), *disk = g_ptr_array_index(ways, 0);
    double amount = cost_of_way(best, one->readings), kept = cost_of_way(disk, one->readings);
    g_autofree char *text = cost_text(amount / centre->unit, DECIMALS);
    (void) printf("  From %g on, '%s' is cheapest with %s", year, best->name, text);
    if (best != disk && amount > 0)
        (void) printf(": on disk it costs %.3g times as much", kept / amount);
    double computed = cost_of_way(recompute_of(ways), one->readings);
    if (best != recompute_of(ways) && amount > 0)
        (void) printf("%s computing it again for each reading %.3g times", best != disk ? "," : ":",
                      computed / amount);
    (void) printf(".\n");
}

static void
print_case(const cost_centre *centre, const cost_case *one)
{
    guint years = centre->years->len;
    g_autofree cost_sum *sums = g_new(cost_sum, years);
    g_autofree GPtrArray **ways = g_new(GPtrArray *, years);
    for (guint i = 0; i < years; i++) {
        sums[i] = cost_of_case(centre, one, year_at(centre, i));
        ways[i] = cost_ways(centre, one, year_at(centre, i));
    }
    for (guint w = 0; w < ways[0]->len; w++)
        label_width =
            MAX(label_width, (int) g_utf8_strlen(((cost_way *) ways[0]->pdata[w])->name, -1));
    (void) printf(
        "%s: %g hours of a %s, %g TB in %.0f files; on disk for %.3g years, in the archive "
        "for %.3g\n  Amounts in ",
        one->name, one->work_hours, centre->measure, one->volume_tb, one->files, one->online_years,
        one->archive_years);
    if (centre->unit != 1)
        (void) printf("%g ", centre->unit);
    (void) printf("%s, in prices of the year in which it begins:\n", centre->currency);
    print_sums(centre, sums);
    print_ways(centre, one, ways);
    for (guint i = 0; i < years; i++) {
        print_sentence(centre, one, year_at(centre, i), ways[i]);
        g_ptr_array_unref(ways[i]);
    }
}

void
cost_print(const cost_centre *centre)
{
    for (guint i = 0; i < centre->cases->len; i++) {
        (void) printf("%s", i > 0 ? "\n" : "");
        print_case(centre, g_ptr_array_index(centre->cases, i));
    }
    if (centre->has_deduplication)
        (void) printf(
            "\nA table of de-duplication takes %.2g %% of the capacity (%g bytes for each "
            "block of %g).\n",
            100 * centre->entry_bytes / centre->block_bytes, centre->entry_bytes,
            centre->block_bytes);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *
number(double value)
{
    return isfinite(value) && value >= 0 ? json_real(value) : json_null();
}

/* -1 becomes 0: no reading at all; null: any number. */
static json_t *
count_json(double count)
{
    return count < 1e15 ? json_integer((json_int_t) fmax(count, 0)) : json_null();
}

static json_t *
way_json(const GPtrArray *ways, guint i, double readings)
{
    const cost_way *way = g_ptr_array_index(ways, i);
    json_t *object = json_object();
    tool_json_set(object, "name", tool_json_text(way->name));
    tool_json_set(object, "cost", number(cost_of_way(way, readings)));
    tool_json_set(object, "fixed", number(way->fixed));
    tool_json_set(object, "per_reading", number(way->per_reading));
    if (!way->recomputes)
        tool_json_set(object, "recompute_up_to_readings",
                      count_json(cost_break_even(recompute_of(ways), way)));
    return object;
}

static json_t *
year_json(const cost_centre *centre, const cost_case *one, double year)
{
    cost_sum sum = cost_of_case(centre, one, year);
    g_autoptr(GPtrArray) ways = cost_ways(centre, one, year);
    json_t *object = json_object(), *all = json_array();
    tool_json_set(object, "year", json_real(year));
    for (gsize p = 0; p < G_N_ELEMENTS(parts); p++)
        tool_json_set(object, parts[p].key, number(part_of(&sum, &parts[p])));
    tool_json_set(object, "readings", count_json(readings_of(&sum)));
    tool_json_set(object, "readings_of_rounded", count_json(readings_as_shown(centre, &sum)));
    for (guint i = 0; i < ways->len; i++)
        tool_json_append(all, way_json(ways, i, one->readings));
    tool_json_set(object, "ways", all);
    tool_json_set(object, "cheapest", tool_json_text(cheapest(ways, one->readings, true)->name));
    tool_json_set(object, "recompute_up_to_readings", count_json(break_even(ways)));
    return object;
}

void
cost_print_json(const cost_centre *centre)
{
    json_t *root = json_object(), *cases = json_array();
    tool_json_set(root, "currency", tool_json_text(centre->currency));
    for (guint i = 0; i < centre->cases->len; i++) {
        const cost_case *one = g_ptr_array_index(centre->cases, i);
        json_t *object = json_object(), *years = json_array();
        tool_json_set(object, "name", tool_json_text(one->name));
        tool_json_set(object, "keep_years", json_real(one->keep_years));
        tool_json_set(object, "readings", json_real(one->readings));
        for (guint y = 0; y < centre->years->len; y++)
            tool_json_append(years, year_json(centre, one, year_at(centre, y)));
        tool_json_set(object, "years", years);
        tool_json_append(cases, object);
    }
    tool_json_set(root, "cases", cases);
    if (centre->has_deduplication)
        tool_json_set(root, "deduplication_table_share",
                      number(centre->entry_bytes / centre->block_bytes));
    tool_json_print(root);
}
