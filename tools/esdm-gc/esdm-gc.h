/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_GC_H
#define ESDM_TOOLS_GC_H

/** @file Containers whose stub file was removed. */

#include "common/common.h"

/**
 * Finds the containers of routed folders that no stub file names any more. Whatever cannot be
 * looked at is an error, and so is a folder without any stub: it may not be mounted.
 * @param folders "FOLDER", or "FOLDER=NAME" as in ESDM_NC_ROUTE; NULL-terminated.
 * @param age_s containers that were committed to within this time are left out, and counted.
 * @param ret_names owned.
 */
tool_exit gc_find_stubless(esdm_session *session, char **folders, uint64_t age_s,
                           GPtrArray **ret_names, guint64 *ret_young);

#endif
