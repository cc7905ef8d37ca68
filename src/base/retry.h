/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_RETRY_H
#define ESDM_BASE_RETRY_H

/** @file When a server that failed is asked again. Pure. */

#include <stdbool.h>
#include <stdint.h>

/** Whether another attempt may succeed after an answer with that status of HTTP. */
bool esdm__retry_http(long status);
/**
 * Milliseconds to wait before attempt `attempt` (1: the first repetition): doubling from 100 ms to
 * 8 s, of which the upper half is left to chance, so that many clients do not come back at once.
 * @param asked_ms what the server asked for in Retry-After; kept, up to 30 s. @param random any.
 */
uint32_t esdm__retry_wait_ms(uint32_t attempt, uint64_t asked_ms, uint64_t random);

#endif
