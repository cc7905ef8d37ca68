/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Packs of an open container: what commits do with them, and their end. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/own_process.h"
#include "io/packs/handover.h"
#include "io/packs/pack_set_inner.h"
#include "io/session/models.h"

/* What is done to every pack. */
typedef struct visit {
    esdm__pack_set *packs;
    esdm__pack **list;
    esdm__pack_visitor fn;
    void *user;
} visit;

/* Makes the pack busy for the caller, which gives its place in the pool away while others use it:
 * they may need one. */
static void
take(esdm__pack_set *packs, esdm__pack *p)
{
    esdm__pool *pool = packs->owner.session->pool;
    bool waits = false;
    (void) pthread_mutex_lock(&packs->lock);
    if (p->busy && pool != NULL) {
        (void) pthread_mutex_unlock(&packs->lock);
        esdm__pool_wait_begin(pool);
        waits = true;
        (void) pthread_mutex_lock(&packs->lock);
    }
    while (p->busy)
        (void) pthread_cond_wait(&packs->idle, &packs->lock);
    p->busy = true;
    (void) pthread_mutex_unlock(&packs->lock);
    if (waits)
        esdm__pool_wait_end(pool);
}

/* Calls fn while no other thread uses the pack. */
static esdm_status
visit_one(void *context, size_t i, esdm_error *err)
{
    const visit *v = context;
    esdm__pack_set *packs = v->packs;
    esdm__pack *p = v->list[i];
    take(packs, p);
    esdm__target *target = esdm__pack_target(p);
    bool waits = esdm__target_waits(target);
    if (waits)
        esdm__pool_wait_begin(packs->owner.session->pool);
    esdm_status status = v->fn(packs, p, v->user, err);
    if (waits)
        esdm__pool_wait_end(packs->owner.session->pool);
    esdm__pack_set_release(packs, p);
    return status == ESDM_OK ? ESDM_OK
                             : esdm__error_prefix(err, status, "target '%s'", target->name);
}

esdm_status
esdm__pack_set_visit(esdm__pack_set *packs, bool (*wanted)(const esdm__pack *pack, void *user),
                     esdm__pack_visitor fn, void *user, esdm_error *err)
{
    esdm__pack *few[16];
    size_t room = sizeof few / sizeof few[0];
    size_t count = 0;
    esdm__pool *pool = packs->owner.session->pool;
    visit v = {.packs = packs, .list = few, .fn = fn, .user = user};
    (void) pthread_mutex_lock(&packs->lock);
    for (const esdm__pack *p = packs->open; p != NULL; p = p->next)
        count++;
    if (count > room)
        v.list = malloc(count * sizeof(esdm__pack *));
    size_t i = 0;
    for (esdm__pack *p = packs->open; p != NULL && v.list != NULL; p = p->next) {
        if (wanted == NULL || wanted(p, user))
            v.list[i++] = p;
    }
    (void) pthread_mutex_unlock(&packs->lock);
    count = i;
    if (v.list == NULL)
        return esdm__error_nomem(err, count * sizeof(esdm__pack *), "packs");
    esdm_status status = ESDM_OK;
    if (count > 1 && pool != NULL && esdm__pool_may_wait(pool))
        status = esdm__pool_run(pool, count, visit_one, &v, err);
    else
        for (i = 0; i < count && status == ESDM_OK; i++)
            status = visit_one(&v, i, err);
    if (v.list != few)
        free(v.list);
    return status;
}

static esdm_status
make_readable(esdm__pack_set *packs, esdm__pack *p, void *user, esdm_error *err)
{
    (void) user;
    if (p->handle == NULL || esdm__pack_reads_unsealed(p))
        return ESDM_OK;
    return esdm__pack_seal(&packs->owner, p, err);
}

