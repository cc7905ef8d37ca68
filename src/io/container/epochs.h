/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_EPOCHS_H
#define ESDM_IO_CONTAINER_EPOCHS_H

/**
 * @file
 * Order of the writes of several ranks to one dataset between two commits.
 *
 * A collective call may *cut*: what any rank wrote before is older than what any rank writes after
 * it. Between two cuts (in an *epoch*) the higher rank is newer. All ranks cut the same datasets at
 * the same calls, so they count the same epochs; a rank knows how many of its pending fragments
 * belong to each. From these numbers of all ranks follows the order of every fragment in the commit
 * (collective_order.c).
 *
 * Threads: the dataset's write lock.
 */

#include "model/box.h"

typedef struct esdm__epoch_hulls {
    esdm__box written;  /* since the last cut */
    esdm__box unshared; /* what the other ranks do not know */
} esdm__epoch_hulls;

typedef struct esdm__epochs {
    uint32_t *cuts; /* pending fragments of this rank at each cut; owned; rising */
    uint32_t count; /* of cuts */
    uint32_t capacity;
    uint32_t shared;          /* pending fragments that the other ranks know (collective_share.c) */
    bool open;                /* something was written since the last cut */
    bool unshared;            /* something was written that the other ranks do not know yet */
    esdm__epoch_hulls *hulls; /* owned; there when `open` or `unshared` */
} esdm__epochs;

/** Makes room for esdm__epochs_note(), which then cannot fail. false: out of memory. */
bool esdm__epochs_reserve(esdm__epochs *epochs);
/** Notes a write of this rank. */
void esdm__epochs_note(esdm__epochs *epochs, const esdm_dataspace *space);
/** Begins an epoch after `pending` fragments. false: out of memory, but the epoch is counted. */
bool esdm__epochs_cut(esdm__epochs *epochs, uint32_t pending);
/** The pending fragment `number` is gone, and those after it have lower numbers. */
void esdm__epochs_drop(esdm__epochs *epochs, uint32_t number);
/** Forgets everything: it was committed. */
void esdm__epochs_clear(esdm__epochs *epochs);

#endif
