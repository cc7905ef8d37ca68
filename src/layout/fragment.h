/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_FRAGMENT_H
#define ESDM_LAYOUT_FRAGMENT_H

/** @file The record of one fragment. */

#include "model/box.h"

/** Sequence numbers of records that are not committed yet: this bit plus the order of writing. */
#define ESDM__SEQUENCE_PENDING (UINT64_C(1) << 63)

/** Names one pack on one target. Interned (see esdm__index_pack): equal packs, equal pointers. */
typedef struct esdm__pack_name {
    const char *target; /* where it lies (layout/places.h): mostly the name of a target */
    const char *pack;
} esdm__pack_name;

typedef struct esdm__fragment {
    esdm__box box; /* of a strided one: from its first to its last element */
    /** Newest wins. Committed: snapshot << 32 | order within the commit. */
    uint64_t sequence;
    uint64_t raw_bytes;          /* decoded */
    uint64_t stored_bytes;       /* whole blob: head and payload; inline: length of inline_data */
    uint64_t position;           /* of the blob in its pack */
    const esdm__pack_name *pack; /* interned; NULL: inline */
    const uint8_t *inline_data;  /* raw bytes kept in the page; borrowed; NULL unless inline */
    uint32_t head_bytes;         /* of the blob (codec/blob.h); payload follows; 0 when inline */
    uint8_t codec_ids[4];        /* the chain, for display; the blob's head decides; 0 = none */
    bool strided; /* holds every stride[d]-th element from box.lo[d] on, and no other */
    uint64_t stride[ESDM_MAX_RANK]; /* meaningful when strided; 1 where the box has one element */
} esdm__fragment;

/** Elements that the fragment holds along each axis; they lie in C order. */
static inline void
esdm__fragment_counts(const esdm__fragment *fragment, uint64_t *ret_counts)
{
    for (uint32_t d = 0; d < fragment->box.rank; d++)
        ret_counts[d] = fragment->strided ? (fragment->box.n[d] - 1) / fragment->stride[d] + 1
                                          : fragment->box.n[d];
}

/** Number of elements; UINT64_MAX when it does not fit. */
static inline uint64_t
esdm__fragment_elements(const esdm__fragment *fragment)
{
    esdm__box counts = {.rank = fragment->box.rank};
    esdm__fragment_counts(fragment, counts.n);
    return esdm__box_elements(&counts);
}

#endif
