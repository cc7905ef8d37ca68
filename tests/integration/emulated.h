/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef EMULATED_H
#define EMULATED_H

/**
 * @file
 * Back ends whose time is counted and not taken: chance, a clock, and loads that esdm-tune is to
 * find settings for. One thread; all of it is of one back end at a time.
 */

#include "esdm-tune/esdm-tune.h"

#define CORES   8u
#define DATA    256e6 /* bytes */
#define WORKERS 64u
#define PLACES  64u
#define CODECS  4u

typedef struct back_end {
    double latency_s, stream, shared, service_s;
    unsigned places; /* requests at once */
    double cache;    /* bytes that writes leave behind */
    double cached;   /* share of what is read that memory has */
    double request_noise, run_noise;
    double encodes[CODECS], decodes[CODECS], left[CODECS];
} back_end;

extern back_end site;
extern bool quiet_air; /* no noise */

/** Begins the chance of one back end. */
void chance_begin(guint64 seed);
double uniform(double from, double to);
double log_uniform(double from, double to);
/** A factor. */
double noisy(double deviation);
/** Draws `site`. */
void draw_site(guint64 seed);

typedef struct clocks {
    double worker[WORKERS], core[CORES], place[PLACES];
    double server;
    double cache; /* bytes that it still takes */
} clocks;

unsigned earliest(const double *times, unsigned count);
/** A worker has a core for so long. @return when it is done, as the next ones do. */
double compute(clocks *c, double at, double seconds);
double request(clocks *c, const back_end *on, double at, double bytes);
/** What the cache takes, the server stores while others are written. */
double store(clocks *c, const back_end *on, double at, double bytes);
double latest(const clocks *c, const back_end *on, unsigned threads);
/** What few requests tell of it, with errors. */
esdm_model_info measured_of(const back_end *of, bool reading);

/** A program on a site (emulated_loads.c). */
typedef struct emulated_load {
    const char *name;
    const char *tries; /* parameters, with spaces between */
    /** Draws its site and itself. @return its configuration, a new reference. */
    json_t *(*draw)(guint64 seed);
    /** Seconds of a run, with the noise of its requests. */
    double (*seconds)(const json_t *config);
} emulated_load;

/** NULL: there is none of that name. */
const emulated_load *emulated_load_named(const char *name);
/** Of the site of the load that was drawn last: its measured targets, none where nobody has
 *  measured them. */
bool emulated_models(esdm_model_visitor visit, void *user);

#endif
