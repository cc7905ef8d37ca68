/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_RETRY_H
#define ESDM_BACKEND_S3_RETRY_H

/**
 * @file
 * Which failures are worth another attempt, and when. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

/** Whether another attempt may succeed after libcurl's code (CURLcode; 0 is none of its own). */
bool s3__retry_transport(int curl_code);
/** The same for an answer. @param code of the S3 error, "" when the answer had none. */
bool s3__retry_answer(long http_status, const char *code);
/**
 * Milliseconds to wait before attempt `attempt` (1: the first repetition): doubling from 100 ms to
 * 8 s, of which the upper half is left to chance, so that many clients do not come back at once.
 * @param asked_ms what the server asked for in Retry-After; kept, up to 30 s. @param random any.
 */
uint32_t s3__retry_wait_ms(uint32_t attempt, uint64_t asked_ms, uint64_t random);

#endif
