/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_RANKS_PAGE_SOURCE_H
#define ESDM_IO_RANKS_PAGE_SOURCE_H

/**
 * @file
 * Rank 0's view of the index pages of all ranks: dataset by dataset, small ones made into fuller
 * ones, with one batch of each rank and one page's worth of records in memory. One thread.
 */

#include "esdm/comm.h"
#include "esdm/sys/meta_store.h"

typedef struct esdm__page_source esdm__page_source;

/** Memory for all ranks. @param comm borrowed. @param ret_source owned. */
esdm_status esdm__page_source_new(esdm_comm *comm, esdm__page_source **ret_source, esdm_error *err);
/** All ranks send their pages from now on, until esdm__page_source_end().
 *  @param pages of rank 0, sorted by dataset; borrowed. */
void esdm__page_source_expect(esdm__page_source *source, const esdm_meta_new_page *pages,
                              size_t npages);
/** Receives the first batch of each rank. */
esdm_status esdm__page_source_begin(esdm__page_source *source, esdm_error *err);
/** An esdm_meta_page_source. */
esdm_status esdm__page_source_next(void *user, const esdm_meta_new_page **ret_page,
                                   esdm_error *err);
/** Receives what is under way. After each esdm__page_source_expect(), whatever failed. */
void esdm__page_source_end(esdm__page_source *source);
/** NULL is accepted. */
void esdm__page_source_free(esdm__page_source *source);

#endif
