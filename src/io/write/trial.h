/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_TRIAL_H
#define ESDM_IO_WRITE_TRIAL_H

/**
 * @file
 * Counts what containers of a folder would store if programs wrote them one after the other where
 * the site refers to what is stored already ("dedup": "write" or "content"). Fragments are cut and
 * encoded as ever, and then counted by the hash of their heads, as io/packs/equals.h finds them:
 * those of the newest containers before, not of the same one.
 *
 * Threads: noted by many at once; all else by one.
 */

#include "codec/blob.h"

typedef struct esdm__trial esdm__trial;

typedef struct esdm__trial_counts {
    uint64_t fragments;
    uint64_t bytes; /* stored, of these, if each was stored */
    uint64_t equals;
    uint64_t equal_bytes;
    uint64_t looked_at;  /* fragments of others, for the container that looks at most */
    uint64_t head_bytes; /* that are read of others, for all containers */
} esdm__trial_counts;

/** @return NULL: out of memory. */
esdm__trial *esdm__trial_new(void);
void esdm__trial_free(esdm__trial *trial);
/** The next container begins. @return ESDM_ENOMEM. */
esdm_status esdm__trial_begin(esdm__trial *trial, esdm_error *err);
/** One of its fragments. @return ESDM_ENOMEM. */
esdm_status esdm__trial_note(esdm__trial *trial, const esdm__blob *blob, esdm_error *err);
/** Of all containers so far; borrowed. */
const esdm__trial_counts *esdm__trial_counted(const esdm__trial *trial);
#endif
