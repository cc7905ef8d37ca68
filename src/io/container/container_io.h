/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_CONTAINER_IO_H
#define ESDM_IO_CONTAINER_CONTAINER_IO_H

/** @file Steps of creating, opening and refreshing, for one process and for ranks. */

#include "esdm/placement.h"
#include "io/container/dataset_io.h"

/** An empty handle. @param ret_container owned; esdm__container_drop(). */
esdm_status esdm__container_new_handle(esdm_session *session, const char *name,
                                       esdm_container **ret_container, esdm_error *err);
/** Frees it and what it has open. NULL is accepted. */
void esdm__container_drop(esdm_container *container);
/** A new container, without looking whether the name is free. ESDM_EACCES. */
esdm_status esdm__container_begin(esdm_session *session, const char *name, esdm_create_mode mode,
                                  esdm_container **ret_container, esdm_error *err);
/** Fills a fresh handle from a loaded snapshot and takes over its pin and lengths, also when it
 *  fails. @param snapshot the one that was asked for. */
esdm_status esdm__container_fill(esdm_container *container, esdm_meta_snapshot *loaded,
                                 esdm_open_mode mode, uint64_t snapshot, esdm_error *err);
/** ESDM_EINVAL when changes are pending or an old snapshot was asked for. */
esdm_status esdm__container_check_refreshable(const esdm_container *container, esdm_error *err);
/** ESDM_ECONFLICT, and the snapshot is unpinned, when it is of another container or structure. */
esdm_status esdm__container_check_same(const esdm_container *container,
                                       const esdm_meta_snapshot *loaded, esdm_error *err);
/** Moves the handle to a loaded snapshot; takes over its pin and lengths. */
void esdm__container_move_to(esdm_container *container, esdm_meta_snapshot *loaded);
/** Of a container that no ranks share: esdm_container_refresh(). */
esdm_status esdm__container_refresh(esdm_container *container, esdm_error *err);

/* Life of a container; see esdm/container.h for the contracts. `name` is normalised. */
esdm_status esdm__io_create(esdm_session *session, const char *name, esdm_create_mode mode,
                            esdm_container **ret_container, esdm_error *err);
esdm_status esdm__io_open(esdm_session *session, const char *name, esdm_open_mode mode,
                          uint64_t snapshot, esdm_container **ret_container, esdm_error *err);
void esdm__io_revert(esdm_container *container);
/** See esdm_container_give_up_failed(). */
size_t esdm__io_give_up_failed(esdm_container *container);
bool esdm__io_is_dirty(const esdm_container *container);
/** Whether commits of this handle have left so much that nothing names any more that it is worth
 *  looking for it. @param ret_uuid room for ESDM__UUID_BYTES. */
bool esdm__io_has_dropped(const esdm_container *container, uint64_t *ret_record, char *ret_uuid);
/** What one writer's packs were placed by (io/packs/decisions.h). */
esdm_status esdm__container_decisions(const esdm_container *container, esdm_decision_visitor visit,
                                      void *user, esdm_error *err);

#endif
