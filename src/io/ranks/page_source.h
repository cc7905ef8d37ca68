/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_RANKS_PAGE_SOURCE_H
#define ESDM_IO_RANKS_PAGE_SOURCE_H

/**
 * @file
 * The index pages of a rank and of the ranks below it in the tree: dataset by dataset, small ones
 * made into fuller ones, with one batch of each child and one page's worth of records in memory.
 * What rank 0 publishes are those of all ranks. One thread.
 */

#include "comm/tree.h"
#include "esdm/sys/meta_store.h"

typedef struct esdm__page_source esdm__page_source;

/** @param comm,tree borrowed. @param ret_source owned. */
esdm_status esdm__page_source_new(esdm_comm *comm, const esdm__tree *tree,
                                  esdm__page_source **ret_source, esdm_error *err);
/** The ranks below send their pages from now on, until esdm__page_source_end().
 *  @param pages of this rank, sorted by dataset; borrowed. */
void esdm__page_source_expect(esdm__page_source *source, const esdm_meta_new_page *pages,
                              size_t npages);
/** Receives the first batch of each child. */
esdm_status esdm__page_source_begin(esdm__page_source *source, esdm_error *err);
/** Takes copies of pages until it has all of them or so many bytes; the rest comes when it is asked
 *  for. So a transaction that follows mostly waits for nobody. */
esdm_status esdm__page_source_gather(esdm__page_source *source, size_t bytes, esdm_error *err);
/** An esdm_meta_page_source. */
esdm_status esdm__page_source_next(void *user, const esdm_meta_new_page **ret_page,
                                   esdm_error *err);
/** Receives what is under way. After each esdm__page_source_expect(), whatever failed. */
void esdm__page_source_end(esdm__page_source *source);
/** NULL is accepted. */
void esdm__page_source_free(esdm__page_source *source);

#endif
