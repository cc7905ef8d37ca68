/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_READS_H
#define ESDM_IO_SESSION_READS_H

/**
 * @file
 * What reads of a dataset cost with each way of cutting it, summed up, and the fact of the site
 * that has such sums. Pure functions.
 *
 * A fact is JSON: "format" 1, "pattern" (the name of a container with "#" for each number in it),
 * "seen" (seconds since 1970), "datasets": by path "rank", "reads", "cost" (bytes, by way of
 * cutting), "time" (bytes read and seconds, of fragments as usual and of those that were cut for
 * readers), "stopped" (seconds since 1970, when it made reads slower).
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esdm/types.h"

#define ESDM__CUTS             3 /* as esdm__cut (layout/fragmenter.h); 0: the usual one */
#define ESDM__READS_NAME_BYTES 32
#define ESDM__READS_PREFIX     "reads/"
#define ESDM__READERS_WIDER    8u /* fragments that a writer gathers for one cut */

typedef struct esdm__reads {
    uint64_t reads;
    double cost[ESDM__CUTS]; /* bytes, with what a request costs */
    double bytes[2];         /* that were read: as usual, and cut for readers */
    double seconds[2];       /* the same */
} esdm__reads;

/** Adds one read. @param cells shape of fragments, by way of cutting. */
void esdm__reads_add(esdm__reads *reads, const esdm_dataspace *space, size_t element_bytes,
                     const uint64_t *const cells[ESDM__CUTS], bool adapted, double seconds);
/** The way that costs at most half of the usual one, and least, however few they are; 0: none. */
int esdm__reads_best(const esdm__reads *reads);

/** The name with "#" for each number. Owned; NULL: no memory. */
char *esdm__reads_pattern(const char *container);
/** Of its fact. */
void esdm__reads_name(const char *pattern, char ret[ESDM__READS_NAME_BYTES]);

/** A fact without datasets. Owned; NULL: no memory. */
json_t *esdm__reads_fact(const char *pattern);
/** Owned; NULL: it is none, or of another pattern. */
json_t *esdm__reads_parse(const char *text, const char *pattern);
/** Adds what a session has read. What was there counts a tenth less. */
void esdm__reads_merge(json_t *fact, const char *path, uint32_t rank, const esdm__reads *now);
/** What writers should do. @param fact NULL: nothing is known. @param ret_why room for a sentence;
 *  NULL: not wanted. @return 0: as usual. */
int esdm__reads_choose(const json_t *fact, const char *path, uint32_t rank, char *ret_why,
                       size_t room);
/** Seconds that reads of this session would have taken more as usual; 0: not known. */
double esdm__reads_gain(const json_t *fact, const char *path, const esdm__reads *now);
/** When it was written last, in seconds since 1970; 0: it is no fact. */
uint64_t esdm__reads_seen(const char *text);
/** Whether it was stopped. */
bool esdm__reads_stopped(const json_t *fact, const char *path);

#endif
