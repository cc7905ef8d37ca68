/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_DATASET_IO_H
#define ESDM_IO_CONTAINER_DATASET_IO_H

/**
 * @file
 * Engine state of an open container and of its datasets.
 *
 * Lock order: container `commit_lock`, dataset `write_lock` (by dataset id), then one of the leaf
 * locks (dataset `lock`, container `lock`, packs, pool, cache). The write lock serialises the
 * writers of one dataset and is held while fragments are appended: program order of overlapping
 * writes is decided there. No leaf lock is held across plug-in calls or I/O.
 */

#include <pthread.h>

#include "comm/tree.h"
#include "esdm/comm.h"
#include "io/container/epochs.h"
#include "io/container/failed.h"
#include "io/container/gather.h"
#include "io/container/opened.h"
#include "io/container/region_map.h"
#include "io/encode/choose.h"
#include "io/encode/elements.h"
#include "io/packs/pack_set.h"
#include "io/packs/page_list.h"
#include "io/session/behind.h"
#include "layout/index.h"
#include "meta/coordinates.h"
#include "model/container.h"
#include "monitor/monitor.h"

/** Whether a new container is one of many that are small as a whole (io/write/small.h). */
typedef enum esdm__small { ESDM__SMALL_UNKNOWN, ESDM__SMALL_NOT, ESDM__SMALL_IS } esdm__small;

typedef struct esdm__container_io {
    esdm_session *session;
    esdm_comm *comm;    /* of the ranks that share the container; owned; NULL: one process's */
    esdm__tree tree;    /* with comm: how what all ranks have gets to rank 0 */
    esdm_error parted;  /* ESDM_EIO: messages of a commit failed, collective calls are over */
    uint64_t record;    /* number in the metadata store; 0 before the first commit */
    uint64_t structure; /* structure number in memory */
    uint64_t snapshot;  /* the one this handle reads; 0 before the first commit */
    uint64_t fragments; /* of the container when it was opened */
    uint64_t observed;  /* number of this handle for those who observe; 0: nobody did */
    bool pinned;
    struct esdm__shared_pages
        *shared;              /* with other ranks of the node (shared_pages.h); NULL: none */
    atomic_bool shared_stale; /* pages were replaced since: the store is asked */
    bool historic;            /* opened at an old snapshot */
    bool replace;             /* first commit may replace */
    char *over;               /* branch that each commit is to become a snapshot of
                                 (api/adopt.h); owned; NULL: none */
    bool leaves;              /* it is being closed: what its last commit has is not kept here */
    bool untagged;            /* opened, and the record had no tags then, seals among them */
    uint64_t former;          /* record that had the name when this was created; 0: none */
    bool doubted;    /* nobody knows whether the first commit took place; under commit_lock */
    int writer_rank; /* with `writer` */
    char writer[ESDM__UUID_BYTES]; /* of the packs of all ranks (collective_writer.c); "": of none
                                      but this handle's */
    bool hands_over;               /* ranks store for others; the same on all */
    struct esdm__taker *taker;     /* serves others; owned; NULL: nobody */
    bool sole; /* it made the container, and nobody else has committed to it since */
    char uuid[ESDM__UUID_BYTES];
    pthread_mutex_t commit_lock; /* one commit or refresh at a time */
    pthread_mutex_t lock;        /* guards packs, dirty, published, sole, and changes of record and
                                    snapshot; a leaf lock */
    esdm__pack_set *packs;       /* made with the first append */
    esdm_dataset **dirty;        /* datasets with uncommitted data; owned array */
    size_t ndirty;
    size_t dirty_capacity;
    esdm_meta_length *published; /* lengths as last published or loaded; owned */
    size_t npublished;
    esdm__opened opened;     /* under commit_lock */
    atomic_size_t hand;      /* dataset whose index gives memory back next */
    _Atomic uint64_t writes; /* to datasets whose state was freed since */
    uint64_t
        dropped_bytes; /* stored, that committed pages do not name any more; under commit_lock */
    uint64_t parted_bytes;           /* of these, when packs were parted last (io/commit/adopt.c) */
    bool commit_always;              /* also where nothing of the container changed */
    const esdm_meta_tag *commit_tag; /* of the next commit's snapshot; borrowed; NULL: none */
    const esdm_meta_seen *commit_follows; /* the next commit's condition; borrowed; NULL: none */
    bool dedups;                          /* what is stored already is not stored once more */
    bool by_content;           /* and what has one dimension is cut where its values say so */
    struct esdm__trial *trial; /* borrowed; NULL, or: fragments are counted and not stored
                                  (io/write/trial.h) */
    atomic_int small;          /* an esdm__small */
    atomic_uint_fast64_t small_bytes; /* of data in index pages because it is */
    bool equals_sought;               /* under equals_lock, as the next one */
    struct esdm__equals *equals;      /* owned; NULL: none are there */
    pthread_mutex_t equals_lock;      /* held while they are looked for, under a write lock */
    bool shapes_sought;               /* under shapes_lock, as the next one */
    esdm_container *shapes;      /* its variables in a second shape (io/read/second_shape.h); owned;
                                    NULL: none that can be used */
    pthread_mutex_t shapes_lock; /* held while it is looked for */
    esdm__cf cf;                 /* which datasets are coordinates; under commit_lock */
    uint64_t cf_at;              /* `changes` of the container when that was found; 0: not yet */
    bool ranges_behind;          /* rank 0: commits since the ranges of values were made anew; under
                                    commit_lock, as the next three (collective_ranges.c) */
    uint32_t ranges_made;        /* how often */
    uint64_t ranges_ns;          /* when last */
    uint64_t ranges_cost_ns;     /* and how long that took */
    char settled[300]; /* what ranks stated differently, until it is asked for; under commit_lock */
} esdm__container_io;

