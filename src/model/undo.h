/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_MODEL_UNDO_H
#define ESDM_MODEL_UNDO_H

/**
 * @file
 * Taking back changes of structure (esdm_container_mark(), esdm_container_revert()). What an object
 * was like before its first change since the mark is kept; what was created since then is known by
 * the counts. So a mark costs nothing, and what follows as much as is changed. Threads: as
 * structure calls.
 *
 * The esdm__undo_keep_…() functions come before the change. They do nothing without a mark, for
 * what is kept already, and for new datasets. ESDM_ENOMEM: the change must not be made.
 */

#include "model/container.h"

/** @param place  the name, owned by its object. @param apart  whether it is a piece of memory of
 * its own; NULL: it always is. @param names  the table that has it as `value`. */
esdm_status esdm__undo_keep_name(esdm_container *container, char **place, bool *apart,
                                 esdm__names *names, uint32_t value, esdm_error *err);
/** All attributes of a list, with their order. */
esdm_status esdm__undo_keep_attributes(esdm_attributes *list, esdm_error *err);
/** Fill value, chunk shape, codec, accuracy and hints of a dataset. */
esdm_status esdm__undo_keep_dataset(esdm_dataset *dataset, esdm_error *err);
/** The container's own hints. */
esdm_status esdm__undo_keep_hints(esdm_container *container, esdm_error *err);

/** Whether something of esdm__undo_keep_dataset() was kept since the mark. */
bool esdm__undo_has_kept(const esdm_dataset *dataset);
/** Forgets the mark and all that was kept. */
void esdm__undo_forget(esdm_container *container);
/** Goes back to the mark. Engine state of datasets that go must have been released. */
void esdm__undo_revert(esdm_container *container);

#endif
