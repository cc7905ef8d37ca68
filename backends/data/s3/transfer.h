/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_TRANSFER_H
#define ESDM_BACKEND_S3_TRANSFER_H

/**
 * @file
 * One request on the wire, attempt after attempt. Threads: that of its lane alone.
 */

#include <curl/curl.h>

#include "client.h"

typedef struct s3__transfer {
    s3__request *request;
    CURL *easy; /* of the attempt under way, else NULL */
    struct curl_slist *headers;
    char *url;
    char why[CURL_ERROR_SIZE];
    char region[64];       /* header x-amz-bucket-region of the last answer */
    size_t sent;           /* bytes of the body */
    size_t segment;        /* index of the segment being filled */
    uint64_t segment_used; /* bytes of it */
    uint64_t received;     /* bytes of the range */
    uint64_t object_bytes; /* header content-range; UINT64_MAX: not said */
    uint64_t range_begin;  /* header content-range */
    bool ranged;           /* there was such a header */
    bool overflow;         /* more came than asked for */
    bool dated;            /* there was a header "date" */
    int64_t skew_s;
    uint64_t asked_ms;    /* header retry-after */
    uint64_t first_ms;    /* monotonic time of the first attempt */
    uint64_t due_ms;      /* of the next one */
    uint64_t begun_ms;    /* this attempt */
    uint64_t answered_ms; /* its first byte; 0: none yet */
    uint64_t look_ms;     /* when it is looked at again, as it is late; 0: not yet */
    bool late;            /* and counts as such */
    bool asked_twice;
    struct s3__transfer *second; /* asks for the same; NULL: nobody does */
    struct s3__transfer *first;  /* of a second one */
    struct s3__transfer *next;
} s3__transfer;

/** The monotonic clock. */
uint64_t s3__now_ms(void);
/** Prepares the handle for the next attempt. ESDM_ENOMEM, ESDM_ENOTSUP. */
esdm_status s3__transfer_prepare(s3__transfer *transfer, const s3__options *options,
                                 const s3__credentials *credentials, s3__signer *signer, CURL *easy,
                                 esdm_error *err);
/** Looks at an attempt that has ended: fills the request's results.
 *  @return whether another attempt may help. */
bool s3__transfer_judge(s3__transfer *transfer, const s3__options *options,
                        const s3__credentials *credentials, CURLcode code);
/** Frees what an attempt needed; `easy` stays the lane's. */
void s3__transfer_end_attempt(s3__transfer *transfer);

#endif
