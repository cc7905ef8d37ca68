/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_CONTENT_CUTTER_H
#define ESDM_IO_WRITE_CONTENT_CUTTER_H

/**
 * @file
 * Cuts a write along one dimension where its values say so, and not at multiples of a length: what
 * was written before and has moved along, as some elements were put in or left out before it, is
 * cut as it was, and found again by de-duplication ("dedup": "content").
 *
 * That is along the slowest dimension where what lies behind one of its indices, a *row*, is small:
 * a value, the components of a particle, the cells of a patch. Where rows are large and the slowest
 * dimensions are short (components, levels) each of their indices is a list of its own, along the
 * next one. Fields with long rows are cut as without it.
 *
 * Where to cut a hash tells over the last 64 bytes (a "gear" hash: h = 2h + table[byte]), looked at
 * between two rows: its upper bits are zero in one of so many places that pieces have
 * CONTENT_BYTES on average, at least a fourth and at most four times of that. The table is of
 * splitmix64, so all sites cut alike; another way to cut would be right, but find nothing of what
 * was stored before. Threads: one.
 */

#include "io/container/transfer.h"
#include "model/box.h"

/** Of a piece, on average. */
#define ESDM__CONTENT_BYTES (UINT64_C(64) << 10)

typedef struct esdm__content_cutter {
    const esdm__transfer *transfer; /* borrowed, and so is the box */
    const esdm__box *box;
    uint32_t axis;                /* along which it is cut */
    uint64_t list[ESDM_MAX_RANK]; /* indices of slower axes, from the begin of the box */
    uint64_t next;                /* first row of the list that is not cut yet */
    bool done;
    uint64_t row;   /* bytes */
    uint64_t least; /* rows of a piece */
    uint64_t most;
    uint64_t mask; /* bits of the hash that are zero at a cut */
    uint8_t *copy; /* owned; of `most` rows in the engine's form */
    uint64_t gear[256];
} esdm__content_cutter;

/** Whether a write can be cut so: small rows, elements of one size. */
bool esdm__content_can_cut(const esdm__transfer *transfer, const esdm__box *box);
/** @return ESDM_ENOMEM. */
esdm_status esdm__content_cutter_init(esdm__content_cutter *cutter, const esdm__transfer *transfer,
                                      const esdm__box *box, esdm_error *err);
bool esdm__content_cutter_next(esdm__content_cutter *cutter, esdm__box *ret_fragment);
/** Also after a failed init. */
void esdm__content_cutter_clear(esdm__content_cutter *cutter);

#endif