/** Why regions are not known where nobody looked. */
#define ESDM__REGIONS_NOT_ASKED "its coordinates were not looked at"

/** Regions of the accuracy in force (api/accuracy_regions.c). */
typedef struct esdm__regions {
    atomic_uint_fast64_t looked_at; /* `changes` of the container when it was found whether there
                                       are some; 0: not yet */
    atomic_bool any;                /* there are */
    esdm__region_map *map;          /* guarded by write_lock; owned; NULL: not made */
    _Atomic(const char *) doubt;    /* why fragments were stored by all regions; static */
} esdm__regions;

/** Very many datasets have one while they are used: what few need is behind pointers. */
typedef struct esdm__dataset_io {
    esdm__elements elements;           /* immutable */
    pthread_mutex_t write_lock;        /* guards gather, epochs, failed, failure */
    esdm__gather gather;               /* its limit is what fragments are to take, or `widened` */
    esdm__epochs *epochs;              /* owned; NULL: no ranks share the container */
    struct esdm__territory *territory; /* the same; io/ranks/meeting.h; owned; NULL: not used yet;
                                          of the thread in a collective call */
    esdm__lane lane;                   /* boxes that are not stored yet (behind.h) */
    esdm__failed_writes failed;        /* what is to be written again before a commit */
    const esdm_error *failure; /* NULL, or: the order among ranks is lost; commits report it */
    pthread_mutex_t lock;      /* guards index to planning, steps; a leaf lock */
    esdm__index *index;
    uint64_t generation;   /* how often committed pages were forgotten */
    uint64_t index_bytes;  /* what the session has counted: pages, directory, and all of this when
                              it can be freed */
    uint64_t inline_bytes; /* and data of pending fragments */
    uint32_t planning;     /* reads that load pages for a plan: these stay */
    bool directory_loaded; /* committed pages are known */
    atomic_bool gathered;  /* the gather holds something */
    atomic_bool listed;    /* in the container's dirty list */
    bool cheap;            /* cost counts, not speed */
    uint32_t merge_pause;  /* collective commits that do not look for pages to merge; guarded by the
                              container's commit_lock */
    uint32_t copies;       /* of new fragments, by the site's policies */
    atomic_bool second;    /* the last read that cost much took a second shape */
    atomic_bool appends;   /* the last write continued what is gathered: the next one may, too */
    struct esdm__steps *steps; /* how it is read: io/read/ahead.c; one piece of memory, or NULL */
    const esdm__chain *chain;  /* owned, unless it is the session's default */
    struct esdm__rounded *rounded;   /* guarded by write_lock; owned; NULL: no numbers were */
    esdm__choice *choice;            /* guarded by write_lock; owned; NULL: none was needed yet */
    esdm__choice *choice_in_regions; /* the same, of fragments that touch a region */
    esdm__regions regions;
    atomic_uint_fast64_t writes; /* through this handle, since this was made */
    const bool *allowed;         /* targets, by the site's policies; borrowed; NULL: all */
    uint64_t direct_bytes;       /* writes from here on are not gathered; under write_lock, and */
    uint32_t block_bytes; /* of codecs that the engine chose in mode archive; 0: the usual; under
                             write_lock, as the next one */
    bool encodes;         /* in mode fast: for all threads at once */
    bool readers_asked;   /* whether a way of cutting is known from readers (access.h) */
    uint8_t for_readers;  /* that one, or 0; under write_lock, as the next one */
    uint8_t widened;      /* what is gathered for one cut: so many times twice a fragment */
} esdm__dataset_io;

/** Bytes that fragments are to take, and at least when chunks are grouped. Caller holds the write
 * lock. */
static inline uint64_t
esdm__dataset_io_preferred(const esdm__dataset_io *io)
{
    return io->gather.limit_bytes >> io->widened;
}
uint64_t esdm__dataset_io_minimum(const esdm__dataset_io *io);

