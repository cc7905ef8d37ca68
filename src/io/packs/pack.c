/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "io/session/models.h"

/* The one place where the stage of a pack changes. */
static void
enter(esdm__pack *p, esdm__pack_event event)
{
    bool ending = p->stage == ESDM__PACK_ENDING;
    p->stage = esdm__pack_stage_next(p->stage, event);
    bool ends = p->stage == ESDM__PACK_ENDING;
    if (ending && !ends)
        atomic_fetch_sub(&esdm__pack_target(p)->ending_bytes, p->length_bytes);
}

/* Bytes that are moved at a time. */
#define STEP_BYTES ((size_t) 1 << 20)

esdm_status
esdm__pack_create(const esdm__pack_owner *owner, esdm__target *target,
                  const esdm__mirror_targets *mirrors, const esdm__target_set *allowed,
                  esdm__pack **ret_pack, esdm_error *err)
{
    esdm_session *session = owner->session;
    esdm__pack *p = calloc(1, sizeof *p);
    if (p == NULL)
        return esdm__error_nomem(err, sizeof *p, "a pack");
    unsigned number = atomic_fetch_add(&session->next_pack, 1u);
    const char *end = p->name + sizeof p->name;
    char *at = esdm__text_put(esdm__text_put(p->name, end, owner->uuid), end, "-");
    at = esdm__text_put(esdm__text_part(at, end, owner->writer, 16), end, "-");
    if (owner->rank >= 0) {
        at = esdm__text_number(at, end, (unsigned) owner->rank, 16, 1);
        at = esdm__text_put(at, end, "-");
    }
    (void) esdm__text_number(at, end, number, 16, 1);
    atomic_store(&p->target, target);
    p->allowed = *allowed;
    p->busy = true;
    esdm_status status = target->plugin->pack_create(target->handle, p->name, &p->handle, err);
    if (status != ESDM_OK) {
        free(p);
        return status;
    }
    esdm__mirrors_create(session, &p->mirrors, p->name, mirrors);
    if (p->mirrors.count > 0)
        p->places = esdm__mirrors_places(target, &p->mirrors);
    if (p->mirrors.count > 0 && p->places == NULL)
        esdm__mirrors_drop(&p->mirrors, p->name);
    *ret_pack = p;
    return ESDM_OK;
}

bool
esdm__pack_takes(const esdm__pack *pack, const esdm__target *target,
                 const esdm__mirror_targets *mirrors, const esdm__target_set *allowed)
{
    return esdm__pack_target(pack) == target &&
           memcmp(&pack->allowed, allowed, sizeof *allowed) == 0 &&
           pack->stage == ESDM__PACK_OPEN && pack->lost == NULL &&
           esdm__mirrors_are_on(&pack->mirrors, mirrors);
}

bool
esdm__pack_reads_unsealed(const esdm__pack *pack)
{
    uint32_t flags = esdm__pack_target(pack)->plugin->flags & esdm__mirrors_flags(&pack->mirrors);
    return (flags & ESDM_DATA_READ_UNSEALED) != 0;
}

bool
esdm__pack_shows_late(const esdm__pack *pack)
{
    bool late = esdm__pack_target(pack)->shows_late;
    for (uint32_t i = 0; i < pack->mirrors.count; i++)
        late |= pack->mirrors.list[i].target->shows_late;
    return late;
}

esdm_status
esdm__pack_append(esdm__pack *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                  const char **ret_places, esdm_error *err)
{
    esdm__target *target = esdm__pack_target(pack);
    uint64_t bytes = 0;
    for (size_t i = 0; i < niov; i++)
        bytes += iov[i].bytes;
    esdm__span span;
    esdm__span_begin(&span, target->monitor);
    esdm_status status = target->plugin->pack_append(pack->handle, iov, niov, ret_position, err);
    esdm__target_observed(target, &span, ESDM__SPAN_APPEND, bytes, 1, status);
    if (status != ESDM_OK)
        return status;
    pack->length_bytes += bytes;
    pack->unsynced = true;
    pack->asks |= atomic_load(&target->full);
    if (!esdm__mirrors_append(&pack->mirrors, iov, niov, *ret_position)) /* the first time */
        pack->fewer = esdm__mirrors_places(target, &pack->mirrors);
    *ret_places = pack->fewer != NULL ? pack->fewer : pack->places;
    return ESDM_OK;
}

/* ---- failures ------------------------------------------------------------------------------- */

static esdm_error no_memory = {ESDM_ENOMEM, 0, "out of memory (for the failure of a pack)"};

esdm_status
esdm__pack_failed(const esdm__pack *pack, esdm_error *err)
{
    if (pack->failure == NULL)
        return ESDM_OK;
    if (err != NULL)
        *err = *pack->failure;
    return pack->failure->status;
}

