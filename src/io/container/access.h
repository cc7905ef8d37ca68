/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_ACCESS_H
#define ESDM_IO_CONTAINER_ACCESS_H

/** @file How a dataset will be read, and what that means for its fragments. */

#include "esdm/session.h"
#include "layout/fragmenter.h"
#include "model/container.h"

/** What ESDM_ACCESS_ATTRIBUTE of the dataset says, or the site. ESDM_EINVAL: it is no known text.
 */
esdm_status esdm__access_of(const esdm_dataset *dataset, esdm__cut *ret_cut, esdm_error *err);

/** The same for a dataset that need not exist. @param text of the attribute; NULL: there is none.
 */
esdm_status esdm__access_wanted(const esdm_session *session, const char *container,
                                const char *path, const char *text, esdm__cut *ret_cut,
                                esdm_error *err);

#endif
