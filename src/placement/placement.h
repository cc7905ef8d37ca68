/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_PLACEMENT_PLACEMENT_H
#define ESDM_PLACEMENT_PLACEMENT_H

/**
 * @file
 * Where a fragment goes: the order in which targets are asked to take it. A pure function of what
 * is known about the targets and of what is under way on them: equal inputs, equal order.
 */

#include "placement/perf.h"

/** A target, as it is at this moment. */
typedef struct esdm__place_target {
    const esdm__perf *write;  /* NULL: was not measured; borrowed */
    double cost;              /* of storing a byte; any unit */
    bool allowed;             /* by the site's policies */
    bool failed;              /* full, or failed lately: asked when all others refuse */
    uint64_t queued_bytes;    /* of requests under way */
    uint32_t queued_requests; /* under way */
    double owed_s;            /* until what it has taken into memory is stored */
} esdm__place_target;

typedef enum esdm__place_prefer {
    ESDM__PREFER_SPEED,
    ESDM__PREFER_COST /* the cheapest allowed targets; others when they fail */
} esdm__place_prefer;

/** What is to be placed. */
typedef struct esdm__place_request {
    uint64_t bytes;
    uint64_t behind; /* bytes that the same caller wants to place after these */
    uint64_t turn;   /* number of the fragment: where nothing is known, targets take turns */
    esdm__place_prefer prefer;
} esdm__place_request;

typedef enum esdm__place_why {
    ESDM__PLACE_SOONEST,    /* done first */
    ESDM__PLACE_SHARE,      /* takes its part of what is to be written */
    ESDM__PLACE_TURN,       /* no model: its turn */
    ESDM__PLACE_LATER,      /* would be done later */
    ESDM__PLACE_COSTLY,     /* a cheaper target is preferred */
    ESDM__PLACE_UNMEASURED, /* no model, while others have one */
    ESDM__PLACE_FAILED,     /* full, or failed */
    ESDM__PLACE_FORBIDDEN   /* by policy; never asked */
} esdm__place_why;

/** One target in the order. */
typedef struct esdm__place_choice {
    size_t target;       /* index */
    double wait_s;       /* until what is under way there is done; 0 without a model */
    double completion_s; /* until this request would be done; 0 without a model */
    double harm_s; /* that requests under way there would take longer than by sharing the target */
    esdm__place_why why; /* it is first, or is not */
} esdm__place_choice;

/**
 * Orders the targets. The first is where the request is done earliest, given what is under way;
 * when more is to follow (`behind`), any target that is done with a fragment before all the rest
 * can be finished does its part, the least busy one first, so that all work at their own speed and
 * end together.
 * @param ret_order room for `count`; forbidden targets come last and are not to be asked.
 * @return how many may be asked: the first ones of the order.
 */
size_t esdm__placement_order(const esdm__place_target *targets, size_t count,
                             const esdm__place_request *request, esdm__place_choice *ret_order);

/** "done soonest", … */
const char *esdm__place_why_text(esdm__place_why why);

#endif
