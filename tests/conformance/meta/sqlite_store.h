/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_CONFORMANCE_SQLITE_STORE_H
#define ESDM_TESTS_CONFORMANCE_SQLITE_STORE_H

/** @file The files of the store "sqlite", for tests of it alone. */

#include "meta.h"

/** Whether it is the store under test. */
bool sqlite_is_tested(void);
/** Path of the database, or with `suffix` of a file beside it. */
void sqlite_path(const fixture *f, const char *suffix, char path[300]);
/** Runs statements on a connection of its own, which knows nothing of ESDM. */
void sqlite_run(const fixture *f, const char *sql);
/** The same, and whatever comes of it: an SQLite result code. */
int sqlite_try(const fixture *f, const char *sql);
/** The same for a query of one number. */
int64_t sqlite_number(const fixture *f, const char *sql);

#endif