/** Creates the engine state of a fresh container object. */
esdm_status esdm__container_io_new(esdm_session *session, esdm_container *container,
                                   esdm_error *err);
/** Releases engine state of the container and its datasets; unpins; seals packs. */
void esdm__container_io_free(esdm_container *container);
static inline esdm__container_io *
esdm__io_of(const esdm_container *container)
{
    return container->io;
}
/** What this handle reads; both 0 before the first commit. */
void esdm__container_position(const esdm_container *container, uint64_t *ret_record,
                              uint64_t *ret_snapshot);
/** Moves the handle. Until pages are forgotten, those of the old snapshot may still be looked for:
 *  it is unpinned after that. @return the snapshot that it was at. */
uint64_t esdm__container_set_position(esdm_container *container, uint64_t record,
                                      uint64_t snapshot);
/**
 * The snapshot `lost` that the handle was at is there no more. One that writes moves to the newest
 * snapshot, as a commit would make it do; what it has not committed stays. ESDM_EIO for one that
 * reads, ESDM_ECONFLICT when the container was removed or replaced. (catch_up.c)
 */
esdm_status esdm__container_catch_up(esdm_container *container, uint64_t lost, esdm_error *err);
/** The packs, made at first use. */
esdm_status esdm__container_packs(esdm_container *container, esdm__pack_set **ret_packs,
                                  esdm_error *err);

/** Committed fragments that new ones may be equal to (io/packs/equals.h); NULL: none. The first
 * call looks for them. Caller holds a write lock. (dedup.c) */
struct esdm__equals *esdm__container_equals(const esdm_container *container);
/** Records to whose packs pending fragments may refer. @param ret_records owned, free(). */
esdm_status esdm__container_shares(esdm_container *container, uint64_t **ret_records,
                                   size_t *ret_count, esdm_error *err);

/**
 * Engine state of a dataset, made when it has none. It stays until esdm__dataset_io_put(), and as
 * long as its write lock is held or the dataset is dirty; of datasets that nobody uses it is freed
 * when memory is wanted (index_memory.c). Any thread.
 */
esdm_status esdm__dataset_io_get(esdm_dataset *dataset, esdm__dataset_io **ret_io, esdm_error *err);
/** The same where it has one. NULL: it has none, and so nothing that is not committed; then there
 *  is nothing to put back. */
esdm__dataset_io *esdm__dataset_io_find(const esdm_dataset *dataset);
/** The same, also of one that is just looked at whether it can be freed: for changes of what it
 * says. The container's lock is not held. */
esdm__dataset_io *esdm__dataset_io_find_for_sure(const esdm_dataset *dataset);
void esdm__dataset_io_put(const esdm_dataset *dataset);
void esdm__dataset_io_free(esdm_dataset *dataset);
/** Whether the state says nothing that the store does not say. Caller holds the write lock and
 *  `io->lock`. (index_memory.c) */
bool esdm__dataset_io_is_idle(const esdm_dataset *dataset, const esdm__dataset_io *io);
/** Frees the state unless it is used or has to be kept. Caller holds its write lock, which is given
 *  back, and is its one user. */
void esdm__dataset_io_release(esdm_dataset *dataset, esdm__dataset_io *io);
/** Sets the sizes of fragments and blocks by what the dataset states. Caller holds the write lock.
 */
void esdm__dataset_io_size(const esdm_dataset *dataset, esdm__dataset_io *io);
/** Takes over what the dataset states now, codecs and sizes: it was changed behind the state's
 * back. Caller holds the write lock. */
void esdm__dataset_obey(const esdm_dataset *dataset, esdm__dataset_io *io);
/** What the dataset states is about to change: what was written is stored before, or counts as
 *  failed, and codecs are chosen anew. (accuracy.c) */
void esdm__dataset_end_statement(esdm_dataset *dataset);
/** Order of pointers to datasets by their ids, for qsort(). */
int esdm__dataset_by_id(const void *a, const void *b);
/** Whether a list in that order has the dataset. */
bool esdm__datasets_hold(esdm_dataset *const *list, size_t count, const esdm_dataset *dataset);
/** Enters the dataset into the list of those that the next commit publishes. */
esdm_status esdm__dataset_mark_dirty(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err);
/** Reads the directory entries of a dataset's committed pages from the store; a writer whose
 * snapshot is gone moves on before.
 *  @param ret_pages zeroed; esdm__page_list_clear() in any case. */
esdm_status esdm__dataset_list_pages(const esdm_dataset *dataset, esdm__page_list *ret_pages,
                                     esdm_error *err);
/** The bytes of a page, of those that the ranks of a node share or from the store.
 * @param ret_data owned, free(). */
esdm_status esdm__container_load_page(const esdm_container *container, uint64_t page,
                                      void **ret_data, size_t *ret_bytes, esdm_error *err);
