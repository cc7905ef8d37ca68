/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_SQLITE_LOG_WRITES_H
#define ESDM_BACKEND_SQLITE_LOG_WRITES_H

/**
 * @file
 * The pages that a transaction adds to the log, by one call instead of two for each.
 */

#include "sql.h"

/** Takes over the calls by which SQLite writes, reads and locks. Once, before any file is open. */
void sqlite__log_install(sqlite3_vfs *vfs);
/** SQLite has opened a file, and is about to close it. Any thread.
 *  @param path as SQLite says it. */
void sqlite__log_opened(const char *path, int fd);
void sqlite__log_closing(int fd);

#endif
