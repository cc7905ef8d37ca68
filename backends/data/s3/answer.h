/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_ANSWER_H
#define ESDM_BACKEND_S3_ANSWER_H

/** @file What servers answer, in words: which status, what it means here, what to do. Pure. */

#include "options.h"

/** A failed answer. Texts are the server's: anything may stand in them. */
typedef struct s3__failure {
    const char *doing; /* "write" */
    const char *key;   /* NULL: the bucket */
    long http_status;
    const char *code;    /* of the S3 error; "": none */
    const char *message; /* of the S3 error; "" */
    const char *region;  /* where the bucket lies, if the answer says so; "" */
    int64_t skew_s;      /* the server's clock minus ours */
    uint32_t attempts;
} s3__failure;

/** The error object of an S3 error document, "" where it has none. */
typedef struct s3__error_document {
    char code[64];
    char message[200];
    char region[64];
} s3__error_document;

/** Reads what can be read of a body; all texts are printable ASCII and without secrets then. */
void s3__error_read(const s3__credentials *credentials, const void *body, size_t bytes,
                    s3__error_document *ret_document);

/** Fills `err`, and returns the status that fits. */
esdm_status s3__describe(const s3__options *options, const s3__credentials *credentials,
                         const s3__failure *failure, esdm_error *err);
/** The same for a request that got no answer. @param why libcurl's text. */
esdm_status s3__describe_transport(const s3__options *options, const s3__credentials *credentials,
                                   const s3__failure *failure, int curl_code, const char *why,
                                   esdm_error *err);
/** Overwrites every occurrence of a secret with asterisks: whatever a server sends back. */
void s3__scrub(const s3__credentials *credentials, char *text);

#endif
