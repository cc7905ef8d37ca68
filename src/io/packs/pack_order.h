/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_PACK_ORDER_H
#define ESDM_IO_PACKS_PACK_ORDER_H

/**
 * @file
 * Where one blob goes: what the session knows about its targets, put before the placement
 * (placement/placement.h). Threads: one.
 */

#include "io/packs/pack_set.h"

/** Sites have few targets; those with more pay for memory. */
#define ESDM__FEW_TARGETS 16u

/** The targets in the order in which they are to be asked. */
typedef struct esdm__pack_order {
    esdm__place_target *targets;
    esdm__place_choice *choices;
    size_t count;                     /* that may be asked */
    bool ask_failed;                  /* its turn has come to try failed targets for copies */
    bool worth_noting;                /* there was a choice, or there is a model */
    size_t planned[ESDM__COPIES_MAX]; /* where it would go if no target had failed */
    uint32_t nplanned;
    esdm__perf *perfs;
    bool *measured;
    esdm__place_target few_targets[ESDM__FEW_TARGETS];
    esdm__place_choice few_choices[ESDM__FEW_TARGETS];
    esdm__perf few_perfs[ESDM__FEW_TARGETS];
    bool few_measured[ESDM__FEW_TARGETS];
} esdm__pack_order;

/** To be cleared in any case. */
esdm_status esdm__pack_order_init(esdm__pack_order *o, size_t ntargets, esdm_error *err);
void esdm__pack_order_clear(esdm__pack_order *o);
/** Makes the order. With the lock of the packs held, so that two threads do not both take the idle
 *  target. @param turn number of the blob. */
void esdm__pack_order_choose(esdm_session *session, const esdm__pack_hint *hint, uint64_t bytes,
                             uint64_t turn, esdm__pack_order *o);
/** The next targets of the order take the copies, if they can be opened. One that has failed is
 *  asked now and then. @param first place in the order of the target that has the blob itself. */
esdm__mirror_targets esdm__pack_order_mirrors(esdm_session *session, const esdm__pack_order *o,
                                              size_t first, uint32_t copies);
/** Whether the places (layout/places.h) are those where it would be if no target had failed. */
bool esdm__pack_order_kept(const esdm_session *session, const esdm__pack_order *o,
                           const char *places);

#endif
