/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_UPKEEP_DEDUP_LIST_H
#define ESDM_UPKEEP_DEDUP_LIST_H

/** @file The stored fragments of the containers that are asked for, each once, by pack and
 * position; which of them are equal is found out and done in dedup.c. One thread. */

#include "base/numbered.h"
#include "layout/packs.h"
#include "upkeep/dedup_wish.h"
#include "upkeep/upkeep.h"

/** No blob. */
#define ESDM__DEDUP_NONE UINT32_MAX

/** A container that refers to them. */
typedef struct esdm__dedup_holder {
    uint64_t container;
    char *name; /* owned */
    char uuid[ESDM__UUID_BYTES];
    bool keeps; /* it is the first container that refers to a fragment which others may get in place
                   of theirs */
} esdm__dedup_holder;

/** What many fragments have in common: their pack, the container that was first seen to refer to
 *  them, and what all containers that refer to them want. */
typedef struct esdm__dedup_origin {
    const esdm__pack_name *pack; /* interned */
    esdm__dedup_wish wish;
    uint32_t places; /* how many */
    uint32_t holder; /* the first that refers to it */
} esdm__dedup_origin;

/** What fragments of one size have in common. */
typedef struct esdm__dedup_shape {
    uint64_t raw_bytes;
    uint32_t head_bytes;
    uint8_t codec_ids[4];
} esdm__dedup_shape;

/** One stored fragment, in 40 bytes: there may be very many. What may be equal is compared byte by
 *  byte, so that 64 bits of the hash are enough. */
typedef struct esdm__dedup_blob {
    uint64_t position;
    uint64_t stored_bytes;
    uint64_t hash;
    uint32_t origin;
    uint32_t shape;
    uint32_t same; /* blob that is named in its place; ESDM__DEDUP_NONE: it stays */
    bool hashed;
    bool kept;  /* named in the place of others */
    bool named; /* seen since nobody removes it */
} esdm__dedup_blob;

/** Bytes of a pack that known fragments have, and how many of these are stored in other packs as
 *  well. */
typedef struct esdm__dedup_load {
    const esdm__pack_name *pack;
    uint64_t bytes;
    uint64_t equal_bytes;
} esdm__dedup_load;

/** Zeroed but for the first three, and `packs`. */
typedef struct esdm__dedup_run {
    esdm_session *session;
    const esdm_dedup_options *options;
    esdm_dedup_result *result;
    esdm__dedup_holder *holders; /* owned */
    size_t nholders;
    bool *shared; /* flag of each holder: the container under way may refer to its packs; owned */
    esdm__dedup_blob *blobs; /* owned */
    size_t nblobs;
    uint32_t *table; /* owned; by pack and position: number of a blob plus 1 */
    size_t slots;
    esdm__numbered origins;  /* esdm__dedup_origin */
    esdm__numbered shapes;   /* esdm__dedup_shape */
    uint32_t *order;         /* owned; blobs by what may make them equal */
    esdm__dedup_load *loads; /* owned; by the address of the name */
    size_t nloads;
    esdm__packs *packs;
} esdm__dedup_run;

static inline const esdm__dedup_origin *
esdm__dedup_origin_of(const esdm__dedup_run *d, const esdm__dedup_blob *blob)
{
    return (const esdm__dedup_origin *) d->origins.items + blob->origin;
}

static inline const esdm__dedup_shape *
esdm__dedup_shape_of(const esdm__dedup_run *d, const esdm__dedup_blob *blob)
{
    return (const esdm__dedup_shape *) d->shapes.items + blob->shape;
}

/** Memory that all that is known of fragments takes, in bytes. */
uint64_t esdm__dedup_bytes(const esdm__dedup_run *d);
/** Lists the containers that are asked for, and their fragments. */
esdm_status esdm__dedup_list(esdm__dedup_run *d, esdm_error *err);
/** Looks again at the fragments of one container: those that are known are marked as named. */
esdm_status esdm__dedup_list_again(esdm__dedup_run *d, uint32_t holder, esdm_error *err);
/** What is known of a fragment; NULL: nothing. */
esdm__dedup_blob *esdm__dedup_blob_of(const esdm__dedup_run *d, const esdm__fragment *fragment);
void esdm__dedup_clear(esdm__dedup_run *d);

#endif
