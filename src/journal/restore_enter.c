/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Changing a catalogue that is brought back, so that a call that is killed can be made
 * again. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/commit.h"
#include "journal/restore_work.h"

static void
name_own(const char *uuid, const char *end, own_name ret)
{
    (void) snprintf(ret, sizeof(own_name), ESDM__RESTORE_PREFIX "%s%s", uuid, end);
}

bool
esdm__restore_is_own_name(const char *name)
{
    return strncmp(name, ESDM__RESTORE_PREFIX, sizeof ESDM__RESTORE_PREFIX - 1) == 0 ||
           strncmp(name, SEALED_AWAY, sizeof SEALED_AWAY - 1) == 0;
}

/* Nobody else may use it meanwhile; another call begins where this one did. */
static esdm_status
touch(work *w, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    char text[32];
    esdm_status status = ESDM_OK;
    if (w->touched || !w->r->kept)
        return ESDM_OK;
    w->touched = true;
    (void) snprintf(text, sizeof text, "%" PRIu64, w->from_ns);
    if (to->plugin->fact_put != NULL)
        status = to->plugin->fact_put(to->store, FACT_FROM, text, err);
    if (status == ESDM_OK)
        status =
            to->plugin->set_state(to->store, ESDM_META_ARRIVING,
                                  "is being brought up to date; call esdm-mkfs --restore again "
                                  "to complete it",
                                  err);
    return status;
}

/* Gives a container a name that begins with '/', which a sealed one gets in two steps. */
static esdm_status
move_to_own(const esdm__catalogue *to, const char *uuid, const char *from, const char *own,
            esdm_error *err)
{
    char away[sizeof SEALED_AWAY + ESDM__UUID_BYTES + 2];
    uint64_t replaced = 0;
    esdm_status status =
        to->plugin->container_move(to->store, from, own, false, NULL, &replaced, err);
    if (status != ESDM_EACCES)
        return status;
    (void) snprintf(away, sizeof away, SEALED_AWAY "%s-d", uuid);
    status = to->plugin->container_move(to->store, from, away, false, NULL, &replaced, err);
    return status == ESDM_OK
               ? to->plugin->container_move(to->store, away, own, false, NULL, &replaced, err)
               : status;
}

static esdm_status
drop_record(const esdm__catalogue *to, const char *uuid, const char *name, esdm_error *err)
{
    own_name own;
    uint64_t container = 0;
    name_own(uuid, "", own);
    esdm_status status = to->plugin->container_remove(to->store, name, &container, err);
    if (status == ESDM_EACCES) { /* it is sealed */
        status = move_to_own(to, uuid, name, own, err);
        if (status == ESDM_OK)
            status = to->plugin->container_remove(to->store, own, &container, err);
    }
    return status == ESDM_OK ? to->plugin->forget(to->store, container, err) : status;
}

/* A record that was entered beside the container's own: the journals have it still. */
static bool
is_second(const work *w, size_t i)
{
    const known *one = &w->all[i];
    bool beside = (i > 0 && strcmp(w->all[i - 1].uuid, one->uuid) == 0) ||
                  (i + 1 < w->count && strcmp(w->all[i + 1].uuid, one->uuid) == 0);
    size_t bytes = one->base_name != NULL ? strlen(one->base_name) : 0;
    return beside && bytes >= sizeof NEW_RECORD && esdm__restore_is_own_name(one->base_name) &&
           strcmp(one->base_name + bytes - (sizeof NEW_RECORD - 1), NEW_RECORD) == 0;
}

/* The list is sorted. Second records go; the names that others had are looked up. The catalogue is
 * closed to others still. */
esdm_status
esdm__restore_resume(work *w, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    esdm_status status = ESDM_OK;
    size_t left = 0;
    w->touched = true;
    for (size_t i = 0; i < w->count && status == ESDM_OK; i++) {
        known *one = &w->all[i];
        if (is_second(w, i)) {
            if (!w->r->dry_run)
                status = drop_record(to, one->uuid, one->base_name, err);
            one->nameless = false;
            free(one->base_name);
            one->base_name = NULL;
        }
    }
    for (size_t i = 0; i < w->count; i++) {
        known *one = &w->all[i];
        if (one->base_name == NULL)
            continue;
        if (one->nameless && to->plugin->fact_get != NULL) {
            char fact[sizeof FACT_BEFORE + ESDM__UUID_BYTES];
            (void) snprintf(fact, sizeof fact, FACT_BEFORE "%s", one->uuid);
            one->nameless = to->plugin->fact_get(to->store, fact, &one->name, NULL) != ESDM_OK;
        }
        w->all[left++] = *one;
    }
    w->count = left;
    return status;
}

