/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_HANDOVER_H
#define ESDM_IO_PACKS_HANDOVER_H

/**
 * @file
 * Blobs that another rank of the node stores for this one ("ranks" of the site): it puts them into
 * packs of its own, and answers where they lie. The records of the index stay with who handed over.
 * Where the other rank has ended, or there is no memory to share, this one stores by itself; what
 * it had handed over and not committed then counts as lost, so that it is to be written again.
 * Threads: locked inside. In a forked child nothing but freeing is allowed.
 */

#include "io/packs/pack_set.h"

typedef struct esdm__handover esdm__handover;

/** Who stores for this rank. */
typedef struct esdm__handover_to {
    const char *name;   /* of the socket (handover_wire.h) */
    int rank;           /* for messages */
    unsigned timeout_s; /* without an answer */
} esdm__handover_to;

/** Connects. @param owner borrowed: of the pack set that owns the result. @param ret_handover
 * owned. */
esdm_status esdm__handover_new(const esdm__handover_to *to, const esdm__pack_owner *owner,
                               esdm__handover **ret_handover, esdm_error *err);
void esdm__handover_free(esdm__handover *handover); /* NULL is accepted */

/** Hands one blob over, and waits until it is stored, as esdm__pack_set_append().
 *  @param ret_taken false: this rank has to store it itself, and ESDM_OK is returned.
 *  @return also ESDM_ETIMEDOUT. */
esdm_status esdm__handover_append(esdm__handover *handover, const esdm__pack_hint *hint,
                                  const esdm_iov *iov, size_t niov, bool *ret_taken,
                                  esdm__place *ret_place, esdm_error *err);
/** The parts of esdm__pack_set_publish() and its kin that concern what was handed over. */
esdm_status esdm__handover_publish(esdm__handover *handover, bool durable, esdm_error *err);
esdm_status esdm__handover_make_readable(esdm__handover *handover, esdm_error *err);
/** Names that were not handed over are passed over. */
esdm_status esdm__handover_make_named_readable(esdm__handover *handover,
                                               const esdm__pack_name *const *names, size_t count,
                                               bool *ret_moved, esdm_error *err);
/** What the last publishing made readable is committed. */
void esdm__handover_committed(esdm__handover *handover);
/** Whether something is lost of what was handed over. */
bool esdm__handover_has_lost(esdm__handover *handover);
bool esdm__handover_is_lost(esdm__handover *handover, const char *pack);

#endif
