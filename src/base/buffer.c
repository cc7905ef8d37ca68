/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "ESDM stores little-endian data and runs on little-endian machines only"
#endif

void
esdm__buffer_init(esdm__buffer *buffer)
{
    memset(buffer, 0, sizeof *buffer);
}

void
esdm__buffer_clear(esdm__buffer *buffer)
{
    free(buffer->data);
    esdm__buffer_init(buffer);
}

uint8_t *
esdm__buffer_reserve(esdm__buffer *buffer, size_t bytes)
{
    if (buffer->failed || bytes > SIZE_MAX / 2 - buffer->bytes) {
        buffer->failed = true;
        return NULL;
    }
    size_t need = buffer->bytes + bytes;
    if (need > buffer->capacity || buffer->data == NULL) {
        size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
        while (capacity < need)
            capacity *= 2;
        uint8_t *data = realloc(buffer->data, capacity);
        if (data == NULL) {
            buffer->failed = true;
            return NULL;
        }
        buffer->data = data;
        buffer->capacity = capacity;
    }
    return buffer->data + buffer->bytes;
}

void
esdm__buffer_put(esdm__buffer *buffer, const void *data, size_t bytes)
{
    uint8_t *to = esdm__buffer_reserve(buffer, bytes);
    if (to == NULL || bytes == 0)
        return;
    memcpy(to, data, bytes);
    buffer->bytes += bytes;
}

void
esdm__buffer_put_u8(esdm__buffer *buffer, uint8_t value)
{
    esdm__buffer_put(buffer, &value, sizeof value);
}

void
esdm__buffer_put_u32(esdm__buffer *buffer, uint32_t value)
{
    esdm__buffer_put(buffer, &value, sizeof value);
}

void
esdm__buffer_put_u64(esdm__buffer *buffer, uint64_t value)
{
    esdm__buffer_put(buffer, &value, sizeof value);
}

void
esdm__buffer_put_varint(esdm__buffer *buffer, uint64_t value)
{
    uint8_t *to = esdm__buffer_reserve(buffer, 10);
    if (to == NULL)
        return;
    size_t n = 0;
    while (value >= 0x80) {
        to[n++] = (uint8_t) (value | 0x80);
        value >>= 7;
    }
    to[n++] = (uint8_t) value;
    buffer->bytes += n;
}

void
esdm__buffer_put_svarint(esdm__buffer *buffer, int64_t value)
{
    esdm__buffer_put_varint(buffer, ((uint64_t) value << 1) ^ (uint64_t) (value >> 63));
}

uint8_t *
esdm__buffer_steal(esdm__buffer *buffer, size_t *ret_bytes)
{
    uint8_t *data = buffer->data;
    *ret_bytes = buffer->bytes;
    esdm__buffer_init(buffer);
    return data;
}

bool
esdm__array_grow(void *array, size_t count, size_t item_bytes)
{
    void **items = array;
    if ((count & (count - 1)) != 0 && count != 0)
        return true;
    void *grown = realloc(*items, (count == 0 ? 1 : 2 * count) * item_bytes);
    if (grown == NULL)
        return false;
    *items = grown;
    return true;
}

void
esdm__cursor_init(esdm__cursor *cursor, const void *data, size_t bytes)
{
    *cursor = (esdm__cursor){.data = data, .bytes = bytes};
}

size_t
esdm__cursor_left(const esdm__cursor *cursor)
{
    return cursor->bytes - cursor->position;
}

const uint8_t *
esdm__cursor_take(esdm__cursor *cursor, size_t bytes)
{
    if (cursor->failed || bytes > esdm__cursor_left(cursor)) {
        cursor->failed = true;
        return NULL;
    }
    const uint8_t *from = cursor->data + cursor->position;
    cursor->position += bytes;
    return from;
}

uint8_t
esdm__cursor_u8(esdm__cursor *cursor)
{
    const uint8_t *from = esdm__cursor_take(cursor, 1);
    return from != NULL ? *from : 0;
}

uint32_t
esdm__cursor_u32(esdm__cursor *cursor)
{
    uint32_t value = 0;
    const uint8_t *from = esdm__cursor_take(cursor, sizeof value);
    if (from != NULL)
        memcpy(&value, from, sizeof value);
    return value;
}

uint64_t
esdm__cursor_u64(esdm__cursor *cursor)
{
    uint64_t value = 0;
    const uint8_t *from = esdm__cursor_take(cursor, sizeof value);
    if (from != NULL)
        memcpy(&value, from, sizeof value);
    return value;
}

uint64_t
esdm__cursor_varint(esdm__cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = esdm__cursor_u8(cursor);
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t) (byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return cursor->failed ? 0 : value;
    }
    cursor->failed = true; /* more than 64 bits */
    return 0;
}

int64_t
esdm__cursor_svarint(esdm__cursor *cursor)
{
    uint64_t value = esdm__cursor_varint(cursor);
    return (int64_t) (value >> 1) ^ -(int64_t) (value & 1);
}
