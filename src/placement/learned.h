/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_PLACEMENT_LEARNED_H
#define ESDM_PLACEMENT_LEARNED_H

/**
 * @file
 * What requests of programs tell beyond the four numbers of a calibration: a regression tree over
 * the bytes of a request and how many are under way, whose leaves are factors on the time that the
 * measured model says. It counts only when it predicts requests that it was not fitted to better
 * than the measured model with its drift does. Pure functions.
 */

#include "placement/perf.h"

#define ESDM__LEARNED_NODES 63u  /* five splits deep */
#define ESDM__LEARNED_LEAST 100u /* requests to learn from */

typedef enum esdm__learned_by {
    ESDM__LEARNED_LEAF,
    ESDM__LEARNED_BYTES,
    ESDM__LEARNED_CONCURRENCY
} esdm__learned_by;

typedef struct esdm__learned_node {
    esdm__learned_by by;
    double limit; /* up to that `less`, beyond it `more`, which are later nodes */
    uint32_t less;
    uint32_t more;
    double factor; /* of a leaf: natural logarithm */
} esdm__learned_node;

typedef struct esdm__learned {
    uint32_t count; /* 0: nothing was learned */
    esdm__learned_node nodes[ESDM__LEARNED_NODES];
    uint64_t requests;   /* that it was learned from */
    uint64_t learned_ns; /* when */
    double error;        /* for requests that it had not seen: exp(mean |ln(predicted/seen)|) - 1 */
    double calibrated_error; /* the same of the measured model, with a drift of the same requests */
} esdm__learned;

/** The factor on the measured time. NULL, or nothing learned: 1. */
double esdm__learned_factor(const esdm__learned *learned, double bytes, double concurrency);
/** Whether the nodes are a tree and the numbers can be. */
bool esdm__learned_valid(const esdm__learned *learned);

/**
 * Learns from requests in the order in which they were made, and compares with the measured model
 * by five parts of that order: each is predicted from the others. Paired: the differences of the
 * errors of each request.
 * @param perf the measured model, without what was learned before.
 * @param ret_better whether the tree predicts better: by a tenth at least, in four parts of five,
 *        and by more than chance makes.
 * @return ESDM_EINVAL: fewer than ESDM__LEARNED_LEAST usable requests. ESDM_ENOMEM.
 */
esdm_status esdm__learned_fit(const esdm__perf *perf, const esdm__perf_sample *samples,
                              size_t count, esdm__learned *ret_learned, bool *ret_better,
                              esdm_error *err);

#endif
