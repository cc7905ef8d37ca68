/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_PLACEMENT_SITE_MODEL_H
#define ESDM_PLACEMENT_SITE_MODEL_H

/**
 * @file
 * The measured model of a site, as it is kept in the metadata store: the fact "model" has what a
 * calibration found, the fact "observed" how far requests of real programs are from that by now.
 * Both are JSON. One thread at a time.
 */

#include "placement/learned.h"
#include "placement/perf.h"

#define ESDM__MODEL_FACT    "model"
#define ESDM__OBSERVED_FACT "observed"
#define ESDM__MODEL_FORMAT  1

/** How much longer requests take than measured, as natural logarithms; 0: as measured. */
typedef struct esdm__drift {
    double latency;   /* of the time that every request takes */
    double bandwidth; /* of the time that every byte takes */
    uint64_t observations;
} esdm__drift;

/** One direction of one target. */
typedef struct esdm__measured {
    esdm__perf perf; /* all 0: was not measured */
    esdm__perf_error error;
    esdm__perf_sample *samples; /* owned */
    size_t nsamples;
    esdm__drift drift;
    esdm__learned learned; /* from requests of programs; count 0: nothing */
    bool past_memory;      /* the device took and answered the requests, not the memory before it */
} esdm__measured;

typedef struct esdm__target_model {
    char *name; /* owned */
    uint64_t measured_ns;
    bool quick;
    esdm__measured write;
    esdm__measured read;
} esdm__target_model;

typedef struct esdm__site_model {
    esdm__target_model *targets; /* owned */
    size_t count;
    uint64_t observed_ns; /* when the drifts were written; 0: never */
} esdm__site_model;

void esdm__site_model_clear(esdm__site_model *model);
/** NULL: nothing is known of that target. */
esdm__target_model *esdm__site_model_find(const esdm__site_model *model, const char *name);
/** As above; one that knows nothing is added. NULL when out of memory. */
esdm__target_model *esdm__site_model_add(esdm__site_model *model, const char *name);

/** @param ret_text owned, free(). */
esdm_status esdm__site_model_encode(const esdm__site_model *model, char **ret_text,
                                    esdm_error *err);
esdm_status esdm__site_drifts_encode(const esdm__site_model *model, char **ret_text,
                                     esdm_error *err);
/**
 * Reads both facts. ESDM_ECORRUPT: a text is none of ours, and the message says what to do;
 * ESDM_ENOTSUP: it is of a newer version. Drifts of targets that were measured since, or that are
 * damaged, do not count.
 * @param observed NULL: there is none. @param ret_model esdm__site_model_clear().
 */
esdm_status esdm__site_model_decode(const char *text, const char *observed,
                                    esdm__site_model *ret_model, esdm_error *err);

/** What a drift may be: at most a factor of 100 either way, and no drift where there is no number.
 */
esdm__drift esdm__drift_limited(const esdm__drift *drift);
/** Adds to a drift what changed from `before` to `now`. */
void esdm__drift_add(esdm__drift *drift, const esdm__drift *before, const esdm__drift *now);
/** The model as corrected by what was observed. */
esdm__perf esdm__perf_drifted(const esdm__perf *measured, const esdm__drift *drift);
/**
 * Takes note of a request: exponentially weighted, so that the last few dozen count. What the
 * request tells about latency and about bandwidth goes by their parts of its predicted time.
 */
void esdm__drift_observe(esdm__drift *drift, const esdm__perf *measured, double bytes,
                         double concurrency, double seconds);

#endif
