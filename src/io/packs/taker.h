/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_TAKER_H
#define ESDM_IO_PACKS_TAKER_H

/**
 * @file
 * A rank that stores what others of its node hand over (handover.h): a thread of its own serves
 * them, one request after the other, and calls no MPI. A process that breaks its connection loses
 * it, nobody else.
 */

#include "io/packs/pack_set.h"

typedef struct esdm__taker esdm__taker;

/** Starts to listen. @param packs borrowed; moves of its packs are told later from now on
 *  (esdm__pack_owner.tells_later). @param ret_taker owned. */
esdm_status esdm__taker_new(const char *name, esdm__pack_set *packs, esdm__taker **ret_taker,
                            esdm_error *err);
/** Ends the thread, after the request that is under way; in a forked child only frees. NULL is
 *  accepted. */
void esdm__taker_free(esdm__taker *taker);

#endif
