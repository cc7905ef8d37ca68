/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_FETCH_BLOCKS_H
#define ESDM_IO_READ_FETCH_BLOCKS_H

/**
 * @file
 * The blocks of one stored fragment: its head is read and checked, then runs of neighbouring blocks
 * are read from its pack, verified and decoded. Which blocks are wanted, and whether the cache has
 * them, is the matter of fetch.c. Threads: one at a time; the session's cache, its room for
 * decoding and targets lock themselves.
 */

#include "base/scratch.h"
#include "codec/blob.h"
#include "io/packs/sources.h"
#include "model/container.h"

/** A fragment that is being read. */
typedef struct esdm__block_reader {
    esdm_session *session;
    const esdm__fragment *fragment;
    bool raw;
    esdm__blocks geometry; /* of coded ones as well */
    uint8_t *head;         /* owned; coded ones, or large ones where reads have a price */
    uint8_t *whole;        /* owned; all of it, where a second read costs more than that */
    bool head_known;       /* and the rest takes one read anyhow */
    esdm__target *target;
    esdm__cache_key key;
    esdm__room *room;     /* borrowed; for decoding */
    uint64_t taken;       /* of it */
    esdm__blob_view view; /* coded ones, once the head was read; large, so the last one */
} esdm__block_reader;

/** Neighbouring blocks that are to be read. */
typedef struct esdm__block_run {
    uint32_t first;
    uint32_t count;
    uint8_t *out; /* receives their raw bytes */
} esdm__block_run;

/** Reads the head, from the cache or the target. @param coarse NULL: as they are stored.
 *  @param reader esdm__block_reader_close() in any case. ESDM_ECORRUPT, and what the target says.
 */
esdm_status esdm__block_reader_open(esdm_session *session, const esdm__fragment *fragment,
                                    esdm__target *target, const esdm__coarse *coarse,
                                    esdm__block_reader *reader, esdm_error *err);
void esdm__block_reader_close(esdm__block_reader *reader);

/** For stored or raw bytes: esdm__scratch_free(). NULL: out of memory. */
void *esdm__block_buffer(const esdm__block_reader *reader, uint64_t bytes);
/** Before memory is filled with blocks to be decoded: `more` bytes beside these and what codecs
 *  take. Uncompressed ones are not counted. */
void esdm__block_room_take(esdm__block_reader *reader, uint32_t first, uint32_t count,
                           uint64_t more);
void esdm__block_room_give(esdm__block_reader *reader);

/** Reads bytes of the pack as they are stored. @param ranges sorted, as for the target. */
esdm_status esdm__block_ranges(esdm__block_reader *reader, const esdm_range *ranges, size_t count,
                               esdm_error *err);
/** Reads and verifies runs in order, with one call of the target. */
esdm_status esdm__block_runs(esdm__block_reader *reader, const esdm__block_run *runs, size_t count,
                             esdm_error *err);
/** Raw blocks, neighbours, whose part of the table is there. @param entries of the first block and
 *  those behind it. */
esdm_status esdm__block_listed(esdm__block_reader *reader, uint32_t first, uint32_t count,
                               const uint8_t *entries, uint8_t *out, esdm_error *err);

#endif
