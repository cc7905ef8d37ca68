/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_FETCH_H
#define ESDM_IO_READ_FETCH_H

/**
 * @file
 * Verified raw bytes of one fragment: whole, or only the blocks that a byte range needs.
 * Threads: pure but for the session's cache and targets, which lock themselves.
 */

#include "codec/blob.h"
#include "io/packs/sources.h"
#include "model/container.h"

/** Blocks are kept in the cache when a request needs few of them; big reads pass it by. */
#define ESDM__CACHE_BLOCKS 32u
/** Block number under which the cache keeps the head of a blob. */
#define ESDM__HEAD_BLOCK UINT32_MAX
/** Longest head that the cache keeps. */
#define ESDM__KEPT_TABLE_BYTES 65536u

/** Which blocks of a fragment are wanted, as ranges of raw bytes. */
typedef struct esdm__want {
    uint64_t from; /* first raw byte */
    uint64_t to;   /* one past the last */
    /** The next of the rows inside; false behind the last one, then they begin again. NULL:
     *  everything between. */
    bool (*next_row)(void *user, uint64_t *ret_from, uint64_t *ret_to);
    void *user;
    const esdm__coarse *coarse; /* NULL: as they are stored */
} esdm__want;

/** Bytes of a fragment. A thread has one at a time, a zeroed one is empty. */
typedef struct esdm__fetched {
    const uint8_t *raw; /* here stands raw byte `from` */
    uint64_t from;
    void *owned;      /* base/scratch.h; or NULL */
    esdm__room *room; /* borrowed; for decoding */
    uint64_t taken;   /* of it */
} esdm__fetched;

void esdm__fetched_clear(esdm__fetched *fetched);

/** Fetches the wanted blocks of a fragment in a pack from one of its targets. Bytes of blocks that
 *  were not wanted are undefined. */
esdm_status esdm__fetch(esdm_session *session, const esdm__fragment *fragment, esdm__target *target,
                        const esdm__want *want, esdm__fetched *ret_fetched, esdm_error *err);

/** Fetches raw bytes [from, to), from < to, straight into `data`. @param coarse NULL: as they are
 *  stored. */
esdm_status esdm__fetch_direct(esdm_session *session, const esdm__fragment *fragment,
                               esdm__target *target, const esdm__coarse *coarse, uint64_t from,
                               uint64_t to, void *data, esdm_error *err);

/** Ranges of its pack that fetching raw bytes [from, to) of a fragment will most likely read first;
 *  for who asks for them ahead. @param ret room for two. @return how many; 0: none, as the cache
 * has what is wanted, or nobody can tell. (fetch_ahead.c) */
size_t esdm__fetch_ranges(esdm_session *session, const esdm__fragment *fragment,
                          const esdm__target *target, const esdm__coarse *coarse, uint64_t from,
                          uint64_t to, esdm_range *ret);

/** Reads a whole blob, and verifies its head and all its data. @param ret_blob owned, free(). */
esdm_status esdm__fetch_verified(esdm_session *session, const esdm__fragment *fragment,
                                 esdm__target *target, uint8_t **ret_blob, esdm_error *err);
/** Whether a head is sound and belongs to the fragment. */
esdm_status esdm__fetch_check_head(const esdm__fragment *fragment, const uint8_t *head,
                                   esdm_error *err);

/** Verifies and decodes a whole blob that is in memory already, and is borrowed by *ret_fetched. */
esdm_status esdm__fetch_decode(esdm_session *session, const esdm__fragment *fragment,
                               const uint8_t *blob, esdm__fetched *ret_fetched, esdm_error *err);

/** The head of a fragment in a pack, as it is read: from the cache, or one of its targets.
 *  @param ret_head owned, free(); *ret_view borrows it. Both are not set where the payload is the
 *  raw data. */
esdm_status esdm__fetch_head(esdm_session *session, const esdm__fragment *fragment,
                             esdm__target *target, const esdm__coarse *coarse, uint8_t **ret_head,
                             esdm__blob_view *ret_view, esdm_error *err);

/** Whether all of a fragment is read at once, whatever is wanted of it: a second read, of its table
 *  or a block, costs more than the bytes of the others. (fetch_ahead.c) */
bool esdm__fetch_takes_whole(const esdm__fragment *fragment, const esdm__target *target);
/** Whether the table of a raw fragment is read as a whole and kept: each read has a price, and this
 *  one does not take all of the fragment anyhow. (fetch_ahead.c) */
bool esdm__fetch_keeps_table(const esdm__fragment *fragment, const esdm__target *target);

/** Whether whole groups of raw blocks are verified by the outline, which costs no read of the
 * table.
 *  @param blocks of the fragment, which is raw. (fetch_ahead.c) */
bool esdm__fetch_has_sums(const esdm__fragment *fragment, const esdm__target *target,
                          const esdm__blocks *blocks);

/** Whether the payload is the raw data. */
bool esdm__fragment_is_raw(const esdm__fragment *fragment);

#endif
