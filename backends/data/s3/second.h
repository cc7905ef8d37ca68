/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_SECOND_H
#define ESDM_BACKEND_S3_SECOND_H

/**
 * @file
 * A GET that is asked for a second time, while the first request waits: a request of its own, with
 * memory and results of its own, so that answers cannot mix. Threads: that of their lane alone.
 */

#include "transfer.h"

/** Whether a request may be asked for twice: a GET of an object. */
bool s3__second_fits(const s3__request *request);
/** Links the two; the new one is prepared and sent as any other. NULL: out of memory. */
s3__transfer *s3__second_new(s3__transfer *first);
/** Its answer, which is whole, becomes the first one's, which takes nothing from the wire any more.
 */
void s3__second_deliver(s3__transfer *second);
/** Unlinks and frees it. It is not under way any more. */
void s3__second_free(s3__transfer *second);

#endif
