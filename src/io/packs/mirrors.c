/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/mirrors.h"

#include <stdlib.h>
#include <string.h>

bool
esdm__mirrors_are_on(const esdm__mirrors *mirrors, const esdm__mirror_targets *targets)
{
    bool same = mirrors->count == targets->count;
    for (uint32_t i = 0; same && i < targets->count; i++)
        same = mirrors->list[i].target == targets->targets[i] && !mirrors->list[i].lost;
    return same;
}

void
esdm__mirrors_create(esdm_session *session, esdm__mirrors *ret_mirrors, const char *name,
                     const esdm__mirror_targets *targets)
{
    ret_mirrors->count = 0;
    for (uint32_t i = 0; i < targets->count; i++) {
        esdm__mirror *m = &ret_mirrors->list[ret_mirrors->count];
        *m = (esdm__mirror){.target = targets->targets[i]};
        const esdm_data_plugin *plugin = m->target->plugin;
        if (esdm__target_need(session, m->target, NULL) == ESDM_OK &&
            plugin->pack_create(m->target->handle, name, &m->handle, NULL) == ESDM_OK)
            ret_mirrors->count++;
        else
            esdm__target_failed(m->target);
    }
}

bool
esdm__mirrors_append(esdm__mirrors *mirrors, const esdm_iov *iov, size_t niov, uint64_t position)
{
    bool good = true;
    for (uint32_t i = 0; i < mirrors->count; i++) {
        esdm__mirror *m = &mirrors->list[i];
        uint64_t at = 0;
        if (m->lost || m->handle == NULL)
            continue;
        uint64_t bytes = 0;
        for (size_t k = 0; k < niov; k++)
            bytes += iov[k].bytes;
        esdm__span span;
        esdm__span_begin(&span, m->target->monitor);
        esdm_status status = m->target->plugin->pack_append(m->handle, iov, niov, &at, NULL);
        esdm__target_observed(m->target, &span, ESDM__SPAN_APPEND, bytes, 1, status);
        m->lost = status != ESDM_OK || at != position;
        m->asks |= status == ESDM_OK && atomic_load(&m->target->full);
        if (status != ESDM_OK)
            esdm__target_failed(m->target);
        else if (esdm__target_stores_appends(m->target))
            esdm__target_worked(m->target);
        good &= !m->lost;
    }
    return good;
}

/* What was appended is stored, or is not. */
static void
note_stored(esdm__mirror *m, bool stored)
{
    if (!stored)
        esdm__target_failed(m->target);
    else if (m->asks && !esdm__target_stores_appends(m->target))
        esdm__target_worked(m->target);
    m->asks &= !stored;
    m->lost |= !stored;
}

static void
end_mirror(esdm__mirror *m, void *handle)
{
    const esdm_data_plugin *plugin = m->target->plugin;
    esdm__span span;
    esdm__span_begin(&span, m->target->monitor);
    esdm_status status = plugin->pack_seal(handle, NULL);
    esdm__target_observed(m->target, &span, ESDM__SPAN_SEAL, 0, 1, status);
    bool stored = status == ESDM_OK;
    note_stored(m, stored);
    if (!stored && plugin->pack_recall != NULL) /* which keeps it */
        (void) plugin->pack_discard(handle, NULL);
}

bool
esdm__mirrors_sync(esdm__mirrors *mirrors)
{
    bool whole = false;
    for (uint32_t i = 0; i < mirrors->count; i++) {
        esdm__mirror *m = &mirrors->list[i];
        const esdm_data_plugin *plugin = m->target->plugin;
        if (m->handle != NULL && (plugin->flags & ESDM_DATA_SEAL_DURABLE) == 0)
            note_stored(m, plugin->pack_sync(m->handle, NULL) == ESDM_OK);
        whole |= !m->lost;
    }
    return whole;
}

bool
esdm__mirrors_seal(esdm__mirrors *mirrors)
{
    bool whole = false;
    for (uint32_t i = 0; i < mirrors->count; i++) {
        esdm__mirror *m = &mirrors->list[i];
        void *handle = m->handle;
        m->handle = NULL;
        if (handle != NULL)
            end_mirror(m, handle);
        whole |= !m->lost;
    }
    return whole;
}

uint32_t
esdm__mirrors_good(const esdm__mirrors *mirrors)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < mirrors->count; i++)
        good += !mirrors->list[i].lost;
    return good;
}

bool
esdm__mirrors_any_full(const esdm__mirrors *mirrors)
{
    bool full = false;
    for (uint32_t i = 0; i < mirrors->count && !full; i++) {
        const esdm__mirror *m = &mirrors->list[i];
        full = m->handle != NULL && m->target->plugin->pack_is_full != NULL &&
               m->target->plugin->pack_is_full(m->handle);
    }
    return full;
}

uint32_t
esdm__mirrors_flags(const esdm__mirrors *mirrors)
{
    uint32_t flags = UINT32_MAX;
    for (uint32_t i = 0; i < mirrors->count; i++)
        flags &= mirrors->list[i].target->plugin->flags;
    return flags;
}

char *
esdm__mirrors_places(const esdm__target *target, const esdm__mirrors *mirrors)
{
    size_t bytes = strlen(target->place) + 1;
    for (uint32_t i = 0; i < mirrors->count; i++)
        bytes += strlen(mirrors->list[i].target->place) + 1;
    char *text = malloc(bytes);
    if (text == NULL)
        return NULL;
    char *end = stpcpy(text, target->place);
    for (uint32_t i = 0; i < mirrors->count; i++) {
        if (mirrors->list[i].lost)
            continue;
        *end++ = ',';
        end = stpcpy(end, mirrors->list[i].target->place);
    }
    return text;
}

void
esdm__pack_drop(const esdm__target *target, void *handle, const char *name)
{
    const esdm_data_plugin *plugin = target->plugin;
    if (handle != NULL && plugin->pack_discard != NULL) {
        (void) plugin->pack_discard(handle, NULL);
        return;
    }
    if (handle != NULL)
        (void) plugin->pack_seal(handle, NULL);
    (void) plugin->pack_remove(target->handle, name, NULL);
}

void
esdm__mirrors_drop(esdm__mirrors *mirrors, const char *name)
{
    for (uint32_t i = 0; i < mirrors->count; i++)
        esdm__pack_drop(mirrors->list[i].target, mirrors->list[i].handle, name);
    mirrors->count = 0;
}
