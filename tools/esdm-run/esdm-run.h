/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_RUN_H
#define ESDM_RUN_H

/** @file Parts of esdm-run: libraries to preload, variables, what a program is told. */

#include <stdbool.h>

/** Adds a library to $LD_PRELOAD unless it is there: behind what there is, but before a libnetcdf.
 *  False when out of memory. */
bool preload_add(const char *library);

#endif
