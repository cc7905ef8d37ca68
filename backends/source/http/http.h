/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_HTTP_H
#define ESDM_BACKEND_HTTP_H

/** @file What the files of the plug-in share. */

#include <curl/curl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "credentials.h"
#include "esdm/sys/source.h"
#include "hedge.h"

#define HTTP__IDLE_MAX 32u
/** Of objects up to that a server without ranges may send all for a part of it. */
#define HTTP__WHOLE_BYTES (UINT64_C(16) << 20)

/** What lies below a URL is asked for with a signature of S3. */
typedef struct http__place {
    char *url;   /* owned */
    char *sigv4; /* "aws:amz:REGION:s3"; owned */
    s3__credentials keys;
    esdm_error problem; /* when there are none, what is said of that */
} http__place;

/** Connections that one thread uses at a time. */
typedef struct http__line {
    CURLM *multi; /* has the connections */
    CURL *easy;
    CURL *second; /* of a request that is asked for twice; NULL: none was so far */
} http__line;

/** A handle of the plug-in. */
typedef struct http__source {
    uint64_t timeout_ms;
    bool hedge;          /* reads that wait unusually long are asked for a second time */
    char *ca_file;       /* owned; NULL: the system's */
    http__place *places; /* owned */
    size_t nplaces;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    http__line *idle[HTTP__IDLE_MAX];
    uint32_t nidle;
    uint64_t random;
    s3__hedges hedges;
} http__source;

/** One question, and what was answered. */
typedef struct http__request {
    /* Set by the caller; borrowed. */
    const char *url;
    const esdm_source_state *was; /* NULL: whatever it is */
    bool head;                    /* no contents */
    bool ranged;
    uint64_t position; /* of a ranged one */
    size_t bytes;      /* of the buffer; without one: most that is taken */
    uint8_t *buffer;   /* NULL: `body` takes what comes */

    /* Set by http__ask(). */
    const http__place *place; /* whose keys sign it; NULL: it is not signed */

    /* The answer. */
    esdm__buffer body;
    size_t received;
    uint64_t passed; /* bytes before the range that a server without ranges sent */
    long status;
    uint64_t length;    /* of the whole object; UINT64_MAX: not said */
    uint64_t begin;     /* of what came */
    bool has_range;     /* it said which part came */
    bool too_much;      /* more came than was asked for, and was not taken */
    bool encoded;       /* it is compressed on its way */
    int64_t modified_s; /* -1: not said */
    int64_t date_s;     /* -1: not said */
    char etag[200];     /* "": none, or too long */
    char location[300]; /* where it is said to be */
    uint64_t asked_ms;  /* Retry-After */
    uint64_t first_ms;  /* when its first byte came, by http__now_ms(); 0: none did */
    char why[CURL_ERROR_SIZE];
} http__request;

/** Reads "s3" of the configuration, and finds the keys. (places.c) */
esdm_status http__places_open(http__source *source, const json_t *said, esdm_error *err);
void http__places_close(http__source *source);
/** NULL: an object at that URL is asked for without a signature. */
const http__place *http__place_of(const http__source *source, const char *url);

/** A URL as S3 reads it when it checks a signature: all but letters, digits, "-._~" and "/" of its
 *  path is escaped. Owned, free(); NULL: no memory. */
char *http__signed_url(const char *url);

/** One request on its way. */
typedef struct http__transfer {
    http__request *request; /* borrowed */
    CURL *easy;             /* borrowed from the line */
    struct curl_slist *headers;
    bool under_way;
    CURLcode code; /* when it is not */
} http__transfer;

uint64_t http__now_ms(void);
/** Makes the handle ask what the request says; http__transfer_end(), also after a failure. It stays
 *  where it is until then. */
void http__transfer_prepare(const http__source *source, http__transfer *transfer, uint64_t left_ms);
void http__transfer_end(http__transfer *transfer);
/** One attempt. A ranged request with a buffer that waits unusually long for its first byte is sent
 *  once more over another connection; the first answer that is whole counts. (twice.c)
 *  @param once it is not, whatever happens. */
CURLcode http__perform(http__source *source, http__line *line, http__request *request, bool once,
                       uint64_t left_ms);
/** NULL: no memory. Libraries move descriptors: the caller says so. */
http__line *http__line_new(void);
void http__line_free(http__line *line);

/** Asks until it is answered, or there is no time left. Any answer but those that say "later" is
 *  ESDM_OK. */
esdm_status http__ask(http__source *source, http__request *request, esdm_error *err);
/** What an answer that is none of the wanted ones means. */
esdm_status http__refuse(const http__request *request, esdm_error *err);
/** Whether the answer is about the object that was asked for. */
esdm_status http__compare(const http__request *request, esdm_error *err);
/** Whether an answer to a ranged request has what was asked for, of that object. */
esdm_status http__check_part(const http__request *request, esdm_error *err);
/** What the object is. */
esdm_status http__describe(const http__request *request, esdm_source_state *ret_state,
                           esdm_error *err);

#endif
