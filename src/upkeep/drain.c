/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Bringing fragments to other targets: those of this node's own ones, of one that is to
 *  retire, or of those that are fuller than others. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/ids.h"
#include "io/container/container_io.h"
#include "io/io.h"
#include "io/packs/page_list.h"
#include "io/session/backups.h"
#include "io/session/former.h"
#include "layout/places.h"
#include "upkeep/drain.h"
#include "upkeep/drain_records.h"
#include "upkeep/groups.h"
#include "upkeep/move.h"

/* Between two looks at packs of living writers. */
#define WAIT_NS 500000000L

typedef esdm__drain_record record;
typedef esdm__drain_records records;

typedef struct drain {
    esdm_session *session;
    const esdm_drain_options *options;
    esdm_drain_result result;
    esdm__drain_choice choice;
    esdm__departed *departed;
    esdm__share_groups groups;
    uint64_t waiting;     /* packs that may be freed soon */
    uint64_t moved_bytes; /* for the progress */
    bool *allowed;        /* targets, for the dataset at hand; owned */
    /* of the container at hand */
    const record *at;
    esdm_container *model;
    esdm__mover *mover; /* of the containers that share packs with it */
    esdm__move_job job;
    uint64_t elsewhere;
    char node[ESDM__PLACE_NODE_BYTES]; /* another one that has some */
    uint64_t stuck;                    /* fragments that no other target may take */
    uint64_t fewer;                    /* that have fewer copies afterwards */
    /* of the dataset at hand */
    bool known;
    uint32_t dataset;
    uint32_t copies;
    uint32_t takers;
    bool shared; /* others may refer to the same fragments, and want more copies of them */
} drain;

/* ---- what is to be moved ------------------------------------------------------------------ */

/* How many copies the dataset's fragments shall have, and how many targets may take them. */
static void
look_at_dataset(drain *d, uint32_t dataset)
{
    if (d->known && d->dataset == dataset)
        return;
    const esdm_dataset *known =
        d->model != NULL ? esdm__container_dataset(d->model, dataset) : NULL;
    char *path = known != NULL ? esdm__dataset_path(known) : NULL;
    d->copies = esdm__site_copies(d->session->site, d->job.name, path != NULL ? path : "");
    d->takers = esdm__move_targets(&d->job, dataset, d->allowed);
    d->dataset = dataset;
    d->known = true;
    free(path);
}

/* Other containers may want the copies that there are: a fragment that is shared never gets
 * fewer. */
static uint32_t
shared_copies(const drain *d, const esdm__pack_name *pack)
{
    uint32_t most = esdm__site_most_copies(d->session->site);
    uint32_t now = (uint32_t) esdm__places_count(pack->target);
    uint32_t kept = now < most ? now : most;
    return kept > d->copies ? kept : d->copies;
}

static bool
wants(void *user, uint32_t dataset, const esdm__fragment *fragment, uint32_t *ret_copies)
{
    drain *d = user;
    esdm__drain_place place;
    esdm__drain_choice_place(&d->choice, fragment->pack, &place);
    if (place.elsewhere) {
        memcpy(d->node, place.node, sizeof d->node);
        d->elsewhere += !place.goes;
    }
    if (!place.goes)
        return false;
    look_at_dataset(d, dataset);
    bool balance = d->choice.kind == ESDM__DRAIN_REBALANCE;
    uint32_t copies = balance ? place.copies : d->copies;
    if (d->shared && !balance)
        copies = shared_copies(d, fragment->pack);
    if (d->takers == 0 || (balance && d->takers < copies)) {
        d->stuck++;
        return false;
    }
    d->fewer += copies > d->takers;
    *ret_copies = copies < d->takers ? copies : d->takers;
    return true;
}

static void
note_moved(void *user, const char *pack, uint64_t bytes)
{
    drain *d = user;
    d->moved_bytes += bytes;
    esdm__departed_add(d->departed, pack, bytes);
}

