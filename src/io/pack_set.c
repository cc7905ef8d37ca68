/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/pack_set.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"

/* Once made, a record stays until esdm__pack_set_free(), because fragments borrow its name. */
typedef struct pack {
    esdm__target *target;
    void *handle;          /* NULL: sealed */
    uint64_t length_bytes; /* touched by the thread that has it busy */
    bool busy;             /* a thread is appending, syncing or sealing */
    bool unsynced;
    bool committed;     /* a commit refers to it */
    bool offered;       /* another process is committing it */
    esdm_error failure; /* of a sync or seal: what was appended may be lost, for good */
    struct pack *next;
    char name[96];
} pack;

struct esdm__pack_set {
    esdm_session *session;
    pthread_mutex_t lock; /* guards list, cursor and busy flags; never held across target calls */
    pthread_cond_t idle;  /* some pack ceased to be busy */
    pack *list;
    size_t next_target; /* round robin over targets */
    pid_t owner;        /* a forked child has no part in what its parent writes */
    char uuid[ESDM__UUID_BYTES];
};

esdm__pack_set *
esdm__pack_set_new(esdm_session *session, const char *uuid)
{
    esdm__pack_set *packs = calloc(1, sizeof *packs);
    if (packs == NULL)
        return NULL;
    packs->session = session;
    packs->owner = getpid();
    (void) snprintf(packs->uuid, sizeof packs->uuid, "%s", uuid);
    (void) pthread_mutex_init(&packs->lock, NULL);
    (void) pthread_cond_init(&packs->idle, NULL);
    return packs;
}

static void
release(esdm__pack_set *packs, pack *p)
{
    (void) pthread_mutex_lock(&packs->lock);
    p->busy = false;
    (void) pthread_cond_broadcast(&packs->idle);
    (void) pthread_mutex_unlock(&packs->lock);
}

/* An open, idle pack on `target`, now busy; NULL when there is none. */
static pack *
take_idle(esdm__pack_set *packs, const esdm__target *target)
{
    pack *found = NULL;
    (void) pthread_mutex_lock(&packs->lock);
    for (pack *p = packs->list; p != NULL && found == NULL; p = p->next) {
        if (p->target == target && p->handle != NULL && !p->busy && p->failure.status == ESDM_OK)
            found = p;
    }
    if (found != NULL)
        found->busy = true;
    (void) pthread_mutex_unlock(&packs->lock);
    return found;
}

static esdm_status
create(esdm__pack_set *packs, esdm__target *target, pack **ret_pack, esdm_error *err)
{
    esdm_session *session = packs->session;
    pack *p = calloc(1, sizeof *p);
    if (p == NULL)
        return esdm__error_nomem(err, sizeof *p, "a pack");
    (void) snprintf(p->name, sizeof p->name, "%s-%.16s-%x", packs->uuid, session->uuid,
                    atomic_fetch_add(&session->next_pack, 1u));
    p->target = target;
    esdm_status status = target->plugin->pack_create(target->handle, p->name, &p->handle, err);
    if (status != ESDM_OK) {
        free(p);
        return status;
    }
    p->busy = true;
    (void) pthread_mutex_lock(&packs->lock);
    p->next = packs->list;
    packs->list = p;
    (void) pthread_mutex_unlock(&packs->lock);
    *ret_pack = p;
    return ESDM_OK;
}

/* Remembers a failure: the next sync or seal would succeed, but the data would still be lost. */
static esdm_status
keep_failure(pack *p, esdm_status status, const esdm_error *error, esdm_error *err)
{
    if (status == ESDM_OK)
        return ESDM_OK;
    p->failure = *error;
    p->failure.status = status;
    if (err != NULL)
        *err = p->failure;
    return status;
}

static esdm_status
seal(pack *p, esdm_error *err)
{
    esdm_error error = {0};
    void *handle = p->handle;
    p->handle = NULL;
    return keep_failure(p, p->target->plugin->pack_seal(handle, &error), &error, err);
}

static esdm_status
sync_pack(pack *p, esdm_error *err)
{
    esdm_error error = {0};
    if (!p->unsynced)
        return ESDM_OK;
    p->unsynced = false;
    return keep_failure(p, p->target->plugin->pack_sync(p->handle, &error), &error, err);
}

/* Whether the pack must be flushed before it is sealed: afterwards it cannot be any more, and a
 * commit may refer to it. */
