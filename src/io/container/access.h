/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_ACCESS_H
#define ESDM_IO_CONTAINER_ACCESS_H

/** @file How a dataset will be read, and what that means for its fragments. */

#include "esdm/session.h"
#include "io/container/dataset_io.h"
#include "layout/fragmenter.h"
#include "model/container.h"

/** What ESDM_ACCESS_ATTRIBUTE of the dataset says, or the site. ESDM_EINVAL: it is no known text.
 */
esdm_status esdm__access_of(const esdm_dataset *dataset, esdm__cut *ret_cut, esdm_error *err);

/** Whether the dataset, its attribute or the site state a shape or how it is read. */
bool esdm__access_is_stated(const esdm_dataset *dataset);
/** Whether its fragments have codecs, or may: of others pages are read, however they are cut. */
bool esdm__access_is_coded(const esdm_dataset *dataset, const esdm__dataset_io *io);
/** Asks once, when data are written that are worth it, how readers of the site read such a dataset
 *  (io/session/readers.h), and has more gathered for one cut where that helps them. Nothing where
 *  something is stated, of several ranks, or for modes with fragments of their own. Caller holds
 *  the write lock. */
void esdm__access_by_readers(const esdm_dataset *dataset, esdm__dataset_io *io);
/** Before a document is written: keeps with datasets why they were cut for readers. Caller holds
 *  the commit lock. */
void esdm__access_note(esdm_dataset *dataset, esdm__dataset_io *io);

/** The same for a dataset that need not exist. @param text of the attribute; NULL: there is none.
 */
esdm_status esdm__access_wanted(const esdm_session *session, const char *container,
                                const char *path, const char *text, esdm__cut *ret_cut,
                                esdm_error *err);

#endif
