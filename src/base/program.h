/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_PROGRAM_H
#define ESDM_BASE_PROGRAM_H

/** @file What this program is called, by those who run it. */

#include <stdbool.h>

/** "ncks"; of an interpreter with what it runs, without folders: "python3 plot.py". Owned by the
 *  caller; NULL when out of memory. Threads: any.
 *  @param with_code whether what follows `-c` or `-e` counts as what it runs. */
char *esdm__program_name(bool with_code);

#endif
