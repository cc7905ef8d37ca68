/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_FAKE_CORE_H
#define ESDM_TESTS_FAKE_CORE_H

/** @file What the parts of the dispatcher without libesdm share. */

#include <netcdf.h>
#include <netcdf_dispatch.h>

/** Appends a line to $FAKE_CORE_LOG. */
__attribute__((format(printf, 1, 2))) void fake_record(const char *format, ...);
/** All calls of an empty dataset but for those that open and close it; others are refused. */
void fake_table_fill(NC_Dispatch *table);

#endif
