/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file Packs of a container of which little is needed any more, since most of what lies in them
 * was written over: what is left is stored anew as fragments that move are (upkeep/move.h), and the
 * packs go. Nothing is lost when that ends in between: what is in both places is found again.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/container/container_io.h"
#include "io/session/models.h"
#include "io/session/sharers.h"
#include "layout/packs.h"
#include "layout/places.h"
#include "upkeep/move.h"
#include "upkeep/needs.h"
#include "upkeep/upkeep.h"

/* One pack, wherever it has copies. */
typedef struct load {
    const esdm__pack_name *pack; /* interned */
    uint64_t needed;             /* bytes of fragments that some snapshot shows */
    uint64_t bytes;              /* that it has */
    bool sparse;
} load;

typedef struct emptying {
    esdm_session *session;
    const esdm_compact_options *options;
    uint64_t container;
    const char *uuid;
    esdm__packs *packs;
    load *loads; /* owned; by name, once they are joined */
    size_t nloads;
    esdm__needs seen; /* fragments that were counted: several pages may show one */
    double began_s;
    uint64_t began_ns;
    uint64_t moved_bytes;
} emptying;

static int
by_pack(const void *a, const void *b)
{
    const esdm__pack_name *x = ((const load *) a)->pack;
    const esdm__pack_name *y = ((const load *) b)->pack;
    int order = strcmp(x->pack, y->pack);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Fragments of a pack mostly follow each other. */
static bool
add_fragment(emptying *e, const esdm__fragment *fragment)
{
    const esdm__pack_name *pack =
        esdm__packs_intern(e->packs, fragment->pack->target, fragment->pack->pack);
    if (pack == NULL)
        return false;
    if (esdm__needs_find(&e->seen, fragment) > 0)
        return true;
    if (!esdm__needs_add(&e->seen, fragment, 1))
        return false;
    if (e->nloads == 0 || e->loads[e->nloads - 1].pack != pack) {
        if (!esdm__array_grow(&e->loads, e->nloads, sizeof *e->loads))
            return false;
        e->loads[e->nloads++] = (load){.pack = pack};
    }
    e->loads[e->nloads - 1].needed += fragment->stored_bytes;
    return true;
}

static esdm_status
add_page(void *user, const esdm_meta_page *entry, const esdm__page *page, esdm_error *err)
{
    emptying *e = user;
    esdm_status status = ESDM_OK;
    (void) entry;
    for (uint32_t k = 0; status == ESDM_OK && k < page->records.count; k++) {
        esdm__fragment fragment;
        esdm__records_fragment(&page->records, k, &fragment);
        if (fragment.pack != NULL && fragment.kind == ESDM__KIND_STORED &&
            strncmp(fragment.pack->pack, e->uuid, ESDM__UUID_DIGITS) == 0 &&
            !add_fragment(e, &fragment))
            status = esdm__error_nomem(err, sizeof(load), "packs");
    }
    return status;
}

static void
join_loads(emptying *e)
{
    size_t left = 0;
    if (e->nloads > 1)
        qsort(e->loads, e->nloads, sizeof *e->loads, by_pack);
    for (size_t i = 0; i < e->nloads; i++) {
        if (left > 0 && e->loads[left - 1].pack == e->loads[i].pack)
            e->loads[left - 1].needed += e->loads[i].needed;
        else
            e->loads[left++] = e->loads[i];
    }
    e->nloads = left;
}

/* Of all fragments of the pack, which may have copies at other places each. */
static uint64_t
needed_of(const emptying *e, size_t i)
{
    const char *name = e->loads[i].pack->pack;
    uint64_t sum = 0;
    while (i > 0 && strcmp(e->loads[i - 1].pack->pack, name) == 0)
        i--;
    for (; i < e->nloads && strcmp(e->loads[i].pack->pack, name) == 0; i++)
        sum += e->loads[i].needed;
    return sum;
}

/* One that somebody writes may get more of what is needed, which a session that only reads cannot
 * tell; where a writer that lives may seem dead a young one could not go; one of a target that is
 * away has no length; what only this node sees esdm-drain takes. */
static bool
must_stay(const emptying *e, const esdm__target *target, const esdm__pack_entry *entry)
{
    if (target == NULL || target->local || entry == NULL)
        return true;
    return (e->session->meta->writer_check != NULL &&
            !esdm__pack_is_old(entry, false, 0, e->began_ns)) ||
           (!e->options->dry_run && !esdm__stray_stays_dead(e->session, entry));
}

static void
find_sparse(emptying *e, const esdm__inventory *packs, bool *ret_any)
{
    for (size_t i = 0; i < e->nloads; i++) {
        load *one = &e->loads[i];
        const char *places = one->pack->target;
        esdm__pack_place place;
        bool stays = false;
        while (esdm__places_next(&places, &place)) {
            const esdm__target *target = esdm__session_target(e->session, place.target);
            const esdm__pack_entry *entry =
                target == NULL
                    ? NULL
                    : esdm__inventory_find(packs, (uint32_t) (target - e->session->targets),
                                           one->pack->pack);
            stays |= must_stay(e, target, entry);
            one->bytes = entry != NULL && entry->bytes > one->bytes ? entry->bytes : one->bytes;
        }
        uint64_t needed = needed_of(e, i);
        one->sparse =
            !stays && needed <= one->bytes / 2 && one->bytes - needed >= ESDM__HIDDEN_BYTES;
        *ret_any |= one->sparse;
    }
}

/* Again from the beginning when a page was stored anew after it was listed. */
static esdm_status
add_pages(emptying *e, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = ESDM_ENOENT;
    for (int pass = 0; pass < ESDM__PAGE_LISTINGS && status == ESDM_ENOENT; pass++) {
        esdm__page_walk walk = {.container = e->container,
                                .snapshot = ESDM_META_EVERY_SNAPSHOT,
                                .visit = add_page,
                                .user = e};
        e->nloads = 0;
        esdm__needs_clear(&e->seen);
        status = esdm__pages_walk(e->session, &walk, &why);
    }
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static esdm_status
weigh(emptying *e, bool *ret_any, esdm_error *err)
{
    esdm__inventory packs = {0};
    esdm_status status = add_pages(e, err);
    if (status == ESDM_OK)
        status = esdm__inventory_add(&packs, e->session, e->uuid, err);
    if (status == ESDM_OK) {
        esdm__inventory_sort(&packs);
        join_loads(e);
        find_sparse(e, &packs, ret_any);
    }
    esdm__inventory_clear(&packs);
    return status;
}

static bool
wants(void *user, uint32_t dataset, const esdm__fragment *fragment, uint32_t *ret_copies)
{
    const emptying *e = user;
    const load key = {
        .pack = esdm__packs_intern(e->packs, fragment->pack->target, fragment->pack->pack)};
    const load *found = bsearch(&key, e->loads, e->nloads, sizeof key, by_pack);
    (void) dataset;
    if (found == NULL || !found->sparse)
        return false;
    *ret_copies = (uint32_t) esdm__places_count(fragment->pack->target);
    return true;
}

static void
note_moved(void *user, const char *pack, uint64_t bytes)
{
    emptying *e = user;
    (void) pack;
    e->moved_bytes += bytes;
}

/* Not faster than was asked for. */
static bool
step(void *user)
{
    const emptying *e = user;
    esdm__upkeep_pace(e->options->bytes_per_s, e->moved_bytes, e->began_s);
    return true;
}

static esdm_status
move_out(emptying *e, const esdm_container *model, esdm_compact_result *result, esdm_error *err)
{
    esdm__moved moved = {0};
    esdm_error first = {0};
    const esdm__move_job job = {.session = e->session,
                                .name = model->name,
                                .container = e->container,
                                .uuid = e->uuid,
                                .model = model,
                                .global = true, /* as it was */
                                .dry_run = e->options->dry_run,
                                .wants = wants,
                                .step = step,
                                .moved = note_moved,
                                .user = e};
    esdm_status status = esdm__move(&job, &moved, &first, err);
    result->moved_bytes += moved.bytes;
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = first.status,
                                  .container = model->name,
                                  .what = first.message,
                                  .remedy = "esdm-fsck tells what is lost"};
    if (moved.failed > 0 && e->options->report != NULL)
        e->options->report(&finding, e->options->user);
    return status;
}

static void
tell_shared(const esdm_compact_options *options, const char *name)
{
    const esdm_finding finding = {.kind = ESDM_FINDING_NOTE,
                                  .container = name,
                                  .what = "other containers share its packs: these stay, however "
                                          "little of them is needed"};
    if (options->report != NULL)
        options->report(&finding, options->user);
}

/* Rows of sharing come before what they tell of is named, so who shares later finds what has moved,
 * or is found to be in the way: the old packs go by a look for what nobody needs, as ever. */
static esdm_status
empty(emptying *e, const esdm_container *model, esdm_compact_result *result, esdm_error *err)
{
    bool any = false;
    bool shared = false;
    esdm_status status = esdm__sharers_ask(e->session, e->uuid, &shared, err);
    if (status == ESDM_OK && !shared)
        status = weigh(e, &any, err);
    if (status == ESDM_OK && shared)
        tell_shared(e->options, model->name);
    if (status != ESDM_OK || !any)
        return status;
    status = move_out(e, model, result, err);
    if (status == ESDM_OK && !e->options->dry_run)
        esdm__upkeep_trim(e->session, e->container, e->uuid, model->name);
    return status;
}

esdm_status
esdm__upkeep_empty(esdm_session *session, const char *name, const esdm_compact_options *options,
                   esdm_compact_result *result, esdm_error *err)
{
    esdm_container *model = NULL;
    emptying e = {.session = session,
                  .options = options,
                  .began_s = esdm__seconds_now(),
                  .began_ns = esdm__now_ns()};
    esdm_status status =
        esdm__io_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &model, err);
    if (status != ESDM_OK)
        return status;
    e.container = esdm__io_of(model)->record;
    e.uuid = esdm__io_of(model)->uuid;
    e.packs = esdm__packs_new();
    if (e.packs == NULL)
        status = esdm__error_nomem(err, sizeof e, "packs");
    if (status == ESDM_OK && !options->dry_run)
        status = esdm__upkeep_prune(session, e.container, name, err);
    if (status == ESDM_OK)
        status = empty(&e, model, result, err);
    esdm__packs_unref(e.packs);
    esdm__needs_clear(&e.seen);
    free(e.loads);
    esdm__container_drop(model);
    return status;
}