static bool
step(void *user)
{
    const drain *d = user;
    double share = d->choice.bytes > 0 ? (double) d->moved_bytes / (double) d->choice.bytes : 0;
    if (d->options->progress != NULL)
        d->options->progress(share < 1 ? share : 1,
                             d->at != NULL && d->at->name != NULL ? d->at->name : "",
                             d->options->user);
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

/* Whether all bytes of the pack were moved. Not known of shared packs: their bytes may have been
 * counted once for each container. */
static bool
is_departed(const drain *d, const esdm__pack_entry *entry)
{
    return esdm__share_group_of(&d->groups, entry->name) == ESDM__NO_GROUP &&
           esdm__departed_bytes(d->departed, entry->name) >= entry->bytes;
}

/* Where a living writer may seem dead (PostgreSQL) it may still use a pack that nobody names: so
 * only packs go that this drain has moved to the last byte, and old ones. */
static bool
may_go(const drain *d, const esdm__pack_entry *entry, uint64_t now_ns)
{
    return d->session->meta->writer_check == NULL || is_departed(d, entry) ||
           esdm__pack_is_old(entry, d->options->any_age, d->options->age_s, now_ns);
}

/* Packs of the targets that are emptied; copies elsewhere of what was moved go as well. */
static bool
is_of_interest(const drain *d, const esdm__pack_entry *entry)
{
    bool source = d->choice.source[entry->target];
    if (d->choice.kind == ESDM__DRAIN_REBALANCE)
        source = false;
    return source || (entry->bytes > 0 && is_departed(d, entry));
}

/* What was moved, now or by an earlier call, and what killed programs left behind. Living writers
 * go on with what they have. @param unread whether fragments are left that cannot be read. */
static esdm_status
free_packs(drain *d, esdm__inventory *packs, bool unread, esdm_error *err)
{
    uint64_t now_ns = esdm__now_ns();
    esdm__strays strays = {0};
    const esdm__stray_record only = {d->at->container, d->at->uuid, d->at->name};
    esdm_status status = esdm__strays_find(d->session, packs, &only, true, &strays, err);
    for (size_t i = 0, next = 0; i < packs->count && status == ESDM_OK; i++) {
        const esdm__pack_entry *entry = &packs->entries[i];
        bool dead = next < strays.dead && strays.dead_packs[next] == i;
        next += dead;
        if (!is_of_interest(d, entry))
            continue;
        bool unknown = esdm__stray_may_be_unknown(&strays, entry) && !is_departed(d, entry);
        bool young = dead && (unknown || !may_go(d, entry, now_ns));
        bool freed = dead && !young && esdm__stray_stays_dead(d->session, entry);
        if (freed)
            free_pack(d, entry);
        if (!d->choice.source[entry->target])
            continue;
        d->result.packs_left += !freed;
        d->result.young += young;
        d->waiting += !dead && !((unread || strays.lost > 0) && atomic_load(&entry->used));
    }
    free(strays.dead_packs);
    return status;
}

/* Where a writer may seem dead its packs may have grown since they were listed. */
static esdm_status
free_space(drain *d, esdm__inventory *packs, bool unread, esdm_error *err)
{
    esdm__inventory now = {0};
    if (d->session->meta->writer_check == NULL)
        return free_packs(d, packs, unread, err);
    esdm_status status = esdm__inventory_add(&now, d->session, d->at->uuid, err);
    esdm__inventory_sort(&now);
    if (status == ESDM_OK)
        status = free_packs(d, &now, unread, err);
    esdm__inventory_clear(&now);
    return status;
}

/* ---- one container ------------------------------------------------------------------------ */

static void
report(const drain *d, esdm_status status, const char *what, const char *remedy)
{
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = status,
                                  .container = d->at->name,
                                  .what = what,
                                  .remedy = remedy};
    if (d->options->report != NULL)
        d->options->report(&finding, d->options->user);
}

static void
report_fragments(const drain *d, uint64_t count, const char *what, const char *remedy)
{
    char text[160];
    if (count == 0)
        return;
    (void) snprintf(text, sizeof text, "%" PRIu64 " fragment%s %s", count, count == 1 ? "" : "s",
                    what);
    report(d, ESDM_ENOSPC, text, remedy);
}

static void
report_rest(drain *d)
{
    d->result.elsewhere += d->elsewhere;
    d->result.stuck += d->stuck;
    d->result.fewer_copies += d->fewer;
    if (d->elsewhere > 0) {
        char what[ESDM__PLACE_NODE_BYTES + 80];
        (void) snprintf(what, sizeof what, "fragments lie on targets of other nodes, as of %s",
                        d->node);
        report(d, ESDM_ENOENT, what, "run esdm-drain there too");
    }
    if (d->choice.kind != ESDM__DRAIN_REBALANCE)
        report_fragments(d, d->stuck, "stay: the site's policies allow no other target for them",
                         "change the policies");
    if (!d->options->dry_run && d->choice.kind == ESDM__DRAIN_FROM)
        report_fragments(d, d->fewer, "have fewer copies than the site wants: too few targets",
                         "add a target, then esdm-fsck --repair");
}