/* What the container is called now, for a call that finds it under a name of its own. */
static esdm_status
note_before(work *w, const known *one, const char *name, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    char fact[sizeof FACT_BEFORE + ESDM__UUID_BYTES];
    if (to->plugin->fact_put == NULL || !w->r->kept)
        return ESDM_OK;
    (void) snprintf(fact, sizeof fact, FACT_BEFORE "%s", one->uuid);
    return to->plugin->fact_put(to->store, fact, name, err);
}

/* Moves it to its own name, under which it is found again by an interrupted call. */
static esdm_status
set_aside(work *w, known *one, esdm_error *err)
{
    own_name own;
    name_own(one->uuid, "", own);
    esdm_status status = ESDM_OK;
    if (!esdm__restore_is_own_name(one->base_name))
        status = note_before(w, one, one->base_name, err);
    if (status == ESDM_OK)
        status = move_to_own(&w->r->catalogue, one->uuid, one->base_name, own, err);
    if (status != ESDM_OK)
        return status;
    char *copy = strdup(own);
    free(one->base_name);
    one->base_name = copy;
    return copy != NULL ? ESDM_OK : esdm__restore_no_memory(err);
}

/* Exchanges the record of a container in one step, or enters it: under a name of its own, until all
 * are there. */
esdm_status
esdm__restore_enter(work *w, known *one, esdm__whole *whole, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    own_name fresh, own;
    esdm_meta_container left;
    uint64_t replaced = 0;
    name_own(one->uuid, NEW_RECORD, fresh);
    name_own(one->uuid, "", own);
    esdm_status status = touch(w, err);
    if (status == ESDM_OK && one->base_name != NULL && strcmp(one->base_name, fresh) == 0) {
        /* what was entered by an interrupted call */
        status = to->plugin->container_move(to->store, fresh, own, false, NULL, &replaced, err);
        free(one->base_name);
        one->base_name = strdup(own);
        if (status == ESDM_OK && one->base_name == NULL)
            status = esdm__restore_no_memory(err);
    } else if (status == ESDM_OK &&
               to->plugin->container_find(to->store, fresh, &left, NULL) == ESDM_OK) {
        status = drop_record(to, one->uuid, fresh, err);
    }
    if (status != ESDM_OK)
        return status;
    free(whole->name);
    whole->name = strdup(fresh);
    if (whole->name == NULL)
        return esdm__restore_no_memory(err);
    status = esdm__whole_import(whole, to, to, err);
    bool there = one->base_name != NULL;
    if (status == ESDM_OK)
        status = to->plugin->container_move(to->store, fresh, there ? one->base_name : own, there,
                                            NULL, &replaced, err);
    if (status == ESDM_EACCES && there) { /* what is sealed is not replaced */
        status = set_aside(w, one, err);
        if (status == ESDM_OK)
            status = to->plugin->container_move(to->store, fresh, own, true, NULL, &replaced, err);
    }
    if (status == ESDM_OK && replaced != 0)
        status = to->plugin->forget(to->store, replaced, err);
    if (status == ESDM_OK && one->base_name == NULL) {
        one->base_name = strdup(own);
        status = one->base_name != NULL ? ESDM_OK : esdm__restore_no_memory(err);
    }
    one->present = status == ESDM_OK;
    return status;
}

/* Moves a container to its own name (pass 0), or to the one that it should have. */
static esdm_status
move_known(work *w, known *one, int pass, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    own_name own;
    uint64_t replaced = 0;
    name_own(one->uuid, "", own);
    const char *next = pass == 0 ? own : one->name;
    esdm_status status = touch(w, err);
    if (status != ESDM_OK || strcmp(one->base_name, next) == 0)
        return status;
    if (pass == 0)
        return set_aside(w, one, err);
    status =
        to->plugin->container_move(to->store, one->base_name, next, false, NULL, &replaced, err);
    if (status != ESDM_OK)
        return status;
    char *copy = strdup(next);
    free(one->base_name);
    one->base_name = copy;
    return copy != NULL ? ESDM_OK : esdm__restore_no_memory(err);
}

