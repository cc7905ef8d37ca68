/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_INDEX_H
#define ESDM_LAYOUT_INDEX_H

/**
 * @file
 * Fragment index of one dataset: committed pages, loaded when a request meets them, and the pending
 * fragments of this writer.
 *
 * Threads: not locked inside; the caller holds the dataset's lock. Plans and loaded pages are
 * reference counted (atomically), so a plan is used, and cleared, without the lock.
 * Page bytes format ("ESDMPAGE", version 1) is documented in layout/page.h: column-encoded (varint
 * deltas), LZ4-compressed, XXH3-checksummed; a damaged page is ESDM_ECORRUPT.
 */

#include "esdm/sys/meta_store.h"
#include "layout/fragment.h"

/** Records in a full page. */
#define ESDM__PAGE_RECORDS 4096u

typedef struct esdm__index esdm__index;
typedef struct esdm__page esdm__page;

/** NULL when out of memory. */
esdm__index *esdm__index_new(uint32_t rank);
void esdm__index_free(esdm__index *index); /* NULL is accepted; plans stay valid */

/** Interned pack name; lives as long as the index or any plan made from it. NULL: no memory. */
const esdm__pack_name *esdm__index_pack(esdm__index *index, const char *target, const char *pack);

/** Interned description (layout/source.h) for esdm__fragment.elsewhere; lives as long. NULL: no
 *  memory, or longer than ESDM__SOURCE_BYTES_MAX. */
const esdm__source *esdm__index_source(esdm__index *index, uint32_t role, const void *data,
                                       size_t bytes);

/** Enters a committed page into the directory, unloaded. ESDM_ECORRUPT when its rank is not ours.
 */
esdm_status esdm__index_add_page(esdm__index *index, const esdm_meta_page *page, esdm_error *err);
/** Forgets all committed pages (refresh); pending fragments stay. */
void esdm__index_forget_pages(esdm__index *index);

/** Adds a pending fragment; copies the record and its inline data. The sequence is set here. */
esdm_status esdm__index_add_pending(esdm__index *index, const esdm__fragment *fragment,
                                    esdm_error *err);
/** The pack is on target `to` now, with all that was in it: pending fragments say so. */
esdm_status esdm__index_move_pack(esdm__index *index, const char *pack, const char *from,
                                  const char *to, esdm_error *err);
/** Whether a pending fragment lies in the pack, wherever that is. */
bool esdm__index_needs_pack(const esdm__index *index, const char *pack);
/** Drops the pending fragments in packs that are lost. @param dropped is told each one, with its
 *  number among those that are left by then. */
void esdm__index_drop_lost(esdm__index *index, bool (*is_lost)(void *user, const char *pack),
                           void (*dropped)(void *user, const esdm__fragment *fragment,
                                           uint32_t number),
                           void *user);
size_t esdm__index_pending_count(const esdm__index *index);
/** Visits pending fragments, in the order of writing, until the visitor returns false. */
void esdm__index_pending_visit(const esdm__index *index,
                               bool (*visit)(const esdm__fragment *fragment, void *user),
                               void *user);
/** Adds the statistics of all pending fragments to a total. False, and nothing is added: of one of
 *  them they are not known, of another class, or other values counted as missing in it. */
bool esdm__index_pending_statistics(const esdm__index *index, esdm__statistics *total);
/** Pending fragments from number `first` on have the orders base, base + 1, … in their commit. */
typedef struct esdm__order_run {
    uint32_t first;
    uint32_t base;
} esdm__order_run;
/**
 * Gives the pending fragments their orders among those of other writers of the same commit.
 * @param runs at least one; the first begins at 0; orders rise with the fragment.
 * @param next order of the fragment that is added next.
 */
void esdm__index_renumber(esdm__index *index, const esdm__order_run *runs, size_t nruns,
                          uint32_t next);
/** Makes pending fragments of another writer visible to reads until esdm__index_drop_pending();
 * they are never published from here. @param page of orders. ESDM_ECORRUPT, ESDM_ENOMEM. */
esdm_status esdm__index_add_foreign(esdm__index *index, const esdm_meta_new_page *page,
                                    esdm_error *err);
/** Bytes of inline data held by pending fragments. */
size_t esdm__index_pending_inline_bytes(const esdm__index *index);

/** Directory pages that meet the box and are not loaded. @param ret_pages owned, free(). */
esdm_status esdm__index_missing(const esdm__index *index, const esdm__box *box,
                                uint64_t **ret_pages, size_t *ret_count, esdm_error *err);
