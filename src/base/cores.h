/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_CORES_H
#define ESDM_BASE_CORES_H

/**
 * @file
 * How many threads can run at once.
 */

#include <stdint.h>

/** Cores that this process may use (its affinity: what a batch system bound it to), 1 to `most`. */
uint32_t esdm__usable_cores(uint32_t most);

#endif