static esdm_status
move_all(drain *d, bool *ret_unread, esdm_error *err)
{
    esdm__moved moved = {0};
    esdm_error first = {0};
    esdm_status status = esdm__mover_run(d->mover, &d->job, &moved, &first, err);
    d->result.fragments += moved.fragments;
    d->result.bytes += moved.bytes;
    d->result.failed += moved.failed;
    *ret_unread = moved.failed > 0;
    /* The next attempt moves the same fragments again and would count them twice. So nothing
     * counts as moved any more, and packs go when they are old. */
    if (status != ESDM_OK)
        esdm__departed_clear(d->departed);
    if (moved.failed > 0)
        report(d, first.status, first.message,
               first.status == ESDM_ENOTSUP ? NULL : "esdm-fsck tells what is lost");
    return status;
}

/* Opens the container, as its policies go by its name. Another container may have that name by
 * now. */
static esdm_status
open_model(drain *d, const record *one, esdm_error *err)
{
    if (one->name == NULL)
        return ESDM_OK;
    esdm_error error = {0};
    esdm_status status = esdm__io_open(d->session, one->name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST,
                                       &d->model, &error);
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    if (status != ESDM_OK && err != NULL)
        *err = error;
    if (status == ESDM_OK && esdm__io_of(d->model)->record != one->container) {
        esdm__container_drop(d->model);
        d->model = NULL;
    }
    return status;
}

static esdm_status
move_container(drain *d, const record *one, bool *ret_unread, esdm_error *err)
{
    esdm__former former;
    const char *name = one->name != NULL ? one->name : "(removed)";
    d->known = false;
    esdm_status status = open_model(d, one, err);
    d->job = (esdm__move_job){.session = d->session,
                              .name = esdm__former_parse(name, &former) ? former.name : name,
                              .container = one->container,
                              .uuid = one->uuid,
                              .model = d->model,
                              .global = true,
                              .barred = d->choice.barred,
                              .dry_run = d->options->dry_run,
                              .wants = wants,
                              .step = step,
                              .moved = note_moved,
                              .user = d};
    if (status == ESDM_OK)
        status = move_all(d, ret_unread, err);
    esdm__container_drop(d->model);
    d->model = NULL;
    return status;
}

static esdm_status
count_page(void *user, const esdm_meta_page *entry, const esdm__page *page, esdm_error *err)
{
    drain *d = user;
    bool any = false;
    (void) entry;
    (void) err;
    for (uint32_t k = 0; k < page->npacks && !any; k++)
        any = esdm__places_are_special(page->packs[k].target);
    for (uint32_t k = 0; k < page->records.count && any; k++) {
        esdm__drain_place place = {0};
        if (page->records.items[k].pack != NULL)
            esdm__drain_choice_place(&d->choice, page->records.items[k].pack, &place);
        d->elsewhere += place.elsewhere;
        if (place.elsewhere)
            memcpy(d->node, place.node, sizeof d->node);
    }
    return ESDM_OK;
}

/* Counts what other nodes have of a container of which nothing lies here. Pages that cannot be
 * read do not count. */
static esdm_status
count_elsewhere(drain *d, const record *one, esdm_error *err)
{
    esdm__page_walk walk = {.container = one->container,
                            .snapshot = ESDM_META_EVERY_SNAPSHOT,
                            .pass_gone = true,
                            .pass_unread = true,
                            .visit = count_page,
                            .user = d};
    return esdm__pages_walk(d->session, &walk, err);
}

/* Moves what the container at hand has there. */
static esdm_status
look_at_container(drain *d, const record *one, bool has_packs, bool *ret_unread, esdm_error *err)
{
    esdm_error error = {0};
    esdm_status status = ESDM_OK;
    bool unread = false;
    d->at = one;
    d->elsewhere = 0;
    d->stuck = 0;
    d->fewer = 0;
    if (has_packs)
        status = move_container(d, one, &unread, &error);
    else if (d->choice.kind == ESDM__DRAIN_LOCAL)
        status = count_elsewhere(d, one, &error);
    d->result.containers++;
    report_rest(d);
    d->at = NULL;
    *ret_unread |= unread;
    if (status != ESDM_OK && err != NULL)
        *err = error;
    return status;
}

