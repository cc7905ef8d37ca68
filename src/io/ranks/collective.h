/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_RANKS_COLLECTIVE_H
#define ESDM_IO_RANKS_COLLECTIVE_H

/**
 * @file
 * Containers that several ranks share; esdm/comm.h has the contracts. Every function but those of
 * esdm__orders is collective, and one thread of a rank calls them at a time.
 *
 * Each rank writes packs of its own and never talks to the others about data, or hands its blobs to
 * one of its node (collective_handover.c). At a commit the index
 * pages of all ranks go up the tree of ranks, dataset by dataset and in batches of bounded size, to
 * rank 0, which puts them into one transaction of the metadata store (collective_commit.c).
 */

#include "comm/comm.h"
#include "io/commit/commit.h"
#include "io/commit/overlap.h"
#include "io/ranks/page_source.h"

/* ---- collective_session.c ----------------------------------------------------------------- */

/** esdm_session_open_collective() */
esdm_status esdm__collective_session(const esdm_session_options *options, esdm_comm *comm,
                                     esdm_session *have, esdm_session **ret_session,
                                     esdm_error *err);

/* ---- collective_open.c -------------------------------------------------------------------- */

esdm_status esdm__collective_create(esdm_session *session, esdm_comm *comm, const char *name,
                                    esdm_create_mode mode, esdm_container **ret_container,
                                    esdm_error *err);
esdm_status esdm__collective_open(esdm_session *session, esdm_comm *comm, const char *name,
                                  esdm_open_mode mode, uint64_t snapshot,
                                  esdm_container **ret_container, esdm_error *err);
esdm_status esdm__collective_refresh(esdm_container *container, esdm_error *err);

/** ESDM_EIO after messages of a commit failed on a rank: all ranks know, so none of them begins
 *  another collective call. Not collective. */
esdm_status esdm__collective_check(const esdm_container *container, esdm_error *err);

/* ---- collective_writer.c ------------------------------------------------------------------ */

/** Rank 0: says that the writer of all ranks' packs lives, before the others hear of it. The
 *  container knows its uuid. Not collective. */
esdm_status esdm__writer_begin(esdm_container *container, const esdm_comm *comm, esdm_error *err);
/** All ranks name their packs after rank 0's uuid and writer, and begin to hand over what others
 *  store, as rank 0's site says. */
esdm_status esdm__writer_share(esdm_container *container, esdm_comm *comm, esdm_error *err);
/** Rank 0: what was found out about the writer since this was asked last, an esdm__writer_doubt for
 *  the others; on these it is nothing. Not collective. */
uint64_t esdm__writer_take_doubt(const esdm__container_io *io);
/** On other ranks: for their next look. Not collective. */
void esdm__writer_tell_doubt(const esdm__container_io *io, uint64_t doubt);
/** Rank 0, where it has nothing to publish itself: asks whether the writer was seen, as those who
 *  have something did when they settled it. Not collective. */
esdm_status esdm__writer_check(const esdm__commit_work *work, esdm_error *err);
/** The other ranks look at their packs, when rank 0 has seen a reason to. */
esdm_status esdm__writer_check_others(const esdm__container_io *io, uint64_t doubt,
                                      esdm_error *err);

/* ---- collective_handover.c ---------------------------------------------------------------- */

/** Ranks that store for others start to, and the others connect to them. All succeed or fail.
 *  @param io_ranks how many, 0: none; `timeout_s` for their answers. The same on all ranks. */
esdm_status esdm__handover_begin(esdm_container *container, esdm_comm *comm, uint32_t io_ranks,
                                 uint32_t timeout_s, esdm_error *err);

/* ---- collective_structure.c --------------------------------------------------------------- */

/** ESDM_EINVAL on all ranks when their structures differ. Where only values of attributes do, all
 * get rank 0's, and `settled` of the handle tells it. With commit_lock held. */
esdm_status esdm__collective_compare(esdm_container *container, esdm_error *err);
/** esdm_container_settled() */
bool esdm__collective_take_settled(esdm_container *container, char *text, size_t bytes);
esdm_status esdm__collective_align(esdm_container *container, esdm_error *err);

/* ---- collective_order.c ------------------------------------------------------------------- */

/** Where the pending fragments of this rank stand among those of all ranks: one number for each
 *  epoch of each dataset, in order of datasets. */
typedef struct esdm__orders {
    esdm_dataset *const *datasets; /* borrowed */
    size_t ndatasets;
    size_t count;
    uint64_t *own;   /* pending fragments of this rank; owned, and with it: */
    uint64_t *lower; /* of lower ranks */
    uint64_t *all;   /* of all ranks */
    uint64_t *sums;  /* of all ranks and epochs, one a dataset */
} esdm__orders;

/** Counts the fragments of this rank; not collective. Zeroed before.
 * @param own those of the datasets whose fragments count, sorted by id; write-locked. */
