/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_FOREIGN_H
#define ESDM_IO_READ_FOREIGN_H

/**
 * @file
 * Fragments that are bytes of files which stay where they are (kind ESDM__KIND_FOREIGN).
 *
 * A file must be what it was when the reference was made: size and time of modification equal. When
 * inode or time of change differ as well nothing is known, and only chunks with a checksum are
 * read. Clones that the site holds (io/session/held_files.h) are never changed: their size alone is
 * looked at. Files are read with pread(), never mapped: one that is cut off must not end the
 * program.
 */

#include "io/read/elsewhere.h"

extern const esdm__source_ops esdm__foreign_ops;

/* ---- files (io/read/foreign_files.c) ------------------------------------------------------ */

typedef struct esdm__file esdm__file;

/** Opens a file, or takes it from the session's list of open ones. Any thread.
 *  @param ret_certain whether inode and time of change are also as they were.
 *  @param ret_file owned; esdm__file_put(). */
esdm_status esdm__file_get(esdm_session *session, const esdm__foreign *foreign,
                           esdm__file **ret_file, bool *ret_certain, esdm_error *err);
/** Of a file; borrowed while it is open. */
int esdm__file_descriptor(const esdm__file *file);
/** Whether it is an object on a server: each read is a request. */
bool esdm__file_is_remote(const esdm__file *file);
/** Asks the server whether it is what it was; nothing of other files. */
esdm_status esdm__file_look(const esdm__file *file, esdm_error *err);
/** Gives it back. */
void esdm__file_put(esdm_session *session, esdm__file *file);
/** Reads bytes; ESDM_ECONFLICT: they lie behind the end. */
esdm_status esdm__file_read(esdm__file *file, uint64_t position, void *data, size_t bytes,
                            esdm_error *err);
/** Whether the system has a byte of the file in its memory, as far as it tells. */
bool esdm__file_is_cached(const esdm__file *file, uint64_t position);
/** Whether the open file still is what it was: after reading. */
esdm_status esdm__file_check(const esdm__file *file, const esdm__foreign *foreign,
                             bool *ret_certain, esdm_error *err);

/* ---- filters (io/read/foreign_filters.c) -------------------------------------------------- */

/** What no chunk of a file has. */
#define ESDM__CHUNK_BYTES_MAX (UINT64_C(1) << 34)

/** Whether it can be undone: filters of HDF5 by number, codecs of Zarr by name. */
bool esdm__filter_is_known(const esdm__filter *filter);
/**
 * Undoes a chain of filters.
 * @param mask bit i: filter i was skipped.
 * @param stored `stored_bytes`; may be changed. @param raw room for `raw_bytes`: all that come out.
 */
esdm_status esdm__filters_undo(const esdm__decoding *decoding, uint32_t mask, uint8_t *stored,
                               size_t stored_bytes, uint8_t *raw, size_t raw_bytes,
                               esdm_error *err);
/** Which part of the stored bytes becomes the elements, where several have the same bytes. */
uint32_t esdm__filters_part(const esdm__decoding *decoding);
/** The same where it is not known how many bytes come out. @param ret_raw owned; free(). */
esdm_status esdm__filters_undo_any(const esdm__decoding *decoding, uint8_t *stored,
                                   size_t stored_bytes, uint8_t **ret_raw, size_t *ret_bytes,
                                   esdm_error *err);
/** The checksum of HDF5's filter fletcher32. */
uint32_t esdm__fletcher32(const uint8_t *data, size_t bytes);
/** Turns the bytes of each element round. @param size 1, 2, 4, 8 or any other. */
void esdm__swap_bytes(size_t size, uint8_t *data, size_t elements);

#endif