static esdm_status
publish_pack(esdm__pack_set *packs, esdm__pack *p, bool durable, esdm_error *err)
{
    esdm_status status = esdm__pack_retry(&packs->owner, p, err);
    if (status == ESDM_OK)
        status = make_readable(packs, p, NULL, err); /* which may move it */
    if (status == ESDM_OK && (durable || esdm__pack_shows_late(p)) && p->handle != NULL &&
        esdm__pack_needs_sync(&packs->owner, p)) {
        status = esdm__pack_sync(&packs->owner, p, err);
        if (status == ESDM_OK && esdm__pack_set_is_full(packs, p))
            status = esdm__pack_seal(&packs->owner, p, err);
    }
    return status;
}

static esdm_status
publish(esdm__pack_set *packs, esdm__pack *p, void *user, esdm_error *err)
{
    const bool *durable = user;
    double started = esdm__seconds_now();
    esdm__pack_ask_ended(p);
    esdm_status status = publish_pack(packs, p, *durable, err);
    double seconds = esdm__seconds_now() - started;
    if (p->spent.requests > 0) {
        p->spent.seconds += seconds;
        esdm__decisions_spent(packs->decisions, p->name, seconds);
    }
    esdm__pack_set_tell_stored(packs, p, started);
    esdm__pack_set_tell_model(packs, p);
    return status;
}

esdm_status
esdm__pack_set_publish_for(esdm__pack_set *packs, bool durable, esdm_error *err)
{
    return esdm__pack_set_visit(packs, NULL, publish, &durable, err);
}

/* ---- what others, or they for this rank, have done ---------------------------------------- */

void
esdm__pack_set_news(esdm__pack_set *packs, esdm__buffer *ret_texts)
{
    (void) pthread_mutex_lock(&packs->lock);
    const esdm__pack *lists[] = {packs->open, packs->sealed, packs->kept, packs->lost};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const esdm__pack *p = lists[i]; p != NULL; p = p->next) {
            bool lost = i == 3;
            if (!lost && !atomic_load(&p->moved))
                continue;
            const char *place = lost ? "" : esdm__pack_target(p)->place;
            esdm__buffer_put(ret_texts, p->name, strlen(p->name) + 1);
            esdm__buffer_put(ret_texts, place, strlen(place) + 1);
        }
    }
    (void) pthread_mutex_unlock(&packs->lock);
}

/* Those of this rank's own thread hear what others have moved. */
static esdm_status
tell_moves(esdm__pack_set *packs, esdm_error *err)
{
    esdm__buffer texts;
    esdm_status status = ESDM_OK;
    if (!packs->owner.tells_later)
        return ESDM_OK;
    esdm__buffer_init(&texts);
    esdm__pack_set_news(packs, &texts);
    if (texts.failed)
        status = esdm__error_nomem(err, texts.bytes, "packs that have moved");
    for (size_t at = 0; at < texts.bytes && status == ESDM_OK;) {
        const char *pack = (const char *) texts.data + at;
        const char *place = pack + strlen(pack) + 1;
        if (place[0] != '\0')
            status = esdm__pack_tell_moved(&packs->owner, pack, place, err);
        at += strlen(pack) + 1 + strlen(place) + 1;
    }
    esdm__buffer_clear(&texts);
    return status;
}

/* @param status so far, with `err`. */
static esdm_status
and_tell_moves(esdm__pack_set *packs, esdm_status status, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status told = tell_moves(packs, &why);
    if (status == ESDM_OK && told != ESDM_OK && err != NULL)
        *err = why;
    return status != ESDM_OK ? status : told;
}

esdm_status
esdm__pack_set_publish(esdm__pack_set *packs, bool durable, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (packs->handover != NULL)
        status = esdm__handover_publish(packs->handover, durable, err);
    if (status == ESDM_OK)
        status = esdm__pack_set_publish_for(packs, durable, err);
    return and_tell_moves(packs, status, err);
}

