/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/ranks/page_source.h"

#include <stdlib.h>

#include "base/error.h"
#include "io/ranks/page_stream.h"
#include "layout/index.h"

struct esdm__page_source {
    esdm_comm *comm;
    esdm__collector *collector; /* of the current dataset; NULL: none */
    uint32_t dataset;
    esdm__page_set ready; /* made by the collector, to be yielded from next_ready on */
    size_t next_ready;
    esdm__page_reader *passing;  /* its page was yielded as it is */
    esdm__page_reader readers[]; /* one a rank */
};

esdm_status
esdm__page_source_new(esdm_comm *comm, esdm__page_source **ret_source, esdm_error *err)
{
    size_t bytes = sizeof(esdm__page_source) + (size_t) comm->size * sizeof(esdm__page_reader);
    esdm__page_source *source = calloc(1, bytes);
    if (source == NULL)
        return esdm__error_nomem(err, bytes, "the index pages of all ranks");
    source->comm = comm;
    *ret_source = source;
    return ESDM_OK;
}

void
esdm__page_source_expect(esdm__page_source *source, const esdm_meta_new_page *pages, size_t npages)
{
    esdm__page_reader_begin_local(&source->readers[0], pages, npages);
    for (int r = 1; r < source->comm->size; r++)
        esdm__page_reader_begin(&source->readers[r], source->comm, r);
}

esdm_status
esdm__page_source_begin(esdm__page_source *source, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (int r = 1; r < source->comm->size && status == ESDM_OK; r++)
        status = esdm__page_reader_step(&source->readers[r], err);
    return status;
}

/* A rank's page of the current dataset, of the lowest such rank; NULL: none has more. */
static esdm__page_reader *
next_reader(esdm__page_source *source)
{
    for (int r = 0; r < source->comm->size; r++) {
        const esdm_meta_new_page *page = esdm__page_reader_page(&source->readers[r]);
        if (page != NULL && page->dataset == source->dataset)
            return &source->readers[r];
    }
    return NULL;
}

/* Begins the lowest dataset of which a rank has a page. *ret_end: there is none. */
static esdm_status
next_dataset(esdm__page_source *source, bool *ret_end, esdm_error *err)
{
    const esdm_meta_new_page *lowest = NULL;
    for (int r = 0; r < source->comm->size; r++) {
        const esdm_meta_new_page *page = esdm__page_reader_page(&source->readers[r]);
        if (page != NULL && (lowest == NULL || page->dataset < lowest->dataset))
            lowest = page;
    }
    *ret_end = lowest == NULL;
    if (lowest == NULL)
        return ESDM_OK;
    source->dataset = lowest->dataset;
    source->collector = esdm__collector_new(lowest->rank);
    return source->collector != NULL ? ESDM_OK
                                     : esdm__error_nomem(err, sizeof *source, "index pages");
}

/* Makes pages of what was collected. */
static esdm_status
finish_pages(esdm__page_source *source, esdm_error *err)
{
    if (esdm__collector_is_empty(source->collector))
        return ESDM_OK;
    esdm_status status = esdm__collector_take(source->collector, &source->ready, err);
    for (size_t i = 0; i < source->ready.npages; i++)
        source->ready.pages[i].dataset = source->dataset;
    return status;
}

/* Takes one page of the current dataset; *ret_page is set when it is yielded as it is. */
static esdm_status
take_page(esdm__page_source *source, esdm__page_reader *reader, const esdm_meta_new_page **ret_page,
          esdm_error *err)
{
    const esdm_meta_new_page *page = esdm__page_reader_page(reader);
    if (esdm__collector_passes(page)) {
        source->passing = reader;
        *ret_page = page;
        return ESDM_OK;
    }
    esdm_status status = esdm__collector_add(source->collector, page, err);
    if (status == ESDM_OK)
        status = esdm__page_reader_step(reader, err);
    if (status == ESDM_OK && esdm__collector_is_full(source->collector))
        status = finish_pages(source, err);
    return status;
}

/* One step towards the next page. */
static esdm_status
advance(esdm__page_source *source, const esdm_meta_new_page **ret_page, bool *ret_end,
        esdm_error *err)
{
    if (source->collector == NULL)
        return next_dataset(source, ret_end, err);
    esdm__page_reader *reader = next_reader(source);
    if (reader != NULL)
        return take_page(source, reader, ret_page, err);
    esdm_status status = finish_pages(source, err);
    esdm__collector_free(source->collector);
    source->collector = NULL;
    return status;
}

esdm_status
esdm__page_source_next(void *user, const esdm_meta_new_page **ret_page, esdm_error *err)
{
    esdm__page_source *source = user;
    esdm_status status = ESDM_OK;
    bool end = false;
    *ret_page = NULL;
    if (source->passing != NULL) {
        esdm__page_reader *reader = source->passing;
        source->passing = NULL;
        status = esdm__page_reader_step(reader, err);
    }
    while (status == ESDM_OK && *ret_page == NULL && !end) {
        if (source->next_ready < source->ready.npages) {
            *ret_page = &source->ready.pages[source->next_ready++];
            break;
        }
        esdm__page_set_clear(&source->ready);
        source->next_ready = 0;
        status = advance(source, ret_page, &end, err);
    }
    return status;
}

void
esdm__page_source_end(esdm__page_source *source)
{
    for (int r = 0; r < source->comm->size; r++)
        esdm__page_reader_clear(&source->readers[r]);
    esdm__collector_free(source->collector);
    source->collector = NULL;
    esdm__page_set_clear(&source->ready);
    source->next_ready = 0;
    source->passing = NULL;
}

void
esdm__page_source_free(esdm__page_source *source)
{
    free(source);
}
