/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_LOOPS_H
#define ESDM_IO_SESSION_LOOPS_H

/**
 * @file
 * Selections of a dataset in the order in which they were read, as loops: two of them, one in the
 * other, are one entry. Bounded: what comes when all entries are taken is left out.
 * Threads: one at a time.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esdm/types.h"

#define ESDM__LOOPS_MOST 32u

/** `count[1]` times, each `delta[1]` on: `count[0]` selections, each `delta[0]` on. */
typedef struct esdm__loop {
    uint64_t *offset; /* of the first one; these are parts of one piece of memory */
    uint64_t *size;
    uint64_t *stride;
    int64_t *delta[2];
    uint64_t count[2];
} esdm__loop;

typedef struct esdm__loops {
    uint32_t rank;
    size_t count;
    bool cut;       /* something was left out */
    uint64_t reads; /* that these are */
    esdm__loop loop[ESDM__LOOPS_MOST];
} esdm__loops;

/** One of them. */
typedef struct esdm__loops_at {
    size_t loop;
    uint64_t outer;
    uint64_t inner;
} esdm__loops_at;

void esdm__loops_clear(esdm__loops *loops);
/** The selection that was read next. */
void esdm__loops_add(esdm__loops *loops, const esdm_dataspace *space);
/** Puts together what the last one began. */
void esdm__loops_end(esdm__loops *loops);
/** Whether both are the same reads. */
bool esdm__loops_equal(const esdm__loops *a, const esdm__loops *b);
/** false: no memory; then `ret` has none. */
bool esdm__loops_copy(const esdm__loops *loops, esdm__loops *ret);

/** The selection there; false: the end. */
bool esdm__loops_get(const esdm__loops *loops, const esdm__loops_at *at, esdm_dataspace *ret);
/** To the next one. */
void esdm__loops_next(const esdm__loops *loops, esdm__loops_at *at);
/** Whether two selections are the same elements. */
bool esdm__same_selection(const esdm_dataspace *a, const esdm_dataspace *b);

/** Owned; NULL: no memory. */
json_t *esdm__loops_json(const esdm__loops *loops);
/** false: that is none; then `ret` has none. @param rank of the dataset. */
bool esdm__loops_parse(const json_t *json, uint32_t rank, esdm__loops *ret);

#endif
