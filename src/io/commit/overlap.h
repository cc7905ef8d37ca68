/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_COMMIT_OVERLAP_H
#define ESDM_IO_COMMIT_OVERLAP_H

/**
 * @file
 * Two programs that append the same records. What a container had when a handle was opened, created
 * or refreshed may be overwritten, and the last commit wins. What lies behind that, along some
 * unlimited dimension, may have been written by this handle alone: a commit that would overwrite
 * there what another one has published since is ESDM_ECONFLICT. Equal elements are no
 * conflict: those of coordinates, which every program writes. Site key "overlap".
 *
 * Threads: the container's commit_lock.
 */

#include "esdm/sys/meta_store.h"
#include "io/container/dataset_io.h"
#include "layout/fragment.h"
#include "model/container.h"

/** Marks the pages that reach behind what the handle found (esdm_meta_new_page.apart). @return
 *  whether there are any; never for a new container, or when the site wants none of this. */
bool esdm__overlap_mark(const esdm_container *container, esdm_meta_new_page *pages, size_t npages);
/**
 * Looks for records that others have published since, and which the marked pages would overwrite.
 * @param pages sorted by dataset.
 * @param ret_seen snapshots up to this one were looked at; may be below the newest one.
 * @return ESDM_ECONFLICT tells dataset, dimension and index.
 */
esdm_status esdm__overlap_check(const esdm_container *container, const esdm_meta_new_page *pages,
                                size_t npages, uint64_t *ret_seen, esdm_error *err);

/** Whether two fragments have the same elements within the bounds `common`, which both contain.
 *  false where that cannot be told: of strided ones, above 16 MiB, of types of the user, and of
 * what cannot be read. */
bool esdm__overlap_is_same(esdm_session *session, esdm_type type, const esdm__fragment *ours,
                           const esdm__fragment *theirs, const uint64_t *common);

#endif
