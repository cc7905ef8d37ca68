/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_PACKS_EQUALS_H
#define ESDM_IO_PACKS_EQUALS_H

/**
 * @file
 * Committed fragments to which what is written may be equal, so that it is referred to and not
 * stored once more ("dedup": "write"). Looked at are the containers of the same folder, the newest
 * first, as they are when the first fragment is about to be stored. Of each fragment the head is
 * read, which has the checksums of its blocks; a hash of 64 bits over it tells what may be equal,
 * and the bytes are compared before anything refers to it.
 *
 * These containers are pinned, and who wrote their packs counts as alive, until
 * esdm__equals_free(): whatever becomes of them, what refers to their packs can be committed. The
 * commit takes the rows that say whose packs the container shares (esdm_meta_commit.shares).
 *
 * Threads: found by many at once; made and freed by one.
 */

#include "codec/blob.h"
#include "io/session/session.h"
#include "layout/fragment.h"

typedef struct esdm__equals esdm__equals;

/** A fragment that is about to be stored, and where it may lie. */
typedef struct esdm__equals_wish {
    const esdm__blob *blob;
    uint32_t copies;
    const bool *allowed; /* targets; NULL: all */
} esdm__equals_wish;

/** Containers, and fragments of them all, that are looked at, at most: the newest. */
#define ESDM__EQUALS_CONTAINERS 16u
#define ESDM__EQUALS_FRAGMENTS  250000u
/** Memory for so many fragments, in bytes. */
uint64_t esdm__equals_bytes(uint64_t fragments);

/** @return NULL: there is nothing that could be equal, or it could not be looked at: then all is
 *  stored. @param container name of the one that is written; it is looked at, too, if it is there.
 */
esdm__equals *esdm__equals_new(esdm_session *session, const char *container);
/** Heads longer than this are not looked at. */
#define ESDM__HEAD_MOST (UINT32_C(16) << 20)

/**
 * The hash of a stored fragment's head, by which those that may be equal are found.
 * @param ret_hashed false: the head cannot be read, or is none: the fragment is equal to no other.
 * @return ESDM_ENOMEM.
 */
esdm_status esdm__stored_hash(esdm_session *session, const esdm__pack_name *pack, uint64_t position,
                              uint32_t head_bytes, uint64_t *ret_hash, bool *ret_hashed,
                              esdm_error *err);

/** After the commits that refer to what was found; NULL is accepted. */
void esdm__equals_free(esdm__equals *equals);

/** Whether an equal one is there: what cannot be read is not. @param ret_pack borrowed. */
bool esdm__equals_find(esdm__equals *equals, const esdm__equals_wish *wish,
                       const esdm__pack_name **ret_pack, uint64_t *ret_position);

/** Records of whose packs something was found so far. @param ret_records owned, free(). */
esdm_status esdm__equals_records(const esdm__equals *equals, uint64_t **ret_records,
                                 size_t *ret_count, esdm_error *err);

#endif
