/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a commit of several ranks merges: committed pages of which rank 0 makes fuller ones. */
#include <stdlib.h>

#include "base/error.h"
#include "io/ranks/collective.h"

/* Commits of a dataset that follow one which found nothing to merge, and do not look again: for
 * that rank 0 has to load the directory, which commits make it forget. */
#define MERGE_PAUSE 15u

void
esdm__merging_clear(esdm__merging *m)
{
    for (size_t i = 0; i < m->nsets; i++)
        esdm__page_set_clear(&m->sets[i]);
    free(m->sets);
    free(m->pages);
    free(m->merged);
    free(m->merged_sums);
    *m = (esdm__merging){0};
}

static esdm_status
merge_dataset(esdm_dataset *dataset, esdm__dataset_io *io, esdm__page_set *set, esdm_error *err)
{
    esdm__merge m = {0};
    if (io->merge_pause > 0) {
        io->merge_pause--;
        return ESDM_OK;
    }
    esdm_status status = esdm__dataset_load_directory(dataset, io, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__merge_begin(dataset, io, false, &m, err);
    io->merge_pause = status == ESDM_OK && m.count == 0 ? MERGE_PAUSE : 0;
    if (status == ESDM_OK && m.count > 0) {
        (void) pthread_mutex_lock(&io->lock);
        if (esdm__merge_is_ready(&m, io)) /* else they were moved, and are merged another time */
            status = esdm__index_encode_merged(io->index, m.pages, m.count, set, err);
        (void) pthread_mutex_unlock(&io->lock);
    }
    esdm__merge_clear(&m);
    for (size_t k = 0; k < set->npages; k++)
        set->pages[k].dataset = dataset->id;
    return status;
}

esdm_status
esdm__merging_begin(esdm__merging *m, const esdm__orders *orders, esdm_dataset *const *all,
                    esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    size_t npages = 0;
    size_t nmerged = 0;
    m->sets = calloc(orders->ndatasets + 1, sizeof *m->sets);
    if (m->sets == NULL)
        return esdm__error_nomem(err, orders->ndatasets * sizeof *m->sets, "a commit");
    m->nsets = orders->ndatasets;
    for (size_t i = 0; i < m->nsets; i++) {
        if (orders->sums[i] == 0)
            continue;
        esdm_status status = esdm__dataset_io_get(all[i], &io, err);
        if (status != ESDM_OK)
            return status;
        status = merge_dataset(all[i], io, &m->sets[i], err);
        esdm__dataset_io_put(all[i]);
        if (status != ESDM_OK)
            return status;
        npages += m->sets[i].npages;
        nmerged += m->sets[i].nmerged;
    }
    m->pages = malloc((npages + 1) * sizeof *m->pages);
    m->merged = malloc((nmerged + 1) * sizeof *m->merged);
    m->merged_sums = malloc((nmerged + 1) * sizeof *m->merged_sums);
    if (m->pages == NULL || m->merged == NULL || m->merged_sums == NULL)
        return esdm__error_nomem(err, npages * sizeof *m->pages, "a commit");
    for (size_t i = 0; i < m->nsets; i++) {
        for (size_t k = 0; k < m->sets[i].npages; k++)
            m->pages[m->npages++] = m->sets[i].pages[k];
        for (size_t k = 0; k < m->sets[i].nmerged; k++) {
            m->merged_sums[m->nmerged] = m->sets[i].merged_sums[k];
            m->merged[m->nmerged++] = m->sets[i].merged[k];
        }
    }
    return ESDM_OK;
}