/* @param one the container with this uuid; NULL: it is gone, but others still need its packs. */
static esdm_status
free_of(drain *d, const record *one, const char *uuid, bool unread, esdm_error *err)
{
    esdm__inventory packs;
    record gone = {.container = 0};
    (void) snprintf(gone.uuid, sizeof gone.uuid, "%s", uuid);
    if (d->options->dry_run || !esdm__drain_choice_of(&d->choice, uuid, &packs))
        return ESDM_OK;
    d->at = one != NULL ? one : &gone;
    esdm_status status = free_space(d, &packs, unread, err);
    d->at = NULL;
    return status;
}

/* Containers that share packs, the first one at `first`. What lies there goes once for all of them,
 * and is freed when it has gone for the last one. */
static esdm_status
look_at_group(drain *d, records *list, size_t first, size_t group, esdm_error *err)
{
    const esdm__share_groups *groups = &d->groups;
    esdm__inventory packs;
    bool any = false;
    bool unread = false;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < groups->count && !any; i++)
        any = esdm__share_group_of(groups, groups->nodes[i].uuid) == group &&
              esdm__drain_choice_of(&d->choice, groups->nodes[i].uuid, &packs);
    for (size_t i = first; i < list->count && status == ESDM_OK; i++) {
        record *one = &list->items[i];
        if (esdm__share_group_of(groups, one->uuid) != group)
            continue;
        one->done = true;
        status = look_at_container(d, one, any, &unread, err);
    }
    for (size_t i = first; i < list->count && status == ESDM_OK && any; i++) {
        const record *one = &list->items[i];
        if (esdm__share_group_of(groups, one->uuid) == group)
            status = free_of(d, one, one->uuid, unread, err);
    }
    for (size_t i = 0; i < groups->count && status == ESDM_OK && any; i++) {
        const esdm__share_node *node = &groups->nodes[i];
        if (!node->has_record && esdm__share_group_of(groups, node->uuid) == group)
            status = free_of(d, NULL, node->uuid, unread, err);
    }
    return status;
}

/* With a mover of their own. */
static esdm_status
look_at_record(drain *d, records *list, size_t at, esdm_error *err)
{
    record *one = &list->items[at];
    size_t group = esdm__share_group_of(&d->groups, one->uuid);
    esdm__inventory packs;
    bool unread = false;
    if (one->done)
        return ESDM_OK;
    one->done = true;
    d->mover = esdm__mover_new(d->session);
    if (d->mover == NULL)
        return esdm__error_nomem(err, sizeof *one, "moving fragments");
    esdm_status status;
    d->shared = group != ESDM__NO_GROUP;
    if (d->shared) {
        status = look_at_group(d, list, at, group, err);
    } else {
        bool any = esdm__drain_choice_of(&d->choice, one->uuid, &packs);
        status = look_at_container(d, one, any, &unread, err);
        if (status == ESDM_OK && any)
            status = free_of(d, one, one->uuid, unread, err);
    }
    esdm__mover_free(d->mover);
    d->mover = NULL;
    return status;
}

/* ---- all of them -------------------------------------------------------------------------- */

/* The one container whose packs matter; NULL: all. What is fuller is told by all packs. */
static const char *
only_uuid(const drain *d, const records *list)
{
    bool alone = list->count == 1 && d->choice.kind != ESDM__DRAIN_REBALANCE &&
                 esdm__share_group_of(&d->groups, list->items[0].uuid) == ESDM__NO_GROUP;
    return alone ? list->items[0].uuid : NULL;
}

/* Packs that came to the targets while they were emptied: programs are at work there. */
static esdm_status
count_new(drain *d, const records *list, esdm_error *err)
{
    esdm__inventory now = {0};
    if (d->choice.kind == ESDM__DRAIN_REBALANCE || d->options->dry_run)
        return ESDM_OK;
    esdm_status status = esdm__inventory_add(&now, d->session, only_uuid(d, list), err);
    for (size_t i = 0; i < now.count && status == ESDM_OK; i++) {
        const esdm__pack_entry *entry = &now.entries[i];
        if (!d->choice.source[entry->target] ||
            !esdm__drain_records_have(list, d->options, &d->groups, entry->name) ||
            esdm__inventory_find(&d->choice.packs, entry->target, entry->name) != NULL)
            continue;
        d->result.packs_left++;
        d->waiting++;
    }
    esdm__inventory_clear(&now);
    return status;
}

