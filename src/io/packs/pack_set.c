/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/pack_set_inner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own_process.h"
#include "io/packs/decisions.h"
#include "io/packs/handover.h"
#include "io/packs/pack_order.h"
#include "io/session/former.h"
#include "io/session/models.h"
#include "layout/places.h"

esdm__pack_set *
esdm__pack_set_new(const esdm__pack_owner *owner)
{
    esdm__pack_set *packs = calloc(1, sizeof *packs);
    if (packs == NULL)
        return NULL;
    packs->owner = *owner;
    packs->owner.counters = &packs->counters;
    if (owner->writer[0] == '\0') {
        esdm__uuid_new(packs->owner.writer);
        packs->owner.rank = -1;
    }
    packs->process = esdm__own_pid();
    packs->decisions = esdm__decisions_new();
    (void) pthread_mutex_init(&packs->lock, NULL);
    (void) pthread_cond_init(&packs->idle, NULL);
    return packs;
}

const char *
esdm__place_target_name(const esdm__place *place)
{
    return place->places != NULL ? place->places : esdm__pack_target(place->pack)->place;
}

const char *
esdm__place_pack_name(const esdm__place *place)
{
    return place->handed != NULL ? place->handed : place->pack->name;
}

void
esdm__pack_set_hand_over(esdm__pack_set *packs, esdm__handover *handover)
{
    packs->handover = handover;
}

void
esdm__pack_set_serve(esdm__pack_set *packs)
{
    packs->owner.tells_later = true;
}

const esdm__pack_owner *
esdm__pack_set_owner(const esdm__pack_set *packs)
{
    return &packs->owner;
}

void
esdm__pack_set_release(esdm__pack_set *packs, esdm__pack *p)
{
    (void) pthread_mutex_lock(&packs->lock);
    p->busy = false;
    for (esdm__pack **at = &packs->open; esdm__pack_is_done(p) && *at != NULL; at = &(*at)->next) {
        if (*at == p) {
            *at = p->next;
            esdm__pack_push(&packs->sealed, p);
            break;
        }
    }
    (void) pthread_cond_broadcast(&packs->idle);
    (void) pthread_mutex_unlock(&packs->lock);
}

/* An open, idle pack on `target`, now busy; NULL when there is none. */
static esdm__pack *
take_idle(esdm__pack_set *packs, const esdm__target *target, const esdm__mirror_targets *mirrors,
          const esdm__target_set *allowed)
{
    esdm__pack *found = NULL;
    (void) pthread_mutex_lock(&packs->lock);
    for (esdm__pack *p = packs->open; p != NULL && found == NULL; p = p->next) {
        if (!p->busy && esdm__pack_takes(p, target, mirrors, allowed))
            found = p;
    }
    if (found != NULL)
        found->busy = true;
    (void) pthread_mutex_unlock(&packs->lock);
    return found;
}

/* From before the first pack is made until all are ended: else esdm-gc would take those that no
 * commit refers to yet for a dead writer's. */
esdm_status
esdm__pack_set_say_writing(esdm__pack_set *packs, esdm_error *err)
{
    const esdm_session *session = packs->owner.session;
    (void) pthread_mutex_lock(&packs->lock);
    bool writing = packs->writing;
    (void) pthread_mutex_unlock(&packs->lock);
    if (writing || session->meta == NULL || packs->owner.rank > 0)
        return ESDM_OK;
    esdm_status status = session->meta->writer_begin(session->store, packs->owner.writer, err);
    if (status != ESDM_OK)
        return status;
    (void) pthread_mutex_lock(&packs->lock);
    bool twice = packs->writing; /* another thread was first */
    packs->writing = true;
    (void) pthread_mutex_unlock(&packs->lock);
    if (twice)
        session->meta->writer_end(session->store, packs->owner.writer);
    return ESDM_OK;
}

void
esdm__pack_set_tell_model(const esdm__pack_set *packs, esdm__pack *p)
{
    esdm_session *session = packs->owner.session;
    double n = (double) p->spent.requests;
    if (p->spent.requests > 0)
        esdm__models_observe(session, (size_t) (esdm__pack_target(p) - session->targets), false,
                             p->spent.bytes / n, p->spent.concurrency / n, p->spent.seconds / n);
    memset(&p->spent, 0, sizeof p->spent);
}

/* How much of the time that storing took must have been waited for: else it had ended before, and
 * nobody knows when. */
#define LEAST_WAITED 0.05

void
esdm__pack_ask_ended(esdm__pack *p)
{
    const esdm_data_plugin *plugin = esdm__pack_target(p)->plugin;
    if (p->stage == ESDM__PACK_ENDING && p->handle != NULL && plugin->pack_has_ended != NULL)
        p->ended = plugin->pack_has_ended(p->handle, &p->ended_s);
}

