/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_CORES_H
#define ESDM_BASE_CORES_H

/**
 * @file
 * How many threads can run at once.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/** Cores that this process may use (its affinity: what a batch system bound it to), 1 to `most`. */
uint32_t esdm__usable_cores(uint32_t most);
/** Cores that the calling thread may use, and those of them on which it does not run at the moment.
 *  @return whether there are such, and this is known. */
bool esdm__other_cores(cpu_set_t *ret_usable, cpu_set_t *ret_others);

#endif
