/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_LINE_BASES_H
#define ESDM_API_LINE_BASES_H

/**
 * @file
 * Since what two lines are merged: the snapshots which have all that both have, and how they make
 * one base.
 *
 * What is promised, for each element, attribute and name. What two lines have in common are the
 * snapshots that are in both, the newest of each line; those count that no other one of them has.
 * - One: it is the base.
 * - Several, as lines were merged past each other: they are merged with each other, in the order of
 *   the names of their branches (the container comes first), each since what it has in common with
 *   all before it, found in the same way. So the base is what one of them has, and does not depend
 *   on which of both lines is merged into the other one. Where two of them have changed the same
 *   differently it is not known.
 * What both lines have alike stays. Where one of them has what the base has, the other one's change
 * is taken; all else is a conflict, also where the base is not known. Hence a merge takes nothing
 * from one line that both have changed since each of the common snapshots, and tells no conflict of
 * what one line still has as all of these have it.
 * More than ESDM__BASES_LEAVES snapshots: the base is not known.
 * tests/support/branch_model.py says the same in Python, and holds random merges against it.
 */

#include "api/line_vector.h"
#include "merge/merge.h"

/** A snapshot that is needed for a base. */
typedef struct esdm__base_leaf {
    char holder[ESDM__FORMER_NAME_BYTES];   /* as the store calls it */
    char line[ESDM_CONTAINER_NAME_MAX + 1]; /* as programs say it */
    uint64_t record;
    uint64_t snapshot;
} esdm__base_leaf;

typedef struct esdm__line_bases {
    esdm__base_leaf leaves[ESDM__BASES_LEAVES]; /* the handles of `bases` are not set */
    esdm__bases bases;
    bool lacks; /* one is not there any more: what it had is not known */
} esdm__line_bases;

/** @param name of any line of the container. @param both what both have.
 *  @param ret large: the caller's, not on the stack. */
esdm_status esdm__line_find_bases(esdm_session *session, const char *name, const esdm__vector *both,
                                  esdm__line_bases *ret, esdm_error *err);

#endif
