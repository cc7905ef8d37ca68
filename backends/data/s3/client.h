/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_CLIENT_H
#define ESDM_BACKEND_S3_CLIENT_H

/**
 * @file
 * Sends requests to one S3 server: many at once over connections that are kept, each repeated with
 * growing pauses when its failure looks transient, all within the target's time limit.
 *
 * Few threads of the client drive them (lane.h); each starts when it is first needed. Callers wait,
 * or come back later.
 * Threads: a client is used by many at once. A request belongs to one caller, and to the client
 * from s3__submit() until it is done.
 */

#include <pthread.h>

#include "base/buffer.h"
#include "options.h"
#include "sigv4.h"

typedef struct s3__client s3__client;

/** Where requests of one caller report that they are done. Guarded by the client's lock. */
typedef struct s3__gate {
    pthread_cond_t done;
} s3__gate;

/** Part of a ranged answer. A NULL buffer passes over a gap. */
typedef struct s3__segment {
    void *buffer; /* borrowed */
    uint64_t bytes;
} s3__segment;

enum { S3__QUERY_MAX = 6, S3__EXTRA_HEADERS_MAX = 3, S3__CODE_BYTES = 64, S3__ETAG_BYTES = 128 };

typedef struct s3__request {
    /* Set by the caller; all borrowed until the request is done. */
    const char *doing;  /* for messages: "write" */
    const char *method; /* static */
    const char *key;    /* of the object; NULL: the bucket itself */
    s3__pair query[S3__QUERY_MAX];
    size_t nquery;
    s3__pair headers[S3__EXTRA_HEADERS_MAX]; /* lower case, signed */
    size_t nheaders;
    const void *body;
    size_t body_bytes;
    s3__segment *segments; /* of a ranged GET; together as long as the range; they are used up */
    size_t nsegments;
    uint64_t range_from;
    uint64_t range_bytes; /* > 0: a ranged GET */
    uint32_t limit_ms;    /* 0: the target's time limit */
    uint32_t patience_ms; /* what an attempt may take on top, for work on the server's side */

    /* Set by the client, valid when it is done. */
    esdm_status status;
    esdm_error error;
    long http_status; /* of the last answer; 0: none came */
    uint32_t attempts;
    char code[S3__CODE_BYTES];   /* of the S3 error, "" */
    char etag[S3__ETAG_BYTES];   /* with its quotes */
    char writer[S3__ETAG_BYTES]; /* header x-amz-meta-esdm-writer */
    bool encrypted;              /* by a key of its own: the ETag is no MD5 then */
    double ended_s;              /* CLOCK_MONOTONIC */
    uint64_t content_bytes;      /* header content-length */
    esdm__buffer answer;         /* owned; body of what is no ranged GET */

    /* The client's own. */
    struct s3__transfer *transfer;
    struct s3__lane *lane; /* that has it; NULL: none */
    s3__gate *gate;
    bool done;
    bool canceled;
    char payload_hash[S3__SHA256_TEXT];
} s3__request;

/** @param options,credentials borrowed by the client. NULL: out of memory. */
s3__client *s3__client_new(const s3__options *options, const s3__credentials *credentials);
/** No request may be under way. In a forked child only forgets. NULL is accepted. */
void s3__client_free(s3__client *client);
/** Whether it was made by this process, and not by the one that forked it. */
bool s3__client_is_ours(const s3__client *client);
/** What the server's clock is ahead of ours, from its last answer, in seconds. */
int64_t s3__client_skew_s(s3__client *client);

/** Second requests so far, and those of them that gave the answer (hedge.h). */
void s3__client_second_requests(s3__client *client, uint64_t *ret_sent, uint64_t *ret_used);

void s3__gate_init(s3__gate *gate);
void s3__gate_clear(s3__gate *gate);

/**
 * Starts a request; hashes its body first where the target signs bodies.
 * @param gate must live until the request is done.
 * On failure (ESDM_ENOMEM, ESDM_EINVAL in a forked child) the request is done, with that status.
 */
void s3__submit(s3__client *client, s3__gate *gate, s3__request *request);
/** Waits for it. @return its status, `err` filled from it. */
esdm_status s3__wait(s3__client *client, s3__request *request, esdm_error *err);
bool s3__is_done(s3__client *client, const s3__request *request);
/** Makes it end soon, with ESDM_ECANCELED unless it was done already. It must still be waited for.
 */
void s3__cancel(s3__client *client, s3__request *request);
/** s3__submit() and s3__wait(). */
esdm_status s3__perform(s3__client *client, s3__request *request, esdm_error *err);
/** Frees what an ended request owns. */
void s3__request_clear(s3__request *request);

#endif
