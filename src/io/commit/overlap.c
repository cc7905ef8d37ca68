/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/commit/overlap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/dataset_io.h"
#include "layout/index_private.h"
#include "layout/strided.h"

/* Datasets whose pages are asked for one by one; of more, the whole directory is. */
#define SINGLE_DATASETS 4u

/* Whether another one has published the snapshot since the handle was opened. */
static bool
is_foreign(const esdm__opened *opened, uint64_t snapshot)
{
    size_t lo = 0;
    size_t hi = opened->nown;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (opened->own[middle].last < snapshot)
            lo = middle + 1;
        else
            hi = middle;
    }
    return snapshot > opened->snapshot && (lo == opened->nown || opened->own[lo].first > snapshot);
}

/* ---- boxes -------------------------------------------------------------------------------- */

/* Length that a dimension had; UINT64_MAX when it is limited. */
static uint64_t
length_then(const esdm__opened *opened, const esdm_dimension *dimension)
{
    if (opened->guards_all)
        return 0;
    if (!dimension->unlimited)
        return UINT64_MAX;
    for (size_t i = 0; i < opened->nlengths; i++) {
        if (opened->lengths[i].dimension == dimension->id)
            return opened->lengths[i].length;
    }
    return 0;
}

/* The first axis along which indices below `end` reach behind what was there; rank: none. */
static uint32_t
axis_behind(const esdm__opened *opened, const esdm_dataset *dataset, const uint64_t *end)
{
    uint32_t axis = 0;
    while (axis < dataset->rank && end[axis] <= length_then(opened, dataset->dimensions[axis]))
        axis++;
    return axis;
}

static void
page_bounds(const esdm_meta_page *entry, uint64_t *bounds)
{
    for (uint32_t d = 0; d < entry->rank; d++) {
        bounds[d] = entry->box[d];
        bounds[entry->rank + d] = entry->box[d] + entry->box[entry->rank + d];
    }
}

static esdm_dataset *
dataset_of(const esdm_container *container, uint32_t id)
{
    for (size_t i = id < container->datasets.count ? id : container->datasets.count; i-- > 0;) {
        esdm_dataset *dataset = container->datasets.items[i];
        if (dataset->id == id)
            return dataset;
    }
    return NULL;
}

bool
esdm__overlap_mark(const esdm_container *container, esdm_meta_new_page *pages, size_t npages)
{
    const esdm__container_io *io = esdm__io_of(container);
    bool any = false;
    if (io->record == 0 || (io->session->site->last_wins && !io->opened.guards_all))
        return false;
    for (size_t i = 0; i < npages; i++) {
        const esdm_dataset *dataset = dataset_of(container, pages[i].dataset);
        const esdm_meta_page entry = esdm__page_entry(&pages[i]);
        uint64_t bounds[2 * ESDM_MAX_RANK];
        if (pages[i].absolute || dataset == NULL || dataset->rank != entry.rank)
            continue;
        page_bounds(&entry, bounds);
        pages[i].apart = axis_behind(&io->opened, dataset, bounds + entry.rank) < dataset->rank;
        any |= pages[i].apart;
    }
    return any;
}

/* ---- records ------------------------------------------------------------------------------ */

/* A new page beside a published one. */
typedef struct pair {
    const esdm__opened *opened;
    const esdm_dataset *dataset;
    const esdm__page *ours;
    const esdm__page *theirs;
    uint32_t other; /* record of theirs */
    uint32_t axis;  /* of the conflict */
    uint64_t index; /* there */
    bool found;
} pair;

static esdm__piece
piece_of(const esdm__records *records, uint32_t number, esdm__fragment *fragment)
{
    esdm__piece piece = {.fragment = fragment};
    esdm__records_fragment(records, number, fragment);
    piece.part = fragment->box;
    return piece;
}

static bool
compare_records(uint32_t ours, void *user)
{
    pair *p = user;
    esdm__fragment fragments[2];
    uint32_t rank = p->dataset->rank;
    uint64_t common[2 * ESDM_MAX_RANK];
    esdm__bounds_copy(rank, common, esdm__records_bounds(&p->ours->records, ours));
    esdm__bounds_clip(rank, common, esdm__records_bounds(&p->theirs->records, p->other));
    uint32_t axis = axis_behind(p->opened, p->dataset, common + rank);
    if (axis == rank)
        return true;
    esdm__piece a = piece_of(&p->ours->records, ours, &fragments[0]);
    esdm__piece b = piece_of(&p->theirs->records, p->other, &fragments[1]);
    if (!esdm__strided_meet(&a, &b) ||
        esdm__overlap_is_same(p->dataset->group->container->session, p->dataset->type,
                              &fragments[0], &fragments[1], common))
        return true;
    uint64_t length = length_then(p->opened, p->dataset->dimensions[axis]);
    p->axis = axis;
    p->index = common[axis] > length ? common[axis] : length;
    p->found = true;
    return false;
}

static bool
compare_pages(uint32_t other, void *user)
{
    pair *p = user;
    const esdm__records *theirs = &p->theirs->records;
    p->other = other;
    if (!is_foreign(p->opened, theirs->items[other].sequence >> 32))
        return true;
    return esdm__rtree_query(&p->ours->tree, p->ours->records.bounds,
                             esdm__records_bounds(theirs, other), compare_records, p);
}