static bool
needs_sync(const esdm__pack_set *packs, const pack *p)
{
    return packs->session->site->durability == ESDM__DURABLE_SYSTEM &&
           (p->target->plugin->flags & ESDM_DATA_SEAL_DURABLE) == 0;
}

static bool
is_full(const esdm__pack_set *packs, const pack *p)
{
    const esdm_data_plugin *plugin = p->target->plugin;
    return p->length_bytes >= packs->session->site->engine.pack_bytes ||
           (plugin->pack_is_full != NULL && plugin->pack_is_full(p->handle));
}

static esdm_status
append_to(esdm__pack_set *packs, esdm__target *target, const esdm_iov *iov, size_t niov,
          esdm__place *ret_place, esdm_error *err)
{
    pack *p = take_idle(packs, target);
    if (p == NULL) {
        esdm_status created = create(packs, target, &p, err);
        if (created != ESDM_OK)
            return created;
    }
    uint64_t position = 0;
    esdm_status status = target->plugin->pack_append(p->handle, iov, niov, &position, err);
    if (status == ESDM_OK) {
        for (size_t i = 0; i < niov; i++)
            p->length_bytes += iov[i].bytes;
        p->unsynced = true;
        *ret_place = (esdm__place){.target = target->name, .pack = p->name, .position = position};
        if (is_full(packs, p) && !needs_sync(packs, p))
            status = seal(p, err);
    }
    release(packs, p);
    return status;
}

esdm_status
esdm__pack_set_append(esdm__pack_set *packs, const esdm_iov *iov, size_t niov,
                      esdm__place *ret_place, esdm_error *err)
{
    esdm_session *session = packs->session;
    if (packs->owner != getpid())
        return esdm__error_set(err, ESDM_EINVAL,
                               "the container was opened before fork(); open it again in the "
                               "child, with a session of its own");
    (void) pthread_mutex_lock(&packs->lock);
    size_t first = packs->next_target++;
    (void) pthread_mutex_unlock(&packs->lock);

    esdm_error refusal = {0};
    for (unsigned round = 0; round < 2; round++) { /* healthy targets, then the others */
        for (size_t i = 0; i < session->ntargets; i++) {
            esdm__target *target = &session->targets[(first + i) % session->ntargets];
            if (atomic_load(&target->full) != (round == 1))
                continue;
            esdm_error error = {0};
            esdm_status status = append_to(packs, target, iov, niov, ret_place, &error);
            if (status == ESDM_OK) {
                if (round == 1)
                    atomic_store(&target->full, false);
                return ESDM_OK;
            }
            if (refusal.status == ESDM_OK) {
                refusal = error;
                refusal.status = status;
                (void) esdm__error_prefix(&refusal, status, "target '%s'", target->name);
            }
            if (status == ESDM_ENOMEM)
                break;
            if (session->ntargets > 1)
                atomic_store(&target->full, true);
        }
        if (refusal.status == ESDM_ENOMEM)
            break;
    }
    if (err != NULL)
        *err = refusal;
    return refusal.status;
}

/* What is done to every pack. */
typedef struct visit {
    esdm__pack_set *packs;
    pack **list;
    esdm_status (*fn)(esdm__pack_set *, pack *, void *, esdm_error *);
    void *user;
} visit;

/* Calls fn while no other thread uses the pack. */
static esdm_status
visit_one(void *context, size_t i, esdm_error *err)
{
    const visit *v = context;
    esdm__pack_set *packs = v->packs;
    pack *p = v->list[i];
    (void) pthread_mutex_lock(&packs->lock);
    while (p->busy)
        (void) pthread_cond_wait(&packs->idle, &packs->lock);
    p->busy = true;
    (void) pthread_mutex_unlock(&packs->lock);
    bool waits = p->target->plugin->concurrency > 0;
    if (waits)
        esdm__pool_wait_begin(packs->session->pool);
    esdm_status status = v->fn(packs, p, v->user, err);
    if (waits)
        esdm__pool_wait_end(packs->session->pool);
    release(packs, p);
    return status == ESDM_OK ? ESDM_OK
                             : esdm__error_prefix(err, status, "target '%s'", p->target->name);
}

/* Calls fn on every pack, on several at once where targets wait for servers; stops at the first
 * failure. */
