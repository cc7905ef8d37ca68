/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fragments that were published after a snapshot, and what of them can be seen. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/packs/page_list.h"
#include "layout/shadow.h"
#include "merge/merge.h"

typedef struct taking {
    uint64_t after;
    esdm__merge_changes *changes;
} taking;

static esdm_status
take_page(void *user, const esdm_meta_page *entry, const esdm__page *page, esdm_error *err)
{
    const taking *t = user;
    esdm__merge_changes *ret = t->changes;
    (void) entry;
    for (uint32_t i = 0; i < page->records.count; i++) {
        if (page->records.items[i].sequence >> 32 <= t->after)
            continue;
        if (!esdm__records_copy(&ret->records, &page->records, i, ret->packs))
            return esdm__error_nomem(err, ret->records.count * sizeof(esdm__record),
                                     "records of fragments");
    }
    return ESDM_OK;
}

/* Of the snapshot that theirs is at. */
static esdm_status
take_pages(const esdm__merging *m, const esdm_dataset *theirs, esdm__merge_changes *ret,
           esdm_error *err)
{
    taking t = {.after = m->after, .changes = ret};
    esdm__page_walk walk = {
        .dataset = theirs->id, .after = m->after, .visit = take_page, .user = &t};
    esdm__container_position(m->theirs, &walk.container, &walk.snapshot);
    return esdm__pages_walk(m->theirs->session, &walk, err);
}

static int
by_sequence(const void *a, const void *b, void *user)
{
    const esdm__record *items = user;
    uint64_t x = items[*(const uint32_t *) a].sequence;
    uint64_t y = items[*(const uint32_t *) b].sequence;
    return (x > y) - (x < y);
}

static void
box_of_bounds(uint32_t rank, const uint64_t *bounds, esdm__box *box)
{
    box->rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        box->lo[d] = bounds[d];
        box->n[d] = bounds[rank + d] - bounds[d];
    }
}

/* Parts come by their owners; those of `order` get them. */
static esdm_status
give_parts(esdm__merge_changes *c, const esdm__parts *parts, uint32_t *place, esdm_error *err)
{
    uint32_t rank = c->records.rank;
    for (uint32_t i = 0; i < c->records.count; i++)
        place[i] = UINT32_MAX;
    for (size_t i = 0; i < parts->count; i++) {
        if (place[parts->owner[i]] == UINT32_MAX) {
            place[parts->owner[i]] = 0;
            c->order[c->count++] = parts->owner[i];
        }
    }
    qsort_r(c->order, c->count, sizeof *c->order, by_sequence, c->records.items);
    c->visible = calloc(c->count + 1, sizeof *c->visible);
    if (c->visible == NULL)
        return esdm__error_nomem(err, c->count * sizeof *c->visible, "parts of fragments");
    for (uint32_t i = 0; i < c->count; i++)
        place[c->order[i]] = i;
    for (size_t i = 0; i < parts->count; i++) {
        esdm__box box;
        esdm__boxes *boxes = &c->visible[place[parts->owner[i]]];
        box_of_bounds(rank, parts->bounds + i * 2 * rank, &box);
        esdm__boxes_add(boxes, &box);
        if (boxes->failed)
            return esdm__error_nomem(err, sizeof box, "parts of fragments");
    }
    return ESDM_OK;
}

/* What newer ones hide as a whole is left out. */
static esdm_status
find_visible(esdm__merge_changes *c, esdm_error *err)
{
    uint32_t n = c->records.count;
    uint64_t *sequences = malloc((n + 1) * sizeof *sequences);
    uint8_t *porous = calloc(n + 1, 1);
    uint32_t *place = malloc((n + 1) * sizeof *place);
    esdm__parts parts = {0};
    c->order = malloc((n + 1) * sizeof *c->order);
    esdm_status status = ESDM_OK;
    if (sequences == NULL || porous == NULL || place == NULL || c->order == NULL)
        status = esdm__error_nomem(err, n * sizeof *sequences, "records of fragments");
    for (uint32_t i = 0; i < n && status == ESDM_OK; i++) {
        sequences[i] = c->records.items[i].sequence;
        porous[i] = esdm__records_stride(&c->records, i) != NULL;
    }
    if (status == ESDM_OK && n > 0)
        status = esdm__shadow_parts(c->records.rank, c->records.bounds, sequences, porous, n,
                                    &parts, err);
    if (status == ESDM_OK && n > 0)
        status = give_parts(c, &parts, place, err);
    esdm__parts_clear(&parts);
    free(sequences);
    free(porous);
    free(place);
    return status;
}

esdm_status
esdm__boxes_part(esdm__boxes *boxes, esdm_error *err)
{
    uint32_t rank = boxes->count > 0 ? boxes->items[0].rank : 0;
    uint64_t *bounds = malloc((boxes->count * 2 * rank + 1) * sizeof *bounds);
    uint64_t *sequences = calloc(boxes->count + 1, sizeof *sequences);
    esdm__parts parts = {0};
    esdm__boxes left = {0};
    esdm_status status = ESDM_OK;
    if (bounds == NULL || sequences == NULL || boxes->count > UINT32_MAX)
        status = esdm__error_nomem(err, boxes->count * sizeof *boxes->items, "boxes");
    for (size_t i = 0; i < boxes->count && status == ESDM_OK; i++)
        esdm__bounds_from_box(bounds + i * 2 * rank, &boxes->items[i]);
    if (status == ESDM_OK && boxes->count > 0)
        status =
            esdm__shadow_parts(rank, bounds, sequences, NULL, (uint32_t) boxes->count, &parts, err);
    for (size_t i = 0; i < parts.count && status == ESDM_OK; i++) {
        esdm__box box;
        box_of_bounds(rank, parts.bounds + i * 2 * rank, &box);
        esdm__boxes_add(&left, &box);
    }
    if (status == ESDM_OK && left.failed)
        status = esdm__error_nomem(err, parts.count * sizeof *boxes->items, "boxes");
    if (status == ESDM_OK) {
        esdm__boxes_clear(boxes);
        *boxes = left;
        left = (esdm__boxes){0};
    }
    esdm__boxes_clear(&left);
    esdm__parts_clear(&parts);
    free(bounds);
    free(sequences);
    return status;
}

esdm_status
esdm__merge_changes_load(const esdm__merging *m, esdm_dataset *theirs, esdm__merge_changes *ret,
                         esdm_error *err)
{
    esdm_status status = ESDM_ENOENT; /* a page was stored elsewhere after it was listed */
    for (int pass = 0; pass < ESDM__PAGE_LISTINGS && status == ESDM_ENOENT; pass++) {
        esdm__merge_changes_clear(ret);
        esdm__records_init(&ret->records, theirs->rank);
        ret->packs = esdm__packs_new();
        if (ret->packs == NULL)
            return esdm__error_nomem(err, sizeof ret->packs, "names of packs");
        status = take_pages(m, theirs, ret, err);
    }
    return status == ESDM_OK ? find_visible(ret, err) : status;
}

void
esdm__merge_changes_clear(esdm__merge_changes *changes)
{
    esdm__records_clear(&changes->records);
    esdm__packs_unref(changes->packs);
    for (size_t i = 0; changes->visible != NULL && i < changes->count; i++)
        esdm__boxes_clear(&changes->visible[i]);
    free(changes->visible);
    free(changes->order);
    *changes = (esdm__merge_changes){0};
}