/** Decodes page bytes; needs no lock. @param ret_page owned; esdm__index_insert() or _unref(). */
esdm_status esdm__page_decode(const esdm_meta_page *entry, const void *data, size_t bytes,
                              esdm__page **ret_page, esdm_error *err);
/** Copies the directory entry of `page` (box pointer: borrowed until the index changes). */
bool esdm__index_page_entry(const esdm__index *index, uint64_t page, esdm_meta_page *ret_entry);
/** Gives a loaded page to the index, which takes ownership in every case; a page that is no longer
 *  wanted is dropped. ESDM_ENOMEM, ESDM_ECORRUPT (another rank). */
esdm_status esdm__index_insert(esdm__index *index, uint64_t page, esdm__page *loaded,
                               esdm_error *err);
/** A reference to a loaded page, which stays loaded as long as that is held and the page belongs to
 *  the directory. NULL: it is not loaded. @return owned; esdm__page_unref(). */
esdm__page *esdm__index_hold(esdm__index *index, uint64_t page);
/** Whether all these pages are loaded. */
bool esdm__index_has_loaded(const esdm__index *index, const uint64_t *pages, size_t count);
void esdm__page_unref(esdm__page *page);
/** Memory of loaded pages; esdm__index_evict drops unreferenced ones, oldest use first. */
size_t esdm__index_memory_bytes(const esdm__index *index);
void esdm__index_evict(esdm__index *index, size_t keep_bytes);
/** Forgets all committed pages and gives their memory back; pending fragments stay.
 *  @return false when some are in use: these stay, and the directory with them. */
bool esdm__index_release(esdm__index *index);
/** Whether nothing would be lost with it: no fragment is pending, of other writers neither. */
bool esdm__index_is_idle(const esdm__index *index);
/** Memory of the index itself, without pages, directory and pending fragments. */
size_t esdm__index_fixed_bytes(void);
/** Memory of the directory of committed pages. */
size_t esdm__index_directory_bytes(const esdm__index *index);

/** A part of a request that one fragment serves. */
typedef struct esdm__piece {
    const esdm__fragment *fragment; /* borrowed from the plan */
    esdm__box part;                 /* inside fragment->box and the request */
} esdm__piece;

/**
 * Answer to a request: disjoint pieces of dense fragments, hidden parts removed (newest wins), and
 * after them pieces of strided fragments (layout/strided.h), oldest first: they are laid over what
 * is there, one after the other where they meet.
 */
typedef struct esdm__plan {
    esdm__piece *pieces; /* dense ones sorted by target, pack, position */
    size_t npieces;
    size_t ndense;
    bool covered;    /* the pieces fill the whole request; otherwise the rest is fill value */
    void *ownership; /* keeps pages and records alive */
} esdm__plan;

/** All pages that meet the box must be loaded (esdm__index_missing() gives none): else ESDM_EINVAL.
 *  O((k + log n) · overlaps) for k hits of n fragments. */
esdm_status esdm__index_resolve(esdm__index *index, const esdm__box *request, esdm__plan *ret_plan,
                                esdm_error *err);
/** The same, of at most so many fragments: where more meet the box *ret_too_many is set, and no
 * plan is made. */
esdm_status esdm__index_resolve_most(esdm__index *index, const esdm__box *request, size_t most,
                                     esdm__plan *ret_plan, bool *ret_too_many, esdm_error *err);
void esdm__plan_clear(esdm__plan *plan); /* a zeroed plan is accepted */

/**
 * About how many fragments meet the box, not above `limit`: exact for pending fragments and loaded
 * pages; of a page that is not loaded, as many records as lie in the box when they are spread
 * evenly, and one more. A plan takes about 1.1 KiB a piece, so a request that meets very many is
 * better cut into several.
 */
size_t esdm__index_count(esdm__index *index, const esdm__box *box, size_t limit);
/**
 * Whether the plan of a box leaves the processor's caches (a column of 1,000,000 fragments took
 * twice the time in such plans), and nearly each of the fragments that meet it lies in one of both
 * halves along the slowest axis: those in both would be read twice. Of pages that are not loaded as
 * esdm__index_count(). (layout/halves.c)
 */
bool esdm__index_wants_halves(esdm__index *index, const esdm__box *box);

/** Pages to publish: pending fragments, perhaps merged with small committed pages. */
typedef struct esdm__page_set {
    esdm_meta_new_page *pages; /* data, box owned by the set; `dataset` is set by the caller */
    size_t npages;
    uint64_t *merged;      /* committed pages that absolute pages replace */
    uint64_t *merged_sums; /* their checksums (esdm__page.checksum) */
    size_t nmerged;
    uint64_t dropped_bytes; /* stored, of fragments that the merged pages had and no page has now */
    uint32_t *order;        /* owned; numbers of the pending fragments that the first pages hold */
    uint32_t nordered;
} esdm__page_set;

