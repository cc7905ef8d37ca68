/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_SQLITE_FILES_H
#define ESDM_BASE_SQLITE_FILES_H

/** @file Files that SQLite opens, out of the way of the program. The metadata store `sqlite`, which
 *  is part of libesdm, has the function; the monitor's databases call it, too. */

/** Makes the SQLite in libesdm open its files under high numbers from now on. Any thread. */
void esdm__sqlite_high_descriptors(void);

#endif
