/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Bringing what lies on this node's own targets to targets that all nodes see. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/container_io.h"
#include "io/former.h"
#include "io/io.h"
#include "io/page_list.h"
#include "layout/places.h"
#include "upkeep/move.h"
#include "upkeep/upkeep.h"

/* Between two looks at packs of living writers. */
#define WAIT_NS 500000000L

typedef struct drain {
    esdm_session *session;
    const esdm_drain_options *options;
    esdm_drain_result result;
    uint32_t globals; /* targets that all nodes see, and that can be opened */
    esdm__departed *departed;
    uint64_t waiting; /* local packs that may be freed soon */
    /* of the container at hand */
    const char *name;
    uint64_t container;
    esdm_container *model;
    uint64_t here; /* fragments that lie here alone */
    uint64_t elsewhere;
    char node[ESDM__PLACE_NODE_BYTES]; /* another one that has some */
} drain;

/* ---- what is to be moved ------------------------------------------------------------------ */

static uint32_t
wanted_copies(const drain *d, uint32_t dataset)
{
    const esdm_dataset *known = esdm__container_dataset(d->model, dataset);
    char *path = known != NULL ? esdm__dataset_path(known) : NULL;
    uint32_t copies = esdm__site_copies(d->session->site, d->name, path != NULL ? path : "");
    free(path);
    return copies < d->globals ? copies : d->globals;
}

static bool
wants(void *user, uint32_t dataset, const esdm__fragment *fragment, uint32_t *ret_copies)
{
    drain *d = user;
    const char *places = fragment->pack->target;
    esdm__pack_place place;
    bool here = false;
    bool elsewhere = false;
    if (!esdm__places_are_special(places))
        return false;
    while (esdm__places_next(&places, &place)) {
        bool local = place.node[0] != '\0';
        bool ours = local && strcmp(place.node, d->session->node) == 0;
        here |= ours;
        elsewhere |= local && !ours;
        if (local && !ours)
            memcpy(d->node, place.node, sizeof d->node);
    }
    d->elsewhere += elsewhere && !here;
    if (!here)
        return false;
    d->here++;
    *ret_copies = wanted_copies(d, dataset);
    return true;
}

static void
note_moved(void *user, const char *pack, uint64_t bytes)
{
    esdm__departed_add(((const drain *) user)->departed, pack, bytes);
}

static bool
step(void *user)
{
    const drain *d = user;
    if (d->options->progress != NULL)
        d->options->progress(0, d->name, d->options->user);
    return true;
}

/* ---- freeing ------------------------------------------------------------------------------ */

static void
free_pack(drain *d, const esdm__pack_entry *entry)
{
    const esdm__target *target = &d->session->targets[entry->target];
    if (target->plugin->pack_remove(target->handle, entry->name, NULL) != ESDM_OK)
        return;
    d->result.packs++;
    d->result.freed_bytes += entry->bytes;
}

/* Where a writer that lives may seem dead, only what we have moved ourselves, to its last byte, is
 * certain to be no loss. */
static bool
may_go(const drain *d, const esdm__pack_entry *entry, uint64_t now_ns)
{
    return d->session->meta->writer_check == NULL ||
           esdm__departed_bytes(d->departed, entry->name) >= entry->bytes ||
           esdm__pack_is_old(entry, d->options->any_age, d->options->age_s, now_ns);
}

/* What was moved, now or by an earlier call, and what killed programs left behind. Living writers
 * go on with what they have. @param unread whether fragments are left that cannot be read. */
static esdm_status
free_space(drain *d, const char *uuid, bool unread, esdm_error *err)
{
    uint64_t now_ns = esdm__now_ns();
    esdm__inventory packs = {0};
    esdm__strays strays = {0};
    esdm_status status = esdm__inventory_add(&packs, d->session, uuid, err);
    if (status == ESDM_OK) {
        esdm__inventory_sort(&packs);
        status = esdm__strays_find(d->session, &packs, true, &strays, err);
    }
    for (size_t i = 0, next = 0; i < packs.count && status == ESDM_OK; i++) {
        const esdm__pack_entry *entry = &packs.entries[i];
        bool dead = next < strays.dead && strays.dead_packs[next] == i;
        next += dead;
        if (!d->session->targets[entry->target].local)
            continue;
        bool young = dead && !may_go(d, entry, now_ns);
        bool freed = dead && !young && esdm__stray_stays_dead(d->session, entry);
        if (freed)
            free_pack(d, entry);
        d->result.packs_left += !freed;
        d->result.young += young;
        d->waiting += !dead && !((unread || strays.lost > 0) && atomic_load(&entry->used));
    }
    free(strays.dead_packs);
    esdm__inventory_clear(&packs);
    return status;
}

/* ---- one container ------------------------------------------------------------------------ */

static void
report(const drain *d, esdm_status status, const char *what, const char *remedy)
{
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = status,
                                  .container = d->name,
                                  .what = what,
                                  .remedy = remedy};
    if (d->options->report != NULL)
        d->options->report(&finding, d->options->user);
}

