/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_PROCESS_PLACE_H
#define ESDM_BASE_PROCESS_PLACE_H

/** @file Where numbers of processes mean something. */

#include <stdint.h>

/** A hash of the node, of when it was started, and of the namespace of processes: where it differs,
 *  equal numbers are other processes. Any thread. */
uint32_t esdm__process_place(void);

#endif