esdm_status esdm__orders_count(esdm__orders *orders, esdm_dataset *const *datasets,
                               size_t ndatasets, esdm_dataset *const *own, size_t nown,
                               esdm_error *err);
/** The ranks tell each other the counts; all succeed or fail. @param status,maxima as of
 *  esdm__comm_agree_on(). */
esdm_status esdm__orders_exchange(esdm__orders *orders, esdm_comm *comm, esdm_status status,
                                  uint64_t *maxima, size_t nmaxima, esdm_error *err);
/** Gives the pending fragments of this rank their orders, after the exchange; not collective. */
esdm_status esdm__orders_apply(esdm__orders *orders, esdm_error *err);
void esdm__orders_clear(esdm__orders *orders);

/* ---- collective_merge.c ------------------------------------------------------------------- */

/* Committed pages that become fuller ones with a commit, at rank 0. */
typedef struct esdm__merging {
    esdm__page_set *sets; /* one a dataset of the container; owned */
    size_t nsets;
    esdm_meta_new_page *pages; /* owned */
    uint64_t *merged;          /* owned */
    uint64_t *merged_sums;     /* their checksums; owned */
    size_t npages;
    size_t nmerged;
} esdm__merging;

/** Finds and encodes them; not collective.
 * @param merging zeroed before; esdm__merging_clear() in any case.
 * @param orders after the exchange: datasets into which no rank has written are left as they are.
 * @param all the datasets of the container, by id. */
esdm_status esdm__merging_begin(esdm__merging *merging, const esdm__orders *orders,
                                esdm_dataset *const *all, esdm_error *err);
void esdm__merging_clear(esdm__merging *merging);

/* ---- collective_commit.c ------------------------------------------------------------------ */

esdm_status esdm__collective_commit(esdm_container *container, const char *message,
                                    esdm_error *err);

/* ---- collective_ranges.c ------------------------------------------------------------------ */

/** Numbers of each dataset that ranks exchange with a commit. */
#define ESDM__RANGES_NUMBERS 2u
/** Between which values the pending ones of this rank lie: the numbers are larger where these reach
 *  further, so that the largest of all ranks tell of all. Not collective.
 *  @param numbers zeroed; of each dataset of the orders. */
void esdm__ranges_tell(const esdm__commit_work *work, const esdm__orders *orders,
                       uint64_t *numbers);
/** Rank 0: extents of the commit, from the largest numbers of all ranks and the sums of the orders.
 *  Not collective. */
esdm_status esdm__ranges_enter(esdm__commit_work *work, const esdm__orders *orders,
                               const uint64_t *numbers, esdm_error *err);
/** Rank 0, after a commit, with the commit lock held: makes the ranges as narrow as they are.
 *  @param all at once; else that may be left to a later commit, or to the end. Not collective. */
void esdm__collective_ranges(esdm_container *container, bool all);
/** Before a handle is freed: what was left. Nothing on other ranks, of containers that no ranks
 *  share, and where something is not committed. Not collective. */
void esdm__collective_end_ranges(esdm_container *container);

/* ---- collective_overlap.c ----------------------------------------------------------------- */

/** The pages of all ranks, marked as esdm__overlap_mark() does. */
typedef struct esdm__marked_source {
    const esdm_container *container;
    esdm__page_source *source; /* borrowed */
    esdm_meta_new_page page;   /* the last one */
} esdm__marked_source;

/** An esdm_meta_page_source; user: an esdm__marked_source. */
esdm_status esdm__page_source_next_marked(void *user, const esdm_meta_new_page **ret_page,
                                          esdm_error *err);
/** Rank 0: whether other programs have published since the handle was opened, so that the pages of
 *  all ranks must be looked at before they are published. */
bool esdm__collective_must_look(esdm__commit_work *work);
/** Rank 0: looks at the pages of all ranks, which have been asked for. As
 *  esdm__commit_check_overlap(). */
esdm_status esdm__collective_look(esdm__commit_work *work, esdm__marked_source *marked,
                                  esdm_error *err);

/* ---- collective_data.c -------------------------------------------------------------------- */

/** @param space NULL: nothing to write or read. */
esdm_status esdm__collective_transfer(esdm_dataset *dataset, const esdm_dataspace *space,
                                      bool writing, esdm_error *err);
/** Begins an epoch of the dataset on this rank; a failure is kept for the commit. Not collective.
 *  Caller holds the write lock. */
void esdm__dataset_cut(esdm_dataset *dataset, esdm__dataset_io *io);

/* ---- collective_share.c ------------------------------------------------------------------- */

/** Makes what all ranks wrote to the dataset visible to reads on all of them, without publishing
 *  it. All succeed or fail. */
esdm_status esdm__collective_share(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err);

#endif