/* Clones of files that pinned containers refer to: they are not moved. */
static esdm_status
count_files(drain *d, esdm_error *err)
{
    esdm__inventory files = {0};
    uint64_t count = 0;
    char what[96];
    if (d->choice.kind != ESDM__DRAIN_FROM || d->options->ncontainers > 0)
        return ESDM_OK; /* whose they are is not asked */
    esdm_status status = esdm__inventory_add_files(&files, d->session, err);
    for (size_t i = 0; i < files.count && status == ESDM_OK; i++)
        count += d->choice.source[files.entries[i].target];
    esdm__inventory_clear(&files);
    (void) snprintf(what, sizeof what, "%" PRIu64 " clone%s of files of pinned containers stay%s",
                    count, count == 1 ? "" : "s", count == 1 ? "s" : "");
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = ESDM_ENOTSUP,
                                  .what = what,
                                  .remedy =
                                      "esdm-ref --pin --reflink=never esdm://NAME copies what "
                                      "a container has in them, then esdm-gc"};
    if (count > 0 && d->options->report != NULL)
        d->options->report(&finding, d->options->user);
    d->result.packs_left += count;
    return status;
}

static esdm_status
drain_all(drain *d, esdm_error *err)
{
    records list = {0};
    d->result.packs_left = 0;
    d->result.young = 0;
    d->result.failed = 0;
    d->result.elsewhere = 0;
    d->result.stuck = 0;
    d->result.fewer_copies = 0;
    d->waiting = 0;
    esdm__share_groups_clear(&d->groups);
    esdm_status status = esdm__share_groups_load(d->session, &d->groups, err);
    if (status == ESDM_OK)
        status = esdm__drain_records_load(d->session, d->options, &d->groups, &list, err);
    bool any = esdm__drain_choice_any(&d->choice);
    d->moved_bytes = 0;
    if (status == ESDM_OK && any)
        status = esdm__drain_choice_look(&d->choice, only_uuid(d, &list), err);
    for (size_t i = 0; i < list.count && status == ESDM_OK && any; i++)
        status = look_at_record(d, &list, i, err);
    if (status == ESDM_OK && any)
        status = count_new(d, &list, err);
    if (status == ESDM_OK && any)
        status = count_files(d, err);
    esdm__drain_records_clear(&list);
    return status;
}

/* Journals and backups of the catalogue go with a target that is emptied to be taken away. */
static esdm_status
save_catalogue(const drain *d, esdm_error *err)
{
    if (d->choice.kind != ESDM__DRAIN_FROM || d->options->dry_run || d->options->ncontainers > 0)
        return ESDM_OK;
    esdm_status status = esdm__backup_elsewhere(d->session, d->choice.source, err);
    return status == ESDM_OK ? status
                             : esdm__error_prefix(
                                   err, status,
                                   "leave the target where it is: it may have the only journal and "
                                   "backup of the catalogue, and none can be stored elsewhere");
}

esdm_status
esdm__upkeep_drain(esdm_session *session, const esdm_drain_options *options,
                   esdm__departed *departed, esdm_drain_result *ret_result, esdm_error *err)
{
    esdm__departed own = {0};
    drain d = {.session = session,
               .options = options,
               .departed = departed != NULL ? departed : &own,
               .allowed = calloc(session->ntargets, sizeof(bool))};
    bool waits = options->wait && !options->rebalance && !options->dry_run;
    esdm_status status = d.allowed != NULL
                             ? esdm__drain_choice_init(&d.choice, session, options, err)
                             : esdm__error_nomem(err, session->ntargets, "targets");
    if (status == ESDM_OK)
        status = drain_all(&d, err);
    while (status == ESDM_OK && waits && esdm__drain_choice_any(&d.choice) && d.waiting > 0 &&
           step(&d)) {
        const struct timespec nap = {.tv_nsec = WAIT_NS};
        (void) nanosleep(&nap, NULL);
        status = drain_all(&d, err);
    }
    if (status == ESDM_OK)
        status = save_catalogue(&d, err);
    esdm__drain_choice_clear(&d.choice);
    esdm__share_groups_clear(&d.groups);
    esdm__departed_clear(&own);
    free(d.allowed);
    *ret_result = d.result;
    return status;
}