static esdm_error *
copy_error(esdm_status status, const esdm_error *why)
{
    esdm_error *copy = malloc(sizeof *copy);
    if (copy == NULL)
        return &no_memory;
    *copy = *why;
    copy->status = status;
    return copy;
}

static void
free_error(esdm_error *error)
{
    if (error != &no_memory)
        free(error);
}

/* The next sync or seal would succeed, but the data would still be lost. */
static esdm_status
keep_failure(esdm__pack *p, esdm_status status, const esdm_error *why, esdm_error *err)
{
    if (p->failure == NULL)
        p->failure = copy_error(status, why);
    enter(p, ESDM__PACK_REFUSED);
    return esdm__pack_failed(p, err);
}

/* ---- packs that others have removed --------------------------------------------------------- */

typedef struct sighting {
    const esdm__pack *pack;
    bool whole;
} sighting;

static bool
see_pack(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    sighting *s = user;
    (void) modified_ns;
    s->whole |= strcmp(name, s->pack->name) == 0 && bytes >= s->pack->length_bytes;
    return !s->whole;
}

static esdm_status
look_for(const esdm__target *target, sighting *s, esdm_error *err)
{
    if (s->whole)
        return ESDM_OK;
    return target->plugin->pack_list(target->handle, s->pack->name, see_pack, s, err);
}

esdm_status
esdm__pack_look(esdm__pack *p, esdm_error *err)
{
    sighting s = {.pack = p, .whole = p->length_bytes == 0 || p->stage == ESDM__PACK_GONE};
    if (p->handle != NULL && !esdm__pack_reads_unsealed(p))
        return ESDM_OK; /* nobody can see it, so nobody has removed it */
    const esdm__target *target = esdm__pack_target(p);
    esdm_status status = look_for(target, &s, err);
    for (uint32_t i = 0; i < p->mirrors.count && status == ESDM_OK; i++) {
        if (!p->mirrors.list[i].lost)
            status = look_for(p->mirrors.list[i].target, &s, err);
    }
    if (status != ESDM_OK || s.whole)
        return status;
    enter(p, ESDM__PACK_VANISHED);
    if (p->handle != NULL)
        (void) target->plugin->pack_seal(p->handle, NULL);
    p->handle = NULL;
    (void) esdm__mirrors_seal(&p->mirrors);
    return ESDM_OK;
}

/* ---- moving --------------------------------------------------------------------------------- */

static esdm_status
copy_bytes(const esdm__pack *from, const esdm__target *to, void *handle, void *buffer,
           esdm_error *err)
{
    const esdm_data_plugin *plugin = esdm__pack_target(from)->plugin;
    for (uint64_t at = 0; at < from->length_bytes;) {
        uint64_t left = from->length_bytes - at;
        size_t step = left < STEP_BYTES ? (size_t) left : STEP_BYTES;
        uint64_t position = 0;
        esdm_status status = plugin->pack_recall(from->handle, at, step, buffer, err);
        if (status == ESDM_OK)
            status = to->plugin->pack_append(handle, &(esdm_iov){buffer, step}, 1, &position, err);
        if (status == ESDM_OK && position != at)
            status =
                esdm__error_set(err, ESDM_EIO, "target '%s' appends at a wrong position", to->name);
        if (status != ESDM_OK)
            return status;
        at += step;
    }
    return ESDM_OK;
}

static esdm_status
move_to(const esdm__pack_owner *owner, esdm__pack *p, esdm__target *to, esdm_error *err)
{
    void *handle = NULL;
    void *buffer = malloc(STEP_BYTES);
    if (buffer == NULL)
        return esdm__error_nomem(err, STEP_BYTES, "moving a pack");
    esdm_status status = esdm__target_need(owner->session, to, err);
    if (status == ESDM_OK)
        status = to->plugin->pack_create(to->handle, p->name, &handle, err);
    if (status == ESDM_OK) {
        status = copy_bytes(p, to, handle, buffer, err);
        if (status != ESDM_OK)
            esdm__pack_drop(to, handle, p->name);
    }
    free(buffer);
    if (status != ESDM_OK)
        return status;
    esdm__target *from = esdm__pack_target(p);
    void *left = p->handle;
    p->handle = handle;
    p->begun_s = 0; /* what storing takes from now on is another target's time, or a second one */
    p->unsynced = true;
    p->asks = atomic_load(&to->full) && p->length_bytes > 0;
    atomic_store(&p->target, to); /* before it is told: whoever looks later finds it */
    if (to != from) {
        atomic_fetch_add(&owner->counters->elsewhere, p->blobs);
        p->blobs = 0;
        atomic_store(&p->moved, true);
        if (!owner->tells_later)
            status = owner->moved(owner->user, p->name, from->place, to->place, err);
    }
    esdm__pack_drop(from, left, p->name);
    return status;
}