static esdm_status
for_each(esdm__pack_set *packs, esdm_status (*fn)(esdm__pack_set *, pack *, void *, esdm_error *),
         void *user, esdm_error *err)
{
    pack *few[16];
    size_t count = 0;
    esdm__pool *pool = packs->session->pool;
    (void) pthread_mutex_lock(&packs->lock);
    pack *first = packs->list; /* newer ones are put in front: not ours to publish */
    (void) pthread_mutex_unlock(&packs->lock);
    for (pack *p = first; p != NULL; p = p->next)
        count++;
    visit v = {.packs = packs, .list = few, .fn = fn, .user = user};
    if (count > sizeof few / sizeof few[0])
        v.list = malloc(count * sizeof(pack *));
    if (v.list == NULL)
        return esdm__error_nomem(err, count * sizeof(pack *), "packs");
    count = 0;
    for (pack *p = first; p != NULL; p = p->next)
        v.list[count++] = p;
    esdm_status status = ESDM_OK;
    if (count > 1 && pool != NULL && esdm__pool_may_wait(pool))
        status = esdm__pool_run(pool, count, visit_one, &v, err);
    else
        for (size_t i = 0; i < count && status == ESDM_OK; i++)
            status = visit_one(&v, i, err);
    if (v.list != few)
        free(v.list);
    return status;
}

static esdm_status
make_readable(esdm__pack_set *packs, pack *p, void *user, esdm_error *err)
{
    (void) user;
    if (p->handle == NULL || (p->target->plugin->flags & ESDM_DATA_READ_UNSEALED) != 0)
        return ESDM_OK;
    esdm_status status = needs_sync(packs, p) ? sync_pack(p, err) : ESDM_OK;
    return status == ESDM_OK ? seal(p, err) : status;
}

static esdm_status
publish(esdm__pack_set *packs, pack *p, void *user, esdm_error *err)
{
    const bool *durable = user;
    if (p->failure.status != ESDM_OK)
        return keep_failure(p, p->failure.status, &p->failure, err);
    if (*durable && p->handle != NULL && needs_sync(packs, p)) {
        esdm_status status = sync_pack(p, err);
        if (status == ESDM_OK && is_full(packs, p))
            status = seal(p, err);
        if (status != ESDM_OK)
            return status;
    }
    return make_readable(packs, p, NULL, err);
}

esdm_status
esdm__pack_set_publish(esdm__pack_set *packs, bool durable, esdm_error *err)
{
    return for_each(packs, publish, &durable, err);
}

esdm_status
esdm__pack_set_make_readable(esdm__pack_set *packs, esdm_error *err)
{
    for (size_t i = 0; i < packs->session->ntargets; i++) {
        if ((packs->session->targets[i].plugin->flags & ESDM_DATA_READ_UNSEALED) == 0)
            return for_each(packs, make_readable, NULL, err);
    }
    return ESDM_OK;
}

void
esdm__pack_set_committed(esdm__pack_set *packs)
{
    (void) pthread_mutex_lock(&packs->lock);
    for (pack *p = packs->list; p != NULL; p = p->next)
        p->committed = true;
    (void) pthread_mutex_unlock(&packs->lock);
}

/* What nobody refers to need not be stored first. */
static void
end_pack(pack *p)
{
    const esdm_data_plugin *plugin = p->target->plugin;
    if (p->handle != NULL && !p->committed && !p->offered && plugin->pack_discard != NULL) {
        (void) plugin->pack_discard(p->handle, NULL);
        return;
    }
    if (p->handle != NULL)
        (void) seal(p, NULL);
    if (!p->committed && !p->offered)
        (void) plugin->pack_remove(p->target->handle, p->name, NULL);
}

void
esdm__pack_set_offer(esdm__pack_set *packs, bool offered)
{
    (void) pthread_mutex_lock(&packs->lock);
    for (pack *p = packs->list; p != NULL; p = p->next)
        p->offered = offered;
    (void) pthread_mutex_unlock(&packs->lock);
}

void
esdm__pack_set_free(esdm__pack_set *packs)
{
    if (packs == NULL)
        return;
    bool ours = packs->owner == getpid();
    while (packs->list != NULL) {
        pack *p = packs->list;
        packs->list = p->next;
        if (ours)
            end_pack(p);
        free(p);
    }
    if (ours) { /* else a thread of the parent may be waiting in them */
        (void) pthread_cond_destroy(&packs->idle);
        (void) pthread_mutex_destroy(&packs->lock);
    }
    free(packs);
}
