/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_READ_H
#define ESDM_IO_READ_READ_H

/** @file Reading the elements of a selection. */

#include "io/container/transfer.h"

/** esdm_read() after its argument checks. */
esdm_status esdm__io_read(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
                          void *buffer, uint64_t *ret_out_of_range, esdm_error *err);

/** Reads the selected elements inside the pieces' parts. Of types that vary what lies in the memory
 *  is valid, and freed. Of the transfer `io` is not used.
 *  @param together NULL; or how many pieces one thread is to read one after the other, then how
 *  many of the next ones, … up to `npieces`. */
esdm_status esdm__read_pieces(const esdm__transfer *t, const esdm__piece *pieces, size_t npieces,
                              const size_t *together, esdm_error *err);

/** The same for pieces that do not overlap. A few large ones are divided, so that all threads have
 *  something to do. */
esdm_status esdm__read_dense(const esdm__transfer *t, const esdm__piece *pieces, size_t npieces,
                             esdm_error *err);
/** The same for interleaved strided pieces, which do not overlap but share cache lines of the
 *  caller's memory. They are read in bands across the slowest axis, so that a line stays in the
 * cache of one processor until all pieces have filled it. */
esdm_status esdm__read_bands(const esdm__transfer *t, const esdm__piece *pieces, size_t npieces,
                             esdm_error *err);

/** Which fragments serve a box; loads the pages that this takes. The directory must have been
 * loaded.
 *  @param ret_plan esdm__plan_clear(). @param ret_too_many NULL: a plan is made of any number
 *  of fragments. Otherwise it tells whether none was made, as there were too many fragments, which
 * was not known before their pages were loaded. */
esdm_status esdm__read_plan(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *hull,
                            esdm__plan *ret_plan, bool *ret_too_many, esdm_error *err);

/** Takes the values of one part of a box, dense; not those of others. */
typedef esdm_status (*esdm__part_fn)(void *user, const esdm__box *part, const void *values,
                                     esdm_error *err);
/** How boxes are read in parts. */
typedef struct esdm__parts {
    esdm_dataset *dataset;
    esdm_type type; /* of the values in memory */
    uint64_t most;  /* elements at a time */
    void *buffer;   /* room for `most` of them, or for all of the box where it has less */
    esdm__part_fn visit;
    void *user; /* for visit() */
} esdm__parts;
/** Reads a box in parts along its slowest axes. */
esdm_status esdm__read_in_parts(const esdm__parts *parts, const esdm__box *box, esdm_error *err);

/** Whether `after` keeps what the dataset states of `before`, but for sums. *ret_index: the first
 *  number that does not. */
bool esdm__accuracy_holds(const esdm_dataset *dataset, const void *before, const void *after,
                          uint64_t count, uint64_t *ret_index);
/** esdm_dataset_accuracy_report(). @param map  NULL, or: of the fragments alone that touch this one
 *  of its regions. */
esdm_status esdm__accuracy_report(esdm_dataset *dataset, const esdm__region_map *map,
                                  uint32_t region, esdm_accuracy_report *ret_report,
                                  esdm_error *err);

#endif
