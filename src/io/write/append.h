/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_WRITE_APPEND_H
#define ESDM_IO_WRITE_APPEND_H

/** @file Where an encoded fragment is stored: in a pack of this writer, or where an equal one is
 *  already. */

#include "codec/blob.h"
#include "io/container/dataset_io.h"

typedef struct esdm__appended {
    const esdm__pack_name *equal; /* pack of an equal one; NULL: `place` is where it lies */
    esdm__place place;
    uint64_t position;
} esdm__appended;

/** Needs no lock. @param container whose fragment it is; where it has a trial (io/write/trial.h)
 * the fragment is counted there, and not stored. @param equals what it may be equal to; NULL:
 * nothing. */
esdm_status esdm__write_append(esdm_container *container, struct esdm__equals *equals,
                               const esdm__pack_hint *hint, const esdm__blob *blob,
                               esdm__appended *ret_appended, esdm_error *err);
/** The name of the pack in which the fragment lies; NULL: out of memory. With the lock of the
 *  index held. @param before name for the fragment before, mostly the same; NULL: there is none. */
const esdm__pack_name *esdm__appended_pack(const esdm__appended *appended,
                                           const esdm__pack_name *before, esdm__index *index);

#endif
