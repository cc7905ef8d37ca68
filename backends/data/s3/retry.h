/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_RETRY_H
#define ESDM_BACKEND_S3_RETRY_H

/**
 * @file
 * Which failures are worth another attempt (base/retry.h says when). Pure.
 */

#include <stdbool.h>
#include <stdint.h>

/** Whether another attempt may succeed after libcurl's code (CURLcode; 0 is none of its own). */
bool s3__retry_transport(int curl_code);
/** The same for an answer. @param code of the S3 error, "" when the answer had none. */
bool s3__retry_answer(long http_status, const char *code);

#endif
