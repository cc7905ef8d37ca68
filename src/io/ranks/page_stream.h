/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_RANKS_PAGE_STREAM_H
#define ESDM_IO_RANKS_PAGE_STREAM_H

/**
 * @file
 * Index pages on their way from a rank to another one, sorted by dataset, in batches of bounded
 * size. One thread.
 */

#include "base/buffer.h"
#include "esdm/comm.h"
#include "esdm/sys/meta_store.h"

/**
 * Sends what a source yields, and the end, or that there are no pages because of `failure` or the
 * source's own: the receiver then fails with it, and hears from whom it comes. What is returned is
 * that messages fail.
 * @param next sorted by dataset.
 */
esdm_status esdm__pages_send(esdm_comm *comm, int to, const esdm_error *failure,
                             esdm_meta_page_source next, void *user, esdm_error *err);

/** Appends a page in the form in which it is sent. */
void esdm__page_put(esdm__buffer *batch, const esdm_meta_new_page *page);

/** The pages of one rank, one after the other. */
typedef struct esdm__page_reader {
    esdm_comm *comm; /* NULL: `local` */
    int rank;
    bool last; /* the batch is the last one */
    const esdm_meta_new_page *local;
    size_t nlocal;
    size_t next_local;
    uint8_t *batch; /* owned, unless it is lent */
    bool lent;
    size_t bytes;
    size_t position;
    esdm_meta_new_page page; /* the current one */
    bool has_page;
} esdm__page_reader;

/** From now on the rank's pages must be read, or the reader cleared. The first step leads to the
 *  first page. Zeroed or cleared before. */
void esdm__page_reader_begin(esdm__page_reader *reader, esdm_comm *comm, int rank);
/** The same over pages of this process, at the first page. */
void esdm__page_reader_begin_local(esdm__page_reader *reader, const esdm_meta_new_page *pages,
                                   size_t npages);
/** The same over what esdm__page_put() made of pages of `rank`; the first step leads to the first
 *  page. @param batch borrowed; aligned to 8 bytes. */
void esdm__page_reader_begin_batch(esdm__page_reader *reader, esdm_comm *comm, int rank,
                                   uint8_t *batch, size_t bytes);
/** The current page, NULL after the last; borrowed until the next step. */
const esdm_meta_new_page *esdm__page_reader_page(const esdm__page_reader *reader);
esdm_status esdm__page_reader_step(esdm__page_reader *reader, esdm_error *err);
/** Receives what is still under way, so that the sender gets free, and frees. */
void esdm__page_reader_clear(esdm__page_reader *reader);

#endif
