/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What a drain moves: from node-local, retiring or fuller targets. */

#include "upkeep/drain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/packs/page_list.h"
#include "site/admin.h"

/* What a target may have more than its share before anything leaves it. */
#define SLACK_PART 20u

/* ---- targets ------------------------------------------------------------------------------ */

static esdm_status
flag_named(esdm__drain_choice *c, esdm_error *err)
{
    for (size_t k = 0; k < c->options->nfrom; k++) {
        const esdm__target *target = esdm__session_target(c->session, c->options->from[k]);
        if (target == NULL)
            return esdm__error_set(err, ESDM_ENOENT, "%s: there is no target '%.100s'",
                                   c->session->site->source, c->options->from[k]);
        c->source[target - c->session->targets] = true;
    }
    return ESDM_OK;
}

/* Opens all targets; counts those that can take what leaves the sources. */
static void
open_targets(esdm__drain_choice *c)
{
    esdm_session *session = c->session;
    c->takers = 0;
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *target = &session->targets[i];
        bool open = esdm__target_need(session, target, NULL) == ESDM_OK;
        if (c->kind == ESDM__DRAIN_LOCAL)
            c->source[i] = target->local && open;
        c->blind |= c->source[i] && !open;
        c->takers += open && !target->local && !target->retiring && !c->source[i];
    }
}

esdm_status
esdm__drain_choice_init(esdm__drain_choice *c, esdm_session *session,
                        const esdm_drain_options *options, esdm_error *err)
{
    c->session = session;
    c->options = options;
    c->kind = options->rebalance   ? ESDM__DRAIN_REBALANCE
              : options->nfrom > 0 ? ESDM__DRAIN_FROM
                                   : ESDM__DRAIN_LOCAL;
    c->source = calloc(session->ntargets, sizeof *c->source);
    c->barred = calloc(session->ntargets, sizeof *c->barred);
    if (c->source == NULL || c->barred == NULL)
        return esdm__error_nomem(err, session->ntargets, "targets");
    esdm_status status = flag_named(c, err);
    if (status != ESDM_OK)
        return status;
    open_targets(c);
    memcpy(c->barred, c->source, session->ntargets * sizeof *c->barred);
    if (c->takers > 0)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOENT,
                           "%s: there is no %starget that all nodes see and that can be opened: "
                           "data can be brought nowhere",
                           session->site->source, c->kind == ESDM__DRAIN_FROM ? "other " : "");
}

void
esdm__drain_choice_clear(esdm__drain_choice *c)
{
    esdm__inventory_clear(&c->packs);
    free(c->source);
    free(c->barred);
    free(c->chosen);
    *c = (esdm__drain_choice){0};
}

/* ---- what goes ---------------------------------------------------------------------------- */

static bool
goes(const esdm__drain_choice *c, size_t entry)
{
    return c->kind == ESDM__DRAIN_REBALANCE ? c->chosen != NULL && c->chosen[entry]
                                            : c->source[c->packs.entries[entry].target];
}

static void
tell(const esdm__drain_choice *c, size_t target, const char *what)
{
    char place[ESDM__PLACE_TARGET_BYTES + 16];
    if (c->options->report == NULL)
        return;
    (void) snprintf(place, sizeof place, "target '%s'", c->session->targets[target].name);
    const esdm_finding finding = {.kind = ESDM_FINDING_NOTE, .place = place, .what = what};
    c->options->report(&finding, c->options->user);
}

/* Bytes that the targets which take something can still hold; false: of one that is not known. */
static bool
room_left(const esdm__drain_choice *c, uint64_t *ret_bytes)
{
    *ret_bytes = 0;
    for (size_t i = 0; i < c->session->ntargets; i++) {
        esdm__target *target = &c->session->targets[i];
        esdm_target_usage usage = {0};
        if (target->local || target->retiring || c->barred[i] ||
            esdm__target_need(c->session, target, NULL) != ESDM_OK)
            continue;
        if (target->plugin->usage == NULL ||
            target->plugin->usage(target->handle, &usage, NULL) != ESDM_OK ||
            usage.total_bytes == 0)
            return false;
        if (usage.free_bytes > target->reserve_bytes)
            *ret_bytes += usage.free_bytes - target->reserve_bytes;
    }
    return true;
}

