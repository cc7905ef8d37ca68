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

#endif
