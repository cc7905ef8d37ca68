/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_RESTORE_FILE_H
#define ESDM_RESTORE_FILE_H

/** @file Between esdm-restore.c and file.c. */

#include <stdbool.h>

#include "esdm/esdm.h"

typedef enum restore_file {
    RESTORE_FILE_NONE,  /**< nothing stood for the container, or not on this node, or nobody knows
                           where */
    RESTORE_FILE_THERE, /**< something lies there */
    RESTORE_FILE_MOVED, /**< it was moved, and is at `*ret_path` */
    RESTORE_FILE_PUT,   /**< it was missing, and is back */
    RESTORE_FILE_FAILED /**< which was told */
} restore_file;

/** Puts the file back that stood for a container in a folder, where nothing has its name now; the
 *  folder, too. @param dry_run only tells. @param ret_path owned; NULL: none is known. */
restore_file restore_file_put(esdm_session *session, const char *name, bool dry_run,
                              char **ret_path);

/** Where the file lies now that stood for a container in a folder. NULL: nowhere below the folder
 *  above that one, as far as can be seen (moved.c). Borrowed. @param number of the file */
const char *restore_moved_to(const char *folder, const char *name, uint64_t number);

#endif