static esdm_status
move_all(drain *d, const char *uuid, bool *ret_unread, esdm_error *err)
{
    esdm__moved moved = {0};
    esdm_error first = {0};
    const esdm__move_job job = {.session = d->session,
                                .name = d->name,
                                .container = d->container,
                                .uuid = uuid,
                                .model = d->model,
                                .global = true,
                                .wants = wants,
                                .step = step,
                                .moved = note_moved,
                                .user = d};
    esdm_status status = esdm__move(&job, &moved, &first, err);
    d->result.fragments += moved.fragments;
    d->result.bytes += moved.bytes;
    d->result.failed += moved.failed;
    *ret_unread = moved.failed > 0;
    /* What was not published moves again, and must not count twice: packs then go by age. */
    if (status != ESDM_OK)
        esdm__departed_clear(d->departed);
    if (moved.failed > 0)
        report(d, first.status, first.message, "esdm-fsck tells what is lost");
    return status;
}

static esdm_status
drain_container(drain *d, const char *name, esdm_error *err)
{
    esdm_error error = {0};
    esdm__former former;
    d->name = esdm__former_parse(name, &former) ? former.name : name;
    d->elsewhere = 0;
    esdm_status status =
        esdm__io_open(d->session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &d->model, &error);
    if (status == ESDM_ENOENT) /* removed since it was listed */
        return ESDM_OK;
    if (status == ESDM_OK) {
        const esdm__container_io *io = esdm__io_of(d->model);
        d->container = io->record;
        bool unread = false;
        status = move_all(d, io->uuid, &unread, &error);
        if (status == ESDM_OK)
            status = free_space(d, io->uuid, unread, &error);
        d->result.containers++;
        d->result.elsewhere += d->elsewhere;
        esdm__container_drop(d->model);
        d->model = NULL;
    }
    if (d->elsewhere > 0) {
        char what[ESDM__PLACE_NODE_BYTES + 80];
        (void) snprintf(what, sizeof what, "fragments lie on targets of other nodes, as of %s",
                        d->node);
        report(d, ESDM_ENOENT, what, "run esdm-drain there too");
    }
    if (status != ESDM_OK && err != NULL)
        *err = error;
    return status;
}

/* ---- all of them -------------------------------------------------------------------------- */

static bool
note_name(const char *name, const esdm_meta_container *record, void *user)
{
    (void) record;
    esdm__buffer_put(user, name, strlen(name) + 1);
    return true;
}

static esdm_status
list_names(const drain *d, esdm__buffer *names, esdm_error *err)
{
    const esdm_meta_plugin *meta = d->session->meta;
    const esdm_drain_options *options = d->options;
    esdm_status status = ESDM_OK;
    if (options->containers == NULL)
        status = meta->container_list(d->session->store, NULL, note_name, names, err);
    size_t named = options->containers != NULL ? options->ncontainers : 0;
    for (size_t i = 0; i < named && status == ESDM_OK; i++) {
        size_t before = names->bytes;
        status =
            meta->container_list(d->session->store, options->containers[i], note_name, names, err);
        if (status == ESDM_OK && names->bytes == before && !names->failed)
            return esdm__error_set(err, ESDM_ENOENT,
                                   "there is no container '%.300s' and none below it",
                                   options->containers[i]);
    }
    if (status == ESDM_OK && names->failed)
        status = esdm__error_nomem(err, names->bytes, "names");
    return status;
}

static esdm_status
drain_all(drain *d, esdm_error *err)
{
    esdm__buffer names;
    esdm__buffer_init(&names);
    d->result.packs_left = 0;
    d->result.young = 0;
    d->result.failed = 0;
    d->result.elsewhere = 0;
    d->waiting = 0;
    esdm_status status = list_names(d, &names, err);
    for (size_t at = 0; at < names.bytes && status == ESDM_OK;) {
        const char *name = (const char *) names.data + at;
        status = drain_container(d, name, err);
        at += strlen(name) + 1;
    }
    esdm__buffer_clear(&names);
    return status;
}

/* Opens the targets; *ret_local whether this node has some of its own. */
static esdm_status
look_at_targets(drain *d, bool *ret_local, esdm_error *err)
{
    esdm_session *session = d->session;
    *ret_local = false;
    for (size_t i = 0; i < session->ntargets; i++) {
        bool open = esdm__target_need(session, &session->targets[i], NULL) == ESDM_OK;
        *ret_local |= session->targets[i].local && open;
        d->globals += !session->targets[i].local && open;
    }
    if (d->globals == 0)
        return esdm__error_set(err, ESDM_ENOENT,
                               "%s: there is no target that all nodes see and that can be opened: "
                               "data can be brought nowhere",
                               session->site->source);
    return ESDM_OK;
}

esdm_status
esdm__upkeep_drain(esdm_session *session, const esdm_drain_options *options,
                   esdm__departed *departed, esdm_drain_result *ret_result, esdm_error *err)
{
    esdm__departed own = {0};
    drain d = {
        .session = session, .options = options, .departed = departed != NULL ? departed : &own};
    bool local = false;
    esdm_status status = look_at_targets(&d, &local, err);
    if (status == ESDM_OK)
        status = drain_all(&d, err);
    while (status == ESDM_OK && options->wait && local && d.waiting > 0 && step(&d)) {
        const struct timespec nap = {.tv_nsec = WAIT_NS};
        (void) nanosleep(&nap, NULL);
        status = drain_all(&d, err);
    }
    esdm__departed_clear(&own);
    *ret_result = d.result;
    return status;
}