/* What is still to be stored there, at the speed that is known by now. */
static void
reckon(esdm_session *session, esdm__target *target)
{
    esdm__perf perf;
    if (esdm__models_get(session, (size_t) (target - session->targets), false, &perf))
        esdm__target_owes_just(target, (double) atomic_load(&target->ending_bytes) *
                                           perf.shared_s_per_byte);
}

void
esdm__pack_set_tell_stored(const esdm__pack_set *packs, esdm__pack *p, double waited_from_s)
{
    esdm_session *session = packs->owner.session;
    esdm__target *target = esdm__pack_target(p);
    if (p->begun_s <= 0 || p->stage == ESDM__PACK_ENDING)
        return;
    double ended_s = p->ended ? p->ended_s : esdm__seconds_now();
    double took_s = ended_s - p->begun_s;
    bool known = p->ended ? p->ended_s > 0
                          : target->plugin->pack_has_ended != NULL ||
                                ended_s - waited_from_s > LEAST_WAITED * took_s;
    if (p->failure == NULL && known && took_s > 0) {
        esdm__models_observe(session, (size_t) (target - session->targets), false,
                             (double) p->length_bytes, p->beside, took_s);
        esdm__decisions_spent(packs->decisions, p->name, took_s);
    }
    p->begun_s = 0;
    reckon(session, target);
}

bool
esdm__pack_set_is_full(const esdm__pack_set *packs, const esdm__pack *p)
{
    const esdm_data_plugin *plugin = esdm__pack_target(p)->plugin;
    return p->length_bytes >= packs->owner.session->site->engine.pack_bytes ||
           (plugin->pack_is_full != NULL && plugin->pack_is_full(p->handle)) ||
           esdm__mirrors_any_full(&p->mirrors);
}

/* While a slow target answers, the pool does something else. */
static esdm_status
seal_full(esdm__pack_set *packs, esdm__pack *p, esdm_error *err)
{
    bool waits = esdm__pack_target(p)->plugin->concurrency > 0;
    if (waits)
        esdm__pool_wait_begin(packs->owner.session->pool);
    esdm_status status = esdm__pack_seal(&packs->owner, p, err);
    if (waits)
        esdm__pool_wait_end(packs->owner.session->pool);
    return status;
}

/* Of the packs that are being stored there, and that nobody uses, the one that was begun first. It
 * is marked as busy. NULL: there is none. */
static esdm__pack *
take_oldest_ending(esdm__pack_set *packs, const esdm__target *target)
{
    esdm__pack *oldest = NULL;
    (void) pthread_mutex_lock(&packs->lock);
    for (esdm__pack *p = packs->open; p != NULL; p = p->next) {
        if (!p->busy && p->stage == ESDM__PACK_ENDING && esdm__pack_target(p) == target)
            oldest = p;
    }
    if (oldest != NULL)
        oldest->busy = true;
    (void) pthread_mutex_unlock(&packs->lock);
    return oldest;
}

/* Ends what is stored by now, and, when more is to come, waits for the oldest packs as long as they
 * are too many to be kept in memory: not before, as the program would wait for this target while
 * others have nothing to do. One alone is waited for when the next one has been filled: else a
 * fragment as large as the memory would make the program wait for it, and no other target would get
 * its share meanwhile. What becomes of them the commit asks. */
static void
limit_ending(esdm__pack_set *packs, esdm__target *target, bool more)
{
    uint64_t most = esdm__site_target_memory(packs->owner.session->site);
    uint64_t ending;
    while ((ending = atomic_load(&target->ending_bytes)) > 0) {
        esdm__pack *oldest = take_oldest_ending(packs, target);
        if (oldest == NULL) /* other threads wait for them already */
            return;
        bool waits = more && ending > most && ending > oldest->length_bytes;
        esdm__pack_ask_ended(oldest);
        bool ends = waits || (oldest->ended && oldest->mirrors.count == 0);
        double started = esdm__seconds_now();
        if (ends)
            (void) !seal_full(packs, oldest, NULL);
        esdm__pack_set_tell_stored(packs, oldest, started);
        esdm__pack_set_release(packs, oldest);
        if (!ends)
            return;
    }
}

/* One blob that is being placed. */
typedef struct blob {
    const esdm_iov *iov;
    size_t niov;
    uint64_t bytes;
    uint32_t copies;          /* wanted */
    esdm__target_set allowed; /* as in esdm__pack */
    const esdm__pack_order *order;
    esdm__mirror_targets mirrors;
} blob;

