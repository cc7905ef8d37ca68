/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Walks the committed fragments of a dataset without keeping their pages. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/visit.h"

/* Lists of one dataset, and how many of each were visited: of a later one those that no earlier one
 * has. */
typedef struct walk {
    esdm__page_list lists[ESDM__PAGE_LISTINGS];
    size_t done[ESDM__PAGE_LISTINGS];
    size_t count;
    uint64_t snapshot; /* of the first one: lists of others say nothing of it */
} walk;

/* A page that is stored anew gets another number; the rest of its entry stays. */
static bool
is_same(const esdm__page_list *list, size_t i, const esdm_meta_page *other)
{
    const esdm_meta_page one = esdm__page_list_at(list, i);
    return one.added == other->added && one.level == other->level &&
           one.absolute == other->absolute && one.records == other->records &&
           one.raw_bytes == other->raw_bytes && one.rank == other->rank &&
           (one.rank == 0 ||
            memcmp(one.box, other->box, (size_t) 2 * one.rank * sizeof *one.box) == 0);
}

/* How many entries of a list are like it. */
static size_t
count_same(const esdm__page_list *list, size_t from, size_t to, const esdm_meta_page *entry)
{
    size_t same = 0;
    for (size_t i = from; i < to; i++)
        same += is_same(list, i, entry);
    return same;
}

/* Of the newest list: whether it was visited under another number. ESDM_ENOENT: others that are
 * alike were and were not, so nobody can tell. */
static esdm_status
was_visited(const walk *w, const esdm_meta_page *entry, bool *ret)
{
    *ret = false;
    if (w->count == 1)
        return ESDM_OK;
    const esdm__page_list *first = &w->lists[0];
    size_t all = count_same(first, 0, first->count, entry);
    size_t visited = 0;
    for (size_t k = 0; k + 1 < w->count; k++)
        visited += count_same(&w->lists[k], 0, w->done[k], entry);
    *ret = visited > 0;
    return visited == 0 || all == 1 ? ESDM_OK : ESDM_ENOENT;
}

static esdm_status
visit_page(const esdm_dataset *dataset, const esdm_meta_page *entry, esdm__fragment_fn visit,
           void *user, bool *ret_go_on, esdm_error *err)
{
    void *data = NULL;
    size_t bytes = 0;
    esdm__page *page = NULL;
    esdm_status status =
        esdm__container_load_page(dataset->group->container, entry->page, &data, &bytes, err);
    if (status == ESDM_OK)
        status = esdm__page_decode(entry, data, bytes, &page, err);
    free(data);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "index page %" PRIu64, entry->page);
    *ret_go_on = esdm__page_visit(page, visit, user);
    esdm__page_unref(page);
    return ESDM_OK;
}

static uint64_t
position(const esdm_dataset *dataset)
{
    uint64_t record;
    uint64_t snapshot;
    esdm__container_position(dataset->group->container, &record, &snapshot);
    return snapshot;
}

/* Of one list what was not visited before. ESDM_ENOENT: a page was stored anew since. */
static esdm_status
visit_pages(esdm_dataset *dataset, walk *w, esdm__fragment_fn visit, void *user, bool *go_on,
            esdm_error *err)
{
    size_t k = w->count++;
    esdm__page_list *list = &w->lists[k];
    uint64_t before = position(dataset);
    if (k > 0) /* what ranks share has the old numbers */
        atomic_store(&esdm__io_of(dataset->group->container)->shared_stale, true);
    esdm_status status = esdm__dataset_list_pages(dataset, list, err);
    bool moved = position(dataset) != before; /* by another thread, or as it is gone */
    if (k == 0)
        w->snapshot = moved ? UINT64_MAX : before;
    else if (status == ESDM_OK && (moved || before != w->snapshot))
        return ESDM_ENOENT;
    for (size_t i = 0; i < list->count && status == ESDM_OK && *go_on; i++) {
        const esdm_meta_page entry = esdm__page_list_at(list, i);
        bool visited = false;
        status = was_visited(w, &entry, &visited);
        if (status != ESDM_OK)
            return status; /* as it was told of the page that is not there */
        if (!visited)
            status = visit_page(dataset, &entry, visit, user, go_on, err);
        w->done[k] += status == ESDM_OK;
    }
    return status;
}

esdm_status
esdm__io_visit_fragments(esdm_dataset *dataset, esdm__fragment_fn visit, void *user,
                         esdm_error *err)
{
    uint64_t record;
    uint64_t snapshot;
    esdm__container_position(dataset->group->container, &record, &snapshot);
    if (record == 0)
        return ESDM_OK;
    walk *w = calloc(1, sizeof *w);
    if (w == NULL)
        return esdm__error_nomem(err, sizeof *w, "index pages");
    esdm_error why = {0};
    bool go_on = true;
    esdm_status status = ESDM_ENOENT;
    while (status == ESDM_ENOENT && w->count < ESDM__PAGE_LISTINGS)
        status = visit_pages(dataset, w, visit, user, &go_on, &why);
    for (size_t k = 0; k < w->count; k++)
        esdm__page_list_clear(&w->lists[k]);
    free(w);
    if (status == ESDM_OK)
        return ESDM_OK;
    if (err != NULL)
        *err = why;
    return esdm__dataset_prefix(dataset, status, err);
}