esdm_status
esdm__pack_tell_moved(const esdm__pack_owner *owner, const char *pack, const char *place,
                      esdm_error *err)
{
    const esdm_session *session = owner->session;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < session->ntargets && status == ESDM_OK; i++) {
        const char *from = session->targets[i].place;
        if (owner->moved != NULL && strcmp(from, place) != 0)
            status = owner->moved(owner->user, pack, from, place, err);
    }
    return status;
}

/* Moves the pack to the first target that takes it: healthy ones come first. */
static esdm_status
move_away(const esdm__pack_owner *owner, esdm__pack *p, esdm_error *err)
{
    esdm_session *session = owner->session;
    esdm_status status = ESDM_ENOTSUP;
    for (int failed = 0; failed < 2; failed++) {
        for (size_t i = 0; i < session->ntargets; i++) {
            esdm__target *to = &session->targets[i];
            if (to == esdm__pack_target(p) || !esdm__target_set_has(&p->allowed, i) ||
                atomic_load(&to->full) != (failed != 0))
                continue;
            status = move_to(owner, p, to, err);
            if (status == ESDM_OK ||
                esdm__pack_target(p) == to) /* moved, but not noted: no way on */
                return status;
            esdm__target_failed(to);
        }
    }
    return status;
}

/* A copy of what it holds is lost. */
static void
count_fewer(const esdm__pack_owner *owner, esdm__pack *p)
{
    atomic_fetch_add(&owner->counters->fewer_copies, p->blobs);
    p->blobs = 0;
}

/* ---- ending --------------------------------------------------------------------------------- */

/* What was appended while the target counted as failed is stored there: it works again. */
static void
note_stored(esdm__pack *p)
{
    esdm__target *target = esdm__pack_target(p);
    if (p->asks && !esdm__target_stores_appends(target))
        esdm__target_worked(target);
    p->asks = false;
}

bool
esdm__pack_needs_sync(const esdm__pack_owner *owner, const esdm__pack *pack)
{
    uint32_t flags = esdm__pack_target(pack)->plugin->flags & esdm__mirrors_flags(&pack->mirrors);
    bool wanted = owner->session->site->durability == ESDM__DURABLE_SYSTEM ||
                  esdm__pack_shows_late(pack) ||
                  (owner->durable && (flags & ESDM_DATA_VOLATILE) == 0);
    return wanted && (flags & ESDM_DATA_SEAL_DURABLE) == 0;
}

bool
esdm__pack_may_end(const esdm__pack_owner *owner, const esdm__pack *pack)
{
    uint32_t any = esdm__pack_target(pack)->plugin->flags;
    for (uint32_t i = 0; i < pack->mirrors.count; i++)
        any |= pack->mirrors.list[i].target->plugin->flags;
    return (any & ESDM_DATA_SEAL_DURABLE) != 0 || !esdm__pack_needs_sync(owner, pack);
}

esdm_status
esdm__pack_seal(const esdm__pack_owner *owner, esdm__pack *p, esdm_error *err)
{
    esdm_error first = {0};
    for (size_t attempt = 0; p->handle != NULL; attempt++) {
        esdm_error why = {0};
        esdm__target *target = esdm__pack_target(p);
        bool recalls = target->plugin->pack_recall != NULL;
        esdm_status status =
            esdm__pack_needs_sync(owner, p) ? esdm__pack_sync(owner, p, err) : ESDM_OK;
        if (status != ESDM_OK)
            return status;
        esdm__span span;
        esdm__span_begin(&span, target->monitor);
        status = target->plugin->pack_seal(p->handle, &why);
        esdm__target_observed(target, &span, ESDM__SPAN_SEAL, 0, 1, status);
        if (status == ESDM_OK)
            note_stored(p);
        enter(p, ESDM__PACK_ANSWERED);
        if (status != ESDM_OK && p->mirrors.count > 0 && recalls)
            esdm__pack_drop(target, p->handle, p->name);
        if (status == ESDM_OK || !recalls || p->mirrors.count > 0)
            p->handle = NULL;
        if (status == ESDM_OK && p->lost != NULL) {
            why = *p->lost;
            status = why.status;
        }
        /* What is lost here and whole elsewhere is not lost: esdm-fsck makes the copy again. */
        uint32_t good = esdm__mirrors_good(&p->mirrors) + 1;
        bool whole = esdm__mirrors_seal(&p->mirrors);
        if (whole && esdm__mirrors_good(&p->mirrors) + (status == ESDM_OK) < good)
            count_fewer(owner, p);
        if (whole)
            status = ESDM_OK;
        if (status == ESDM_OK) {
            enter(p, ESDM__PACK_STORED);
            return ESDM_OK;
        }
        if (attempt == 0)
            first = why;
        if (attempt == 0)
            first.status = status;
        bool others = owner->session->ntargets > 1;
        if (others)
            esdm__target_failed(target);
        if (!recalls || !others || p->mirrors.count > 0 || owner->moved == NULL ||
            attempt == owner->session->ntargets || move_away(owner, p, &why) != ESDM_OK)
            return keep_failure(p, first.status, &first, err);
    }
    return esdm__pack_failed(p, err);
}

