/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/packs/sources.h"

#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/session/ahead.h"
#include "layout/places.h"

/* How long a target that failed is asked last. */
#define SUSPECT_NS (UINT64_C(30) * 1000000000)

/* Head and blocks may each be damaged once. */
#define REQUESTS_OF_FRAGMENT 2u
/* Bytes that were requested ahead may be damaged. A read that finds some asks again, and may get
 * others that were requested ahead, too: so often at most. */
#define ASK_AGAIN_HELD 4u

static bool
is_suspect(const esdm__target *target)
{
    uint64_t until_ns = atomic_load_explicit(&target->suspect_ns, memory_order_relaxed);
    return until_ns != 0 && esdm__now_ns() < until_ns;
}

/* Why there is no place to read from. */
static esdm_status
nowhere(const esdm_session *session, const esdm__pack_name *pack, esdm_error *err)
{
    const char *text = pack->target;
    esdm__pack_place place;
    while (esdm__places_next(&text, &place)) {
        if (place.node[0] == '\0' || strcmp(place.node, session->node) == 0)
            continue;
        return esdm__error_set(err, ESDM_ENOENT,
                               "the data lie on the node-local target '%s' of node %s, and this is "
                               "node %s: run esdm-drain on %s",
                               place.target, place.node, session->node, place.node);
    }
    return esdm__error_set(err, ESDM_ENOENT, "target '%s' is not in the site configuration (%s)",
                           pack->target, session->site->source);
}

static void
add_source(esdm__sources *sources, esdm__target *target)
{
    size_t at = sources->count;
    if (at == ESDM__SOURCES_MAX)
        return;
    sources->targets[sources->count++] = target;
    if (is_suspect(target))
        return;
    for (; at > 0 && is_suspect(sources->targets[at - 1]); at--)
        sources->targets[at] = sources->targets[at - 1];
    sources->targets[at] = target;
}

bool
esdm__sources_are_far(esdm_session *session, const char *places)
{
    esdm__pack_place place;
    while (esdm__places_next(&places, &place)) {
        const esdm__target *target = esdm__session_target(session, place.target);
        if (target != NULL && target->plugin->concurrency > 0)
            return true;
    }
    return false;
}

esdm_status
esdm__sources_of(esdm_session *session, const esdm__pack_name *pack, esdm__sources *ret_sources,
                 esdm_error *err)
{
    esdm__sources found = {.count = 0};
    if (!esdm__places_are_special(pack->target)) { /* most packs, without looking further */
        found.targets[0] = esdm__session_target(session, pack->target);
        found.count = found.targets[0] != NULL;
    } else {
        const char *text = pack->target;
        esdm__pack_place place;
        while (esdm__places_next(&text, &place)) {
            esdm__target *target = esdm__session_target(session, place.target);
            if (target != NULL && (place.node[0] == '\0' || strcmp(place.node, session->node) == 0))
                add_source(&found, target);
        }
    }
    if (found.count == 0)
        return nowhere(session, pack, err);
    *ret_sources = found;
    return ESDM_OK;
}

void
esdm__sources_note(esdm_session *session, const esdm__sources *sources, size_t i,
                   esdm_status status)
{
    if (sources->count < 2)
        return;
    if (status == ESDM_OK && i > 0)
        atomic_fetch_add(&session->rescued, 1u);
    /* A flipped bit says nothing about the rest of the target. */
    if (status != ESDM_OK && status != ESDM_ECORRUPT && status != ESDM_ENOMEM)
        atomic_store(&sources->targets[i]->suspect_ns, esdm__now_ns() + SUSPECT_NS);
}

bool
esdm__sources_go_on(const esdm__sources *sources, size_t i, esdm_status status)
{
    return status != ESDM_OK && status != ESDM_ENOMEM && i + 1 < sources->count;
}

bool
esdm__sources_ask_again(const esdm_session *session, const esdm__sources *sources, size_t i,
                        const char *pack, esdm_status status, esdm__again *again)
{
    const esdm__target *target = sources->targets[i];
    if (status != ESDM_ECORRUPT || target->plugin->concurrency == 0)
        return false;
    if (esdm__ahead_forget(session->ahead, target, pack))
        return again->held++ < ASK_AGAIN_HELD;
    return again->asked++ < REQUESTS_OF_FRAGMENT;
}
