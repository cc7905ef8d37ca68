/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_PAGE_LIST_H
#define ESDM_IO_PACKS_PAGE_LIST_H

/** @file Directory entries of the index pages of one record. */

#include "io/session/session.h"
#include "layout/page.h"

/** Hex digits of a uuid, with which the names of packs begin. */
#define ESDM__UUID_DIGITS (ESDM__UUID_BYTES - 1)

typedef struct esdm__page_list {
    esdm_meta_page *entries;              /* owned; boxes: see `boxes` */
    uint64_t (*boxes)[2 * ESDM_MAX_RANK]; /* owned */
    size_t count;
    size_t capacity;
    bool failed;
} esdm__page_list;

/** How often pages are listed by who finds that others store them anew, merge or move them
 *  meanwhile. */
#define ESDM__PAGE_LISTINGS 20

/** @param snapshot,dataset as esdm_meta_plugin.page_list() takes them.
 *  @param ret_list zeroed; esdm__page_list_clear() in any case. */
esdm_status esdm__page_list_load(const esdm_session *session, uint64_t container, uint64_t snapshot,
                                 uint32_t dataset, esdm__page_list *ret_list, esdm_error *err);
/** Those of all datasets, and of all snapshots that are kept. */
static inline esdm_status
esdm__page_list_load_all(const esdm_session *session, uint64_t container, esdm__page_list *ret_list,
                         esdm_error *err)
{
    return esdm__page_list_load(session, container, ESDM_META_EVERY_SNAPSHOT, 0, ret_list, err);
}
/** What the pages of a snapshot sum up to. */
typedef struct esdm__page_sums {
    uint64_t fragments;
    uint64_t raw_bytes;
    uint64_t stored_bytes;
} esdm__page_sums;

esdm__page_sums esdm__page_list_sums(const esdm__page_list *list);
/** Whether commits counted as much. */
bool esdm__page_sums_agree(const esdm__page_sums *sums, const esdm_meta_container *record);
/** Copies an entry. false: no memory. */
bool esdm__page_list_add(esdm__page_list *list, const esdm_meta_page *page);
void esdm__page_list_clear(esdm__page_list *list);
/** Entry number i with its box. */
esdm_meta_page esdm__page_list_at(const esdm__page_list *list, size_t i);
/** ESDM_ENOENT: it was pruned, merged or moved meanwhile. @param ret_page owned. */
esdm_status esdm__page_fetch(esdm_session *session, const esdm_meta_page *entry,
                             esdm__page **ret_page, esdm_error *err);

/** @param entry,page borrowed, until it returns. @return other than ESDM_OK ends the walk. */
typedef esdm_status (*esdm__page_visitor)(void *user, const esdm_meta_page *entry,
                                          const esdm__page *page, esdm_error *err);

/** Which pages are walked over; zero: those of all datasets, of the snapshot. */
typedef struct esdm__page_walk {
    uint64_t container;
    uint64_t snapshot; /* as esdm_meta_plugin.page_list() takes it */
    uint32_t dataset;  /* 0: all */
    uint64_t after;    /* those of later snapshots alone */
    bool pass_gone;    /* what was pruned, merged or moved meanwhile does not end the walk */
    bool pass_unread;  /* nor what cannot be read for another reason */
    bool gone;         /* told: a page was passed by, as it was there no more */
    esdm__page_visitor visit;
    void *user;
} esdm__page_walk;

/**
 * Lists pages, then fetches one after the other and visits it.
 *
 * @return ESDM_OK, what the visitor returned, or why a page cannot be had: ESDM_ENOENT, when it
 * went away after it was listed.
 */
esdm_status esdm__pages_walk(esdm_session *session, esdm__page_walk *walk, esdm_error *err);

/** Digits of the writer in the name of a pack, "" when it has none. */
void esdm__pack_writer(const char *name, char ret_writer[ESDM__UUID_BYTES]);

#endif