bool
esdm__pack_set_give_up_lost(esdm__pack_set *packs)
{
    (void) pthread_mutex_lock(&packs->lock);
    for (esdm__pack **at = &packs->open; *at != NULL;) {
        esdm__pack *p = *at;
        if (!p->busy && esdm__pack_is_lost(p)) {
            *at = p->next;
            esdm__pack_push(&packs->lost, p);
        } else {
            at = &p->next;
        }
    }
    bool any = packs->lost != NULL;
    (void) pthread_mutex_unlock(&packs->lock);
    return any || (packs->handover != NULL && esdm__handover_has_lost(packs->handover));
}

bool
esdm__pack_set_is_lost(esdm__pack_set *packs, const char *name)
{
    bool found = false;
    (void) pthread_mutex_lock(&packs->lock);
    for (const esdm__pack *p = packs->lost; p != NULL && !found; p = p->next)
        found = strcmp(p->name, name) == 0;
    (void) pthread_mutex_unlock(&packs->lock);
    return found || (packs->handover != NULL && esdm__handover_is_lost(packs->handover, name));
}

/* Whether some target gives back only what is sealed. */
static bool
must_seal(const esdm__pack_set *packs)
{
    const esdm_session *session = packs->owner.session;
    for (size_t i = 0; i < session->ntargets; i++) {
        if ((session->targets[i].plugin->flags & ESDM_DATA_READ_UNSEALED) == 0)
            return true;
    }
    return false;
}

typedef struct named {
    const esdm__pack_name *const *names;
    size_t count;
} named;

/* NULL: the pack is none of them. */
static const esdm__pack_name *
name_of(const esdm__pack *p, const named *n)
{
    for (size_t i = 0; i < n->count; i++) {
        if (strcmp(n->names[i]->pack, p->name) == 0)
            return n->names[i];
    }
    return NULL;
}

static bool
is_named(const esdm__pack *p, void *user)
{
    return name_of(p, user) != NULL;
}

/* One with copies stays where it is. */
static bool
any_moved(const named *n, const esdm__pack *list)
{
    bool moved = false;
    for (const esdm__pack *p = list; p != NULL && !moved; p = p->next) {
        const esdm__pack_name *name = p->places == NULL ? name_of(p, n) : NULL;
        moved = name != NULL && strcmp(name->target, esdm__pack_target(p)->place) != 0;
    }
    return moved;
}

esdm_status
esdm__pack_set_make_readable_for(esdm__pack_set *packs, const esdm__pack_name *const *names,
                                 size_t count, bool *ret_moved, esdm_error *err)
{
    named n = {.names = names, .count = count};
    *ret_moved = false;
    if (!must_seal(packs))
        return ESDM_OK;
    if (names == NULL)
        return esdm__pack_set_visit(packs, NULL, make_readable, NULL, err);
    esdm_status status = esdm__pack_set_visit(packs, is_named, make_readable, &n, err);
    (void) pthread_mutex_lock(&packs->lock);
    *ret_moved =
        any_moved(&n, packs->open) || any_moved(&n, packs->sealed) || any_moved(&n, packs->kept);
    (void) pthread_mutex_unlock(&packs->lock);
    return status;
}

esdm_status
esdm__pack_set_make_readable(esdm__pack_set *packs, esdm_error *err)
{
    bool moved;
    esdm_status status = ESDM_OK;
    if (packs->handover != NULL && must_seal(packs))
        status = esdm__handover_make_readable(packs->handover, err);
    if (status == ESDM_OK)
        status = esdm__pack_set_make_readable_for(packs, NULL, 0, &moved, err);
    return and_tell_moves(packs, status, err);
}

esdm_status
esdm__pack_set_make_named_readable(esdm__pack_set *packs, const esdm__pack_name *const *names,
                                   size_t count, bool *ret_moved, esdm_error *err)
{
    bool moved = false;
    esdm_status status = ESDM_OK;
    if (packs->handover != NULL && must_seal(packs))
        status = esdm__handover_make_named_readable(packs->handover, names, count, &moved, err);
    if (status == ESDM_OK)
        status = esdm__pack_set_make_readable_for(packs, names, count, ret_moved, err);
    else
        *ret_moved = false;
    *ret_moved = *ret_moved || moved;
    return and_tell_moves(packs, status, err);
}

