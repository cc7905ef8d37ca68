/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_NESTING_H
#define ESDM_IO_SESSION_NESTING_H

/**
 * @file
 * A container is no folder: where `a` is a container there is no `a/b`, so that a tree of
 * containers can always be copied to a tree of files.
 */

#include "io/session/session.h"

/** ESDM_EEXIST when a container exists above the (normalised) name, or one below it. Checked when a
 *  name is taken; two processes that take clashing names at the same instant may both succeed. */
esdm_status esdm__nesting_check(esdm_session *session, const char *name, esdm_error *err);
/** The same. @param ret_record of the container that has the name already; 0: there is none. */
esdm_status esdm__nesting_find(esdm_session *session, const char *name, uint64_t *ret_record,
                               esdm_error *err);

#endif
