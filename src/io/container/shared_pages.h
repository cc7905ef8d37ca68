/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_SHARED_PAGES_H
#define ESDM_IO_CONTAINER_SHARED_PAGES_H

/**
 * @file
 * What the ranks of a node that read one snapshot have in common, where each would need a
 * connection to the metadata store for it: index pages, in memory that they share, and the pin of
 * the rank that has made it, the leader. It stays pinned until the last of them has closed,
 * or the leader its session: then the others are told when the snapshot is deleted.
 *
 * Made by the leader under a name that is gone once all have joined. Threads: any; immutable, but
 * for the number of its users.
 */

#include "io/packs/page_list.h"

typedef struct esdm__shared_pages esdm__shared_pages;

/**
 * By the leader, which has pinned the snapshot. What does not fit is left out: then it is asked for
 * by each.
 * @param name of shared memory, "/…", that is not there. @param ret_shared owned:
 *        esdm__shared_pages_end().
 */
esdm_status esdm__shared_pages_make(const esdm_session *session, uint64_t container,
                                    uint64_t snapshot, const char *name,
                                    esdm__shared_pages **ret_shared, esdm_error *err);
/** By the others. NULL: it cannot be, as when they do not share the memory after all. */
esdm__shared_pages *esdm__shared_pages_join(const char *name);
/** By the leader, when all have joined. */
void esdm__shared_pages_hide(const char *name);

bool esdm__shared_pages_are_of(const esdm__shared_pages *shared, uint64_t container,
                               uint64_t snapshot);
/** The entries of a dataset. false: they are not there, or this is another snapshot.
 *  @param ret_list zeroed; esdm__page_list_clear() in any case. */
bool esdm__shared_pages_list(const esdm__shared_pages *shared, uint64_t container,
                             uint64_t snapshot, uint32_t dataset, esdm__page_list *ret_list);
/** A page. false: it is not there, or there is no memory. @param ret_data owned, free(). */
bool esdm__shared_pages_load(const esdm__shared_pages *shared, uint64_t page, void **ret_data,
                             size_t *ret_bytes);

/** One user less. The session keeps a pin of the leader as long as there are others, and gives up
 *  those that nobody needs any more. @param pinned whether this rank has pinned it. */
void esdm__shared_pages_end(esdm__shared_pages *shared, esdm_session *session, bool pinned);

#endif