/**
 * Which committed pages pending fragments may hide for the most part, as when a variable is written
 * again as a whole: merging these with esdm__index_encode_hidden() frees what they hold. None
 * unless that is at least ESDM__HIDDEN_BYTES.
 */
#define ESDM__HIDDEN_BYTES (UINT64_C(1) << 20)
/** From now on what pending fragments hide is freed however little it is. */
void esdm__index_free_little(esdm__index *index);
esdm_status esdm__index_hidden_candidates(const esdm__index *index, uint64_t **ret_pages,
                                          size_t *ret_count, esdm_error *err);
/**
 * Which committed pages should be merged with the next commit, so that the number of pages stays
 * logarithmic in the number of commits (size-tiered: 16 pages of one level make one of the next;
 * full pages are left alone). They must be loaded before esdm__index_encode(). May be none.
 */
esdm_status esdm__index_merge_candidates(const esdm__index *index, uint64_t **ret_pages,
                                         size_t *ret_count, esdm_error *err);

/**
 * Encodes pending fragments (relative sequence = order) and, apart from them, the pages of `merge`
 * (absolute sequences) into pages. Spatially sorted, at most ESDM__PAGE_RECORDS each. The index
 * does not change. @param merge as from esdm__index_merge_candidates(); all loaded.
 */
esdm_status esdm__index_encode(const esdm__index *index, const uint64_t *merge, size_t nmerge,
                               esdm__page_set *ret_set, esdm_error *err);
/** The pending fragments from number `first` on alone. */
esdm_status esdm__index_encode_pending(const esdm__index *index, uint32_t first,
                                       esdm__page_set *ret_set, esdm_error *err);
/** As esdm__index_encode() with what esdm__index_hidden_candidates() gave: of the merged pages only
 *  what the pending fragments do not hide is left. When that is most of it, nothing is merged. */
esdm_status esdm__index_encode_hidden(const esdm__index *index, const uint64_t *merge,
                                      size_t nmerge, esdm__page_set *ret_set, esdm_error *err);
/** The pages of `merge` alone. */
esdm_status esdm__index_encode_merged(const esdm__index *index, const uint64_t *merge,
                                      size_t nmerge, esdm__page_set *ret_set, esdm_error *err);
void esdm__page_set_clear(esdm__page_set *set);

/**
 * After a successful commit: pending fragments become committed (sequence snapshot << 32 | order),
 * merged pages are dropped, the set's pages enter the directory under first_page, first_page+1, …
 * Pages stay loaded. Cannot fail: what memory lacks is loaded again later.
 */
void esdm__index_committed(esdm__index *index, const esdm__page_set *set, uint64_t first_page,
                           uint64_t snapshot);
/** Drops pending fragments, those of other writers too. */
void esdm__index_drop_pending(esdm__index *index);

/**
 * Gathers small pages of one dataset from several writers of a commit into fuller ones, so that the
 * number of pages does not depend on the number of writers (layout/collect.c). One thread.
 */
typedef struct esdm__collector esdm__collector;
/** NULL when out of memory. */
esdm__collector *esdm__collector_new(uint32_t rank);
void esdm__collector_free(esdm__collector *collector); /* NULL is accepted */
/** Whether a page is best published as it is. */
bool esdm__collector_passes(const esdm_meta_new_page *page);
/** Takes a page's records over (orders, not absolute sequences). ESDM_ECORRUPT, ESDM_ENOMEM. */
esdm_status esdm__collector_add(esdm__collector *collector, const esdm_meta_new_page *page,
                                esdm_error *err);
/** Whether it holds enough for a full page. */
bool esdm__collector_is_full(const esdm__collector *collector);
bool esdm__collector_is_empty(const esdm__collector *collector);
/** Encodes what it holds, without what newer records hide, and empties it. `dataset` of the pages
 *  is set by the caller. @param ret_set zeroed. */
esdm_status esdm__collector_take(esdm__collector *collector, esdm__page_set *ret_set,
                                 esdm_error *err);

/** Visits all committed fragments of the loaded pages in `page` (esdm-stat). */
typedef bool (*esdm__fragment_fn)(const esdm__fragment *fragment, void *user);
bool esdm__page_visit(const esdm__page *page, esdm__fragment_fn visit, void *user);

#endif
