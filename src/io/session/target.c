/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/target.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/place.h"
#include "base/shared_file_systems.h"
#include "io/session/models.h"
#include "io/session/session.h"
#include "plugin/registry.h"

/* Bytes written between two looks at the free space of a target with a reserve, at most. */
#define RESERVE_STEP (UINT64_C(256) << 20)
/* Between two attempts to open a target. */
#define RETRY_NS (UINT64_C(10) * 1000000000)
/* Between a failed write and one that asks the target again: at first, and after many. */
#define FIRST_PAUSE_NS (UINT64_C(10) * 1000000000)
#define LAST_PAUSE_NS  (UINT64_C(600) * 1000000000)

static void
note_nothing(const char *line, void *user)
{
    (void) line;
    (void) user;
}

/* A folder on a network whose nodes keep what they write in their memories: commits flush there. */
static bool
shows_late(const esdm__target *target, const esdm_plugin_config *config)
{
    const uint32_t wanted = ESDM_DATA_READ_UNSEALED | ESDM_DATA_CACHED;
    esdm__place place = {0};
    struct statfs found;
    if (target->local || (target->plugin->flags & wanted) != wanted)
        return false;
    bool late = esdm__place_init(&place, target->plugin->base.name, config, NULL) == ESDM_OK &&
                statfs(place.directory, &found) == 0 &&
                esdm__file_system_shows_late((uint32_t) found.f_type);
    esdm__place_clear(&place);
    return late;
}

