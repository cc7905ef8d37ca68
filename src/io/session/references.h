/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_REFERENCES_H
#define ESDM_IO_SESSION_REFERENCES_H

/**
 * @file
 * Which files containers may refer to.
 *
 * Who can make a container decides which file a reference names, and who reads it opens the file
 * with rights of its own. So a site can state directories that all such files lie below
 * ("references.roots"). Where it states none, a session that reads for others
 * (esdm_session_serve_others()) reads those files alone that everybody may read. Any thread.
 */

#include "io/session/session.h"

/**
 * Opens a file for reading, if it is a regular one and may be read. The path of what was opened is
 * looked at, so links and renames do not lead elsewhere; nothing else than a regular file is
 * opened.
 * @param ret_fd kept out of the program's way (base/descriptor.h).
 * @return ESDM_ENOENT, ESDM_EACCES, ESDM_ECONFLICT (it is no regular file), ESDM_EIO.
 */
esdm_status esdm__reference_open(const esdm_session *session, const char *location, int *ret_fd,
                                 esdm_error *err);
/** Whether a container may refer to a file, or an object at a URL: before it does. URLs are allowed
 *  below those of "references.roots" alone. ESDM_EACCES tells why not. */
esdm_status esdm__reference_allowed(const esdm_session *session, const char *location,
                                    esdm_error *err);

#endif
