/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_CONTAINER_GATHER_H
#define ESDM_IO_CONTAINER_GATHER_H

/**
 * @file
 * Write gathering: small writes that continue each other become one fragment.
 *
 * A gather is a short stack of boxes with their data. Level 0 takes the writes; a write that
 * extends its box along one axis is appended with one memcpy. What cannot be appended pushes level
 * 0 up: rows grow into planes, planes into volumes. Level k+1 is always older than level k, so the
 * order of overlapping writes is kept when boxes leave from the top.
 *
 * Elements are in the engine's form (io/encode/elements.h). Texts and blobs are owned.
 * Threads: the dataset's write lock.
 */

#include "model/box.h"

#define ESDM__GATHER_LEVELS 3

typedef struct esdm__gather_level {
    bool used;
    uint64_t *lo; /* of its box, likewise `n`; behind the levels: many datasets gather little */
    uint64_t *n;
    uint8_t *data; /* owned; dense C order */
    size_t capacity_bytes;
    size_t text_bytes; /* memory of texts and blobs, apart from the pointers */
} esdm__gather_level;

typedef struct esdm__gather {
    esdm_type type;
    uint16_t rank;    /* of all boxes; 0 before the first one */
    uint16_t nlevels; /* that there is memory for: 0, 1, or all */
    size_t element_bytes;
    uint64_t limit_bytes;       /* of one box: beyond it leaves as a fragment */
    esdm__gather_level *levels; /* owned; NULL: nothing is gathered */
} esdm__gather;

/** Takes a finished box with its dense data; the data is borrowed for the call. */
typedef esdm_status (*esdm__gather_sink)(void *user, const esdm__box *box, void *data,
                                         esdm_error *err);

void esdm__gather_init(esdm__gather *gather, esdm_type type, size_t element_bytes,
                       uint64_t limit_bytes);
/** Frees everything, gathered data included. */
void esdm__gather_clear(esdm__gather *gather);
bool esdm__gather_is_empty(const esdm__gather *gather);
/** Memory held, in bytes. */
uint64_t esdm__gather_bytes(const esdm__gather *gather);

/**
 * Appends the dense box fast: only when it continues or lies in level 0 and memory is there.
 * @param data C order (texts and blobs are duplicated). false: use
 * esdm__gather_add().
 */
bool esdm__gather_append(esdm__gather *gather, const esdm__box *box, const void *data);

/**
 * The same, faster, of elements that are numbers and follow all of level 0 along the first axis, as
 * records do, in memory that is there.
 * @param lo, n the box; `n` may be 0 nowhere but along the first axis (false).
 */
bool esdm__gather_continue(esdm__gather *gather, const uint64_t *lo, const uint64_t *n,
                           const void *data);

/** Takes the box; what no longer fits leaves through the sink. After a failure the box was not
 * taken, and what was gathered before stays. */
esdm_status esdm__gather_add(esdm__gather *gather, const esdm__box *box, const void *data,
                             esdm__gather_sink sink, void *user, esdm_error *err);
/** Sends everything to the sink, oldest first, and frees the memory. After a failure what the sink
 *  did not take stays. */
esdm_status esdm__gather_flush(esdm__gather *gather, esdm__gather_sink sink, void *user,
                               esdm_error *err);
/** Frees everything, gathered data included, and tells which boxes that were. */
void esdm__gather_give_up(esdm__gather *gather, void (*lost)(void *user, const esdm__box *box),
                          void *user);
/**
 * Where an element range of a read lies wholly in the newest box.
 * @return its level, or NULL. Only when no other level is in use or overlaps nothing newer.
 */
const esdm__gather_level *esdm__gather_find(const esdm__gather *gather, const esdm__box *box);

#endif