static esdm_status
open_now(const esdm_session *session, esdm__target *target, void **ret_handle, esdm_error *err)
{
    const esdm__site *site = session->site;
    esdm_plugin_config config;
    esdm__site_plugin_config(site, &site->targets[target - session->targets], &config);
    esdm_error why = {0};
    esdm_status status = target->plugin->open(&config, ret_handle, &why);
    /* Nobody makes the site on each node. */
    if (status == ESDM_ENOENT && target->local && !session->read_only &&
        target->plugin->make(&config, false, note_nothing, NULL, NULL) == ESDM_OK)
        status = target->plugin->open(&config, ret_handle, &why);
    if (status == ESDM_OK)
        target->shows_late = shows_late(target, &config);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static esdm_status
wait_for_other(esdm_session *session, const esdm__target *target)
{
    while (atomic_load(&target->state) == ESDM__TARGET_OPENING)
        (void) pthread_cond_wait(&session->target_tried, &session->target_lock);
    return atomic_load(&target->state) == ESDM__TARGET_OPEN ? ESDM_OK : target->failure.status;
}

/* With the lock held. @param handle of one that is open. */
static void
note_attempt(esdm_session *session, esdm__target *target, esdm_status status, void *handle,
             const esdm_error *why)
{
    target->handle = handle;
    target->failure = *why;
    target->failure.status = status;
    target->retry_ns = esdm__now_ns() + RETRY_NS;
    atomic_store(&target->state, status == ESDM_OK ? ESDM__TARGET_OPEN : ESDM__TARGET_CLOSED);
    (void) pthread_cond_broadcast(&session->target_tried);
}

/* With the lock held, which is let go meanwhile. */
static esdm_status
try_open(esdm_session *session, esdm__target *target)
{
    esdm_error why = {0};
    void *handle = NULL;
    atomic_store(&target->state, ESDM__TARGET_OPENING);
    (void) pthread_mutex_unlock(&session->target_lock);
    esdm_status status = open_now(session, target, &handle, &why);
    (void) pthread_mutex_lock(&session->target_lock);
    note_attempt(session, target, status, handle, &why);
    return status;
}

/* ---- opened by the first read ---------------------------------------------------------------- */

typedef struct opening {
    esdm_session *session;
    esdm__target *target;
    void *handle; /* to be closed by us when it could not be opened */
} opening;

static void
note_begun(void *handle, void *user)
{
    opening *o = user;
    o->handle = handle;
    (void) pthread_mutex_lock(&o->session->target_lock);
    o->target->early = handle;
    (void) pthread_cond_broadcast(&o->session->target_tried);
    (void) pthread_mutex_unlock(&o->session->target_lock);
}

/* Others need not wait for the end of the read. */
static void
note_opened(void *user)
{
    const opening *o = user;
    const esdm_error none = {0};
    (void) pthread_mutex_lock(&o->session->target_lock);
    o->target->early = NULL;
    note_attempt(o->session, o->target, ESDM_OK, o->handle, &none);
    (void) pthread_mutex_unlock(&o->session->target_lock);
}

/* With the lock held: it could not be opened. Others may still be reading. */
static void
give_up(opening *o, esdm_status status, const esdm_error *why)
{
    o->target->early = NULL;
    note_attempt(o->session, o->target, status, NULL, why);
    while (o->target->early_readers > 0)
        (void) pthread_cond_wait(&o->session->target_tried, &o->session->target_lock);
    (void) pthread_mutex_unlock(&o->session->target_lock);
    if (o->handle != NULL) /* else it failed before it began */
        o->target->plugin->close(o->handle);
    (void) pthread_mutex_lock(&o->session->target_lock);
}

/* As try_open(). A failure of the read is none of the target's. */
static esdm_status
try_open_reading(esdm_session *session, esdm__target *target, esdm__first_read *read)
{
    esdm_plugin_config config;
    esdm_error why = {0};
    opening o = {.session = session, .target = target};
    const esdm_target_opening told = {note_begun, note_opened, &o};
    esdm__site_plugin_config(session->site, &session->site->targets[target - session->targets],
                             &config);
    atomic_store(&target->state, ESDM__TARGET_OPENING);
    (void) pthread_mutex_unlock(&session->target_lock);
    esdm_status status = target->plugin->open_and_read(&config, read->pack, read->ranges,
                                                       read->nranges, &told, &read->status, &why);
    (void) pthread_mutex_lock(&session->target_lock);
    read->done = status == ESDM_OK;
    read->why = why;
    if (status != ESDM_OK)
        give_up(&o, status, &why);
    return status;
}

/* While somebody else opens it; with the lock held, which is let go meanwhile. */
static esdm_status
read_meanwhile(esdm_session *session, esdm__target *target, esdm__first_read *read)
{
    while (atomic_load(&target->state) == ESDM__TARGET_OPENING && target->early == NULL)
        (void) pthread_cond_wait(&session->target_tried, &session->target_lock);
    void *handle = target->early;
    if (handle == NULL)
        return wait_for_other(session, target);
    target->early_readers++;
    (void) pthread_mutex_unlock(&session->target_lock);
    read->status =
        target->plugin->pack_read(handle, read->pack, read->ranges, read->nranges, &read->why);
    (void) pthread_mutex_lock(&session->target_lock);
    esdm_status status = wait_for_other(session, target);
    target->early_readers--;
    (void) pthread_cond_broadcast(&session->target_tried);
    read->done = status == ESDM_OK;
    return status;
}

static esdm_status
need(esdm_session *session, esdm__target *target, esdm__first_read *read, esdm_error *err)
{
    if (atomic_load(&target->state) == ESDM__TARGET_OPEN)
        return ESDM_OK;
    esdm__pool_wait_begin(session->pool);
    (void) pthread_mutex_lock(&session->target_lock);
    esdm_status status = target->failure.status;
    if (atomic_load(&target->state) != ESDM__TARGET_CLOSED)
        status =
            read != NULL ? read_meanwhile(session, target, read) : wait_for_other(session, target);
    else if (status == ESDM_OK || esdm__now_ns() >= target->retry_ns)
        status = read != NULL ? try_open_reading(session, target, read) : try_open(session, target);
    if (status != ESDM_OK && err != NULL)
        *err = target->failure;
    (void) pthread_mutex_unlock(&session->target_lock);
    esdm__pool_wait_end(session->pool);
    return status == ESDM_OK ? ESDM_OK : esdm__error_prefix(err, status, "it cannot be opened");
}

esdm_status
esdm__target_need(esdm_session *session, esdm__target *target, esdm_error *err)
{
    return need(session, target, NULL, err);
}

esdm_status
esdm__target_need_to_read(esdm_session *session, esdm__target *target, esdm__first_read *read,
                          esdm_error *err)
{
    bool takes = target->plugin->open_and_read != NULL && !target->local; /* it makes its place */
    return need(session, target, takes ? read : NULL, err);
}

bool
esdm__target_is_wrong(esdm_status opened)
{
    return opened == ESDM_EINVAL || opened == ESDM_ENOTSUP || opened == ESDM_ENOMEM;
}

static esdm_status
add_target(esdm_session *session, size_t i, bool strict, esdm_error *err)
{
    const esdm__site_target *place = &session->site->targets[i];
    const esdm_plugin *plugin = NULL;
    esdm_status status = esdm__plugin_find(ESDM_PLUGIN_DATA, place->plugin, &plugin, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "%s", place->path);
    esdm__target *target = &session->targets[i];
    target->plugin = (const esdm_data_plugin *) plugin;
    target->name = place->name;
    target->monitor = session->monitor;
    target->read_bytes = session->site->engine.sieve_stated ? session->site->engine.sieve_bytes
                                                            : target->plugin->read_bytes;
    target->measured = session->site->engine.sieve_stated || target->read_bytes > 0;
    target->cost = place->cost;
    target->reserve_bytes = place->reserve_bytes;
    target->retiring = place->retiring;
    target->local = place->local;
    if (asprintf(&target->place, "%s%s%s", place->name, place->local ? "@" : "",
                 place->local ? session->node : "") < 0) {
        target->place = NULL;
        return esdm__error_nomem(err, sizeof session->node, "the place of a target");
    }
    session->ntargets = i + 1;
    if (target->plugin->concurrency > 0)
        return ESDM_OK;
    (void) pthread_mutex_lock(&session->target_lock);
    status = try_open(session, target);
    (void) pthread_mutex_unlock(&session->target_lock);
    if (status == ESDM_OK || (!strict && !esdm__target_is_wrong(status)))
        return ESDM_OK;
    if (err != NULL)
        *err = target->failure;
    return esdm__error_prefix(err, status, "target '%s'", target->name);
}

esdm_status
esdm__targets_open(esdm_session *session, bool strict, esdm_error *err)
{
    size_t count = session->site->ntargets;
    esdm_status status = ESDM_OK;
    session->targets = calloc(count, sizeof *session->targets);
    if (session->targets == NULL)
        return esdm__error_nomem(err, count * sizeof *session->targets, "targets");
    for (size_t i = 0; i < count && status == ESDM_OK; i++)
        status = add_target(session, i, strict, err);
    return status;
}

void
esdm__targets_close(esdm_session *session)
{
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *target = &session->targets[i];
        if (atomic_load(&target->state) == ESDM__TARGET_OPEN)
            target->plugin->close(target->handle);
        free(target->place);
    }
    free(session->targets);
    session->targets = NULL;
    session->ntargets = 0;
}