/* Names are exchanged by way of ones that nobody else has. */
esdm_status
esdm__restore_give_names(work *w, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    esdm_status status = ESDM_OK;
    for (int pass = 0; pass < 2 && status == ESDM_OK; pass++) {
        for (size_t i = 0; i < w->count && status == ESDM_OK; i++) {
            known *one = &w->all[i];
            if (one->base_name == NULL || !one->present ||
                (one->name != NULL && strcmp(one->base_name, one->name) == 0))
                continue;
            if (one->name != NULL) {
                status = move_known(w, one, pass, err);
                continue;
            }
            status = touch(w, err);
            if (status == ESDM_OK)
                status = drop_record(to, one->uuid, one->base_name, err);
            one->present = false;
            w->r->result.restored += status == ESDM_OK;
        }
    }
    return status;
}

/* Second shapes hold up to a snapshot of a number, which another one may get now: they can be made
 * again. */
esdm_status
esdm__restore_drop_shapes(work *w, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < w->count && status == ESDM_OK; i++) {
        known *one = &w->all[i];
        if (!one->present || one->base_name == NULL || one->base_name[0] == '/' ||
            !esdm__name_is_shapes(one->base_name, NULL))
            continue;
        status = touch(w, err);
        if (status == ESDM_OK)
            status = drop_record(&w->r->catalogue, one->uuid, one->base_name, err);
        one->present = false;
    }
    return status;
}

static bool
note_fact(const char *name, const char *text, void *user)
{
    esdm__buffer *names = user;
    (void) text;
    esdm__buffer_put(names, name, strlen(name) + 1);
    return !names->failed;
}

/* Records that lost their name to a newer one of the same container. */
typedef struct leftovers {
    const work *w;
    esdm__buffer records; /* numbers */
} leftovers;

static bool
note_leftover(uint64_t container, const char *uuid, void *user)
{
    leftovers *l = user;
    const known *one = esdm__restore_find(l->w, uuid);
    if (one != NULL && one->present)
        esdm__buffer_put_u64(&l->records, container);
    return !l->records.failed;
}

/* What is collected as garbage takes the packs of its container with it: no record may be left that
 * an interrupted call has replaced. */
static esdm_status
forget_leftovers(const work *w, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    leftovers l = {.w = w};
    esdm__buffer_init(&l.records);
    esdm_status status = to->plugin->garbage(to->store, note_leftover, &l, err);
    if (status == ESDM_OK && l.records.failed)
        status = esdm__restore_no_memory(err);
    for (size_t at = 0; at < l.records.bytes && status == ESDM_OK; at += sizeof(uint64_t)) {
        uint64_t container;
        memcpy(&container, l.records.data + at, sizeof container);
        status = to->plugin->forget(to->store, container, err);
    }
    esdm__buffer_clear(&l.records);
    return status;
}

/* All is done: nothing is left to resume, and a catalogue that was kept is opened. */
esdm_status
esdm__restore_end(work *w, esdm_error *err)
{
    const esdm__catalogue *to = &w->r->catalogue;
    esdm_meta_state state = ESDM_META_ACTIVE;
    char note[ESDM_META_NOTE_BYTES];
    esdm__buffer names;
    esdm_status status = forget_leftovers(w, err);
    if (status != ESDM_OK || !w->r->kept)
        return status;
    esdm__buffer_init(&names);
    if (to->plugin->fact_list != NULL)
        status = to->plugin->fact_list(to->store, FACT_FROM, note_fact, &names, err);
    if (status == ESDM_OK && names.failed)
        status = esdm__restore_no_memory(err);
    for (size_t at = 0; at < names.bytes && status == ESDM_OK;) {
        const char *name = (const char *) names.data + at;
        status = to->plugin->fact_put(to->store, name, NULL, err);
        at += strlen(name) + 1;
    }
    esdm__buffer_clear(&names);
    if (status == ESDM_OK)
        status = to->plugin->state(to->store, &state, note, err);
    if (status == ESDM_OK && state != ESDM_META_ACTIVE)
        status = to->plugin->set_state(to->store, ESDM_META_ACTIVE, "", err);
    return status;
}
