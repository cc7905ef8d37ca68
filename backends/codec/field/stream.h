/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_STREAM_H
#define FIELD_STREAM_H

/** @file Streams of symbols and bits: two lengths (varints), words of symbols, bits. */

#include "base/buffer.h"
#include "esdm/status.h"
#include "kernels.h"

/** A sink with its memory; a zeroed one is empty. `sink.models` is borrowed. */
typedef struct field__writer {
    field__sink sink;
    size_t symbols_room;
    size_t bits_room;
} field__writer;

/** Models in their first state; owned, free(). NULL: no memory. */
field__models *field__models_new(void);

/** Makes room for `nx` more values; `expected` is how many there will be in all. */
esdm_status field__writer_reserve(field__writer *writer, size_t nx, size_t expected,
                                  esdm_error *err);
/** Appends what was put into the sink. */
esdm_status field__writer_finish(field__writer *writer, esdm__buffer *out, esdm_error *err);
void field__writer_clear(field__writer *writer);

/** Opens the stream that comes next; borrows the cursor's bytes. */
esdm_status field__source_open(field__source *source, field__models *models, esdm__cursor *in,
                               esdm_error *err);

#endif