esdm_status
esdm__targets_need_one(esdm_session *session, esdm_error *err)
{
    esdm_error first = {0};
    for (size_t i = 0; i < session->ntargets; i++) {
        if (atomic_load(&session->targets[i].state) == ESDM__TARGET_OPEN)
            return ESDM_OK;
    }
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm_error why = {0};
        esdm_status status = esdm__target_need(session, &session->targets[i], &why);
        if (status == ESDM_OK)
            return ESDM_OK;
        if (first.status != ESDM_OK)
            continue;
        first = why;
        first.status = status;
        (void) esdm__error_prefix(&first, status, "target '%s'", session->targets[i].name);
    }
    if (err != NULL)
        *err = first;
    return first.status;
}

/* ---- failures of writes ------------------------------------------------------------------- */

static uint64_t
monotonic_ns(void)
{
    return (uint64_t) (esdm__seconds_now() * 1e9);
}

void
esdm__target_failed(esdm__target *target)
{
    uint64_t now = monotonic_ns();
    uint64_t again = atomic_load(&target->again_ns);
    uint64_t pause = atomic_load(&target->pause_ns);
    bool known = atomic_exchange(&target->full, true);
    if (known && now < again)
        return;
    if (pause == 0 || (!known && now > again + 4 * pause)) /* it has worked for long */
        pause = FIRST_PAUSE_NS;
    atomic_store(&target->pause_ns, pause);
    atomic_store(&target->again_ns, now + pause);
}

