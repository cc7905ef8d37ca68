/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/ranks/page_source.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/page_copies.h"
#include "io/ranks/page_stream.h"
#include "layout/index.h"

struct esdm__page_source {
    esdm_comm *comm;
    const esdm__tree *tree;
    esdm__collector *collector; /* of the current dataset; NULL: none */
    uint32_t dataset;
    size_t current;       /* the reader whose pages of that dataset come now */
    esdm__page_set ready; /* made by the collector, to be yielded from next_ready on */
    size_t next_ready;
    esdm__page_reader *passing; /* its page was yielded as it is */
    esdm__page_copies gathered; /* to be yielded first, from next_gathered on */
    size_t next_gathered;
    size_t nreaders;
    esdm__page_reader readers[]; /* of this rank, then one a child */
};

esdm_status
esdm__page_source_new(esdm_comm *comm, const esdm__tree *tree, esdm__page_source **ret_source,
                      esdm_error *err)
{
    size_t nreaders = 1 + (size_t) tree->nchildren;
    size_t bytes = sizeof(esdm__page_source) + nreaders * sizeof(esdm__page_reader);
    esdm__page_source *source = calloc(1, bytes);
    if (source == NULL)
        return esdm__error_nomem(err, bytes, "the index pages of all ranks");
    source->comm = comm;
    source->tree = tree;
    source->nreaders = nreaders;
    *ret_source = source;
    return ESDM_OK;
}

void
esdm__page_source_expect(esdm__page_source *source, const esdm_meta_new_page *pages, size_t npages)
{
    esdm__page_reader_begin_local(&source->readers[0], pages, npages);
    for (size_t i = 1; i < source->nreaders; i++)
        esdm__page_reader_begin(&source->readers[i], source->comm, source->tree->children[i - 1]);
}

esdm_status
esdm__page_source_begin(esdm__page_source *source, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 1; i < source->nreaders && status == ESDM_OK; i++)
        status = esdm__page_reader_step(&source->readers[i], err);
    return status;
}

esdm_status
esdm__page_source_gather(esdm__page_source *source, size_t bytes, esdm_error *err)
{
    esdm__page_copies copies = {0};
    esdm_status status = ESDM_OK;
    bool more = true;
    for (size_t taken = 0; status == ESDM_OK && more && taken < bytes;) {
        const esdm_meta_new_page *page = NULL;
        status = esdm__page_source_next(source, &page, err);
        more = status == ESDM_OK && page != NULL;
        if (more && !esdm__page_copies_add(&copies, page))
            status = esdm__error_nomem(err, page->bytes, "the index pages of a commit");
        taken += more ? page->bytes : 0;
    }
    source->gathered = copies;
    source->next_gathered = 0;
    return status;
}

/* A reader with a page of the current dataset, the lowest; NULL: none has more. */
static esdm__page_reader *
next_reader(esdm__page_source *source)
{
    for (; source->current < source->nreaders; source->current++) {
        esdm__page_reader *reader = &source->readers[source->current];
        const esdm_meta_new_page *page = esdm__page_reader_page(reader);
        if (page != NULL && page->dataset == source->dataset)
            return reader;
    }
    return NULL;
}

/* Begins with the dataset of the lowest number that has a page. *ret_end: none has. */
static esdm_status
next_dataset(esdm__page_source *source, bool *ret_end, esdm_error *err)
{
    const esdm_meta_new_page *lowest = NULL;
    for (size_t i = 0; i < source->nreaders; i++) {
        const esdm_meta_new_page *page = esdm__page_reader_page(&source->readers[i]);
        if (page != NULL && (lowest == NULL || page->dataset < lowest->dataset))
            lowest = page;
    }
    *ret_end = lowest == NULL;
    if (lowest == NULL)
        return ESDM_OK;
    source->dataset = lowest->dataset;
    source->current = 0;
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
    if (source->nreaders == 1 || esdm__collector_passes(page)) {
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
    if (source->next_gathered < source->gathered.count) {
        *ret_page = &source->gathered.pages[source->next_gathered++];
        return ESDM_OK;
    }
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
    for (size_t i = 0; i < source->nreaders; i++)
        esdm__page_reader_clear(&source->readers[i]);
    esdm__page_copies_clear(&source->gathered);
    source->next_gathered = 0;
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
