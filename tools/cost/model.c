/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What resources, cases and ways to keep data cost. */

#include "cost/cost.h"

#include <math.h>

#define BYTES_PER_TB     1e12
#define SECONDS_PER_HOUR 3600.0
#define TINY_YEARS       1e-9 /* what is left of a sum of years that is none */

/* ---- resources ------------------------------------------------------------------------------ */

double
cost_year_now(void)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    return g_date_time_get_year(now) + (g_date_time_get_day_of_year(now) - 1) / 365.25;
}

/* Also where it shrinks with a growth. */
static double
life_at(const cost_resource *resource, double bought)
{
    return fmax(cost_series_at(&resource->life_years, bought, 1), COST_SHORTEST_LIFE);
}

double
cost_of_year(const cost_centre *centre, const cost_resource *resource, double bought, double year)
{
    double energy = cost_series_at(&resource->power_kw, bought, 0) * COST_HOURS_PER_YEAR *
                    cost_series_at(&centre->energy, year, 0);
    return cost_series_at(&resource->purchase, bought, 0) / life_at(resource, bought) +
           cost_series_at(&resource->upkeep_per_year, bought, 0) + energy;
}

/* Of years that begin at `start` with what was sold at `bought`: prices of energy change each
 * year. */
static double
of_years(const cost_centre *centre, const cost_resource *resource, double bought, double years)
{
    double sum = 0;
    for (double done = 0; years - done > TINY_YEARS; done += 1)
        sum += cost_of_year(centre, resource, bought, bought + done) * fmin(1, years - done);
    return sum;
}

double
cost_of_keeping(const cost_centre *centre, const cost_resource *resource, double amount,
                double start, double years)
{
    double sum = 0;
    while (years > TINY_YEARS) {
        double life = fmin(years, life_at(resource, start));
        double capacity = cost_series_at(&resource->capacity, start, 1) * resource->utilisation;
        sum += amount * resource->copies / capacity * of_years(centre, resource, start, life);
        start += life;
        years -= life;
    }
    return sum;
}

double
cost_of_moving(const cost_centre *centre, const cost_resource *resource, double tb, double year)
{
    double speed = cost_series_at(&resource->throughput, year, 0);
    if (speed <= 0)
        return 0;
    double hours = tb * 1e3 / speed / SECONDS_PER_HOUR;
    return hours * cost_of_year(centre, resource, year, year) / COST_HOURS_PER_YEAR;
}

double
cost_of_work(const cost_centre *centre, double hours, double year)
{
    double capacity = cost_series_at(&centre->computing.capacity, year, 1) * COST_HOURS_PER_YEAR *
                      centre->computing.utilisation;
    return hours / capacity * cost_of_year(centre, &centre->computing, year, year);
}

double
cost_of_node_hour(const cost_centre *centre, double year)
{
    return cost_of_work(centre, cost_series_at(&centre->node, year, 1), year);
}

/* ---- a case as it is kept ------------------------------------------------------------------- */

static double
of_files(const cost_centre *centre, const cost_case *one, double start, double years)
{
    return centre->has_metadata
               ? cost_of_keeping(centre, &centre->metadata, one->files, start, years)
               : 0;
}

cost_sum
cost_of_case(const cost_centre *centre, const cost_case *one, double start)
{
    double moved = one->transfers * one->volume_tb;
    cost_sum sum = {
        .computing = cost_of_work(centre, one->work_hours, start),
        .procurement =
            cost_of_keeping(centre, &centre->storage, one->volume_tb, start, one->online_years),
        .access = cost_of_moving(centre, &centre->storage, moved, start),
        .metadata = of_files(centre, one, start, fmax(one->online_years, one->archive_years)),
        .archive = centre->has_archive ? cost_of_keeping(centre, &centre->archive, one->volume_tb,
                                                         start, one->archive_years)
                                       : 0,
    };
    sum.total = sum.computing + sum.procurement + sum.access + sum.metadata + sum.archive;
    return sum;
}

/* ---- ways to have the data ------------------------------------------------------------------ */

typedef struct study {
    const cost_centre *centre;
    const cost_case *one;
    double start;
    GPtrArray *ways;
} study;

static void
free_way(gpointer data)
{
    cost_way *way = data;
    g_free(way->name);
    g_free(way);
}

static void
add(study *s, char *name, double fixed, double per_reading)
{
    cost_way *way = g_new0(cost_way, 1);
    *way = (cost_way){.name = name, .fixed = fixed, .per_reading = per_reading};
    g_ptr_array_add(s->ways, way);
}

/* A price on average over the years in which readings happen. */
static double
average(const study *s, double (*price)(const study *s, double year))
{
    double sum = 0, years = s->one->keep_years;
    int steps = MAX((int) ceil(years), 1);
    for (int i = 0; i < steps; i++)
        sum += price(s, s->start + years * (i + 0.5) / steps);
    return sum / steps;
}

/* To and from disks: a TB. */
static double
disk_tb(const study *s, double year)
{
    return cost_of_moving(s->centre, &s->centre->storage, 1, year);
}

