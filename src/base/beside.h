/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_BESIDE_H
#define ESDM_BASE_BESIDE_H

/** @file Where what belongs to ESDM lies. Any thread. */

#include <limits.h>
#include <stdbool.h>

/** PATH in the folder `esdm` beside the library that this code is in, wherever it was built or
 * installed: plug-ins, and what a wheel carries besides. @param name what lies there, or "" for the
 * folder itself. @return false: not to be told. */
bool esdm__beside_library(const char *name, char ret_path[PATH_MAX]);

#endif