static esdm_status
check_room(const esdm__drain_choice *c, esdm_error *err)
{
    char wanted[24];
    char room[24];
    uint64_t bytes = 0;
    if (c->kind != ESDM__DRAIN_FROM || !room_left(c, &bytes) || c->bytes <= bytes)
        return ESDM_OK;
    esdm__format_bytes(c->bytes, wanted);
    esdm__format_bytes(bytes, room);
    return esdm__error_set(
        err, ESDM_ENOSPC,
        "%s are to be brought elsewhere, and the other targets have %s left: add "
        "a target, or remove containers",
        wanted, room);
}

/* ---- fuller and emptier targets ----------------------------------------------------------- */

/* How full a target is, in bytes. */
typedef struct level {
    bool counts;
    uint64_t used;
    uint64_t room; /* for this site: used and free */
    uint64_t goal;
} level;

static size_t
measure_levels(const esdm__drain_choice *c, level *levels)
{
    size_t count = 0;
    for (size_t i = 0; i < c->session->ntargets; i++) {
        esdm__target *target = &c->session->targets[i];
        esdm_target_usage usage = {0};
        if (target->local || target->retiring || target->plugin->usage == NULL ||
            (target->plugin->flags & ESDM_DATA_VOLATILE) != 0 ||
            esdm__target_need(c->session, target, NULL) != ESDM_OK ||
            target->plugin->usage(target->handle, &usage, NULL) != ESDM_OK ||
            usage.total_bytes == 0)
            continue;
        uint64_t free_bytes =
            usage.free_bytes > target->reserve_bytes ? usage.free_bytes - target->reserve_bytes : 0;
        levels[i] = (level){.counts = true, .room = free_bytes};
        count++;
    }
    for (size_t k = 0; k < c->packs.count; k++)
        levels[c->packs.entries[k].target].used += c->packs.entries[k].bytes;
    for (size_t i = 0; i < c->session->ntargets; i++)
        levels[i].room += levels[i].used;
    return count;
}

/* All are to be equally full. */
static void
set_goals(const esdm__drain_choice *c, level *levels)
{
    double used = 0;
    double room = 0;
    for (size_t i = 0; i < c->session->ntargets; i++) {
        used += levels[i].counts ? (double) levels[i].used : 0;
        room += levels[i].counts ? (double) levels[i].room : 0;
    }
    for (size_t i = 0; i < c->session->ntargets && room > 0; i++)
        levels[i].goal = (uint64_t) ((double) levels[i].room * (used / room));
}

static bool
is_dead(const esdm__drain_choice *c, const esdm__pack_entry *entry)
{
    char writer[ESDM__UUID_BYTES];
    bool lives = true;
    esdm__pack_writer(entry->name, writer);
    return writer[0] != '\0' &&
           c->session->meta->writer_lives(c->session->store, writer, &lives, NULL) == ESDM_OK &&
           !lives;
}

static void
tell_level(const esdm__drain_choice *c, size_t target, const level *l, uint64_t leaves)
{
    char used[24], goal[24], gone[24], what[160];
    esdm__format_bytes(l->used, used);
    esdm__format_bytes(l->goal, goal);
    esdm__format_bytes(leaves, gone);
    if (leaves > 0)
        (void) snprintf(what, sizeof what, "has %s, its share is %s: %s leave it", used, goal,
                        gone);
    else
        (void) snprintf(what, sizeof what, "has %s, its share is %s", used, goal);
    tell(c, target, what);
}

/* Whole packs of targets that have more than their share go, as many as fit into the difference.
 * Those of living writers stay. */
static void
choose_packs(esdm__drain_choice *c, const level *levels)
{
    for (size_t i = 0; i < c->session->ntargets; i++) {
        if (!levels[i].counts)
            continue;
        uint64_t excess = levels[i].used > levels[i].goal ? levels[i].used - levels[i].goal : 0;
        uint64_t left = excess > levels[i].goal / SLACK_PART ? excess : 0;
        c->source[i] = left > 0;
        for (size_t k = 0; k < c->packs.count && left > 0; k++) {
            const esdm__pack_entry *entry = &c->packs.entries[k];
            if (entry->target != i || entry->bytes > left || !is_dead(c, entry))
                continue;
            c->chosen[k] = true;
            left -= entry->bytes;
            c->bytes += entry->bytes;
        }
        tell_level(c, i, &levels[i], c->source[i] ? excess - left : 0);
    }
}