void
esdm__pack_set_counts(esdm__pack_set *packs, esdm_write_counts *ret_counts)
{
    *ret_counts = (esdm_write_counts){
        .fragments = atomic_load(&packs->counters.fragments),
        .elsewhere = atomic_load(&packs->counters.elsewhere),
        .fewer_copies = atomic_load(&packs->counters.fewer_copies),
    };
}

static void
store_decisions(esdm__pack_set *packs, bool rarely)
{
    esdm_write_counts counts = {0};
    if (!packs->owner.moves)
        esdm__pack_set_counts(packs, &counts);
    esdm__decisions_store(packs->decisions, &packs->owner, &counts, rarely);
}

void
esdm__pack_set_committed(esdm__pack_set *packs)
{
    store_decisions(packs, true);
    if (packs->handover != NULL)
        esdm__handover_committed(packs->handover);
    (void) atomic_fetch_add(&packs->commits, 1u);
    (void) pthread_mutex_lock(&packs->lock);
    packs->committed = true;
    for (esdm__pack *p = packs->open; p != NULL; p = p->next)
        esdm__pack_note(p, ESDM__COMMIT_SUCCEEDS);
    while (packs->sealed != NULL) {
        esdm__pack *p = packs->sealed;
        packs->sealed = p->next;
        esdm__pack_note(p, packs->unanswered ? ESDM__COMMIT_UNANSWERED : ESDM__COMMIT_SUCCEEDS);
        esdm__pack_push(&packs->kept, p);
    }
    (void) pthread_mutex_unlock(&packs->lock);
}

static esdm_status
seal(esdm__pack_set *packs, esdm__pack *p, void *user, esdm_error *err)
{
    (void) user;
    if (p->handle != NULL)
        (void) esdm__pack_seal(&packs->owner, p, err);
    return ESDM_OK;
}

void
esdm__pack_set_begin_anew(esdm__pack_set *packs)
{
    (void) !esdm__pack_set_visit(packs, NULL, seal, NULL, NULL);
}

void
esdm__pack_set_offer(esdm__pack_set *packs, bool offered)
{
    esdm__pack_commit commit = offered ? ESDM__COMMIT_OFFERS : ESDM__COMMIT_WITHDRAWS;
    (void) pthread_mutex_lock(&packs->lock);
    for (esdm__pack *p = packs->open; p != NULL; p = p->next)
        esdm__pack_note(p, commit);
    for (esdm__pack *p = packs->sealed; p != NULL; p = p->next)
        esdm__pack_note(p, commit);
    (void) pthread_mutex_unlock(&packs->lock);
}

static void
end_all(esdm__pack_set *packs, esdm__pack **list, bool forget)
{
    while (*list != NULL) {
        esdm__pack *p = *list;
        *list = p->next;
        esdm__pack_end(&packs->owner, p, forget);
    }
}

void
esdm__pack_set_free(esdm__pack_set *packs)
{
    if (packs == NULL)
        return;
    bool ours = packs->process == esdm__own_pid();
    end_all(packs, &packs->open, !ours);
    end_all(packs, &packs->sealed, !ours);
    end_all(packs, &packs->kept, !ours);
    end_all(packs, &packs->lost, !ours);
    if (ours && packs->committed)
        store_decisions(packs, false);
    esdm__decisions_free(packs->decisions);
    esdm__handover_free(packs->handover);
    if (ours && packs->writing)
        packs->owner.session->meta->writer_end(packs->owner.session->store, packs->owner.writer);
    if (ours) { /* else a thread of the parent may be waiting in them */
        (void) pthread_cond_destroy(&packs->idle);
        (void) pthread_mutex_destroy(&packs->lock);
    }
    free(packs);
}
