/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TUNE_PRIOR_H
#define ESDM_TUNE_PRIOR_H

/** @file What prior.c and guess.c share: models of targets, and how long requests to them take. */

#include "esdm-tune/esdm-tune.h"

#define TUNE_TARGETS 64u
/* Bytes that a run moves where nobody says how many. */
#define TUNE_USUAL_BYTES 256e6
/* A fragment that stays in memory while it is written costs this beside: bytes per second. */
#define TUNE_MEMORY_SPEED 4e9

typedef struct target_model {
    const char *name; /* borrowed */
    double latency_s, stream, service_s, shared;
} target_model;

struct tune_theory {
    double bytes;
    bool writes, reads;
    target_model models[2][TUNE_TARGETS]; /* writing, reading */
    guint count[2];
};

/** Fragments a second that `threads` move to or from a target, of which each takes a core for
 *  `cpu_s`; these have `cores`. */
double tune_rate(const target_model *model, double bytes, double cpu_s, double threads,
                 double busy_threads, double cores);
/** Seconds for `count` fragments over all of these targets. */
double tune_rounds_s(const target_model *models, guint targets, double count, double bytes,
                     double cpu_s, double threads, double cores);

#endif
