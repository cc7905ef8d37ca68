/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_PARENT_H
#define ESDM_BASE_PARENT_H

/** @file Whether a directory could be made, as far as that can be told without making it. */

#include "esdm/status.h"

/**
 * Looks at the nearest parent that exists, or at the directory itself: whether this process may
 * make entries in it, and whether it is a place for data at all.
 * @param path of the configuration, for messages.
 */
esdm_status esdm__parent_check(const char *path, const char *directory, esdm_error *err);

/** Flushes the directory in which `path` was made: its entry must survive a power failure as what
 * is stored in it does. Best effort: a directory that cannot be read cannot be flushed. */
void esdm__sync_parent(const char *path);

#endif