/* ---- pages -------------------------------------------------------------------------------- */

/* Compares one of the new pages with one that others have published, or that holds records of
 * theirs. */
static esdm_status
compare(const esdm_container *container, const esdm_meta_new_page *page,
        const esdm_meta_page *other, esdm_error *err)
{
    const esdm__container_io *io = esdm__io_of(container);
    const esdm_meta_page entry = esdm__page_entry(page);
    esdm__page *ours = NULL;
    esdm__page *theirs = NULL;
    uint64_t bounds[2 * ESDM_MAX_RANK];
    pair p = {.opened = &io->opened, .dataset = dataset_of(container, page->dataset)};
    esdm_status status = esdm__page_fetch(io->session, other, &theirs, err);
    if (status == ESDM_OK)
        status = esdm__page_decode(&entry, page->data, page->bytes, &ours, err);
    if (status == ESDM_OK) {
        page_bounds(&entry, bounds);
        p.ours = ours;
        p.theirs = theirs;
        (void) esdm__rtree_query(&theirs->tree, theirs->records.bounds, bounds, compare_pages, &p);
    }
    esdm__page_unref(ours);
    esdm__page_unref(theirs);
    if (status != ESDM_OK || !p.found)
        return status;
    const esdm_dimension *dimension = p.dataset->dimensions[p.axis];
    (void) esdm__error_set(
        err, ESDM_ECONFLICT,
        "another program has written index %" PRIu64 " of dimension '%s', too, since this one "
        "opened the container with a length of %" PRIu64 "; nothing of this commit is published. "
        "Open the container again and append behind its end (\"overlap\": \"last\" in the site's "
        "configuration lets the last one win)",
        p.index, dimension->name, length_then(p.opened, dimension));
    return esdm__dataset_prefix(p.dataset, ESDM_ECONFLICT, err);
}

/* Compares a published page with all new ones that it may meet. */
static esdm_status
compare_with_all(const esdm_container *container, const esdm_meta_new_page *pages, size_t npages,
                 const esdm_meta_page *other, esdm_error *err)
{
    const esdm__opened *opened = &esdm__io_of(container)->opened;
    size_t lo = 0;
    size_t hi = npages;
    if (other->added <= opened->snapshot || (!other->absolute && !is_foreign(opened, other->added)))
        return ESDM_OK;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (pages[middle].dataset < other->dataset)
            lo = middle + 1;
        else
            hi = middle;
    }
    esdm_status status = ESDM_OK;
    for (; lo < npages && pages[lo].dataset == other->dataset && status == ESDM_OK; lo++) {
        const esdm_meta_page entry = esdm__page_entry(&pages[lo]);
        uint64_t common[2 * ESDM_MAX_RANK];
        uint64_t bounds[2 * ESDM_MAX_RANK];
        if (!pages[lo].apart || entry.rank != other->rank)
            continue;
        page_bounds(&entry, common);
        page_bounds(other, bounds);
        if (!esdm__bounds_meet(entry.rank, common, bounds))
            continue;
        esdm__bounds_clip(entry.rank, common, bounds);
        const esdm_dataset *dataset = dataset_of(container, entry.dataset);
        if (axis_behind(opened, dataset, common + entry.rank) < entry.rank)
            status = compare(container, &pages[lo], other, err);
    }
    return status;
}

/* Pages of one dataset, or of all (0). */
static esdm_status
check_dataset(const esdm_container *container, uint32_t dataset, const esdm_meta_new_page *pages,
              size_t npages, uint64_t *seen, esdm_error *err)
{
    const esdm__container_io *io = esdm__io_of(container);
    esdm_status status = ESDM_ENOENT; /* a page was stored elsewhere after it was listed */
    for (int pass = 0; pass < ESDM__PAGE_LISTINGS && status == ESDM_ENOENT; pass++) {
        esdm__page_list list = {0};
        status = esdm__page_list_load(io->session, io->record, ESDM_META_EVERY_SNAPSHOT, dataset,
                                      &list, err);
        for (size_t i = 0; i < list.count && status == ESDM_OK; i++) {
            const esdm_meta_page other = esdm__page_list_at(&list, i);
            *seen = other.added > *seen ? other.added : *seen;
            status = compare_with_all(container, pages, npages, &other, err);
        }
        esdm__page_list_clear(&list);
    }
    return status;
}

esdm_status
esdm__overlap_check(const esdm_container *container, const esdm_meta_new_page *pages, size_t npages,
                    uint64_t *ret_seen, esdm_error *err)
{
    uint32_t datasets[SINGLE_DATASETS + 1];
    size_t count = 0;
    uint64_t seen = UINT64_MAX;
    uint64_t record;
    uint64_t at;
    esdm_status status = ESDM_OK;
    esdm__container_position(container, &record, &at);
    for (size_t i = 0; i < npages && count <= SINGLE_DATASETS; i++) {
        if (pages[i].apart && (count == 0 || datasets[count - 1] != pages[i].dataset))
            datasets[count++] = pages[i].dataset;
    }
    if (count > SINGLE_DATASETS) {
        datasets[0] = 0;
        count = 1;
    }
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        uint64_t until = at;
        status = check_dataset(container, datasets[i], pages, npages, &until, err);
        seen = until < seen ? until : seen;
    }
    *ret_seen = count > 0 ? seen : at;
    return status;
}
