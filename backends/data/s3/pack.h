/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_S3_PACK_H
#define ESDM_BACKEND_S3_PACK_H

/** @file A pack that is being written: what pack.c (filling, sending) and seal.c (ending) share. */

#include "base/ids.h"
#include "s3.h"

/* A part that was sent. */
typedef struct s3__part {
    struct s3__part *next; /* of those under way */
    s3__request request;
    uint8_t *data; /* owned */
    size_t capacity;
    uint32_t number; /* from 1 */
    char number_text[12];
    char etag[S3__ETAG_BYTES];
} s3__part;

typedef struct s3__pack {
    s3__target *target;
    s3__client *client; /* of the process that created the pack */
    s3__gate gate;
    uint64_t length_bytes;
    uint64_t filling_bytes; /* of the target's, while it is appended to */
    uint8_t *tail;          /* the part being filled */
    size_t tail_bytes;
    size_t tail_capacity;
    char *upload_id;     /* NULL: no part was sent yet */
    s3__request *put;    /* of the whole pack, under way; owned */
    bool conditional;    /* it is refused when there is an object of the name */
    s3__part *under_way; /* oldest first */
    s3__part **under_way_end;
    unsigned nunder_way;
    s3__part **parts; /* by number - 1; owned */
    uint32_t nparts;
    size_t parts_capacity;
    esdm_error failure; /* of a part: the pack is lost */
    char writer[ESDM__UUID_BYTES];
    char key[S3__KEY_BYTES];
} s3__pack;

/** Remembers the first failure: the pack is lost. @return `status`. */
esdm_status s3__pack_fail(s3__pack *to, esdm_status status, const esdm_error *why);
/** The failure that was remembered. */
esdm_status s3__pack_failed(const s3__pack *to, esdm_error *err);
/** Sends the part that is being filled. */
esdm_status s3__send_tail(s3__pack *to, esdm_error *err);
/** Ends all parts under way, at once with `cancel`. Their failures are the pack's. */
void s3__end_all_parts(s3__pack *to, bool cancel);
/** Nothing more is appended. */
void s3__stop_filling(s3__pack *of);
/** Frees the part that is being filled. */
void s3__free_tail(s3__pack *to);

#endif