/* From tapes: a TB. */
static double
tape_tb(const study *s, double year)
{
    return s->centre->has_drives ? cost_of_moving(s->centre, &s->centre->drives, 1, year) : 0;
}

static double
work(const study *s, double year)
{
    return cost_of_work(s->centre, s->one->work_hours, year);
}

static double
node_hour(const study *s, double year)
{
    return cost_of_node_hour(s->centre, year);
}

/* Node hours for a TB at so many 10^6 bytes a second. */
static double
node_hours_of_tb(const cost_series *speed, double year)
{
    return BYTES_PER_TB / (cost_series_at(speed, year, INFINITY) * 1e6) / SECONDS_PER_HOUR;
}

static void
add_compressed(study *s, const cost_compression *c, double fixed, double disk, bool archived)
{
    const cost_centre *centre = s->centre;
    double tb = s->one->volume_tb, read = tb * s->one->read_share, stored = tb * c->share;
    double encode =
        tb * node_hours_of_tb(&c->write_mb_per_s, s->start) * cost_of_node_hour(centre, s->start);
    double middle = s->start + s->one->keep_years / 2;
    double decode = read * node_hours_of_tb(&c->read_mb_per_s, middle) * average(s, node_hour);
    const cost_resource *place = archived ? &centre->archive : &centre->storage;
    double keep = cost_of_keeping(centre, place, stored, s->start, s->one->keep_years);
    double tape = archived ? average(s, tape_tb) : 0;
    add(s, g_strdup_printf(archived ? "archive, compressed: %s" : "compress: %s", c->name),
        fixed + keep + encode, read * c->share * (disk + tape) + decode);
}

static void
add_deduplicated(study *s, double fixed, double disk)
{
    const cost_centre *centre = s->centre;
    double tb = s->one->volume_tb, stored = tb * centre->duplicate_share;
    double table = stored * centre->entry_bytes / centre->block_bytes;
    double keep = cost_of_keeping(centre, &centre->storage, stored, s->start, s->one->keep_years) +
                  cost_of_keeping(centre, &centre->memory, table, s->start, s->one->keep_years);
    add(s, g_strdup("de-duplicate"), fixed + keep, tb * s->one->read_share * disk);
}

GPtrArray *
cost_ways(const cost_centre *centre, const cost_case *one, double start)
{
    study s = {.centre = centre, .one = one, .start = start};
    s.ways = g_ptr_array_new_with_free_func(free_way);
    double tb = one->volume_tb, years = one->keep_years, read = tb * one->read_share;
    double disk = average(&s, disk_tb), tape = average(&s, tape_tb);
    /* Its names are in the catalogue all the time, and it was written once. */
    double fixed = of_files(centre, one, start, years);
    add(&s, g_strdup("keep on disk"),
        fixed + cost_of_keeping(centre, &centre->storage, tb, start, years), read * disk);
    for (guint i = 0; i < centre->compressions->len; i++)
        add_compressed(&s, g_ptr_array_index(centre->compressions, i), fixed, disk, false);
    if (centre->has_deduplication)
        add_deduplicated(&s, fixed, disk);
    if (centre->has_archive)
        add(&s, g_strdup("archive"),
            fixed + cost_of_keeping(centre, &centre->archive, tb, start, years),
            read * (disk + tape));
    for (guint i = 0; centre->has_archive && i < centre->compressions->len; i++)
        add_compressed(&s, g_ptr_array_index(centre->compressions, i), fixed, disk, true);
    add(&s, g_strdup("recompute"), 0, average(&s, work) + read * disk);
    ((cost_way *) s.ways->pdata[s.ways->len - 1])->recomputes = true;
    return s.ways;
}

double
cost_of_way(const cost_way *way, double readings)
{
    return way->fixed + readings * way->per_reading;
}

/* ---- recomputing ---------------------------------------------------------------------------- */

double
cost_readings(double kept, double once)
{
    /* 14 cents for 7 are two readings, whatever binary fractions make of that. */
    return once > 0 ? floor(kept / once * (1 + 1e-12)) : INFINITY;
}

double
cost_break_even(const cost_way *recompute, const cost_way *other)
{
    double kept = other->fixed - recompute->fixed;
    double once = recompute->per_reading - other->per_reading;
    if (kept < 0)
        return -1;
    return cost_readings(kept, once);
}

/* ---- amounts -------------------------------------------------------------------------------- */

/* So that at least one digit is told. */
static int
decimals_of(double amount, int decimals)
{
    double size = fabs(amount);
    if (size <= 0 || !isfinite(size))
        return decimals;
    while (decimals < 15 && size * pow(10, decimals) < 0.5)
        decimals++;
    return decimals;
}

double
cost_rounded(double amount, int decimals)
{
    double scale = pow(10, decimals_of(amount, decimals));
    return isfinite(amount) ? round(amount * scale) / scale : amount;
}

char *
cost_text(double amount, int decimals)
{
    return g_strdup_printf("%.*f", decimals_of(amount, decimals), amount);
}
