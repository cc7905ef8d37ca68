/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_SIGV4_H
#define ESDM_BACKEND_S3_SIGV4_H

/**
 * @file
 * AWS Signature Version 4 (AWS4-HMAC-SHA256) for requests that carry their signature in headers.
 * As documented in the Amazon S3 API reference, "Authenticating Requests".
 *
 * Pure but for the signing key that a signer keeps for the day. Threads: a signer belongs to one.
 */

#include <stdbool.h>

#include "base/buffer.h"
#include "esdm/status.h"

#define S3__SHA256_BYTES 32
/** Hex digits and NUL. */
#define S3__SHA256_TEXT (2 * S3__SHA256_BYTES + 1)
/** "20130524T000000Z" and NUL. */
#define S3__TIME_TEXT        17
#define S3__UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD"

/** A query parameter, or a header with a lower-case name. */
typedef struct s3__pair {
    const char *name;
    const char *value;
} s3__pair;

typedef struct s3__signer {
    const char *access_key; /* borrowed */
    const char *secret_key; /* borrowed */
    const char *region;     /* borrowed */
    const char *service;    /* "s3"; borrowed */
    char day[9];            /* of `key`; "": none yet */
    uint8_t key[S3__SHA256_BYTES];
} s3__signer;

/** What is signed. All borrowed. */
typedef struct s3__signable {
    const char *method;
    const char *path;  /* encoded: s3__encode() */
    const char *query; /* canonical: s3__canonical_query() */
    const s3__pair *headers;
    size_t nheaders;          /* at most S3__HEADERS_MAX; any order; the host must be among them */
    const char *payload_hash; /* hex, or S3__UNSIGNED_PAYLOAD */
    const char *time;         /* "20130524T000000Z" */
} s3__signable;

#define S3__HEADERS_MAX 16

/** Appends "a=1&b=" from parameters in any order; at most S3__HEADERS_MAX. No NUL. */
void s3__canonical_query(esdm__buffer *out, const s3__pair *parameters, size_t nparameters);
/** False: the library has no SHA-256. */
/** Whether an ETag, in quotes or not, is the MD5 of the bytes; true as well where MD5 is forbidden.
 */
bool s3__etag_is_md5(const char *etag, const void *data, size_t bytes);
bool s3__sha256_hex(const void *data, size_t bytes, char ret_hex[S3__SHA256_TEXT]);
/** UTC, for `time` of a signable. */
void s3__format_time(int64_t seconds, char ret_time[S3__TIME_TEXT]);

/**
 * The value of the header "authorization".
 * @param out receives it, with NUL; must be empty.
 * @return ESDM_ENOMEM, or ESDM_ENOTSUP without HMAC-SHA256.
 */
esdm_status s3__sign(s3__signer *signer, const s3__signable *request, esdm__buffer *out,
                     esdm_error *err);

#endif
