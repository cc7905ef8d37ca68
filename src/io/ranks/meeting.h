/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_RANKS_MEETING_H
#define ESDM_IO_RANKS_MEETING_H

/**
 * @file
 * Whether a rank is about to transfer elements that another one wrote, so that the order matters.
 * Mostly the ranks see that from the largest values of a few numbers. The order does not matter
 * when nobody has written, when what is written now lies beside all that was written before, or
 * when every rank stays in its *territory*, a part of the dataset that was compared with those of
 * all others before. In other cases claims go up the tree of ranks to rank 0, and are joined where
 * they make larger boxes. Collective; one thread.
 */

#include "comm/tree.h"
#include "model/box.h"

/** Numbers that a meeting needs the largest of. */
enum { ESDM__MEETING_HAS_BOX, ESDM__MEETING_HAS_HULL, ESDM__MEETING_STRAYS, ESDM__MEETING_AXES };
enum { ESDM__MEETING_AXIS_NUMBERS = 4 };

/** What a rank remembers of earlier meetings. */
typedef struct esdm__territory {
    esdm__box box;  /* empty: none; no two ranks' ones share an element */
    uint32_t pause; /* meetings that do not compare territories, after some overlapped; the same on
                       all ranks */
} esdm__territory;

/** What one rank knows. */
typedef struct esdm__meeting {
    uint32_t rank;              /* of the dataset */
    uint32_t unlimited;         /* bits of its axes */
    const esdm__box *box;       /* about to be transferred; NULL: nothing */
    const esdm__box *hull;      /* of what this rank wrote; NULL: nothing */
    esdm__territory *territory; /* in and out; zeroed at first */
} esdm__meeting;

static inline size_t
esdm__meeting_numbers(uint32_t rank)
{
    return ESDM__MEETING_AXES + (size_t) ESDM__MEETING_AXIS_NUMBERS * rank;
}

/** Fills in this rank's numbers; not collective. */
void esdm__meeting_tell(const esdm__meeting *meeting, uint64_t *numbers);
/**
 * What follows from the largest numbers of all ranks.
 * @param ret_meets the same on all ranks; true as well when a rank had no memory to find out, or it
 *        would take too long.
 * @return failures of messages.
 */
esdm_status esdm__meeting_decide(esdm_comm *comm, const esdm__tree *tree, esdm__meeting *meeting,
                                 const uint64_t *numbers, bool *ret_meets, esdm_error *err);

#endif
