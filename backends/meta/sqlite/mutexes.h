/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_SQLITE_MUTEXES_H
#define ESDM_BACKEND_SQLITE_MUTEXES_H

/** @file Mutexes of the SQLite in libesdm. */

#include <sqlite3.h>

/** Gives SQLite these mutexes, unless it is in use already. */
void sqlite__mutexes_install(void);

#endif
