/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_IO_H
#define ESDM_IO_IO_H

/** @file What the API layer calls: reads, writes, commits, life of containers. */

#include "io/container/dataset_io.h"

/* Fragments in flight in one round of the pool. */
#define ESDM__WRITE_BATCH 64u
/* Writes from here on go to fragments at once, without a copy in the gather buffer, unless the
 * dataset wants large ones. */
#define ESDM__DIRECT_BYTES (UINT64_C(256) << 10)

/** esdm_write() and esdm_read() after their argument checks. */
esdm_status esdm__io_write(esdm_dataset *dataset, const esdm_dataspace *space,
                           esdm_type memory_type, const void *buffer, uint64_t *ret_out_of_range,
                           esdm_error *err);
esdm_status esdm__io_read(esdm_dataset *dataset, const esdm_dataspace *space, esdm_type memory_type,
                          void *buffer, uint64_t *ret_out_of_range, esdm_error *err);

/**
 * Writes a box as fragments: cuts it, encodes and appends in the pool, enters them as pending.
 * Caller holds the write lock.
 *
 * @param strided NULL; or a strided selection, then `box` is a box of its indices, and the
 * fragments are strided. @param form of the memory (io/encode/elements.h). @param stride of the
 * memory in elements.
 */
esdm_status esdm__write_fragments(esdm_dataset *dataset, esdm__dataset_io *io, const esdm__box *box,
                                  const esdm_dataspace *strided, esdm_type form, const void *buffer,
                                  const int64_t *stride, uint64_t *ret_out_of_range,
                                  esdm_error *err);

/** Reads the selected elements inside `piece->part` into the caller's memory. Of types that vary
 *  what lies there is valid, and freed.
 *  @param together NULL; or how many pieces one thread is to read one after the other, then how
 *  many of the next ones, … up to `npieces`. */
esdm_status esdm__read_pieces(esdm_dataset *dataset, const esdm_dataspace *space,
                              const int64_t *memory_stride, const esdm__piece *pieces,
                              size_t npieces, const size_t *together, esdm_type form, void *buffer,
                              uint64_t *ret_out_of_range, esdm_error *err);

/** The same of pieces that do not meet: of few large ones each in parts, so that all threads have
 *  something to do. */
esdm_status esdm__read_dense(esdm_dataset *dataset, const esdm_dataspace *space,
                             const int64_t *stride, const esdm__piece *pieces, size_t npieces,
                             const esdm__elements *elements, esdm_type form, void *buffer,
                             uint64_t *out_of_range, esdm_error *err);
/** The same of interleaved strided pieces that do not meet, which share the lines of the caller's
 *  memory: band after band across the slowest axis, so that these stay in the cache of one
 *  processor until all pieces are in them. */
esdm_status esdm__read_bands(esdm_dataset *dataset, const esdm_dataspace *space,
                             const int64_t *stride, const esdm__piece *pieces, size_t npieces,
                             esdm_type form, void *buffer, uint64_t *out_of_range, esdm_error *err);

/** Sets the chain of new fragments; `chain` is the parsed `text`, NULL goes back to the site's. */
esdm_status esdm__io_set_codec(esdm_dataset *dataset, const char *text, const esdm__chain *chain,
                               esdm_error *err);
/** Visits the committed fragments in the handle's snapshot. */
esdm_status esdm__io_visit_fragments(esdm_dataset *dataset, esdm__fragment_fn visit, void *user,
                                     esdm_error *err);

/* Life of a container; see esdm/container.h for the contracts. `name` is normalised. */
esdm_status esdm__io_create(esdm_session *session, const char *name, esdm_create_mode mode,
                            esdm_container **ret_container, esdm_error *err);
esdm_status esdm__io_open(esdm_session *session, const char *name, esdm_open_mode mode,
                          uint64_t snapshot, esdm_container **ret_container, esdm_error *err);
esdm_status esdm__io_commit(esdm_container *container, const char *message, esdm_error *err);
esdm_status esdm__io_refresh(esdm_container *container, esdm_error *err);
void esdm__io_revert(esdm_container *container);
/** See esdm_container_give_up_failed(). */
size_t esdm__io_give_up_failed(esdm_container *container);
bool esdm__io_is_dirty(const esdm_container *container);
/** Whether commits of this handle have left so much that nothing names any more that it is worth
 *  looking for it. @param ret_uuid room for ESDM__UUID_BYTES. */
bool esdm__io_has_dropped(const esdm_container *container, uint64_t *ret_record, char *ret_uuid);

#endif
