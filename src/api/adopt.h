/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_ADOPT_H
#define ESDM_API_ADOPT_H

/** @file Branches that programs write anew as a whole. */

#include "io/session/session.h"

#include "model/container.h"

/**
 * A container that a program has made to take the place of a branch becomes the branch's next
 * snapshot: the branch stays one, and can be merged. Its fragments are entered as they are.
 * @param from, to normalised names.
 * @param seen the branch is still this; NULL: whatever it is. ESDM_ECONFLICT, and nothing changes.
 * @param ret_done false: `to` is no branch that is there, or has what `from` has not, or of another
 *        shape, which no snapshot of the branch could be without: nothing has changed.
 */
esdm_status esdm__branch_adopt(esdm_session *session, const char *from, const char *to,
                               const esdm_meta_seen *seen, bool *ret_done, esdm_error *err);

/** Of a branch that is there and is to be replaced: the new container has another name until it is
 *  committed. @param ret_name `name`, or that one. */
void esdm__branch_over_name(esdm_session *session, const char *name,
                            char ret_name[ESDM_CONTAINER_NAME_MAX + 1]);
/** After each commit of such a container: it becomes a snapshot of its branch, or, where it cannot,
 *  takes its place. */
esdm_status esdm__branch_over_publish(esdm_container *container, esdm_error *err);
/** Whether it was committed, and is only there for that. */
bool esdm__branch_over_is_made(const esdm_container *container);
/** After its handle was freed: it goes. Best effort. @param name its own. */
void esdm__branch_over_end(esdm_session *session, const char *name);

#endif