/* How it went, beside what was planned. Whether as planned. */
static bool
count_write(esdm__pack_set *packs, const blob *b, const esdm__place *place)
{
    const char *places = esdm__place_target_name(place);
    bool fewer = esdm__places_count(places) < b->copies;
    bool kept = !fewer && esdm__pack_order_kept(packs->owner.session, b->order, places);
    atomic_fetch_add(&packs->counters.fragments, 1u);
    if (fewer)
        atomic_fetch_add(&packs->counters.fewer_copies, 1u);
    else if (!kept)
        atomic_fetch_add(&packs->counters.elsewhere, 1u);
    return kept;
}

static esdm_status
append_to(esdm__pack_set *packs, esdm__target *target, const blob *b, esdm__place *ret_place,
          esdm_error *err)
{
    limit_ending(packs, target, true);
    double started = esdm__seconds_now();
    esdm__pack *p = take_idle(packs, target, &b->mirrors, &b->allowed);
    if (p == NULL) {
        esdm_status created = esdm__pack_set_say_writing(packs, err);
        if (created == ESDM_OK)
            created = esdm__pack_create(&packs->owner, target, &b->mirrors, &b->allowed, &p, err);
        if (created != ESDM_OK)
            return created;
        (void) pthread_mutex_lock(&packs->lock);
        esdm__pack_push(&packs->open, p);
        (void) pthread_mutex_unlock(&packs->lock);
    }
    ret_place->pack = p;
    ret_place->handed = NULL;
    esdm_status status =
        esdm__pack_append(p, b->iov, b->niov, &ret_place->position, &ret_place->places, err);
    if (status == ESDM_OK) {
        p->blobs += count_write(packs, b, ret_place);
        bool ends = esdm__pack_set_is_full(packs, p) && esdm__pack_may_end(&packs->owner, p);
        if (ends && target->plugin->pack_begin_seal != NULL)
            esdm__pack_begin_seal(p);
        else if (ends)
            status = seal_full(packs, p, err);
        p->spent.requests++;
        p->spent.bytes += (double) b->bytes;
        p->spent.concurrency += atomic_load(&target->queued_requests);
        p->spent.seconds += esdm__seconds_now() - started;
        if (ends && p->begun_s > 0) /* it went into memory: what storing takes is seen later */
            memset(&p->spent, 0, sizeof p->spent);
        else if (ends)
            esdm__pack_set_tell_model(packs, p);
    }
    esdm__pack_set_release(packs, p);
    limit_ending(packs, target, false);
    return status;
}

/* ---- placing ------------------------------------------------------------------------------ */

static void
enqueue(esdm__target *target, uint64_t bytes)
{
    atomic_fetch_add(&target->queued_bytes, bytes);
    atomic_fetch_add(&target->queued_requests, 1u);
}

static void
dequeue(esdm__target *target, uint64_t bytes)
{
    atomic_fetch_sub(&target->queued_bytes, bytes);
    atomic_fetch_sub(&target->queued_requests, 1u);
}

static esdm_status
append_waiting(esdm__pack_set *packs, esdm__target *target, const blob *b, esdm__place *ret_place,
               esdm_error *err)
{
    esdm__pool *pool = packs->owner.session->pool;
    if (!target->slow) /* those that need a network wait inside */
        return append_to(packs, target, b, ret_place, err);
    esdm__pool_wait_begin(pool);
    esdm_status status = append_to(packs, target, b, ret_place, err);
    esdm__pool_wait_end(pool);
    return status;
}

static void
note_decision(const esdm__pack_set *packs, const esdm__pack_order *o, size_t chosen, uint64_t bytes,
              double seconds, const esdm__place *place)
{
    const esdm__decision decision = {.pack = esdm__place_pack_name(place),
                                     .chosen = chosen,
                                     .order = o->choices,
                                     .count = packs->owner.session->ntargets,
                                     .bytes = bytes,
                                     .predicted_s = o->choices[chosen].completion_s,
                                     .observed_s = seconds};
    if (o->worth_noting)
        esdm__decisions_note(packs->decisions, &decision);
}

/* A target that stores in the background has so much more to do. */
static void
owe(const esdm__pack_order *o, esdm__target *target, size_t number, uint64_t bytes)
{
    const esdm__perf *write = o->targets[number].write;
    if (target->plugin->pack_begin_seal != NULL && write != NULL)
        esdm__target_owes(target, esdm__perf_busy(write, (double) bytes));
}

