/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_FRAGMENT_H
#define ESDM_LAYOUT_FRAGMENT_H

/** @file The record of one fragment. */

#include "base/statistics.h"
#include "model/box.h"

/** Sequence numbers of records that are not committed yet: this bit plus the order of writing. */
#define ESDM__SEQUENCE_PENDING (UINT64_C(1) << 63)

/** Names one pack on one target. Interned (see esdm__index_pack): equal packs, equal pointers. */
typedef struct esdm__pack_name {
    const char *target; /* where it lies (layout/places.h): mostly the name of a target */
    const char *pack;
} esdm__pack_name;

/** Where the values of a fragment come from. Numbers are stored; others are of newer programs. */
typedef enum esdm__kind {
    ESDM__KIND_STORED = 0,   /* in a pack; without a pack in the index page ("inline") */
    ESDM__KIND_CONSTANT = 1, /* all elements are equal: one of them is in the index page */
    ESDM__KIND_FOREIGN = 2,  /* bytes of a file or object that stays where it is */
    ESDM__KIND_LINK = 3      /* a region of another dataset */
} esdm__kind;

/** Kinds that this program knows. */
#define ESDM__SOURCE_KINDS 4u

/** A description that records refer to (layout/source.h). Interned as pack names are. */
typedef struct esdm__source {
    uint32_t role;
    uint32_t bytes;
    const uint8_t *data;
} esdm__source;

/** What a record has that is neither in a pack of the site nor in the page; all 0 for others. */
typedef struct esdm__elsewhere {
    const esdm__source *source;   /* the file, or the dataset */
    const esdm__source *decoding; /* how its bytes or elements become ours; NULL: as they are */
    uint64_t check;               /* of a foreign one's bytes */
    uint32_t filter_mask;         /* bit i: filter i of the chain was skipped */
    uint32_t check_kind;          /* layout/source.h */
} esdm__elsewhere;

typedef struct esdm__fragment {
    esdm__box box; /* of a strided one: from its first to its last element */
    /** Newest wins. Committed: snapshot << 32 | order within the commit. */
    uint64_t sequence;
    uint64_t raw_bytes;          /* decoded */
    uint64_t stored_bytes;       /* whole blob: head and payload; inline: length of inline_data */
    uint64_t position;           /* of the blob in its pack, or of the bytes in a foreign file */
    const esdm__pack_name *pack; /* interned, or a copy of a plan's; NULL: in no pack */
    const uint8_t *inline_data;  /* raw bytes kept in the page; borrowed; NULL unless inline; of a
                                    constant one element */
    const uint8_t *outline;      /* of its blob (codec/outline.h); borrowed; NULL: none is known */
    esdm__elsewhere elsewhere;   /* of kinds that are neither stored here nor constant */
    esdm__statistics statistics; /* class ESDM__CLASS_NONE: not known */
    uint32_t head_bytes;         /* of the blob (codec/blob.h); payload follows; 0 when inline */
    uint32_t outline_bytes;
    uint8_t codec_ids[4]; /* the chain, for display; the blob's head decides; 0 = none */
    uint8_t kind;         /* esdm__kind; unknown ones cannot be read, but are kept */
    bool strided;         /* holds every stride[d]-th element from box.lo[d] on, and no other */
    uint64_t stride[ESDM_MAX_RANK]; /* meaningful when strided; 1 where the box has one element */
} esdm__fragment;

/** Whether the values lie where only the engine's source_ops (io/read/elsewhere.h) find them. */
static inline bool
esdm__kind_is_elsewhere(uint8_t kind)
{
    return kind > ESDM__KIND_CONSTANT;
}

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
