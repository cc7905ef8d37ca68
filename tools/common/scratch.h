/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOL_SCRATCH_H
#define ESDM_TOOL_SCRATCH_H

/** @file Containers that a tool makes for the time of its run, and what is left of those that were
 *  ended. Their folder has a name that tells whose it is. */

#include "common/common.h"

/** A folder for this process, below ESDM_SCRATCH_FOLDER; g_free(). */
char *tool_scratch_folder(void);
/** Removes what was left by processes that are gone: here those that do not run any more, of other
 *  nodes (or from before this one was started) what nobody has written to for a week.
 *  @param remove false: only count. @param ret_count containers. */
esdm_status tool_scratch_sweep(esdm_session *session, bool remove, guint *ret_count,
                               esdm_error *err);
/**
 * Removes what esdm-cp and esdm-ref had made when they were ended before it got its name.
 * @param age_s what somebody has written to since stays. Of other nodes a week at least.
 * @param remove false: only count. @param ret_count containers.
 */
esdm_status tool_unfinished_sweep(esdm_session *session, uint64_t age_s, bool remove,
                                  guint *ret_count, esdm_error *err);
/** The same of what programs had made that were ended while they wrote a branch anew as a whole.
 *  Looks at the names of all containers. */
esdm_status tool_left_sweep(esdm_session *session, uint64_t age_s, bool remove, guint *ret_count,
                            esdm_error *err);
/** Branches in which a process has had others write (esdm.gather() of Python), and that was ended
 *  before it merged them: removed as by esdm-rm, so that the site keeps them for a while.
 *  @param age_s, remove, ret_count as above. */
esdm_status tool_gathers_sweep(esdm_session *session, uint64_t age_s, bool remove, guint *ret_count,
                               esdm_error *err);

#endif