/* Asks one target after the other; the first has the bytes in its queue already. */
static esdm_status
append_in_order(esdm__pack_set *packs, blob *b, esdm__place *ret_place, esdm_error *err)
{
    esdm_session *session = packs->owner.session;
    const esdm__pack_order *o = b->order;
    esdm_error refusal = {0};
    for (size_t i = 0; i < o->count; i++)
        esdm__target_set_add(&b->allowed, o->choices[i].target);
    for (size_t i = 0; i < o->count && refusal.status != ESDM_ENOMEM; i++) {
        esdm__target *target = &session->targets[o->choices[i].target];
        esdm_error error = {0};
        if (i > 0)
            enqueue(target, b->bytes);
        double started = esdm__seconds_now();
        esdm_status opened = esdm__target_need(session, target, &error);
        b->mirrors = esdm__pack_order_mirrors(session, o, i, b->copies);
        esdm_status status =
            opened == ESDM_OK ? append_waiting(packs, target, b, ret_place, &error) : opened;
        dequeue(target, b->bytes);
        atomic_fetch_add(&target->unchecked_bytes, b->bytes);
        if (status == ESDM_OK) {
            if (esdm__target_stores_appends(target))
                esdm__target_worked(target);
            owe(o, target, o->choices[i].target, b->bytes);
            note_decision(packs, o, i, b->bytes, esdm__seconds_now() - started, ret_place);
            return ESDM_OK;
        }
        if (refusal.status == ESDM_OK || status == ESDM_ENOMEM) {
            refusal = error;
            refusal.status = status;
            (void) esdm__error_prefix(&refusal, status, "target '%s'", target->name);
        }
        if (esdm__target_is_wrong(opened))
            break;
        if (status != ESDM_ENOMEM && session->ntargets > 1)
            esdm__target_failed(target);
    }
    if (err != NULL)
        *err = refusal;
    return refusal.status;
}

static bool
any_retiring(const esdm_session *session)
{
    bool any = false;
    for (size_t i = 0; i < session->ntargets; i++)
        any |= session->targets[i].retiring;
    return any;
}

static esdm_status
append_here(esdm__pack_set *packs, const esdm__pack_hint *hint, const esdm_iov *iov, size_t niov,
            esdm__place *ret_place, esdm_error *err)
{
    esdm__pack_order o;
    blob b = {.iov = iov, .niov = niov, .copies = hint->copies, .order = &o};
    for (size_t i = 0; i < niov; i++)
        b.bytes += iov[i].bytes;
    esdm_status status = esdm__pack_order_init(&o, packs->owner.session->ntargets, err);
    if (status != ESDM_OK)
        return status;
    esdm__targets_check_reserves(packs->owner.session);
    (void) pthread_mutex_lock(&packs->lock);
    esdm__pack_order_choose(packs->owner.session, hint, b.bytes, packs->turn++, &o);
    if (o.count > 0)
        enqueue(&packs->owner.session->targets[o.choices[0].target], b.bytes);
    (void) pthread_mutex_unlock(&packs->lock);
    status =
        o.count > 0
            ? append_in_order(packs, &b, ret_place, err)
            : esdm__error_set(
                  err, ESDM_EINVAL, "the site's policies allow no target for this data%s",
                  any_retiring(packs->owner.session) ? ", of those that are not retiring" : "");
    if (status == ESDM_ENOSPC && esdm__former_relieve(packs->owner.session)) {
        enqueue(&packs->owner.session->targets[o.choices[0].target], b.bytes);
        status = append_in_order(packs, &b, ret_place, err);
    }
    esdm__pack_order_clear(&o);
    return status;
}

esdm_status
esdm__pack_set_append(esdm__pack_set *packs, const esdm__pack_hint *hint, const esdm_iov *iov,
                      size_t niov, esdm__place *ret_place, esdm_error *err)
{
    bool taken = false;
    if (packs->process != esdm__own_pid())
        return esdm__error_set(err, ESDM_EINVAL,
                               "the container was opened before fork(); open it again in the "
                               "child, with a session of its own");
    if (packs->handover != NULL) {
        esdm_status status =
            esdm__handover_append(packs->handover, hint, iov, niov, &taken, ret_place, err);
        if (taken)
            return status;
    }
    return append_here(packs, hint, iov, niov, ret_place, err);
}

esdm_status
esdm__pack_set_append_for(esdm__pack_set *packs, const esdm__pack_hint *hint, const esdm_iov *iov,
                          size_t niov, esdm__place *ret_place, esdm_error *err)
{
    esdm_status status = append_here(packs, hint, iov, niov, ret_place, err);
    if (status == ESDM_OK) /* the record stays as long as the pack set does */
        atomic_store(&((esdm__pack *) (uintptr_t) ret_place->pack)->handed_at,
                     atomic_load(&packs->commits) + 1);
    return status;
}
