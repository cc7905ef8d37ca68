/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_FRAGMENT_H
#define ESDM_LAYOUT_FRAGMENT_H

/** @file The record of one fragment. */

#include "model/box.h"

/** Sequence numbers of records that are not committed yet: this bit plus the order of writing. */
#define ESDM__SEQUENCE_PENDING (UINT64_C(1) << 63)

/** Names one pack on one target. Interned (see esdm__index_pack): equal packs, equal pointers. */
typedef struct esdm__pack_name {
    const char *target; /* name of the target in the site configuration */
    const char *pack;
} esdm__pack_name;

typedef struct esdm__fragment {
    esdm__box box;
    /** Newest wins. Committed: snapshot << 32 | order within the commit. */
    uint64_t sequence;
    uint64_t raw_bytes;          /* decoded */
    uint64_t stored_bytes;       /* whole blob: head and payload; inline: length of inline_data */
    uint64_t position;           /* of the blob in its pack */
    const esdm__pack_name *pack; /* interned; NULL: inline */
    const uint8_t *inline_data;  /* raw bytes kept in the page; borrowed; NULL unless inline */
    uint32_t head_bytes;         /* of the blob (codec/blob.h); payload follows; 0 when inline */
    uint8_t codec_ids[4];        /* the chain, for display; the blob's head decides; 0 = none */
} esdm__fragment;

#endif
