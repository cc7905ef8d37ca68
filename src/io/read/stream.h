/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_READ_STREAM_H
#define ESDM_IO_READ_STREAM_H

/** @file Values of a box part by part, to functions of the caller. */

#include "esdm/stream.h"
#include "io/container/dataset_io.h"
#include "model/box.h"

/** esdm_read_stream() of a box inside of the dataset. */
esdm_status esdm__io_read_stream(esdm_dataset *dataset, const esdm__box *box,
                                 const esdm_stream *stream, esdm_error *err);
/** Bytes of a part, by where the data lie: of `most`, but no less than 64 KiB or a block, which
 *  would be decoded several times. */
uint64_t esdm__part_bytes(const esdm_session *session, const esdm__dataset_io *io, uint64_t most);

#endif
