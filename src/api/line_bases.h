/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_LINE_BASES_H
#define ESDM_API_LINE_BASES_H

/**
 * @file
 * Since what two lines are merged: the snapshots which have all that both have, and how they make
 * one base. Where no snapshot has all of it, as lines were merged past each other, the newest ones
 * are merged with each other in turn, since what *they* have in common.
 */

#include "api/line_vector.h"
#include "merge/merge.h"

/** A snapshot that is needed for a base. */
typedef struct esdm__base_leaf {
    char holder[ESDM__FORMER_NAME_BYTES];   /* as the store calls it */
    char line[ESDM_CONTAINER_NAME_MAX + 1]; /* as programs say it */
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