static esdm_status
plan_balance(esdm__drain_choice *c, esdm_error *err)
{
    size_t n = c->session->ntargets;
    level *levels = calloc(n, sizeof *levels);
    free(c->chosen);
    c->chosen = calloc(c->packs.count + 1, sizeof *c->chosen);
    esdm_status status = levels != NULL && c->chosen != NULL
                             ? ESDM_OK
                             : esdm__error_nomem(err, c->packs.count, "a plan");
    if (status == ESDM_OK && measure_levels(c, levels) < 2)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "%s: fewer than two targets tell how much room they have: nothing "
                                 "can be balanced",
                                 c->session->site->source);
    if (status == ESDM_OK) {
        set_goals(c, levels);
        choose_packs(c, levels);
    }
    uint32_t takers = 0;
    for (size_t i = 0; i < n && status == ESDM_OK; i++)
        takers += levels[i].counts && levels[i].used < levels[i].goal;
    /* What has copies needs more targets than may have too little. */
    for (size_t i = 0; i < n && status == ESDM_OK; i++)
        c->barred[i] = esdm__site_most_copies(c->session->site) > takers
                           ? c->source[i]
                           : !levels[i].counts || levels[i].used >= levels[i].goal;
    free(levels);
    return status;
}

/* ---- looking ------------------------------------------------------------------------------ */

esdm_status
esdm__drain_choice_look(esdm__drain_choice *c, const char *uuid, esdm_error *err)
{
    esdm__inventory_clear(&c->packs);
    c->bytes = 0;
    esdm_status status = esdm__inventory_add(&c->packs, c->session, uuid, err);
    if (status != ESDM_OK)
        return status;
    esdm__inventory_sort(&c->packs);
    if (c->kind == ESDM__DRAIN_REBALANCE)
        return plan_balance(c, err);
    for (size_t i = 0; i < c->packs.count; i++)
        c->bytes += goes(c, i) ? c->packs.entries[i].bytes : 0;
    /* Of several containers that were asked for it is less, and not known how much. */
    return c->options->containers == NULL || uuid != NULL ? check_room(c, err) : ESDM_OK;
}

bool
esdm__drain_choice_any(const esdm__drain_choice *c)
{
    bool any = c->blind || c->kind == ESDM__DRAIN_REBALANCE; /* what goes is not known yet */
    for (size_t i = 0; i < c->session->ntargets; i++)
        any |= c->kind == ESDM__DRAIN_LOCAL ? c->session->targets[i].local : c->source[i];
    return any;
}

bool
esdm__drain_choice_of(const esdm__drain_choice *c, const char *uuid, esdm__inventory *ret_packs)
{
    size_t first = esdm__inventory_first(&c->packs, uuid);
    size_t count = 0;
    bool any = c->blind;
    while (first + count < c->packs.count &&
           strncmp(c->packs.entries[first + count].name, uuid, ESDM__UUID_DIGITS) == 0) {
        any |= goes(c, first + count);
        count++;
    }
    *ret_packs = (esdm__inventory){
        .entries = count > 0 ? c->packs.entries + first : NULL, .count = count, .capacity = 0};
    return any;
}

void
esdm__drain_choice_place(const esdm__drain_choice *c, const esdm__pack_name *pack,
                         esdm__drain_place *ret)
{
    const char *places = pack->target;
    esdm__pack_place place;
    *ret = (esdm__drain_place){0};
    while (esdm__places_next(&places, &place)) {
        bool local = place.node[0] != '\0';
        bool ours = !local || strcmp(place.node, c->session->node) == 0;
        const esdm__target *target = esdm__session_target(c->session, place.target);
        bool source = target != NULL && c->source[target - c->session->targets];
        ret->copies++;
        if (c->kind == ESDM__DRAIN_LOCAL)
            source = local;
        if (source && !ours) {
            memcpy(ret->node, place.node, sizeof ret->node);
            ret->elsewhere = true;
        }
        if (source && ours && c->kind == ESDM__DRAIN_REBALANCE) {
            const esdm__pack_entry *entry = esdm__inventory_find(
                &c->packs, (uint32_t) (target - c->session->targets), pack->pack);
            source = entry != NULL && c->chosen[entry - c->packs.entries];
        }
        ret->goes |= source && ours;
    }
}