bool
esdm__target_is_due(esdm__target *target)
{
    return monotonic_ns() >= atomic_load(&target->again_ns);
}

bool
esdm__target_take_turn(esdm__target *target)
{
    uint64_t now = monotonic_ns();
    uint64_t again = atomic_load(&target->again_ns);
    uint64_t pause = 2 * atomic_load(&target->pause_ns);
    pause = pause < FIRST_PAUSE_NS ? FIRST_PAUSE_NS : pause < LAST_PAUSE_NS ? pause : LAST_PAUSE_NS;
    if (now < again || !atomic_compare_exchange_strong(&target->again_ns, &again, now + pause))
        return false;
    atomic_store(&target->pause_ns, pause);
    return true;
}

/* ---- what is stored in the background ------------------------------------------------------- */

#define NS_PER_S         1e9
#define OWED_SECONDS_MAX 1e6

static uint64_t
in_ns(double seconds)
{
    return (uint64_t) (fmax(0, fmin(seconds, OWED_SECONDS_MAX)) * NS_PER_S);
}

void
esdm__target_owes(esdm__target *target, double seconds)
{
    uint64_t now = monotonic_ns();
    uint64_t until = atomic_load(&target->owed_until_ns);
    uint64_t later;
    do
        later = (until > now ? until : now) + in_ns(seconds);
    while (!atomic_compare_exchange_weak(&target->owed_until_ns, &until, later));
}

void
esdm__target_owes_just(esdm__target *target, double seconds)
{
    atomic_store(&target->owed_until_ns, monotonic_ns() + in_ns(seconds));
}

double
esdm__target_owed_s(esdm__target *target)
{
    uint64_t until = atomic_load(&target->owed_until_ns);
    uint64_t now = until > 0 ? monotonic_ns() : 0;
    return until > now ? (double) (until - now) / NS_PER_S : 0;
}

/* ---- reserves ----------------------------------------------------------------------------- */

static void
check_reserve(esdm_session *session, esdm__target *target)
{
    esdm_target_usage usage = {0};
    uint64_t step =
        target->reserve_bytes / 8 < RESERVE_STEP ? target->reserve_bytes / 8 : RESERVE_STEP;
    if (target->reserve_bytes == 0 ||
        (atomic_load(&target->checked) && atomic_load(&target->unchecked_bytes) < step))
        return;
    atomic_store(&target->unchecked_bytes, 0);
    const esdm_data_plugin *plugin = target->plugin;
    if (esdm__target_need(session, target, NULL) == ESDM_OK &&
        (plugin->space != NULL ? plugin->space : plugin->usage)(target->handle, &usage, NULL) ==
            ESDM_OK)
        atomic_store(&target->short_of_space,
                     usage.total_bytes > 0 && usage.free_bytes < target->reserve_bytes);
    atomic_store(&target->checked, true); /* until then every thread looks for itself */
}

void
esdm__targets_check_reserves(esdm_session *session)
{
    for (size_t i = 0; i < session->ntargets; i++)
        check_reserve(session, &session->targets[i]);
}
