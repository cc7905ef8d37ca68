/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_COST_H
#define ESDM_TOOLS_COST_H

/**
 * @file
 * What computing, storing and archiving cost a centre over years. The inputs are a JSON file of the
 * centre's own (site-config/costs/README.md); all amounts are in its currency.
 */

#include "common/common.h"

/** Hours of a year of 365.25 days. */
#define COST_HOURS_PER_YEAR 8766.0
/** Years after which anything may be bought again. */
#define COST_SHORTEST_LIFE 0.05

/** The year now, with its part that has passed. */
double cost_year_now(void);

/** A number that may change over the years. Between two years that are stated it grows by the same
 *  factor each year; before the first and after the last it stays as it was there, unless a growth
 * is stated. */
typedef struct cost_series {
    GArray *points; /**< cost_point, by year; owned; NULL: not stated */
    double growth;  /**< factor for a year, with one point; 0: none */
} cost_series;

typedef struct cost_point {
    double year, value;
} cost_point;

/** What is bought, runs for some years and is replaced by what is sold then. */
typedef struct cost_resource {
    cost_series purchase, life_years, power_kw, upkeep_per_year;
    cost_series capacity;   /**< of one purchase, in the unit of its kind (TB, files, …) */
    cost_series throughput; /**< GB (10^9 bytes) a second; not stated: no access is priced */
    double utilisation;     /**< share of the capacity, or of the time, that is used */
    double copies;          /**< of what is stored */
} cost_resource;

/** A way to store fewer bytes. */
typedef struct cost_compression {
    char *name;                                /**< owned */
    double share;                              /**< stored bytes by bytes */
    cost_series write_mb_per_s, read_mb_per_s; /**< 10^6 bytes a second of one node */
} cost_compression;

typedef struct cost_case {
    char *name;        /**< owned */
    double work_hours; /**< of one unit of computing's measure */
    double volume_tb;
    double files;
    double online_years, archive_years;
    double transfers;  /**< how often the volume passes the disks' network while it is made and
                          archived */
    double keep_years; /**< for which ways to keep it are compared */
    double readings;   /**< in these years */
    double read_share; /**< of the volume, in each reading */
} cost_case;

typedef struct cost_centre {
    char *currency, *measure; /**< owned; measure: unit of computing's capacity */
    double unit;              /**< tables are in so many of the currency */
    GArray *years;            /**< double: for which tables are made */
    cost_series energy;       /**< price of a kWh */
    cost_resource computing, storage, metadata, archive, drives, memory;
    cost_series node; /**< capacity of a node, in computing's measure */
    bool has_metadata, has_archive, has_drives, has_deduplication;
    double duplicate_share, block_bytes, entry_bytes; /**< of de-duplication */
    GPtrArray *compressions;                          /**< cost_compression */
    GPtrArray *cases;                                 /**< cost_case */
} cost_centre;

/* ---- cost/centre.c -------------------------------------------------------------------------- */

/** Reads a centre's file. @param ret_centre owned. @return ESDM_EINVAL, ESDM_ENOENT: what is wrong
 *  where. */
esdm_status cost_centre_read(const char *file, cost_centre **ret_centre, esdm_error *err);
void cost_centre_free(cost_centre *centre);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(cost_centre, cost_centre_free)

/* ---- cost/series.c -------------------------------------------------------------------------- */

/** @param otherwise where nothing is stated. */
double cost_series_at(const cost_series *series, double year, double otherwise);

/* ---- cost/model.c --------------------------------------------------------------------------- */

/** Of a resource for a year, as sold at @param bought: its share of the purchase, upkeep, and the
 *  energy at the price of @param year. */
double cost_of_year(const cost_centre *centre, const cost_resource *resource, double bought,
                    double year);
/** Of keeping an amount on it from @param start on: replaced at the end of each life. */
double cost_of_keeping(const cost_centre *centre, const cost_resource *resource, double amount,
                       double start, double years);
/** Of moving so many TB from or to it: the time that this takes all of it. */
double cost_of_moving(const cost_centre *centre, const cost_resource *resource, double tb,
                      double year);
/** Of so many hours of one unit of computing's measure. */
double cost_of_work(const cost_centre *centre, double hours, double year);
/** Of an hour of a node, which `node` must be stated for. */
double cost_of_node_hour(const cost_centre *centre, double year);

/** What a case costs as it is kept, in prices of one year. */
typedef struct cost_sum {
    double computing, procurement, access, metadata, archive, total;
} cost_sum;
cost_sum cost_of_case(const cost_centre *centre, const cost_case *one, double start);

/** A way to have the data for years, after they were computed once. */
typedef struct cost_way {
    char *name;         /**< owned */
    double fixed;       /**< without a reading */
    double per_reading; /**< on average over the years */
    bool recomputes;
} cost_way;
/** @return cost_way; owned; the last one recomputes. */
GPtrArray *cost_ways(const cost_centre *centre, const cost_case *one, double start);
double cost_of_way(const cost_way *way, double readings);

/** How many times may data be computed again before `kept` is spent? INFINITY when that costs
 *  nothing. */
double cost_readings(double kept, double once);
/** Readings up to which computing again is not dearer than another way; INFINITY: always; -1:
 *  never. */
double cost_break_even(const cost_way *recompute, const cost_way *other);
/** An amount with so many decimals; below that, its first digit. */
double cost_rounded(double amount, int decimals);
/** The same as a text; owned. */
char *cost_text(double amount, int decimals);

#endif
