/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_VIRTUAL_H
#define ESDM_VIRTUAL_H

/**
 * @file
 * Virtual containers under a name. A name that begins with '?' is a query and opens what it finds
 * as one container; here such a query gets a name, and what has it is opened, listed, found by
 * queries, renamed and removed as other containers are. Its data are those of its members.
 */

#include "esdm/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Widens what the index knows of saved queries by containers that were committed, renamed or
 * brought back since somebody did so, so that questions for times, boxes and values find them by
 * these. A session that writes does so at such questions, about once a second while it commits, and
 * at its end; what a killed program leaves is for the next one. One question to the store when
 * there is nothing to do. It may be called by any thread.
 * @param ret_waits some are still waiting: the session was opened for reading only, the user may
 *        not write to the index, or others commit just now.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_virtual_follow(esdm_session *session, bool *ret_waits,
                                                         esdm_error *err);
/**
 * Saves a query under a name, after it was opened once: what cannot be joined is an error now.
 * @param query "?attribute=value&…". @param pin its members stay those of now, each with the
 * snapshot of now, which gets a tag ("virtual-" and the name), so that it is kept; else the query
 * is asked anew each time. @param replace whether a container of that name is replaced (and kept as
 * a former one). Any thread.
 * @return ESDM_EINVAL: no query, or members that do not fit; ESDM_ENOENT: nothing is found;
 * ESDM_EEXIST: the name is taken.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_virtual_save(esdm_session *session, const char *query,
                                                       const char *name, bool pin, bool replace,
                                                       esdm_error *err);

/** Return false to stop. @param name borrowed. */
typedef bool (*esdm_found_visitor)(const char *name, void *user);
/** Visits the containers that a query ("?attribute=value&…") finds, by name. They need not fit
 *  together, and none is opened. ESDM_ENOENT: nothing is found; ESDM_EINVAL: no query. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_virtual_found(esdm_session *session, const char *query,
                                                        esdm_found_visitor visit, void *user,
                                                        esdm_error *err);

/** Return false to stop. @param name of the virtual container; names are borrowed. */
typedef bool (*esdm_virtual_visitor)(const char *name, const char *member, bool pinned, void *user);
/** Visits all members of all virtual containers that were saved, as they are now: to tell who uses
 * a container before it is removed. Those whose query finds nothing have none. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_virtual_members(esdm_session *session,
                                                          esdm_virtual_visitor visit, void *user,
                                                          esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
