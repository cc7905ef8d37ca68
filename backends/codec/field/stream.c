/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define SYMBOLS_PER_VALUE 6  /* one, and up to five for the length of an escape */
#define BITS_PER_VALUE    16 /* bytes: 56 bits and an escape's 63 */
#define TAIL_BYTES        16

field__models *
field__models_new(void)
{
    field__models *m = aligned_alloc(32, (sizeof *m + 31) / 32 * 32);
    if (m != NULL) {
        field__models_init(m->context, m->context_seen, FIELD__SETS * FIELD__CONTEXTS);
        field__models_init(m->detail, m->detail_seen, FIELD__SETS * FIELD__DETAILS);
        field__models_init(m->escape, m->escape_seen, FIELD__ESCAPES);
    }
    return m;
}

esdm_status
field__writer_reserve(field__writer *writer, size_t nx, size_t expected, esdm_error *err)
{
    field__sink *sink = &writer->sink;
    size_t need = sink->count + nx * SYMBOLS_PER_VALUE;
    if (need > writer->symbols_room) {
        size_t room = need + expected + need / 4;
        uint32_t *grown = realloc(sink->symbols, room * sizeof *grown);
        if (grown == NULL)
            return esdm__error_nomem(err, room * sizeof *grown, "symbols of a block");
        sink->symbols = grown;
        writer->symbols_room = room;
    }
    need = sink->bits_bytes + nx * BITS_PER_VALUE + TAIL_BYTES;
    if (need > writer->bits_room) {
        size_t room = need + need / 2;
        uint8_t *grown = realloc(sink->bits, room);
        if (grown == NULL)
            return esdm__error_nomem(err, room, "bits of a block");
        sink->bits = grown;
        writer->bits_room = room;
    }
    return ESDM_OK;
}

esdm_status
field__writer_finish(field__writer *writer, esdm__buffer *out, esdm_error *err)
{
    const field__sink *sink = &writer->sink;
    size_t room = sink->count * 2 + TAIL_BYTES;
    uint8_t *words = malloc(room);
    if (words == NULL)
        return esdm__error_nomem(err, room, "an encoded block");
    const uint8_t *start = field__kernels_best()->finish(sink, words + room);
    size_t bytes = (size_t) (words + room - start);
    size_t bits_bytes = sink->bits_bytes + (sink->pending_bits > 0);
    esdm__buffer_put_varint(out, bytes);
    esdm__buffer_put_varint(out, bits_bytes);
    esdm__buffer_put(out, start, bytes);
    if (bits_bytes > 0)
        esdm__buffer_put(out, sink->bits, bits_bytes);
    free(words);
    return out->failed ? esdm__error_nomem(err, bytes + bits_bytes, "an encoded block") : ESDM_OK;
}

void
field__writer_clear(field__writer *writer)
{
    free(writer->sink.symbols);
    free(writer->sink.bits);
    memset(writer, 0, sizeof *writer);
}

esdm_status
field__source_open(field__source *source, field__models *models, esdm__cursor *in, esdm_error *err)
{
    uint64_t words_bytes = esdm__cursor_varint(in);
    uint64_t bits_bytes = esdm__cursor_varint(in);
    size_t left = esdm__cursor_left(in);
    memset(source, 0, sizeof *source);
    if (in->failed || words_bytes < sizeof source->state || words_bytes > left ||
        bits_bytes > left - words_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "field: coded values are cut off");
    const uint8_t *words = esdm__cursor_take(in, (size_t) words_bytes);
    source->models = models;
    if (bits_bytes > 0) {
        source->bits = esdm__cursor_take(in, (size_t) bits_bytes);
        source->bits_end = source->bits + bits_bytes;
    }
    memcpy(source->state, words, sizeof source->state);
    source->words = words + sizeof source->state;
    source->words_end = words + words_bytes;
    return ESDM_OK;
}
