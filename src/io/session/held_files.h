/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_HELD_FILES_H
#define ESDM_IO_SESSION_HELD_FILES_H

/**
 * @file
 * Files that a site holds: clones of files that containers refer to, made when these are pinned.
 * They lie on a target, share their blocks with the file that they were, and are never changed. A
 * reference to one has the location "/esdm-file:TARGET/NAME"; the name is made as that of a pack.
 * Any thread.
 */

#include <string.h>

#include "io/session/session.h"

#define ESDM__HELD_PREFIX "/esdm-file:"
/** Room for a location. */
#define ESDM__HELD_BYTES 512

static inline bool
esdm__held_is(const char *location)
{
    return strncmp(location, ESDM__HELD_PREFIX, sizeof ESDM__HELD_PREFIX - 1) == 0;
}
/** The name of the file, "" where there is none; borrowed. */
const char *esdm__held_name(const char *location);
/** Whether a target, by its name now, is the one of a location. */
bool esdm__held_is_on(const char *location, const char *target);

/**
 * Clones a file onto the first target that can share its blocks, and that all nodes see.
 * @param name of a pack that is to be. @param allowed flags of the session's targets; NULL: all.
 * @param ret_location ESDM__HELD_BYTES.
 * @return ESDM_ENOTSUP: no target can.
 */
esdm_status esdm__held_make(esdm_session *session, const char *name, int fd, const bool *allowed,
                            char *ret_location, esdm_error *err);
/** @param ret_fd esdm__descriptor_close(). @return ESDM_ENOENT: it is gone. */
esdm_status esdm__held_open(esdm_session *session, const char *location, int *ret_fd,
                            esdm_error *err);
void esdm__held_remove(esdm_session *session, const char *location);

#endif
