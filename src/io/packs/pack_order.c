/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/pack_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/session/models.h"
#include "layout/places.h"

/* In memories of a target: so much of what a fast writer will write is looked ahead to. */
#define FOLLOWING 16u

void
esdm__pack_order_clear(esdm__pack_order *o)
{
    if (o->targets != o->few_targets)
        free(o->targets);
    if (o->choices != o->few_choices)
        free(o->choices);
    if (o->perfs != o->few_perfs)
        free(o->perfs);
    if (o->measured != o->few_measured)
        free(o->measured);
}

esdm_status
esdm__pack_order_init(esdm__pack_order *o, size_t ntargets, esdm_error *err)
{
    o->targets = o->few_targets;
    o->choices = o->few_choices;
    o->perfs = o->few_perfs;
    o->measured = o->few_measured;
    if (ntargets <= ESDM__FEW_TARGETS)
        return ESDM_OK;
    o->targets = calloc(ntargets, sizeof *o->targets);
    o->choices = calloc(ntargets, sizeof *o->choices);
    o->perfs = calloc(ntargets, sizeof *o->perfs);
    o->measured = calloc(ntargets, sizeof *o->measured);
    if (o->targets != NULL && o->choices != NULL && o->perfs != NULL && o->measured != NULL)
        return ESDM_OK;
    esdm__pack_order_clear(o);
    return esdm__error_nomem(err, ntargets * sizeof *o->targets, "the placement");
}

static void
keep_plan(esdm__pack_order *o, uint32_t copies)
{
    o->nplanned = 0;
    for (size_t i = 0; i < o->count && i < ESDM__COPIES_MAX && (i == 0 || i < copies); i++)
        o->planned[o->nplanned++] = o->choices[i].target;
}

/* Whether the write is one that asks this target, which has failed, in its turn: it would come
 * first then. Else it counts as failed again. */
static bool
ask_failed(esdm_session *session, size_t number, const esdm__place_request *request,
           esdm__pack_order *o)
{
    esdm__target *target = &session->targets[number];
    if (!o->targets[number].allowed || !esdm__target_is_due(target))
        return false;
    o->targets[number].failed = atomic_load(&target->short_of_space);
    o->count = esdm__placement_order(o->targets, session->ntargets, request, o->choices);
    if (o->count > 0 && o->choices[0].target == number && esdm__target_take_turn(target))
        return true;
    o->targets[number].failed = true;
    return false;
}

/* Targets that have failed come last; when it is time, one write asks such a one in its turn. When
 * it is time for several, each has a write of its own: no write waits for more than one of them. */
static void
put_failed_last(esdm_session *session, const esdm__place_request *request, esdm__pack_order *o)
{
    size_t n = session->ntargets;
    bool failed = false;
    for (size_t i = 0; i < n; i++) {
        bool full = atomic_load(&session->targets[i].full);
        o->targets[i].failed |= full;
        failed |= full;
    }
    for (size_t i = 0; i < n && failed; i++) {
        if (atomic_load(&session->targets[i].full) && ask_failed(session, i, request, o))
            return;
    }
    if (failed)
        o->count = esdm__placement_order(o->targets, n, request, o->choices);
}

/* What follows, as far as one can tell: a program that has filled half of the memory of a target
 * that stores in the background is faster than that, and will go on. It gets the sum of all speeds
 * only when each target does its share. */
static uint64_t
behind_of(const esdm_session *session, const esdm__pack_hint *hint)
{
    uint64_t memory = esdm__site_target_memory(session->site);
    for (size_t i = 0; i < session->ntargets; i++) {
        if (atomic_load(&session->targets[i].ending_bytes) > memory / 2)
            return hint->behind_bytes + FOLLOWING * memory;
    }
    return hint->behind_bytes;
}

void
esdm__pack_order_choose(esdm_session *session, const esdm__pack_hint *hint, uint64_t bytes,
                        uint64_t turn, esdm__pack_order *o)
{
    bool any = esdm__models_write(session, o->perfs, o->measured);
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *t = &session->targets[i];
        o->targets[i] = (esdm__place_target){
            .write = any && o->measured[i] ? &o->perfs[i] : NULL,
            .cost = t->cost,
            .allowed = (!hint->global || !t->local) && !t->retiring &&
                       (hint->allowed == NULL || hint->allowed[i]),
            .failed = atomic_load(&t->short_of_space),
            .queued_bytes = atomic_load(&t->queued_bytes),
            .queued_requests = atomic_load(&t->queued_requests),
            .owed_s = esdm__target_owed_s(t),
        };
    }
    const esdm__place_request request = {.bytes = bytes,
                                         .behind = behind_of(session, hint),
                                         .turn = turn,
                                         .prefer =
                                             hint->cheap ? ESDM__PREFER_COST : ESDM__PREFER_SPEED};
    o->count = esdm__placement_order(o->targets, session->ntargets, &request, o->choices);
    keep_plan(o, hint->copies);
    put_failed_last(session, &request, o);
    o->ask_failed = turn % 64 == 0;
    o->worth_noting = any || session->ntargets > 1;
}

esdm__mirror_targets
esdm__pack_order_mirrors(esdm_session *session, const esdm__pack_order *o, size_t first,
                         uint32_t copies)
{
    esdm__mirror_targets list = {.count = 0};
    for (size_t i = 0; i < o->count && list.count + 1 < copies; i++) {
        size_t number = o->choices[i].target;
        esdm__target *target = &session->targets[number];
        if (i == first || (o->targets[number].failed && !o->ask_failed))
            continue;
        if (esdm__target_need(session, target, NULL) == ESDM_OK)
            list.targets[list.count++] = target;
        else
            esdm__target_failed(target);
    }
    return list;
}

bool
esdm__pack_order_kept(const esdm_session *session, const esdm__pack_order *o, const char *places)
{
    esdm__pack_place place;
    uint32_t found = 0;
    if (o->nplanned == 1 && strcmp(session->targets[o->planned[0]].name, places) == 0)
        return true; /* the one target alone, as mostly */
    while (esdm__places_next(&places, &place)) {
        for (uint32_t i = 0; i < o->nplanned; i++)
            found += strcmp(session->targets[o->planned[i]].name, place.target) == 0;
    }
    return found == o->nplanned;
}
