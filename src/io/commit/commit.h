/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_COMMIT_COMMIT_H
#define ESDM_IO_COMMIT_COMMIT_H

/** @file The steps of a commit, for one process (commit.c) and for ranks (collective_commit.c). */

#include "io/commit/extents.h"
#include "io/container/dataset_io.h"
#include "meta/attribute_index.h"

/** Everything a commit holds until it is over. Zeroed, with the container set, to begin with. */
typedef struct esdm__commit_work {
    esdm_container *container;
    esdm__container_io *io;
    esdm_dataset **datasets; /* write-locked until they are unlocked, by id; owned array */
    size_t ndatasets;
    bool unlocked;
    esdm__page_set *sets;      /* one a dataset; owned */
    esdm_meta_new_page *pages; /* all sets in one array; owned */
    uint64_t *merged;          /* owned */
    uint64_t *merged_sums;     /* checksums of those pages; owned */
    bool stale;                /* pages that were to be merged are there no more */
    bool overlaps;             /* another writer has written what is to be published */
    uint64_t seen;             /* snapshots up to this one were looked at for that */
    uint64_t newer;            /* others, up to this one, have to be */
    size_t npages;
    size_t nmerged;
    char *document;
    size_t document_bytes;
    esdm__attribute_index attributes;
    esdm__extents extents;
    esdm_meta_length *lengths;
    size_t nlengths;
} esdm__commit_work;

static inline esdm__dataset_io *
esdm__commit_io_of(const esdm__commit_work *work, size_t i)
{
    return work->datasets[i]->io;
}

/** Takes the commit lock, the dirty datasets and their write locks, in order of id. */
esdm_status esdm__commit_begin(esdm__commit_work *work, esdm_error *err);
/** Gives the write locks back, and keeps the commit lock. */
void esdm__commit_unlock(esdm__commit_work *work);
/** Gives the locks back and frees everything; also after esdm__commit_begin() failed. */
void esdm__commit_end(esdm__commit_work *work);
/**
 * When packs were lost before a commit could refer to them, as when flushing them failed: what this
 * handle had in them counts as writes that failed, for `why` (NULL: for a reason that was told
 * before), and everything else stays. @return whether there was something. (lost.c)
 */
bool esdm__commit_drop_lost(const esdm__commit_work *work, esdm__pack_set *packs,
                            const esdm_error *why);
/** Sends gathered writes to fragments and makes the packs readable for others. Also reports
 *  writes that were lost before. */
esdm_status esdm__commit_settle(esdm__commit_work *work, esdm_error *err);
/** The two steps of that: fragments, and then packs. */
esdm_status esdm__commit_settle_writes(esdm__commit_work *work, esdm_error *err);
esdm_status esdm__commit_settle_packs(esdm__commit_work *work, esdm_error *err);
/** Whether there is something to publish. */
bool esdm__commit_has_changes(const esdm__commit_work *work);
/** Makes the document and the attribute index unless the structure is published. */
esdm_status esdm__commit_describe(esdm__commit_work *work, esdm_error *err);
/** Committed pages that the next commit merges. They stay loaded, whatever other threads read. */
typedef struct esdm__merge {
    uint64_t *pages;   /* owned */
    esdm__page **held; /* owned references; of one that is in the directory no more: NULL */
    size_t count;
    bool hidden; /* by what is pending: esdm__index_encode_hidden() */
} esdm__merge;
/** Chooses the pages. @param hiding whether those count, too, that are hidden by what is
 *  pending. @param ret_merge zeroed; esdm__merge_clear() in any case. */
esdm_status esdm__merge_begin(esdm_dataset *dataset, esdm__dataset_io *io, bool hiding,
                              esdm__merge *ret_merge, esdm_error *err);
/** With `io->lock` held. false: the directory of pages was dropped since esdm__merge_begin(),
 *  which has to be called again. */
bool esdm__merge_is_ready(const esdm__merge *merge, const esdm__dataset_io *io);
void esdm__merge_clear(esdm__merge *merge);
/** The transaction. @param source further pages; NULL: none. */
esdm_status esdm__commit_publish(esdm__commit_work *work, const char *message,
                                 esdm_meta_page_source source, void *user,
                                 esdm_meta_committed *ret_committed, esdm_error *err);
/** Looks through what others have published up to w->newer, or so far when that is 0, for what the
 *  pages of the work or some others would overwrite (io/container/overlap.h). @param pages as for
 *  esdm__overlap_check(). ESDM_ECONFLICT, and w->overlaps. */
esdm_status esdm__commit_check_overlap(esdm__commit_work *work, const esdm_meta_new_page *pages,
                                       size_t npages, esdm_error *err);
/** Whether a transaction that failed so has certainly not taken place. */
bool esdm__commit_is_refused(esdm_status status);
/** Whether packs are lost to which index pages of `record` refer. To be called after the commit,
 *  and before packs are told of it. What cannot be found out now is looked for at the next
 *  commit. */
esdm_status esdm__commit_check(const esdm__commit_work *work, uint64_t record, esdm_error *err);
/** Frees pages and merged. */
void esdm__commit_clear_pages(esdm__commit_work *work);
/** What the work had pending is committed now; moves the handle there. */
void esdm__commit_adopt(esdm__commit_work *work, const esdm_meta_committed *committed);
/** Moves the handle to what was published and takes over the lengths of other writers.
 *  @param collective other ranks' pages were published with those of the work. */
void esdm__commit_move(esdm__commit_work *work, const esdm_meta_committed *committed,
                       bool collective);
/** The work's pending fragments are among the committed ones, and the pages of all datasets are
 *  looked for in the store from now on. */
void esdm__commit_forget(esdm__commit_work *work);
/** Whether the dataset is one of the work's. */
bool esdm__commit_holds(const esdm__commit_work *work, const esdm_dataset *dataset);
/** Takes the work's datasets off the list of those to publish. */
void esdm__commit_clean(esdm__commit_work *work);
/** Commits a container that no ranks share. */
esdm_status esdm__commit_alone(esdm_container *container, const char *message, esdm_error *err);

#endif
