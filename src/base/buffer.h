/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_BUFFER_H
#define ESDM_BASE_BUFFER_H

/**
 * @file
 * Growable byte buffer for encoding, and a bounded cursor for decoding. Little-endian.
 *
 * The buffer remembers a failed allocation (`failed`), so that a run of puts needs one check at the
 * end. The cursor remembers a read past the end in the same way; such reads yield zeros.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct esdm__buffer {
    uint8_t *data; /**< owned; malloc'ed */
    size_t bytes;
    size_t capacity;
    bool failed;
} esdm__buffer;

void esdm__buffer_init(esdm__buffer *buffer);
void esdm__buffer_clear(esdm__buffer *buffer);
/** Room for `bytes` more; NULL (and failed) when there is no memory. Does not advance. */
uint8_t *esdm__buffer_reserve(esdm__buffer *buffer, size_t bytes);
void esdm__buffer_put(esdm__buffer *buffer, const void *data, size_t bytes);
void esdm__buffer_put_u8(esdm__buffer *buffer, uint8_t value);
void esdm__buffer_put_u32(esdm__buffer *buffer, uint32_t value);
void esdm__buffer_put_u64(esdm__buffer *buffer, uint64_t value);
/** LEB128: 7 bits a byte, lowest first. */
void esdm__buffer_put_varint(esdm__buffer *buffer, uint64_t value);
/** Zigzag: small negative numbers stay short. */
void esdm__buffer_put_svarint(esdm__buffer *buffer, int64_t value);
/** Gives the memory to the caller (free()). NULL if empty. */
uint8_t *esdm__buffer_steal(esdm__buffer *buffer, size_t *ret_bytes);

/** Room for one more item in an array of `count` that doubles. @param array address of the pointer
 *  to it, owned by the caller. false: out of memory, and the array is as it was. */
bool esdm__array_grow(void *array, size_t count, size_t item_bytes);

typedef struct esdm__cursor {
    const uint8_t *data; /**< borrowed */
    size_t bytes;
    size_t position;
    bool failed;
} esdm__cursor;

void esdm__cursor_init(esdm__cursor *cursor, const void *data, size_t bytes);
size_t esdm__cursor_left(const esdm__cursor *cursor);
/** Borrowed pointer to the next `bytes`; NULL (and failed) when there are fewer. */
const uint8_t *esdm__cursor_take(esdm__cursor *cursor, size_t bytes);
uint8_t esdm__cursor_u8(esdm__cursor *cursor);
uint32_t esdm__cursor_u32(esdm__cursor *cursor);
uint64_t esdm__cursor_u64(esdm__cursor *cursor);
uint64_t esdm__cursor_varint(esdm__cursor *cursor);
int64_t esdm__cursor_svarint(esdm__cursor *cursor);

#endif