static void
forget_failure(esdm__pack *p)
{
    free_error(p->failure);
    p->failure = NULL;
    enter(p, ESDM__PACK_AGAIN);
}

bool
esdm__pack_is_lost(const esdm__pack *p)
{
    return p->failure != NULL &&
           (p->handle == NULL || esdm__pack_target(p)->plugin->pack_recall == NULL ||
            p->mirrors.count > 0);
}

esdm_status
esdm__pack_retry(const esdm__pack_owner *owner, esdm__pack *p, esdm_error *err)
{
    esdm__target *target = esdm__pack_target(p);
    esdm_error why = {0};
    if (p->failure == NULL || esdm__pack_is_lost(p))
        return esdm__pack_failed(p, err);
    forget_failure(p);
    if (esdm__pack_seal(owner, p, &why) == ESDM_OK || p->handle == NULL ||
        esdm__pack_target(p) != target)
        return esdm__pack_failed(p, err);
    forget_failure(p); /* some targets want a new pack for another attempt */
    esdm_error again = {0};
    esdm_status status = move_to(owner, p, target, &again);
    if (status != ESDM_OK) /* what the first attempt said tells more */
        return keep_failure(p, why.status, &why, err);
    return esdm__pack_seal(owner, p, err);
}

esdm_status
esdm__pack_sync(const esdm__pack_owner *owner, esdm__pack *p, esdm_error *err)
{
    esdm_error why = {0};
    if (!p->unsynced)
        return ESDM_OK;
    p->unsynced = false;
    esdm__target *target = esdm__pack_target(p);
    const esdm_data_plugin *plugin = target->plugin;
    esdm_status status = ESDM_OK;
    if (p->mirrors.count == 0 || (plugin->flags & ESDM_DATA_SEAL_DURABLE) == 0) {
        esdm__span span;
        esdm__span_begin(&span, target->monitor);
        status = plugin->pack_sync(p->handle, &why);
        esdm__target_observed(target, &span, ESDM__SPAN_SYNC, 0, 1, status);
        if (status == ESDM_OK)
            note_stored(p);
    }
    if (status != ESDM_OK && p->mirrors.count > 0 && p->lost == NULL)
        p->lost = copy_error(status, &why);
    if (p->lost != NULL) {
        why = *p->lost;
        status = why.status;
    }
    uint32_t good = esdm__mirrors_good(&p->mirrors) + 1;
    bool whole = esdm__mirrors_sync(&p->mirrors);
    if (whole && esdm__mirrors_good(&p->mirrors) + (status == ESDM_OK) < good)
        count_fewer(owner, p);
    return status == ESDM_OK || whole ? ESDM_OK : keep_failure(p, status, &why, err);
}

void
esdm__pack_begin_seal(esdm__pack *p)
{
    esdm__target *target = esdm__pack_target(p);
    target->plugin->pack_begin_seal(p->handle);
    enter(p, ESDM__PACK_ENDS);
    uint64_t before = atomic_fetch_add(&target->ending_bytes, p->length_bytes);
    p->begun_s = esdm__seconds_now();
    p->ended = false;
    p->beside = 1 + (double) before / (double) (p->length_bytes > 0 ? p->length_bytes : 1);
}

/* Sealing may move it: the target is asked for anew. */
static void
end_wanted(const esdm__pack_owner *owner, esdm__pack *p)
{
    bool lost = p->failure != NULL && esdm__pack_target(p)->plugin->pack_recall != NULL;
    if (p->handle != NULL && !lost)
        (void) esdm__pack_seal(owner, p, NULL);
    const esdm__target *target = esdm__pack_target(p);
    if (p->handle != NULL && target->plugin->pack_recall != NULL)
        esdm__pack_drop(target, p->handle, p->name);
    else if (p->handle != NULL) /* it could not be flushed, but may be whole */
        (void) target->plugin->pack_seal(p->handle, NULL);
    (void) esdm__mirrors_seal(&p->mirrors);
}

void
esdm__pack_end(const esdm__pack_owner *owner, esdm__pack *p, bool forget)
{
    enter(p, ESDM__PACK_ANSWERED);
    if (!forget && p->use != ESDM__PACK_UNUSED) {
        end_wanted(owner, p);
    } else if (!forget) {
        esdm__pack_drop(esdm__pack_target(p), p->handle, p->name);
        esdm__mirrors_drop(&p->mirrors, p->name);
    }
    free_error(p->failure);
    free_error(p->lost);
    free(p->places);
    free(p->fewer);
    free(p);
}