/** Loads the directory of committed pages into the index unless known. */
esdm_status esdm__dataset_load_directory(esdm_dataset *dataset, esdm__dataset_io *io,
                                         esdm_error *err);
/** Loads the given pages into the index. @param ret_held NULL, or room for a reference to each, by
 *  which it stays loaded (NULL: it is in the directory no more); esdm__dataset_release_pages() in
 *  any case. When one was moved meanwhile the directory is forgotten:
 *  the caller looks at `generation`, or asks again what is missing. */
esdm_status esdm__dataset_load_pages(esdm_dataset *dataset, esdm__dataset_io *io,
                                     const uint64_t *pages, size_t npages, esdm__page **ret_held,
                                     esdm_error *err);
/** Gives references back. */
void esdm__dataset_release_pages(esdm__page **held, size_t npages);
/**
 * After a failed read: whether fragments were stored elsewhere since the directory was loaded, as
 * esdm-drain does. Then the directory is forgotten, and the read is worth another attempt.
 */
bool esdm__dataset_was_moved(esdm_dataset *dataset, esdm__dataset_io *io, esdm_status failure);
/** Drops loaded pages beyond the dataset's share of memory, and tells the session what its index
 *  takes. With `io->lock` held. */
void esdm__dataset_trim_index(const esdm_dataset *dataset, esdm__dataset_io *io);
/** When indexes and states of the session take more than their bound, those of this container give
 *  memory back, one dataset after the other. No lock is held. (index_memory.c)
 *  @param most datasets that are looked at. */
void esdm__container_trim_indexes(const esdm_container *container, size_t most);
/** Notes that the order of this dataset's writes among ranks is lost. Caller holds the write lock.
 */
void esdm__dataset_fail(esdm__dataset_io *io, const esdm_error *why);
/** The directories of all datasets are loaded again at their next use (another snapshot). */
void esdm__container_forget_pages(const esdm_container *container);
/** "container 'NAME', dataset '/PATH'" in front of the error. */
esdm_status esdm__dataset_prefix(const esdm_dataset *dataset, esdm_status status, esdm_error *err);

/** A span has ended that was about this dataset. */
void esdm__dataset_observed(const esdm_dataset *dataset, const esdm__span *span,
                            esdm__span_facts facts);
/** Details of a span that transfers the selection; owned; NULL: nobody wants them. */
char *esdm__selection_detail(const esdm_dataset *dataset, const esdm_dataspace *space,
                             esdm_type memory);
/** One that was about the container. */
void esdm__container_observed(const esdm_container *container, const esdm__span *span,
                              esdm__span_kind kind, esdm_status status);
/** A container was opened or made, or was not. @param container NULL: it was not. @param mode as of
 *  esdm__detail_opening(). @param comm NULL: one process's. */
void esdm__opening_observed(const esdm__span *span, const char *name, esdm_container *container,
                            const char *mode, const esdm_comm *comm, esdm_status status);
/** What a span tells that frees the container; asked for before it does. */
esdm__span_facts esdm__closing_facts(const esdm_container *container, const esdm__span *span);
/** Ranks met for a transfer, or (`dataset` NULL) for the container's structure. @param space what
 * this rank is about to transfer; NULL: nothing. */
void esdm__meeting_observed(const esdm__span *span, const esdm_dataset *dataset,
                            const esdm_container *container, const esdm_dataspace *space,
                            bool writing, esdm_status status);
/** Tells a trace of all datasets that it has not heard of yet. */
void esdm__structure_observed(const esdm_container *container);

/** Checks a hyperslab against rank and limited lengths; with `growing` unlimited ones are free. */
esdm_status esdm__space_check(const esdm_dataset *dataset, const esdm_dataspace *space,
                              bool growing, esdm_error *err);

/** Gathers more than a fragment: so many times twice that, up to `bytes`. Caller holds the write
 *  lock. */
void esdm__dataset_io_widen(esdm__dataset_io *io, uint64_t bytes);
/** Sends gathered writes to fragments, after what is to be stored behind its put; what that fails
 *  for stays as it is. Caller holds the write lock. */
esdm_status esdm__dataset_flush(esdm_dataset *dataset, esdm__dataset_io *io, esdm_error *err);

/* Fragments in flight in one round of the pool. */
#define ESDM__WRITE_BATCH 64u
/* Writes from here on go to fragments at once, without a copy in the gather buffer, unless the
 * dataset wants large ones. */
#define ESDM__DIRECT_BYTES (UINT64_C(256) << 10)

/** Sets the chain of new fragments; `chain` is the parsed `text`, NULL goes back to the site's. */
esdm_status esdm__io_set_codec(esdm_dataset *dataset, const char *text, const esdm__chain *chain,
                               esdm_error *err);

#endif
